// SPDX-License-Identifier: Apache-2.0
#include "sass.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace fa4::time {

namespace {

std::string_view trimmed(std::string_view s) {
  const size_t first = s.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return s.substr(first, s.find_last_not_of(" \t\r") - first + 1);
}

// The number of "/* 0x0000df00ff017b82 */" at the end of a line; false when there is none.
bool take_word(std::string_view& line, uint64_t& word) {
  const size_t open = line.rfind("/* 0x");
  if (open == std::string_view::npos) return false;
  const char* digits = line.data() + open + 5;
  const auto [end, error] = std::from_chars(digits, line.data() + line.size(), word, 16);
  if (error != std::errc() || end - digits != 16) return false;
  line = line.substr(0, open);
  return true;
}

// "/*0070*/" at the begin of a line.
bool take_address(std::string_view& line, uint32_t& address) {
  if (!line.starts_with("/*")) return false;
  const auto [end, error] = std::from_chars(line.data() + 2, line.data() + line.size(), address, 16);
  if (error != std::errc() ||
      std::string_view(end, size_t(line.data() + line.size() - end)).substr(0, 2) != "*/")
    return false;
  line = trimmed(line.substr(size_t(end + 2 - line.data())));
  return true;
}

// "`(.L_x_1)" of a branch, or "(*"BRANCH_TARGETS .L_x_1,.L_x_2"*)" of an indexed one.
std::vector<std::string> labels_in(const std::string& operands) {
  if (const size_t quote = operands.find("`("); quote != std::string::npos)
    return {operands.substr(quote + 2, operands.find(')', quote) - quote - 2)};
  constexpr std::string_view list = "BRANCH_TARGETS ";
  std::vector<std::string> labels;
  size_t at = operands.find(list);
  if (at == std::string::npos) return labels;
  at += list.size();
  const size_t end = operands.find('"', at);
  while (at < end) {
    const size_t comma = std::min(operands.find(',', at), end);
    labels.push_back(operands.substr(at, comma - at));
    at = comma + 1;
  }
  return labels;
}

Instruction parse_instruction(std::string_view text, uint32_t address, uint64_t high) {
  Instruction x;
  x.address = address;
  if (text.ends_with(';')) text = trimmed(text.substr(0, text.size() - 1));
  if (text.starts_with('@')) {
    const size_t end = text.find(' ');
    x.guard = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : trimmed(text.substr(end));
  }
  const size_t end = text.find(' ');
  x.opcode = text.substr(0, end);
  if (end != std::string_view::npos) x.operands = trimmed(text.substr(end));
  const uint64_t control = high >> 41;
  x.stall = control & 15;
  x.keep = control >> 4 & 1;
  x.writes = control >> 5 & 7;
  x.reads = control >> 8 & 7;
  x.waits = control >> 11 & 63;
  return x;
}

}  // namespace

bool Instruction::is(std::string_view modifier) const {
  for (size_t at = opcode.find('.'); at != std::string::npos;) {
    const size_t next = opcode.find('.', at + 1);
    if (std::string_view(opcode).substr(at + 1, next - at - 1) == modifier) return true;
    at = next;
  }
  return false;
}

std::string Instruction::text() const {
  std::string s = guard.empty() ? opcode : guard + " " + opcode;
  if (!operands.empty()) s += " " + operands;
  return s;
}

std::vector<Function> parse_disassembly(std::string_view text) {
  std::vector<Function> functions;
  struct Pending {
    size_t function, instruction;
    std::string label;
  };
  std::vector<Pending> pending;
  std::vector<std::map<std::string, uint32_t, std::less<>>> labels;  // [function]
  bool expects_high = false;
  uint32_t address = 0;
  std::string_view code;
  size_t line_number = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    ++line_number;
    uint64_t word = 0;
    if (expects_high) {
      if (!take_word(line, word))
        throw Error("line " + std::to_string(line_number) +
                    " of the disassembly: the second half of an instruction is missing");
      functions.back().code.push_back(parse_instruction(code, address, word));
      const Instruction& x = functions.back().code.back();
      for (std::string& label : labels_in(x.operands))
        pending.push_back({functions.size() - 1, functions.back().code.size() - 1, std::move(label)});
      expects_high = false;
      continue;
    }
    constexpr std::string_view section = ".section\t.text.";
    if (line.starts_with(section)) {
      const std::string_view name = line.substr(section.size());
      functions.push_back({std::string(name.substr(0, name.find(','))), {}});
      labels.emplace_back();
      continue;
    }
    if (functions.empty()) continue;
    if (take_address(line, address)) {
      if (!take_word(line, word))
        throw Error("line " + std::to_string(line_number) +
                    " of the disassembly has no code in hexadecimal: nvdisasm must be run with -hex");
      code = trimmed(line);
      expects_high = true;
    } else if (line.ends_with(':')) {
      labels.back().emplace(line.substr(0, line.size() - 1), uint32_t(functions.back().code.size()));
    }
  }
  if (functions.empty()) throw Error("the disassembly has no section of code");
  for (const Pending& p : pending) {
    const auto found = labels[p.function].find(p.label);
    if (found != labels[p.function].end())
      functions[p.function].code[p.instruction].targets.push_back(found->second);
  }
  return functions;
}

std::vector<std::vector<uint32_t>> successors(const Function& function) {
  const std::vector<Instruction>& code = function.code;
  std::vector<std::vector<uint32_t>> result(code.size());
  for (uint32_t i = 0; i < code.size(); ++i) {
    const Instruction& x = code[i];
    const std::string_view base = x.base();
    if (base == "JMP" || base == "JMX" || base == "BREAK")
      throw Error(function.name + ": a jump that is not followed: " + x.text());
    // "BRA.U UP0, `(.L_x_1)" and "@P0 BRA `(.L_x_1)" are conditional.
    const bool always = (x.guard.empty() || x.guard == "@PT") && !x.operands.starts_with("UP") &&
                        !x.operands.starts_with("!UP") && !x.operands.starts_with("P") &&
                        !x.operands.starts_with("!P");
    bool falls_through = true;
    if (base == "BRA" || base == "BRX" || base == "BRXU") {
      if (x.targets.empty() || std::ranges::any_of(x.targets, [&](uint32_t t) { return t >= code.size(); }))
        throw Error(function.name + ": no target in: " + x.text());
      // The uniform datapath does for one lane at a time what each lane asked for: a loop over the lanes,
      // which PTX does not have. What each lane does is recorded, and counts; the loop itself counts once.
      const bool over_lanes = x.is("U") && x.is("ANY") && x.targets[0] <= i;
      if (!over_lanes) result[i] = x.targets;
      falls_through = base == "BRA" ? !always : !x.guard.empty();
    } else if (base == "EXIT" || base == "BPT" || base == "RET") {
      falls_through = !always;
    }
    if (falls_through && i + 1 < code.size()) result[i].push_back(i + 1);
  }
  return result;
}

}  // namespace fa4::time
