// SPDX-License-Identifier: Apache-2.0
// Declarations. Sizes are checked, not allocated: only the bytes of an initialiser take memory.
#include "declaration.h"

#include <bit>
#include <utility>

namespace fa4::sim::ptx {
namespace {

constexpr uint64_t kMaximumBytes = uint64_t{1} << 30;  // of one variable
constexpr uint32_t kMaximumAlignment = 1u << 20;       // bytes

constexpr std::pair<std::string_view, Space> kSpaces[] = {
    {".global", Space::global},  {".shared", Space::shared}, {".local", Space::local},
    {".const", Space::constant}, {".param", Space::param},
};

}  // namespace

Space space_from_directive(std::string_view directive) {
  for (const auto& [name, space] : kSpaces)
    if (name == directive) return space;
  return Space::none;
}

bool DeclarationParser::accept(char punctuation) {
  if (!lexer_.current.is(punctuation)) return false;
  lexer_.next();
  return true;
}

void DeclarationParser::expect(char punctuation, const char* expected) {
  if (!accept(punctuation)) lexer_.fail_missing(expected);
}

Token DeclarationParser::name(const char* what) {
  if (lexer_.current.kind != Token::Kind::identifier || lexer_.current.text == "_") lexer_.fail_missing(what);
  if (lexer_.current.text.find('.') != std::string_view::npos)
    lexer_.fail(lexer_.current, quoted(lexer_.current) + " cannot be declared; a name has no '.'");
  return lexer_.next();
}

uint32_t DeclarationParser::integer(const char* what, uint32_t least, uint32_t most) {
  if (lexer_.current.kind != Token::Kind::number) lexer_.fail_missing(what);
  const Number number = lexer_.number(lexer_.current);
  if (number.is_float || number.bits < least || number.bits > most)
    lexer_.fail(lexer_.current, std::string(what) + " is " + quoted(lexer_.current) + "; " +
                                    std::to_string(least) + " to " + std::to_string(most) + " are accepted");
  lexer_.next();
  return static_cast<uint32_t>(number.bits);
}

Type DeclarationParser::type() {
  const Token& token = lexer_.current;
  if (token.kind != Token::Kind::directive) lexer_.fail_missing("a type");
  if (token.text == ".v2" || token.text == ".v4" || token.text == ".v8")
    lexer_.fail(token,
                "vector declarations (" + quoted(token) + ") are not supported; declare an array or scalars");
  const Type type = type_from_suffix(token.text.substr(1));
  if (type == Type::none) lexer_.fail(token, quoted(token) + " is no type that can be declared");
  lexer_.next();
  return type;
}

void DeclarationParser::alignment(Variable& variable) {
  lexer_.next();
  const Token at = lexer_.current;
  variable.alignment = integer("an alignment in bytes", 1, kMaximumAlignment);
  if (!std::has_single_bit(variable.alignment))
    lexer_.fail(at, "the alignment " + quoted(at) + " is not a power of two");
}

Variable DeclarationParser::specifiers(bool is_extern) {
  Variable variable;
  variable.is_extern = is_extern;
  variable.space = space_from_directive(lexer_.next().text);
  variable.alignment = 0;
  for (;;) {
    const Token token = lexer_.current;
    if (token.is_directive(".align")) {
      alignment(variable);
    } else if (token.is_directive(".attribute")) {
      lexer_.next();
      expect('(', "'('");
      if (!lexer_.current.is_directive(".managed"))
        lexer_.fail(lexer_.current, "unknown attribute " + quoted(lexer_.current) + "; .managed is accepted");
      lexer_.next();
      expect(')', "')'");
      variable.is_managed = true;
    } else {
      break;
    }
  }
  const Token at = lexer_.current;
  variable.type = type();
  if (variable.type == Type::pred) lexer_.fail(at, "a variable cannot be of type .pred; only registers can");
  if (variable.alignment == 0) variable.alignment = size_in_bytes(variable.type);
  return variable;
}

void DeclarationParser::bounds(Variable& variable, const Token& name, bool& is_sized_by_initializer) {
  variable.size = size_in_bytes(variable.type);
  for (bool first = true; accept('['); first = false) {
    if (first && accept(']')) {
      is_sized_by_initializer = true;
      continue;
    }
    const uint32_t count =
        integer("the number of elements of an array", 0, static_cast<uint32_t>(kMaximumBytes));
    expect(']', "']'");
    variable.size *= count;  // below 2^60: the product so far is at most 2^30
    if (variable.size > kMaximumBytes)
      lexer_.fail(name, "variable " + quoted(name) + " is larger than 1 GiB (1073741824 bytes)");
  }
}

NamedVariable DeclarationParser::declarator(const Variable& specifiers) {
  NamedVariable result{name("the name of a variable"), specifiers};
  Variable& variable = result.variable;
  variable.name = result.name.text;
  variable.location.line = result.name.line;
  variable.location.column = result.name.column;
  const bool is_array = lexer_.current.is('[');
  bool is_open = false;
  bounds(variable, result.name, is_open);
  if (lexer_.current.is('=')) {
    initializer(variable, is_array, is_open);
  } else if (is_open) {
    if (!variable.is_extern)
      lexer_.fail(result.name, "array " + quoted(result.name) + " has neither a size nor an initialiser");
    variable.size = 0;
  }
  return result;
}

void DeclarationParser::initializer(Variable& variable, bool is_array, bool is_sized_by_initializer) {
  const Token equals = lexer_.next();
  if (variable.space != Space::global && variable.space != Space::constant)
    lexer_.fail(equals, "only .global and .const variables may have an initialiser");
  if (variable.is_extern) lexer_.fail(equals, "an .extern variable may not have an initialiser");
  const uint64_t row =
      variable.size;  // of the elements that the innermost known bounds make, when the first is open
  if (!is_array) {
    initial_value(variable);
    return;
  }
  expect('{', "'{'");
  while (!lexer_.current.is('}')) {
    if (lexer_.current.is('{'))
      lexer_.fail(lexer_.current,
                  "nested braces in an initialiser are not supported; list the elements in one row");
    if (!is_sized_by_initializer && variable.initializer.size() >= variable.size)
      lexer_.fail(lexer_.current, "more initial values than the variable has elements");
    initial_value(variable);
    if (!accept(',')) break;
  }
  expect('}', "',' or '}'");
  if (!is_sized_by_initializer) return;
  const uint64_t bytes = variable.initializer.size();
  variable.size = row == 0 ? 0 : (bytes + row - 1) / row * row;
  if (variable.size == 0) lexer_.fail(equals, "an array without elements");
}

void DeclarationParser::initial_value(Variable& variable) {
  const bool is_negative = accept('-');
  Token token = lexer_.current;
  if (token.kind == Token::Kind::identifier) {
    if (token.text == "generic") {  // generic(symbol)
      lexer_.next();
      if (accept('(')) token = lexer_.current;
    }
    lexer_.fail(token, "the initialiser of '" + variable.name + "' is the address of " + quoted(token) +
                           "; addresses in initialisers are not supported, numbers are");
  }
  if (token.kind != Token::Kind::number) lexer_.fail_missing("a number");
  const Number number = lexer_.number(token);
  lexer_.next();
  const uint32_t size = size_in_bytes(variable.type);
  const Type type = variable.type;
  const auto mismatch = [&] {
    lexer_.fail(token, "the number " + quoted(token) + " cannot initialise an element of '" + variable.name +
                           "', which has " + std::to_string(size) + " bytes");
  };
  uint64_t bits = number.bits;
  if (number.is_float) {
    const bool is_decimal = number.is_double && (token.text[1] | 0x20) != 'd';
    if (is_negative && !is_decimal) lexer_.fail(token, "a hexadecimal floating-point constant takes no '-'");
    if (is_negative) bits ^= uint64_t{1} << 63;
    if (type == Type::f32 && number.is_double)
      bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    else if (size != (number.is_double ? 8u : 4u))
      mismatch();
  } else {
    if (type == Type::f16 || type == Type::bf16 || type == Type::f16x2 || type == Type::bf16x2 ||
        type == Type::f32 || type == Type::f32x2 || type == Type::f64 || size > 8)
      mismatch();
    const unsigned width = size * 8;
    const uint64_t most = is_negative ? uint64_t{1} << (width - 1) : ~uint64_t{0} >> (64 - width);
    if (bits > most) mismatch();
    if (is_negative) bits = 0 - bits;
  }
  for (uint32_t i = 0; i < size; ++i) variable.initializer.push_back(static_cast<uint8_t>(bits >> (8 * i)));
}

NamedVariable DeclarationParser::parameter() {
  const Token& token = lexer_.current;
  if (token.is_directive(".reg"))
    lexer_.fail(token, "parameters in registers (.reg) are not supported; .param is");
  if (!token.is_directive(".param")) lexer_.fail_missing("'.param'");
  lexer_.next();
  Variable variable;
  variable.space = Space::param;
  variable.alignment = 0;
  if (lexer_.current.is_directive(".align")) alignment(variable);
  const Token at = lexer_.current;
  variable.type = type();
  if (variable.type == Type::pred) lexer_.fail(at, "a parameter cannot be of type .pred");
  if (lexer_.current.is_directive(".ptr")) {
    // What the pointer points to: a hint to an optimiser.
    lexer_.next();
    const Space space = lexer_.current.kind == Token::Kind::directive
                            ? space_from_directive(lexer_.current.text)
                            : Space::none;
    if (space != Space::none) lexer_.next();
    if (lexer_.current.is_directive(".align")) {
      Variable pointee;
      alignment(pointee);
    }
  }
  if (lexer_.current.is_directive(".align")) alignment(variable);
  if (variable.alignment == 0) variable.alignment = size_in_bytes(variable.type);
  return declarator(variable);
}

}  // namespace fa4::sim::ptx
