// SPDX-License-Identifier: Apache-2.0
// The body of one function: scopes, declarations, labels and instructions.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "declaration.h"
#include "lexer.h"
#include "module.h"
#include "scope.h"

namespace fa4::sim::ptx {

// Hands out the one Opcode of a module for each spelling.
class OpcodeTable {
 public:
  explicit OpcodeTable(Module& module) : module_(module) {}
  const Opcode& find(std::string_view text);

 private:
  Module& module_;
  std::unordered_map<std::string_view, const Opcode*> by_text_;
};

class FunctionParser {
 public:
  FunctionParser(Lexer& lexer, OpcodeTable& opcodes, const ModuleNames& module_names, Function& function);

  // `parameters`: the names of the function's parameters and return values. With '{' current; ends behind the
  // '}'.
  void parse(const std::vector<Token>& parameters);

 private:
  void directive();
  void registers();
  void variables();
  void location();
  void label();
  void branch_targets(const Token& name);
  void instruction();
  void guard(Instruction& instruction);

  // Operands. `element` is the index in a vector or list, -1 for an operand on its own.
  Operand operand();
  Operand leaf(int32_t element);
  Operand identifier(int32_t element);
  Operand immediate();
  Operand address();
  Operand pair(Operand first);
  void elements(Operand& list, char close);
  int64_t offset();

  Lexer& lexer_;
  OpcodeTable& opcodes_;
  Function& function_;
  DeclarationParser declarations_;
  Scopes scopes_;
  uint32_t source_file_ = 0, source_line_ = 0;  // of the .loc in force
  uint32_t operand_index_ = 0;                  // of the operand that is being parsed
};

}  // namespace fa4::sim::ptx
