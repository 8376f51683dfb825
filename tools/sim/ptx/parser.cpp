// SPDX-License-Identifier: Apache-2.0
// A PTX module: header, variables, functions and their directives, debug sections. Bodies are
// FunctionParser's.
#include <algorithm>
#include <limits>
#include <utility>

#include "declaration.h"
#include "function_parser.h"
#include "lexer.h"
#include "module.h"
#include "scope.h"

namespace fa4::sim::ptx {
namespace {

constexpr uint32_t kMaximumFile = 65535;  // index of a .file
constexpr uint32_t kMaximumVersion = 1000000;

class ModuleParser {
 public:
  explicit ModuleParser(Module& module)
      : module_(module), lexer_(module.text), declarations_(lexer_), opcodes_(module) {}

  void parse();

 private:
  void version();
  void target();
  void address_size();
  void file();
  void section();
  void pragma();
  void linkage_and_declaration();
  void variables(bool is_extern);
  void add_variable(NamedVariable declared);
  void function(bool is_extern);
  std::vector<Token> parameters(std::vector<Variable>& variables);
  void function_directives(Function& function);
  void dimensions(uint32_t (&extents)[3], const char* what);
  size_t add_function(const Token& name, Function function);
  [[noreturn]] void declared_twice(const Token& name, const ModuleName& earlier);

  Module& module_;
  Lexer lexer_;
  DeclarationParser declarations_;
  OpcodeTable opcodes_;
  ModuleNames names_;
};

void ModuleParser::parse() {
  version();
  while (lexer_.current.kind != Token::Kind::end) {
    const Token& token = lexer_.current;
    if (token.kind != Token::Kind::directive)
      lexer_.fail(token, "expected a directive, found " + quoted(token));
    if (token.text == ".target") {
      target();
    } else if (token.text == ".address_size") {
      address_size();
    } else if (token.text == ".file") {
      file();
    } else if (token.text == ".section") {
      section();
    } else if (token.text == ".pragma") {
      pragma();
    } else if (token.text == ".version") {
      lexer_.fail(token, "a second .version; a module has one");
    } else if (token.text == ".alias") {
      lexer_.fail(token, "'.alias' is not supported: a function has one name");
    } else {
      linkage_and_declaration();
    }
  }
  module_.line_starts = lexer_.line_starts();
}

void ModuleParser::version() {
  if (!lexer_.current.is_directive(".version"))
    lexer_.fail(lexer_.current, "a module starts with '.version'");
  lexer_.next();
  const Token token = lexer_.current;
  if (token.kind != Token::Kind::number) lexer_.fail_missing("a version such as 9.0");
  const auto part = [&](std::string_view digits) {
    uint32_t value = 0;
    for (const char c : digits) {
      if (c < '0' || c > '9') value = kMaximumVersion;
      if (value < kMaximumVersion) value = value * 10 + static_cast<uint32_t>(c - '0');
    }
    if (digits.empty() || value >= kMaximumVersion)
      lexer_.fail(token, "bad version " + quoted(token) + "; expected two numbers such as 9.0");
    return value;
  };
  const size_t dot = std::min(token.text.find('.'), token.text.size());
  module_.version_major = part(token.text.substr(0, dot));
  module_.version_minor = part(token.text.substr(std::min(dot + 1, token.text.size())));
  lexer_.next();
}

void ModuleParser::target() {
  const Token directive = lexer_.next();
  if (!module_.target.empty()) lexer_.fail(directive, "a second .target; a module has one");
  module_.target = declarations_.name("a target such as sm_100a").text;
  while (declarations_.accept(',')) {
    const Token option = declarations_.name("an option of .target");
    if (option.text != "debug" && option.text != "texmode_independent" && option.text != "texmode_unified")
      lexer_.fail(option, "unknown option " + quoted(option) +
                              " of .target; debug, texmode_independent and texmode_unified are accepted");
  }
}

void ModuleParser::address_size() {
  lexer_.next();
  const Token size = lexer_.current;
  if (declarations_.integer("the address size", 0, 64) != 64)
    lexer_.fail(size, "the address size is " + quoted(size) + "; 64 is accepted");
}

// .file 1 "kernel.cu" {, timestamp, size}
void ModuleParser::file() {
  lexer_.next();
  const Token at = lexer_.current;
  const uint32_t index = declarations_.integer("the index of a file", 1, kMaximumFile);
  if (lexer_.current.kind != Token::Kind::string) lexer_.fail_missing("the name of a file");
  if (module_.files.size() <= index) module_.files.resize(index + 1);
  std::string& name = module_.files[index];
  if (!name.empty() && name != lexer_.current.text)
    lexer_.fail(at, "file " + quoted(at) + " is declared twice");
  name = lexer_.next().text;
  if (!declarations_.accept(',')) return;
  constexpr uint32_t most = std::numeric_limits<uint32_t>::max();
  declarations_.integer("the timestamp of a file", 0, most);
  declarations_.expect(',', "','");
  declarations_.integer("the size of a file", 0, most);
}

void ModuleParser::section() {
  lexer_.next();
  if (lexer_.current.kind != Token::Kind::directive) lexer_.fail_missing("the name of a section");
  lexer_.next();
  if (!lexer_.current.is('{')) lexer_.fail_missing("'{'");
  lexer_.skip_block();
}

void ModuleParser::pragma() {
  do {
    lexer_.next();
    if (lexer_.current.kind != Token::Kind::string) lexer_.fail_missing("a string");
    lexer_.next();
  } while (lexer_.current.is(','));
  declarations_.expect(';', "';'");
}

void ModuleParser::linkage_and_declaration() {
  bool is_extern = false;
  if (lexer_.current.is_directive(".extern") || lexer_.current.is_directive(".visible") ||
      lexer_.current.is_directive(".weak") || lexer_.current.is_directive(".common"))
    is_extern = lexer_.next().text == ".extern";
  const Token& token = lexer_.current;
  if (token.kind != Token::Kind::directive) lexer_.fail_missing("a declaration");
  if (token.text == ".entry" || token.text == ".func") return function(is_extern);
  const Space space = space_from_directive(token.text);
  if (space == Space::none) lexer_.fail(token, "unknown directive " + quoted(token) + " in a module");
  if (space == Space::local || space == Space::param)
    lexer_.fail(token, "a variable of the module cannot be in " + quoted(token) +
                           "; .global, .const and .shared can");
  variables(is_extern);
}

void ModuleParser::variables(bool is_extern) {
  const Variable specifiers = declarations_.specifiers(is_extern);
  do add_variable(declarations_.declarator(specifiers));
  while (declarations_.accept(','));
  declarations_.expect(';', "',' or ';'");
}

void ModuleParser::declared_twice(const Token& name, const ModuleName& earlier) {
  lexer_.fail(name, quoted(name) + " is declared twice; first on line " + std::to_string(earlier.line));
}

void ModuleParser::add_variable(NamedVariable declared) {
  const ModuleName entry{ModuleName::Kind::variable, module_.variables.size(), declared.name.line};
  const auto [earlier, is_new] = names_.try_emplace(declared.name.text, entry);
  if (is_new) {
    module_.variables.push_back(std::move(declared.variable));
    return;
  }
  // An .extern declaration may be repeated, and followed by the definition.
  if (earlier->second.kind != ModuleName::Kind::variable) declared_twice(declared.name, earlier->second);
  Variable& known = module_.variables[earlier->second.index];
  if (!known.is_extern || known.space != declared.variable.space)
    declared_twice(declared.name, earlier->second);
  declared.variable.alignment = std::max(declared.variable.alignment, known.alignment);
  known = std::move(declared.variable);
}

std::vector<Token> ModuleParser::parameters(std::vector<Variable>& variables) {
  std::vector<Token> names;
  if (!declarations_.accept('(')) return names;
  if (declarations_.accept(')')) return names;
  do {
    NamedVariable declared = declarations_.parameter();
    names.push_back(declared.name);
    variables.push_back(std::move(declared.variable));
  } while (declarations_.accept(','));
  declarations_.expect(')', "',' or ')'");
  return names;
}

void ModuleParser::function(bool is_extern) {
  Function function;
  function.is_entry = lexer_.next().text == ".entry";
  std::vector<Token> names;
  if (!function.is_entry) names = parameters(function.returns);
  const Token name = declarations_.name("the name of a function");
  function.name = name.text;
  function.location.line = name.line;
  function.location.column = name.column;
  for (const Token& parameter : parameters(function.params)) names.push_back(parameter);
  function_directives(function);
  if (!lexer_.current.is('{')) {
    declarations_.expect(';', "';' or '{' behind the head of a function");
    add_function(name, std::move(function));
    return;
  }
  if (is_extern) lexer_.fail(lexer_.current, "an .extern function has no body");
  function.has_body = true;
  const size_t index = add_function(name, std::move(function));
  FunctionParser(lexer_, opcodes_, names_, module_.functions[index]).parse(names);
}

size_t ModuleParser::add_function(const Token& name, Function function) {
  const ModuleName entry{ModuleName::Kind::function, module_.functions.size(), name.line};
  const auto [earlier, is_new] = names_.try_emplace(name.text, entry);
  if (is_new) {
    module_.functions.push_back(std::move(function));
    return entry.index;
  }
  // A declaration may be repeated, and stand in front of or behind the definition.
  if (earlier->second.kind != ModuleName::Kind::function) declared_twice(name, earlier->second);
  Function& known = module_.functions[earlier->second.index];
  if (known.is_entry != function.is_entry || (known.has_body && function.has_body))
    declared_twice(name, earlier->second);
  if (function.has_body) known = std::move(function);
  return earlier->second.index;
}

// "128", "128, 2" or "128, 2, 1": extents that are not given are 1.
void ModuleParser::dimensions(uint32_t (&extents)[3], const char* what) {
  for (uint32_t& extent : extents) extent = 1;
  for (size_t i = 0; i < 3; ++i) {
    extents[i] = declarations_.integer(what, 1, std::numeric_limits<uint32_t>::max());
    if (!declarations_.accept(',')) return;
  }
  lexer_.fail(lexer_.current, std::string(what) + " has at most three numbers");
}

void ModuleParser::function_directives(Function& function) {
  while (lexer_.current.kind == Token::Kind::directive) {
    const Token token = lexer_.current;
    if (token.text == ".pragma") {
      pragma();
      continue;
    }
    lexer_.next();
    if (token.text == ".maxntid") {
      dimensions(function.max_threads, "an extent of .maxntid");
    } else if (token.text == ".reqntid") {
      dimensions(function.required_threads, "an extent of .reqntid");
    } else if (token.text == ".reqnctapercluster") {
      dimensions(function.cluster, "an extent of .reqnctapercluster");
    } else if (token.text == ".maxnreg") {
      function.max_registers = declarations_.integer("the number of registers of .maxnreg", 1, 1024);
    } else if (token.text == ".minnctapersm") {
      function.min_ctas = declarations_.integer("the number of CTAs of .minnctapersm", 0, 1024);
    } else if (token.text == ".maxclusterrank") {
      function.max_cluster_rank = declarations_.integer("the number of CTAs of .maxclusterrank", 1, 1024);
    } else if (token.text == ".explicitcluster") {
      function.explicit_cluster = true;
    } else if (token.text != ".noreturn") {
      lexer_.fail(token,
                  "unknown directive " + quoted(token) +
                      " of a function; .maxntid, .reqntid, .maxnreg, .minnctapersm, .reqnctapercluster, "
                      ".maxclusterrank, .explicitcluster, .noreturn and .pragma are accepted");
    }
  }
}

}  // namespace

Module parse(std::string text) {
  Module module;
  module.text = std::move(text);
  ModuleParser(module).parse();
  return module;
}

}  // namespace fa4::sim::ptx
