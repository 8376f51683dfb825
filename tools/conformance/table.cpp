// SPDX-License-Identifier: Apache-2.0
// From one line of a table to a row: the PTX around the statements under test.
#include <stdexcept>
#include <unordered_set>

#include "row.h"

namespace fa4::conformance {
namespace {

constexpr uint32_t kElements = 4096, kThreads = 128;

// Letters of a signature.
struct Letter {
  char letter;
  Values values;
  uint32_t bytes;
};
constexpr Letter letters[] = {
    {'b', Values::integers, 1}, {'h', Values::integers, 2}, {'r', Values::integers, 4},
    {'l', Values::integers, 8}, {'s', Values::shifts, 4},   {'n', Values::bits, 4},
    {'m', Values::bits, 8},     {'f', Values::f32, 4},      {'d', Values::f64, 8},
    {'x', Values::f16, 2},      {'y', Values::bf16, 2},     {'X', Values::f16x2, 4},
    {'Y', Values::bf16x2, 4},   {'F', Values::f32x2, 8}};

const Letter& letter_of(char c) {
  for (const Letter& l : letters) {
    if (l.letter == c) return l;
  }
  throw std::logic_error(std::string("no kind of operand is called ") + c);
}

constexpr char kSourceNames[] = "abce";  // d is the destination

std::string bits_of(uint32_t bytes) {
  return ".b" + std::to_string(8 * bytes);
}
// Registers have 16 bits at least.
std::string register_of(uint32_t bytes) {
  return bits_of(bytes < 2 ? 2 : bytes);
}

std::string module_text(Needs needs, const std::string& body, const Letter& result,
                        const std::vector<Letter>& sources) {
  std::string t = std::string(needs == Needs::blackwell ? ".version 8.8" : ".version 8.6") +
                  "\n.target $\n.address_size 64\n"
                  ".visible .entry row(.param .u64 out, .param .u64 in)\n.maxntid 128, 1, 1\n{\n"
                  "  .reg .pred %p, %q;\n  .reg .b16 %h;\n  .reg .b32 %t, %u, %i, %lane;\n  .reg .b64 %w, "
                  "%from, %to, %at;\n";
  t += "  .reg " + register_of(result.bytes) + " %d;\n";
  for (size_t k = 0; k < sources.size(); ++k) {
    t += "  .reg " + register_of(sources[k].bytes) + " %" + kSourceNames[k] + ";\n";
  }
  t += "  mov.u32 %t, %ctaid.x;\n  mov.u32 %u, %tid.x;\n  mad.lo.s32 %i, %t, 128, %u;\n  mov.u32 %lane, "
       "%laneid;\n"
       "  ld.param.u64 %from, [in];\n  ld.param.u64 %to, [out];\n";
  uint64_t offset = 0;
  for (size_t k = 0; k < sources.size(); ++k) {
    t += "  mad.wide.u32 %at, %i, " + std::to_string(sources[k].bytes) + ", %from;\n  ld.global" +
         bits_of(sources[k].bytes) + " %" + kSourceNames[k] + ", [%at+" + std::to_string(offset) + "];\n";
    offset += uint64_t(sources[k].bytes) * kElements;
  }
  t += "  mad.wide.u32 %to, %i, " + std::to_string(result.bytes) + ", %to;\n";
  t += "  " + body + "\n  st.global" + bits_of(result.bytes) + " [%to], %d;\n  ret;\n}\n";
  return t;
}

}  // namespace

Row& Table::add(const std::string& text, std::string_view signature, std::string name, std::string belief) {
  const size_t equal = signature.find('=');
  if (equal != 1) throw std::logic_error("a signature is d=abc, not " + std::string(signature));
  const Letter& result = letter_of(signature[0]);
  std::vector<Letter> sources;
  for (char c : signature.substr(2)) sources.push_back(letter_of(c));
  const bool statements = text.find(';') != std::string::npos;
  std::string body = text;
  if (!statements) {
    body += " %d";
    for (size_t k = 0; k < sources.size(); ++k) body += std::string(", %") + kSourceNames[k];
    body += ";";
  }
  Row row;
  row.name = !name.empty() ? std::move(name) : text.substr(0, text.find_first_of(" ;"));
  row.family = family_.name;
  row.section = family_.section;
  row.belief = belief.empty() ? std::string(family_.belief) : std::move(belief);
  row.needs = needs_;
  row.ptx = module_text(needs_, body, result, sources);
  for (const Letter& s : sources) row.inputs.push_back({s.values, s.bytes});
  row.elements = kElements;
  row.output_elements = kElements;
  row.output_element_bytes = result.bytes;
  row.grid = kElements / kThreads;
  row.block = kThreads;
  rows_.push_back(std::move(row));
  return rows_.back();
}

Row& Table::text(std::string name, std::string belief, std::string ptx) {
  Row row;
  row.name = std::move(name);
  row.family = family_.name;
  row.section = family_.section;
  row.belief = std::move(belief);
  row.needs = needs_;
  row.ptx = std::move(ptx);
  row.inputs = {{Values::bits, 4}};
  row.elements = 1024;
  row.output_elements = 1024;
  row.output_element_bytes = 4;
  rows_.push_back(std::move(row));
  return rows_.back();
}

Row& Table::kernel(std::string_view file, std::string_view entry, std::string name, std::string belief) {
  Row& row = text(std::move(name), std::move(belief), kernel_ptx(file));
  row.entry = entry;
  return row;
}

std::string module_for(const Row& row, int major, int minor) {
  const std::string target =
      row.needs == Needs::hopper ? "sm_90a" : "sm_" + std::to_string(10 * major + minor) + "a";
  std::string text = row.ptx;
  const size_t at = text.find(".target $");
  if (at == std::string::npos) throw std::logic_error(row.name + ": its module has no target to replace");
  return text.replace(at, 9, ".target " + target);
}

bool runs_on(const Row& row, int major) {
  switch (row.needs) {
    case Needs::sm_90:
      return major >= 9;
    case Needs::hopper:
      return major == 9;
    case Needs::blackwell:
      return major == 10;
  }
  return false;
}

const std::vector<Row>& all_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list;
    Table table(list);
    for (auto add : {add_integer_rows, add_selection_rows, add_float_rows, add_half_rows, add_conversion_rows,
                     add_memory_rows, add_warp_rows, add_control_rows, add_barrier_rows, add_bulk_rows,
                     add_cluster_rows, add_matrix_rows, add_wgmma_rows, add_attention_rows,
                     add_blackwell_rows}) {
      table.needs(Needs::sm_90);
      add(table);
    }
    std::unordered_set<std::string_view> names;
    for (const Row& row : list) {
      if (!names.insert(row.name).second)
        throw std::logic_error("two conformance rows are called " + row.name);
    }
    return list;
  }();
  return rows;
}

}  // namespace fa4::conformance
