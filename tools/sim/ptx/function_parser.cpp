// SPDX-License-Identifier: Apache-2.0
// Bodies of functions. Nested scopes are a stack in Scopes, and operands nest once, so nothing here recurses.
#include "function_parser.h"

#include <limits>
#include <utility>

namespace fa4::sim::ptx {
namespace {

constexpr size_t kMaximumVector = 128;                     // elements of { }
constexpr uint64_t kMagnitudeOfLeast = uint64_t{1} << 63;  // of the least 64-bit integer

}  // namespace

const Opcode& OpcodeTable::find(std::string_view text) {
  if (const auto found = by_text_.find(text); found != by_text_.end()) return *found->second;
  Opcode& opcode = module_.opcodes.emplace_back();
  opcode.text = text;
  const std::string_view whole = opcode.text;
  for (size_t begin = 0;;) {
    // A '.' ends a part.
    const size_t dot = whole.find('.', begin);
    opcode.parts.push_back(whole.substr(begin, dot - begin));
    if (dot == std::string_view::npos) break;
    begin = dot + 1;
  }
  by_text_.emplace(whole, &opcode);
  return opcode;
}

FunctionParser::FunctionParser(Lexer& lexer, OpcodeTable& opcodes, const ModuleNames& module_names,
                               Function& function)
    : lexer_(lexer),
      opcodes_(opcodes),
      function_(function),
      declarations_(lexer),
      scopes_(lexer, module_names, function) {}

void FunctionParser::parse(const std::vector<Token>& parameters) {
  scopes_.open(lexer_.next());
  for (const Token& name : parameters) scopes_.declare_parameter(name);
  while (scopes_.depth() > 0) {
    const Token& token = lexer_.current;
    switch (token.kind) {
      case Token::Kind::end:
        lexer_.fail(scopes_.brace(), "the scope that starts here has no end; expected '}'");
      case Token::Kind::directive:
        directive();
        break;
      case Token::Kind::identifier:
        if (lexer_.colon_follows())
          label();
        else
          instruction();
        break;
      default:
        if (token.is('@')) {
          instruction();
        } else if (token.is('{')) {
          scopes_.open(lexer_.next());
        } else if (token.is('}')) {
          scopes_.close();
          lexer_.next();
        } else {
          lexer_.fail(token, "expected an instruction, a label or a directive, found " + quoted(token));
        }
    }
  }
}

void FunctionParser::directive() {
  const Token& token = lexer_.current;
  if (token.text == ".reg") return registers();
  if (token.text == ".loc") return location();
  if (token.text == ".local" || token.text == ".shared" || token.text == ".param") return variables();
  if (token.text == ".pragma") {
    do {
      lexer_.next();
      if (lexer_.current.kind != Token::Kind::string) lexer_.fail_missing("a string");
      lexer_.next();
    } while (lexer_.current.is(','));
    return declarations_.expect(';', "';'");
  }
  if (token.text == ".branchtargets") lexer_.fail(token, "'.branchtargets' needs a label in front of it");
  lexer_.fail(
      token,
      "unknown directive " + quoted(token) +
          " in a function; .reg, .local, .shared, .param, .loc, .pragma and .branchtargets are accepted");
}

void FunctionParser::registers() {
  lexer_.next();
  const Type type = declarations_.type();
  do {
    const Token name = declarations_.name("the name of a register");
    if (declarations_.accept('<')) {
      const uint32_t count =
          declarations_.integer("the number of registers", 0, std::numeric_limits<uint32_t>::max());
      declarations_.expect('>', "'>'");
      scopes_.declare_registers(name, type, count);
    } else {
      scopes_.declare_register(name, type);
    }
  } while (declarations_.accept(','));
  declarations_.expect(';', "',' or ';'");
}

void FunctionParser::variables() {
  const Variable specifiers = declarations_.specifiers(false);
  do {
    NamedVariable declared = declarations_.declarator(specifiers);
    declared.variable.location.source_file = source_file_;
    declared.variable.location.source_line = source_line_;
    scopes_.declare_variable(declared.name, std::move(declared.variable));
  } while (declarations_.accept(','));
  declarations_.expect(';', "',' or ';'");
}

void FunctionParser::location() {
  constexpr uint32_t most = std::numeric_limits<uint32_t>::max();
  lexer_.next();
  source_file_ = declarations_.integer("the file of .loc", 0, most);
  source_line_ = declarations_.integer("the line of .loc", 0, most);
  declarations_.integer("the column of .loc", 0, most);
  if (!declarations_.accept(',')) return;
  // The place that the code was inlined into: ", function_name label {+ offset}, inlined_at file line
  // column".
  const auto keyword = [&](const char* word, const char* expected) {
    if (lexer_.current.kind != Token::Kind::identifier || lexer_.current.text != word)
      lexer_.fail_missing(expected);
    lexer_.next();
  };
  keyword("function_name", "'function_name'");
  declarations_.name("a label");
  if (declarations_.accept('+')) declarations_.integer("an offset", 0, most);
  declarations_.expect(',', "','");
  keyword("inlined_at", "'inlined_at'");
  declarations_.integer("the file of inlined_at", 0, most);
  declarations_.integer("the line of inlined_at", 0, most);
  declarations_.integer("the column of inlined_at", 0, most);
}

void FunctionParser::label() {
  const Token name = declarations_.name("a label");
  declarations_.expect(':', "':'");
  if (lexer_.current.is_directive(".branchtargets")) return branch_targets(name);
  if (lexer_.current.is_directive(".callprototype") || lexer_.current.is_directive(".calltargets"))
    lexer_.fail(lexer_.current, quoted(lexer_.current) + " is not supported: calls through pointers are not");
  scopes_.declare_label(name);
}

void FunctionParser::branch_targets(const Token& name) {
  lexer_.next();
  const uint32_t table = scopes_.declare_branch_table(name);
  std::vector<int32_t>& targets = function_.branch_tables[table];
  do {
    const Token target = declarations_.name("a label");
    scopes_.refer({.name = target,
                   .use = Scopes::Reference::Use::branch_target,
                   .owner = table,
                   .element = static_cast<int32_t>(targets.size())});
    targets.push_back(-1);
  } while (declarations_.accept(','));
  declarations_.expect(';', "',' or ';'");
}

void FunctionParser::guard(Instruction& instruction) {
  instruction.guard_negated = declarations_.accept('!');
  const Token name = lexer_.current;
  if (name.kind != Token::Kind::identifier) lexer_.fail_missing("a predicate register behind '@'");
  instruction.guard = scopes_.find_register(name);
  if (instruction.guard < 0) lexer_.fail(name, "undeclared register " + quoted(name) + " as a predicate");
  lexer_.next();
}

void FunctionParser::instruction() {
  Instruction instruction;
  instruction.location = {lexer_.current.line, lexer_.current.column, source_file_, source_line_};
  if (declarations_.accept('@')) guard(instruction);
  if (lexer_.current.kind != Token::Kind::identifier || lexer_.current.text[0] == '%')
    lexer_.fail_missing("an instruction");
  const Opcode& opcode = opcodes_.find(lexer_.opcode());
  instruction.opcode = opcode.text;
  instruction.parts = opcode.parts;
  while (!lexer_.current.is(';')) {
    operand_index_ = static_cast<uint32_t>(instruction.operands.size());
    instruction.operands.push_back(operand());
    if (lexer_.current.is(';')) break;
    declarations_.expect(',', "',' or ';'");
    if (lexer_.current.is(';')) lexer_.fail_missing("an operand behind ','");
  }
  lexer_.next();
  function_.instructions.push_back(std::move(instruction));
}

Operand FunctionParser::operand() {
  const Token& token = lexer_.current;
  if (token.is('[')) return address();
  if (token.is('{') || token.is('(')) {
    Operand list;
    list.kind = token.is('{') ? Operand::Kind::vector : Operand::Kind::call_list;
    elements(list, token.is('{') ? '}' : ')');
    return list;
  }
  if (token.is('!')) {
    lexer_.next();
    const Token name = lexer_.current;
    Operand result;
    if (name.kind == Token::Kind::identifier) result = identifier(-1);
    if (result.kind != Operand::Kind::reg)
      lexer_.fail(name, "expected a register behind '!', found " + quoted(name));
    result.negated = true;
    return result;
  }
  Operand result = leaf(-1);
  return lexer_.current.is('|') ? pair(std::move(result)) : result;
}

Operand FunctionParser::leaf(int32_t element) {
  const Token& token = lexer_.current;
  if (token.kind == Token::Kind::identifier) return identifier(element);
  if (token.kind == Token::Kind::number || token.is('-')) return immediate();
  lexer_.fail_missing("an operand or ';'");
}

Operand FunctionParser::identifier(int32_t element) {
  const Token name = lexer_.next();
  Operand result;
  if (name.text == "_") {
    result.kind = Operand::Kind::sink;
    return result;
  }
  result.reg = scopes_.find_register(name);
  if (result.reg >= 0) {
    result.kind = Operand::Kind::reg;
    return result;
  }
  if (!scopes_.is_declared(name.text)) {
    if (is_special_register(name.text)) {
      result.kind = Operand::Kind::special;
      result.symbol = scopes_.intern(name.text);
      return result;
    }
    if (name.text[0] == '%') lexer_.fail(name, "undeclared register " + quoted(name));
    if (name.text == "WARP_SZ") {
      result.kind = Operand::Kind::immediate;
      result.bits = 32;
      return result;
    }
  }
  result.kind = Operand::Kind::symbol;
  scopes_.refer({.name = name,
                 .owner = static_cast<uint32_t>(function_.instructions.size()),
                 .operand = operand_index_,
                 .element = element});
  result.offset = offset();
  return result;
}

Operand FunctionParser::immediate() {
  const bool is_negative = declarations_.accept('-');
  const Token token = lexer_.current;
  if (token.kind != Token::Kind::number) lexer_.fail_missing("a number behind '-'");
  const Number number = lexer_.number(token);
  lexer_.next();
  Operand result;
  result.kind = Operand::Kind::immediate;
  result.is_float = number.is_float;
  result.is_double = number.is_double;
  result.bits = number.bits;
  if (!is_negative) return result;
  if (!number.is_float) {
    if (number.bits > kMagnitudeOfLeast)
      lexer_.fail(token, "bad number '-" + std::string(token.text) + "': it does not fit in 64 bits");
    result.bits = 0 - number.bits;
  } else {
    if (token.text[0] == '0' && ((token.text[1] | 0x20) == 'f' || (token.text[1] | 0x20) == 'd'))
      lexer_.fail(token, "a hexadecimal floating-point constant takes no '-'");
    result.bits ^= uint64_t{1} << 63;
  }
  return result;
}

// Any number of "+ n" and "+ -n", and behind the first also "- n": the forms that the assembler takes.
int64_t FunctionParser::offset() {
  int64_t sum = 0;
  for (bool first = true;; first = false) {
    const Token sign = lexer_.current;
    if (first && sign.is('-')) lexer_.fail(sign, "an offset starts with '+'; write '+-4' for a negative one");
    if (!sign.is('+') && !sign.is('-')) return sum;
    lexer_.next();
    const bool is_negative = declarations_.accept('-') != sign.is('-');
    const Token token = lexer_.current;
    if (token.kind != Token::Kind::number) lexer_.fail_missing("a number");
    const Number number = lexer_.number(token);
    if (number.is_float) lexer_.fail(token, "the offset " + quoted(token) + " is not an integer");
    if (number.bits >= kMagnitudeOfLeast ||
        __builtin_add_overflow(
            sum, is_negative ? -static_cast<int64_t>(number.bits) : static_cast<int64_t>(number.bits), &sum))
      lexer_.fail(token, "the offset does not fit in 64 bits");
    lexer_.next();
  }
}

Operand FunctionParser::address() {
  lexer_.next();
  const Token base = lexer_.current;
  Operand result = leaf(-1);
  switch (result.kind) {
    case Operand::Kind::reg:
      result.offset = offset();
      break;
    case Operand::Kind::symbol:  // has taken its offset
      break;
    case Operand::Kind::immediate:
      if (result.is_float) lexer_.fail(base, "an address cannot be a floating-point number");
      result.offset = static_cast<int64_t>(result.bits);
      result.bits = 0;
      break;
    default:
      lexer_.fail(base, "an address takes a register, a symbol or a number, found " + quoted(base));
  }
  result.kind = Operand::Kind::address;
  if (declarations_.accept(',')) {
    if (!lexer_.current.is('{')) lexer_.fail_missing("'{' and the coordinates");
    result.kind = Operand::Kind::tensor;
    elements(result, '}');
  }
  declarations_.expect(']', "']'");
  return result;
}

Operand FunctionParser::pair(Operand first) {
  const Token bar = lexer_.next();
  const Token name = lexer_.current;
  Operand second;
  if (name.kind == Token::Kind::identifier) second = identifier(-1);
  const auto index = [&](const Operand& half) {
    if (half.kind == Operand::Kind::sink) return sink_reg;
    if (half.kind != Operand::Kind::reg) lexer_.fail(bar, "'|' stands between two registers (or '_')");
    return half.reg;
  };
  Operand result;
  result.kind = Operand::Kind::reg_pair;
  result.reg = index(first);
  result.reg2 = index(second);
  return result;
}

// With the opening bracket current.
void FunctionParser::elements(Operand& list, char close) {
  const Token open = lexer_.next();
  if (close == ')' && declarations_.accept(')')) return;
  do {
    if (close == '}' && list.elements.size() == kMaximumVector)
      lexer_.fail(open, "a vector has at most " + std::to_string(kMaximumVector) + " elements");
    list.elements.push_back(leaf(static_cast<int32_t>(list.elements.size())));
  } while (declarations_.accept(','));
  declarations_.expect(close, close == '}' ? "',' or '}'" : "',' or ')'");
}

}  // namespace fa4::sim::ptx
