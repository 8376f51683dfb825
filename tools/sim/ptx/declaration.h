// SPDX-License-Identifier: Apache-2.0
// Declarations of variables and parameters: ".global .align 4 .b8 table[16] = {1, 2}" without linkage and
// semicolon.
#pragma once

#include <cstdint>
#include <string_view>

#include "lexer.h"
#include "module.h"

namespace fa4::sim::ptx {

struct NamedVariable {
  Token name;
  Variable variable;
};

// ".global" -> Space::global; Space::none for a directive that names no space.
Space space_from_directive(std::string_view directive);

class DeclarationParser {
 public:
  explicit DeclarationParser(Lexer& lexer) : lexer_(lexer) {}

  // With the directive of a space current: what all variables of the declaration share.
  Variable specifiers(bool is_extern);
  // A name with its array bounds and initialiser.
  NamedVariable declarator(const Variable& specifiers);
  // With ".param" current: one parameter of a function.
  NamedVariable parameter();

  Type type();  // ".b32"
  Token name(const char* what);
  uint32_t integer(const char* what, uint32_t least, uint32_t most);
  void expect(char punctuation, const char* expected);
  bool accept(char punctuation);

 private:
  void alignment(Variable& variable);
  void bounds(Variable& variable, const Token& name, bool& is_sized_by_initializer);
  void initializer(Variable& variable, bool is_array, bool is_sized_by_initializer);
  void initial_value(Variable& variable);

  Lexer& lexer_;
};

}  // namespace fa4::sim::ptx
