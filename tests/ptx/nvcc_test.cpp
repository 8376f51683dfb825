// SPDX-License-Identifier: Apache-2.0
// What nvcc emits, compared with a naive reading that shares nothing with the parser; truncated and damaged
// text.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "support/catch.h"
#include "text.h"

using namespace fa4::sim::ptx;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string sample(const std::string& name) {
  return read(std::string(PTX_SAMPLES) + "/" + name + ".ptx");
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}

// Opcodes and labels in the order of the text, by cutting lines and semicolons.
struct Naive {
  std::vector<std::string> opcodes, labels;
  size_t guards = 0;
};

Naive read_naively(const std::string& text) {
  Naive result;
  std::istringstream lines(text);
  std::string line, code;
  bool in_section = false, in_body = false;
  while (std::getline(lines, line)) {
    line = line.substr(0, line.find("//"));
    line.erase(0, line.find_first_not_of(" \t"));
    if (line.rfind(".section", 0) == 0) in_section = true;
    if (line == "{") in_body = true;
    if (line.rfind(".loc", 0) == 0 || line.rfind(".file", 0) == 0) continue;
    if (in_body && !in_section) code += line + "\n";
    if (line == "}" && in_section) in_section = false;
    for (const char* head : {".visible", ".weak", ".func"})
      if (line.rfind(head, 0) == 0) in_body = false;
  }
  std::istringstream statements(code);
  for (std::string statement; std::getline(statements, statement, ';');) {
    for (;;) {
      statement.erase(0, std::min(statement.find_first_not_of(" \t\n{}"), statement.size()));
      const size_t end = std::ranges::find_if_not(statement, is_word) - statement.begin();
      if (statement.substr(end, 1) != ":" || statement.substr(end, 2) == "::") break;
      result.labels.push_back(statement.substr(0, end));
      statement.erase(0, end + 1);
    }
    if (statement.empty() || statement[0] == '.') continue;
    if (statement[0] == '@') {
      ++result.guards;
      statement.erase(0, statement.find_first_of(" \t"));
      statement.erase(0, statement.find_first_not_of(" \t"));
    }
    result.opcodes.push_back(statement.substr(0, statement.find_first_of(" \t\n{[")));
  }
  return result;
}

// "" when both are equal.
std::string first_difference(const std::vector<std::string>& parsed, const std::vector<std::string>& naive) {
  for (size_t i = 0; i < std::max(parsed.size(), naive.size()); ++i) {
    const std::string a = i < parsed.size() ? parsed[i] : "nothing",
                      b = i < naive.size() ? naive[i] : "nothing";
    if (a != b) return "at " + std::to_string(i) + " parsed '" + a + "', naively '" + b + "'";
  }
  return "";
}

void check_against_naive(const Module& module, const std::string& text) {
  const Naive naive = read_naively(text);
  std::vector<std::string> opcodes, labels;
  size_t guards = 0;
  // A definition takes the place of its declaration: back to the order of the text.
  std::vector<const Function*> functions;
  for (const Function& function : module.functions) functions.push_back(&function);
  std::ranges::sort(functions, {}, [](const Function* function) { return function->location.line; });
  for (const Function* function : functions) {
    for (const Instruction& instruction : function->instructions) {
      opcodes.emplace_back(instruction.opcode);
      guards += instruction.guard >= 0;
    }
    for (const Label& entry : function->labels) labels.push_back(entry.name.substr(0, entry.name.find('#')));
  }
  CHECK(first_difference(opcodes, naive.opcodes) == "");
  CHECK(first_difference(labels, naive.labels) == "");
  CHECK(guards == naive.guards);
}

// Every register by its name in the text (without what makes it unique), with the number of its uses.
std::map<std::string, size_t> register_uses(const Module& module) {
  std::map<std::string, size_t> uses;
  for (const Function& function : module.functions) {
    const auto count = [&](int32_t index) {
      if (index < 0) return;
      const std::string& name = function.registers[static_cast<size_t>(index)].name;
      ++uses[name.substr(0, name.find('#'))];
    };
    for (const Instruction& instruction : function.instructions) {
      count(instruction.guard);
      for (const Operand& operand : instruction.operands) {
        count(operand.reg);
        count(operand.reg2);
        for (const Operand& element : operand.elements) count(element.reg);
      }
    }
  }
  return uses;
}

std::map<std::string, size_t> register_uses_naively(const std::string& text) {
  const std::set<std::string> bases = {"%rd", "%rs", "%r", "%fd", "%f", "%p", "%px", "%SP", "%SPL"};
  std::map<std::string, size_t> uses;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find("//"));
    for (size_t at; (at = line.find(".reg")) != std::string::npos;) line.erase(at, line.find(';', at) - at);
    for (size_t at = 0; (at = line.find('%', at)) != std::string::npos;) {
      const size_t end = std::find_if_not(line.begin() + at + 1, line.end(), is_word) - line.begin();
      const std::string name = line.substr(at, end - at);
      if (bases.contains(name.substr(0, name.find_last_not_of("0123456789") + 1)) &&
          line.substr(end, 1) != ".")
        ++uses[name];
      at = end;
    }
  }
  return uses;
}

// One line "name uses" for each register whose name starts with '%'.
std::vector<std::string> listed(const std::map<std::string, size_t>& uses) {
  std::vector<std::string> lines;
  for (const auto& [name, count] : uses)
    if (name[0] == '%') lines.push_back(name + " " + std::to_string(count));
  return lines;
}

// Only Error may come out of a text.
void parse_or_refuse(const std::string& text) {
  try {
    parse(text);
  } catch (const Error&) {
  }
}

}  // namespace

TEST_CASE("nvcc: instructions, labels, guards and registers") {
  for (const char* name : {"control", "inline_asm", "math", "math_debug"}) {
    INFO(name);
    const std::string text = sample(name);
    const Module module = parse(text);
    check_against_naive(module, text);
    CHECK(first_difference(listed(register_uses(module)), listed(register_uses_naively(text))) == "");
    for (const Function& function : module.functions) {
      CHECK(function.has_body);
      CHECK(function.instructions.size() > 1);
    }
  }
}

TEST_CASE("nvcc: the attention kernel") {
  const std::string text = read(KERNEL_PTX);
  const Module module = parse(text);
  check_against_naive(module, text);
  CHECK(first_difference(listed(register_uses(module)), listed(register_uses_naively(text))) == "");
  for (const Function& function : module.functions) CHECK(function.instructions.size() > 1000);
}

TEST_CASE("nvcc: declarations") {
  const Module module = parse(sample("control"));
  const auto variable = [&](const std::string& name) {
    const auto found = std::ranges::find(module.variables, name, &Variable::name);
    REQUIRE(found != module.variables.end());
    return *found;
  };
  CHECK(variable("weights").space == Space::constant);
  CHECK(variable("weights").size == 16);
  CHECK(variable("weights").initializer ==
        std::vector<uint8_t>{0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 192, 0, 0, 144, 64});
  CHECK(variable("counter").initializer == std::vector<uint8_t>{7, 0, 0, 0});
  CHECK(variable("threshold").initializer == std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0xD0, 0x3F});
  CHECK(variable("shared_with_host").is_managed);
  CHECK(variable("dynamic_bytes").is_extern);
  CHECK(variable("dynamic_bytes").alignment == 1024);
  const auto k = std::ranges::find(module.functions, "control", &Function::name);
  REQUIRE(k != module.functions.end());
  CHECK(k->is_entry);
  CHECK(k->max_threads[0] == 128);
  CHECK(k->min_ctas == 1);
  REQUIRE(k->params.size() == 4);
  CHECK(k->params[3].size == 24);
  const auto in_space = [&](Space space) {
    return std::ranges::count_if(k->variables, [&](const Variable& v) { return v.space == space; });
  };
  CHECK(in_space(Space::local) == 1);
  CHECK(in_space(Space::shared) == 1);
  CHECK(in_space(Space::param) >= 12);  // arguments and results of nine calls
  const Module clusters = parse(sample("inline_asm"));
  CHECK(clusters.functions.at(0).cluster[0] == 2);
}

TEST_CASE("nvcc: inlined code is placed where it was written") {
  const Module module = parse(sample("control"));
  std::istringstream source(read(std::string(PTX_SOURCES) + "/control.cu"));
  uint32_t expected = 1;
  for (std::string line;
       std::getline(source, line) && line.find("the innermost position") == std::string::npos;)
    ++expected;
  size_t found = 0;
  for (const Function& function : module.functions)
    for (const Instruction& instruction : function.instructions)
      if (instruction.location.source_line == expected && instruction.opcode == "mul.f32") {
        ++found;
        CHECK(describe(module, instruction).find("control.cu:" + std::to_string(expected) + ")") !=
              std::string::npos);
      }
  CHECK(found == 1);
}

TEST_CASE("nvcc: truncated text is refused or parsed") {
  for (const char* name : {"control", "inline_asm"}) {
    const std::string text = sample(name);
    for (size_t size = 0; size < text.size(); size += 97) parse_or_refuse(text.substr(0, size));
  }
}

TEST_CASE("nvcc: damaged text is refused or parsed") {
  std::mt19937 random(1);
  const std::string replacements = "{}[]()<>,;:|!@+-=.%_$0x1fZ\"/*\n \t\xff";
  for (const char* name : {"control", "inline_asm"}) {
    const std::string text = sample(name);
    for (int i = 0; i < 300; ++i) {
      std::string damaged = text;
      for (int j = 0; j < 3; ++j) {
        const size_t at = random() % damaged.size();
        if (random() % 2 == 0)
          damaged[at] = replacements[random() % replacements.size()];
        else
          damaged.erase(at, 1 + random() % 5);
      }
      parse_or_refuse(damaged);
    }
  }
}
