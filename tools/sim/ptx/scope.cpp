// SPDX-License-Identifier: Apache-2.0
// Scopes. Registers of a range are created when they are used: "%r<1000000>" costs nothing until then.
#include "scope.h"

#include <limits>

namespace fa4::sim::ptx {
namespace {

constexpr size_t kMaximumDepth = 64;          // nested scopes
constexpr uint32_t kMaximumRange = 1u << 20;  // registers

std::string on_line(uint32_t line) {
  return "line " + std::to_string(line);
}

// "%r12" -> "%r" and 12, as a range of registers names them: no digits that a number would not have.
struct Numbered {
  std::string_view base;
  uint32_t index = 0;
  bool valid = false;
};

Numbered split(std::string_view name) {
  size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  const std::string_view digits = name.substr(begin);
  if (begin == 0 || digits.empty() || (digits.size() > 1 && digits[0] == '0')) return {};
  Numbered result{name.substr(0, begin), std::numeric_limits<uint32_t>::max(), true};
  if (digits.size() <= 9) {
    result.index = 0;
    for (const char c : digits) result.index = result.index * 10 + static_cast<uint32_t>(c - '0');
  }
  return result;
}

}  // namespace

Scopes::Scopes(const Lexer& lexer, const ModuleNames& module_names, Function& function)
    : lexer_(lexer), module_names_(module_names), function_(function) {}

void Scopes::open(const Token& brace) {
  if (scopes_.size() == kMaximumDepth)
    lexer_.fail(brace, "scopes are nested more than " + std::to_string(kMaximumDepth) + " deep");
  scopes_.emplace_back().brace = brace;
}

void Scopes::close() {
  Scope scope = std::move(scopes_.back());
  scopes_.pop_back();
  for (const Reference& reference : scope.references) {
    const auto found = scope.symbols.find(reference.name.text);
    if (found != scope.symbols.end())
      resolve(reference, found->second);
    else if (!scopes_.empty())
      scopes_.back().references.push_back(reference);
    else
      resolve_in_module(reference);
  }
}

std::string Scopes::unique(std::string_view name) {
  auto [use, is_new] = uses_.try_emplace(name, 0);
  if (is_new && module_names_.contains(name)) use->second = 1;
  const uint32_t count = ++use->second;
  return count == 1 ? std::string(name) : std::string(name) + "#" + std::to_string(count);
}

void Scopes::declare(const Token& name, Kind kind, size_t index) {
  Scope& scope = scopes_.back();
  const Symbol symbol{kind, static_cast<int32_t>(index), name.line};
  const Numbered numbered = split(name.text);
  if (numbered.valid) {
    if (const auto range = scope.ranges.find(numbered.base);
        range != scope.ranges.end() && numbered.index < range->second.count)
      lexer_.fail(name, quoted(name) + " is declared twice in this scope; it is one of the registers of " +
                            on_line(range->second.line));
    const Single single{numbered.index, name.line};
    const auto [least, is_new] = scope.least_single.try_emplace(numbered.base, single);
    if (!is_new && single.number < least->second.number) least->second = single;
  }
  const auto [earlier, is_new] = scope.symbols.try_emplace(name.text, symbol);
  if (!is_new)
    lexer_.fail(name,
                quoted(name) + " is declared twice in this scope; first on " + on_line(earlier->second.line));
}

int32_t Scopes::add_register(std::string_view name, Type type) {
  function_.registers.push_back({unique(name), type});
  return static_cast<int32_t>(function_.registers.size() - 1);
}

void Scopes::declare_register(const Token& name, Type type) {
  if (is_special_register(name.text))
    lexer_.fail(name, quoted(name) + " is a special register; choose another name");
  declare(name, Kind::reg, function_.registers.size());
  add_register(name.text, type);
}

void Scopes::declare_registers(const Token& base, Type type, uint32_t count) {
  Scope& scope = scopes_.back();
  const char last = base.text.back();
  if (last >= '0' && last <= '9')
    lexer_.fail(base, "the base of a range of registers, " + quoted(base) + ", must not end in a digit");
  if (count == 0 || count > kMaximumRange)
    lexer_.fail(base, "a range of " + std::to_string(count) + " registers; 1 to " +
                          std::to_string(kMaximumRange) + " are accepted");
  const auto [earlier, is_new] = scope.ranges.try_emplace(base.text, Range{type, count, base.line});
  if (!is_new)
    lexer_.fail(base, "the registers " + quoted(base) + "<...> are declared twice in this scope; first on " +
                          on_line(earlier->second.line));
  if (const auto single = scope.least_single.find(base.text);
      single != scope.least_single.end() && single->second.number < count)
    lexer_.fail(base, "the range " + quoted(base) + "<" + std::to_string(count) +
                          "> declares again the name of " + on_line(single->second.line));
}

void Scopes::declare_variable(const Token& name, Variable variable) {
  declare(name, Kind::variable, function_.variables.size());
  variable.name = unique(name.text);
  function_.variables.push_back(std::move(variable));
}

void Scopes::declare_parameter(const Token& name) {
  // A parameter lives in Function::params or returns, and keeps its name: index -1 tells it from a variable.
  declare(name, Kind::variable, static_cast<size_t>(-1));
  ++uses_[name.text];
}

void Scopes::declare_label(const Token& name) {
  declare(name, Kind::label, function_.labels.size());
  function_.labels.push_back({unique(name.text), static_cast<uint32_t>(function_.instructions.size())});
}

uint32_t Scopes::declare_branch_table(const Token& name) {
  declare(name, Kind::branch_table, function_.branch_tables.size());
  function_.branch_tables.emplace_back();
  return static_cast<uint32_t>(function_.branch_tables.size() - 1);
}

int32_t Scopes::find_register(const Token& name) {
  const Numbered numbered = split(name.text);
  const Range* too_short = nullptr;
  for (size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    if (const auto found = scope.symbols.find(name.text); found != scope.symbols.end())
      return found->second.kind == Kind::reg ? found->second.index : -1;
    if (!numbered.valid) continue;
    const auto found = scope.ranges.find(numbered.base);
    if (found == scope.ranges.end()) continue;
    const Range& range = found->second;
    if (numbered.index < range.count) {
      const int32_t index = add_register(name.text, range.type);
      scope.symbols.emplace(name.text, Symbol{Kind::reg, index, range.line});
      return index;
    }
    if (too_short == nullptr) too_short = &range;
  }
  if (too_short != nullptr && name.text[0] == '%' && !is_special_register(name.text))
    lexer_.fail(name, "register " + quoted(name) + " is out of range: " + on_line(too_short->line) +
                          " declares " + std::string(numbered.base) + "0 to " + std::string(numbered.base) +
                          std::to_string(too_short->count - 1));
  return -1;
}

bool Scopes::is_declared(std::string_view name) const {
  for (const Scope& scope : scopes_)
    if (scope.symbols.contains(name)) return true;
  return module_names_.contains(name);
}

int32_t Scopes::intern(std::string_view name) {
  const auto [found, is_new] =
      interned_.try_emplace(std::string(name), static_cast<int32_t>(function_.names.size()));
  if (is_new) function_.names.emplace_back(name);
  return found->second;
}

Operand& Scopes::operand(const Reference& reference) {
  Operand& whole = function_.instructions[reference.owner].operands[reference.operand];
  return reference.element < 0 ? whole : whole.elements[static_cast<size_t>(reference.element)];
}

void Scopes::resolve(const Reference& reference, const Symbol& symbol) {
  if (symbol.kind == Kind::reg)
    lexer_.fail(reference.name, "register " + quoted(reference.name) + " is used before its declaration on " +
                                    on_line(symbol.line));
  if (reference.use == Reference::Use::branch_target) {
    if (symbol.kind != Kind::label)
      lexer_.fail(reference.name, quoted(reference.name) + " is not a label; a branch target must be one");
    function_.branch_tables[reference.owner][static_cast<size_t>(reference.element)] = symbol.index;
    return;
  }
  Operand& target = operand(reference);
  if (symbol.kind == Kind::variable) {
    target.symbol = symbol.index < 0 ? intern(reference.name.text)
                                     : intern(function_.variables[static_cast<size_t>(symbol.index)].name);
    return;
  }
  if (target.kind != Operand::Kind::symbol || target.offset != 0)
    lexer_.fail(reference.name, "label " + quoted(reference.name) + " is no address and takes no offset");
  target.kind = symbol.kind == Kind::label ? Operand::Kind::label : Operand::Kind::branch_table;
  target.label = symbol.index;
}

void Scopes::resolve_in_module(const Reference& reference) {
  const bool found = module_names_.contains(reference.name.text);
  if (reference.use == Reference::Use::branch_target)
    lexer_.fail(reference.name, found
                                    ? quoted(reference.name) + " is not a label; a branch target must be one"
                                    : "undeclared label " + quoted(reference.name));
  if (!found) {
    const bool is_branch = function_.instructions[reference.owner].parts[0] == "bra";
    lexer_.fail(reference.name, std::string("undeclared ") +
                                    (is_branch ? "label " : "register, label, variable or function ") +
                                    quoted(reference.name));
  }
  operand(reference).symbol = intern(reference.name.text);
}

}  // namespace fa4::sim::ptx
