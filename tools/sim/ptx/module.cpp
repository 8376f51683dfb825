// SPDX-License-Identifier: Apache-2.0
// The plain parts of a PTX module: types, names of special registers, errors and descriptions of places.
#include "module.h"

#include <algorithm>
#include <utility>

namespace fa4::sim::ptx {
namespace {

// Lines in messages: cut beyond this many characters.
constexpr size_t kShownCharacters = 160;

constexpr std::pair<std::string_view, Type> kTypes[] = {
    {"pred", Type::pred}, {"b8", Type::b8},         {"b16", Type::b16}, {"b32", Type::b32},
    {"b64", Type::b64},   {"b128", Type::b128},     {"u8", Type::u8},   {"u16", Type::u16},
    {"u32", Type::u32},   {"u64", Type::u64},       {"s8", Type::s8},   {"s16", Type::s16},
    {"s32", Type::s32},   {"s64", Type::s64},       {"f16", Type::f16}, {"f16x2", Type::f16x2},
    {"bf16", Type::bf16}, {"bf16x2", Type::bf16x2}, {"f32", Type::f32}, {"f32x2", Type::f32x2},
    {"f64", Type::f64},
};

// Special registers that are vectors: their components are .x .y .z (and .w, always 0).
constexpr std::string_view kVectorSpecials[] = {
    "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid",
};

constexpr std::string_view kSpecials[] = {
    "%laneid",
    "%warpid",
    "%nwarpid",
    "%smid",
    "%nsmid",
    "%gridid",
    "%is_explicit_cluster",
    "%cluster_ctarank",
    "%cluster_nctarank",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
    "%clock",
    "%clock_hi",
    "%clock64",
    "%globaltimer",
    "%globaltimer_lo",
    "%globaltimer_hi",
    "%reserved_smem_offset_begin",
    "%reserved_smem_offset_end",
    "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0",
    "%reserved_smem_offset_1",
    "%total_smem_size",
    "%aggr_smem_size",
    "%dynamic_smem_size",
    "%current_graph_exec",
};

// "%pm3", "%pm3_64" and "%envreg31": a stem, a number below `count`, and a tail.
bool is_numbered(std::string_view name, std::string_view stem, uint32_t count, std::string_view tail) {
  if (!name.starts_with(stem) || !name.ends_with(tail) || name.size() <= stem.size() + tail.size())
    return false;
  const std::string_view digits = name.substr(stem.size(), name.size() - stem.size() - tail.size());
  if (digits.size() > 2 || (digits.size() == 2 && digits[0] == '0')) return false;
  uint32_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<uint32_t>(c - '0');
  }
  return value < count;
}

// Trimmed, cut, and with control characters replaced, so that a message stays one line.
std::string shown(std::string_view line) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!line.empty() && is_blank(line.front())) line.remove_prefix(1);
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  std::string result(line.substr(0, kShownCharacters));
  for (char& c : result) {
    if (c == '\t') c = ' ';
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  }
  if (line.size() > kShownCharacters) result += "...";
  return result;
}

}  // namespace

Error::Error(uint32_t l, uint32_t c, const std::string& message, std::string_view line_text)
    : std::runtime_error("line " + std::to_string(l) + ", column " + std::to_string(c) + ": " + message +
                         ": '" + shown(line_text) + "'"),
      line(l),
      column(c) {}

static std::string listed(const std::string& what, const std::vector<Error>& errors) {
  constexpr size_t kShown = 20;
  std::string text = what + ": ";
  for (size_t i = 0; i < std::min(errors.size(), kShown); ++i)
    text += (i ? "; " : "") + std::string(errors[i].what());
  if (errors.size() > kShown) text += "; and " + std::to_string(errors.size() - kShown) + " more";
  return text;
}

Error::Error(const std::string& what, const std::vector<Error>& errors)
    : std::runtime_error(listed(what, errors)), line(errors.front().line), column(errors.front().column) {}

uint32_t size_in_bytes(Type type) {
  switch (type) {
    case Type::none:
    case Type::pred:
      return 0;
    case Type::b8:
    case Type::u8:
    case Type::s8:
      return 1;
    case Type::b16:
    case Type::u16:
    case Type::s16:
    case Type::f16:
    case Type::bf16:
      return 2;
    case Type::b32:
    case Type::u32:
    case Type::s32:
    case Type::f32:
    case Type::f16x2:
    case Type::bf16x2:
      return 4;
    case Type::b64:
    case Type::u64:
    case Type::s64:
    case Type::f64:
    case Type::f32x2:
      return 8;
    case Type::b128:
      return 16;
  }
  return 0;
}

Type type_from_suffix(std::string_view suffix) {
  for (const auto& [name, type] : kTypes)
    if (name == suffix) return type;
  return Type::none;
}

bool is_special_register(std::string_view name) {
  if (std::ranges::find(kSpecials, name) != std::end(kSpecials)) return true;
  if (is_numbered(name, "%envreg", 32, "") || is_numbered(name, "%pm", 8, "") ||
      is_numbered(name, "%pm", 8, "_64"))
    return true;
  std::string_view base = name;
  if (const size_t dot = name.find('.'); dot != std::string_view::npos) {
    const std::string_view component = name.substr(dot + 1);
    if (component != "x" && component != "y" && component != "z" && component != "w") return false;
    base = name.substr(0, dot);
  }
  return std::ranges::find(kVectorSpecials, base) != std::end(kVectorSpecials);
}

std::string_view line_text(const Module& module, uint32_t line) {
  if (line == 0 || line > module.line_starts.size()) return {};
  const size_t begin = module.line_starts[line - 1];
  size_t end = line < module.line_starts.size() ? module.line_starts[line] - 1 : module.text.size();
  if (end > begin && module.text[end - 1] == '\r') --end;
  return std::string_view(module.text).substr(begin, end - begin);
}

std::string describe(const Module& module, const Location& location) {
  std::string result =
      "line " + std::to_string(location.line) + ": '" + shown(line_text(module, location.line)) + "'";
  if (location.source_file < module.files.size() && !module.files[location.source_file].empty())
    result += " (" + module.files[location.source_file] + ":" + std::to_string(location.source_line) + ")";
  return result;
}

std::string describe(const Module& module, const Instruction& instruction) {
  return describe(module, instruction.location);
}

}  // namespace fa4::sim::ptx
