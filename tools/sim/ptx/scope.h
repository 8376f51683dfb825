// SPDX-License-Identifier: Apache-2.0
// The names of one function: registers, variables and labels in nested scopes, and the references to names
// that may be declared only later (labels).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lexer.h"
#include "module.h"

namespace fa4::sim::ptx {

// Module variables and functions that are declared so far; keys are views into the text.
struct ModuleName {
  enum class Kind : uint8_t { variable, function } kind;
  size_t index;  // into Module::variables or Module::functions
  uint32_t line;
};
using ModuleNames = std::unordered_map<std::string_view, ModuleName>;

class Scopes {
 public:
  enum class Kind : uint8_t { reg, variable, label, branch_table };

  // Where a name is used whose meaning is known when its scope ends.
  struct Reference {
    Token name;
    enum class Use : uint8_t { operand, branch_target } use = Use::operand;
    uint32_t owner = 0;    // operand: index of the instruction; branch_target: of the branch table
    uint32_t operand = 0;  // index of the operand
    int32_t element = -1;  // index of the element of an operand or branch table; -1: the operand itself
  };

  Scopes(const Lexer& lexer, const ModuleNames& module_names, Function& function);

  void open(const Token& brace);
  void close();  // resolves what it can; the outermost scope fails for what is declared nowhere
  size_t depth() const { return scopes_.size(); }
  const Token& brace() const { return scopes_.back().brace; }  // that opened the innermost scope

  // Each fails when the innermost scope has the name already.
  void declare_register(const Token& name, Type type);
  void declare_registers(const Token& base, Type type, uint32_t count);  // base0 ... base<count - 1>
  void declare_variable(const Token& name, Variable variable);
  void declare_parameter(const Token& name);  // of the function: known by its own name
  void declare_label(const Token& name);      // in front of the next instruction
  uint32_t declare_branch_table(const Token& name);

  // The register of that name, -1 when the name means something else so far.
  int32_t find_register(const Token& name);
  bool is_declared(std::string_view name) const;
  void refer(const Reference& reference) { scopes_.back().references.push_back(reference); }
  int32_t intern(std::string_view name);  // index into Function::names

 private:
  struct Symbol {
    Kind kind;
    int32_t index;
    uint32_t line;
  };
  struct Range {
    Type type;
    uint32_t count, line;
  };
  struct Single {
    uint32_t number, line;
  };
  struct Scope {
    Token brace;
    std::unordered_map<std::string_view, Symbol> symbols;
    std::unordered_map<std::string_view, Range> ranges;  // by base
    std::unordered_map<std::string_view, Single>
        least_single;  // of the single names base0, base1, ..., by base
    std::vector<Reference> references;
  };

  void declare(const Token& name, Kind kind, size_t index);
  int32_t add_register(std::string_view name, Type type);
  std::string unique(std::string_view name);
  void resolve(const Reference& reference, const Symbol& symbol);
  void resolve_in_module(const Reference& reference);
  Operand& operand(const Reference& reference);

  const Lexer& lexer_;
  const ModuleNames& module_names_;
  Function& function_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string_view, uint32_t> uses_;  // declarations of a name, over all scopes
  std::unordered_map<std::string, int32_t> interned_;
};

}  // namespace fa4::sim::ptx
