// SPDX-License-Identifier: Apache-2.0
// What is refused, where the error points, and what hostile text may cost. A '^' in a text marks the expected
// place.
#include <chrono>
#include <string>

#include "support/catch.h"
#include "text.h"

using namespace fa4::sim::ptx;
using fa4::test::entry;
using fa4::test::kHead;

namespace {

void check_refused(const std::string& marked, const std::string& message) {
  std::string text = marked;
  const size_t mark = text.find('^');
  REQUIRE(mark != std::string::npos);
  text.erase(mark, 1);
  uint32_t line = 1, column = 1;
  for (size_t i = 0; i < mark; ++i) {
    ++column;
    if (text[i] == '\n') {
      ++line;
      column = 1;
    }
  }
  try {
    parse(text);
    FAIL("accepted: " << marked);
  } catch (const Error& error) {
    INFO(error.what());
    INFO(marked);
    CHECK(error.line == line);
    CHECK(error.column == column);
    CHECK(std::string(error.what()).find(message) != std::string::npos);
    const std::string place = "line " + std::to_string(line) + ", column " + std::to_string(column) + ": ";
    CHECK(std::string(error.what()).rfind(place, 0) == 0);
  }
}

void refuse_body(const std::string& body, const std::string& message) {
  check_refused(entry(body), message);
}
void refuse_module(const std::string& text, const std::string& message) {
  check_refused(kHead + text, message);
}

}  // namespace

TEST_CASE("refused modules") {
  check_refused("^", "starts with '.version'");
  check_refused("^.target sm_100a\n", "starts with '.version'");
  check_refused(".version ^9\n", "bad version '9'");
  check_refused(".version ^9.x\n", "bad version");
  check_refused(".version^", "expected a version");
  check_refused(".version 9.0\n.target sm_100a, ^bugs\n", "unknown option 'bugs'");
  check_refused(".version 9.0\n.target sm_100a\n^.target sm_90\n", "second .target");
  check_refused(".version 9.0\n^.version 9.0\n", "second .version");
  check_refused(".version 9.0\n.address_size ^32\n", "the address size is '32'; 64 is accepted");
  refuse_module("^.frobnicate 3;", "unknown directive '.frobnicate'");
  refuse_module(".visible ^.texref t;", "unknown directive '.texref'");
  refuse_module("^.alias a, b;", "'.alias' is not supported");
  refuse_module("^mov.b32 %r1, 0;", "expected a directive, found 'mov'");
  refuse_module("^\x01", "unexpected character with code 0x01");
  refuse_module("^/* ", "has no end; expected '*/'");
  refuse_module(".section .debug_str ^{ { }", "has no end");
  refuse_module(".file 1 ^\"abc\n", "string that starts here has no end");
  refuse_module(".file ^0 \"abc\"\n", "the index of a file is '0'");
  refuse_module(".file 1 \"abc\"\n.file ^1 \"abd\"\n", "declared twice");
}

TEST_CASE("refused declarations") {
  refuse_module(".global .b32 ^x[];", "neither a size nor an initialiser");
  refuse_module(".global .b32 ^x[1073741824];", "larger than 1 GiB");
  refuse_module(".global .b8 x[^1073741825];", "0 to 1073741824 are accepted");
  refuse_module(".global .b8 ^x[1073741824][1073741824];", "larger than 1 GiB");
  refuse_module(".global .align ^3 .b32 x;", "not a power of two");
  refuse_module(".global ^.b33 x;", "'.b33' is no type");
  refuse_module(".global ^.v4 .b32 x;", "vector declarations ('.v4') are not supported");
  refuse_module(".global ^.pred x;", "cannot be of type .pred");
  refuse_module(".global .attribute(^.unified(1, 2)) .b32 x;", "unknown attribute '.unified'");
  refuse_module("^.local .b32 x;", "cannot be in '.local'");
  refuse_module(".global .b32 x;\n.global .b32 ^x;", "'x' is declared twice; first on line 4");
  refuse_module(".global .b32 x;\n.func ^x();", "'x' is declared twice; first on line 4");
  refuse_module(".func f() { ret; }\n.func ^f() { ret; }", "'f' is declared twice; first on line 4");
  refuse_module(".global .b32 x^", "expected ',' or ';', found the end of the text");
  refuse_module(".global .b32 x^\n.global .b32 y;", "expected ',' or ';', found '.global'");
  refuse_module(".global .b8 x = ^256;", "cannot initialise an element of 'x', which has 1 bytes");
  refuse_module(".global .b8 x = -^129;", "cannot initialise");
  refuse_module(".global .f32 x = ^1;", "cannot initialise");
  refuse_module(".global .b16 x = ^0f3F800000;", "cannot initialise");
  refuse_module(".global .b8 x[2] = {1, 2, ^3};", "more initial values");
  refuse_module(".global .b8 x[2][2] = {^{1, 2}, {3, 4}};", "nested braces");
  refuse_module(".global .b8 x[] ^= {};", "without elements");
  refuse_module(".global .b64 x[2] = {1, ^table};", "the initialiser of 'x' is the address of 'table'");
  refuse_module(".global .b64 x = generic(^table);", "the initialiser of 'x' is the address of 'table'");
  refuse_module(".shared .b32 x ^= 1;", "only .global and .const");
  refuse_module(".extern .global .b32 x ^= 1;", "an .extern variable");
  refuse_module(".entry k(^.reg .b32 x) { ret; }", "parameters in registers");
  refuse_module(".entry k(.param .b32 x, .param .b32 ^x) { ret; }", "'x' is declared twice");
  refuse_module(".entry k() ^.perfect { ret; }", "unknown directive '.perfect' of a function");
  refuse_module(".entry k() .maxntid 1, 2, 3, ^4 { ret; }", "at most three");
  refuse_module(".entry k() .maxntid ^0 { ret; }", "1 to 4294967295 are accepted");
  refuse_module(".extern .func f() ^{ ret; }", "has no body");
}

TEST_CASE("refused bodies") {
  refuse_body("^.frobnicate;", "unknown directive '.frobnicate' in a function");
  refuse_body("^.branchtargets a;", "needs a label");
  refuse_body("p: ^.callprototype _ ();", "calls through pointers");
  refuse_body("mov.b32 ^%x1, 0;", "undeclared register '%x1'");
  refuse_body("mov.b32 ^%r10, 0;", "register '%r10' is out of range: line 6 declares %r0 to %r9");
  refuse_body("mov.b32 ^%r01, 0;", "undeclared register '%r01'");
  refuse_body("mov.b32 ^%r99999999999999999999, 0;", "out of range");
  refuse_body("mov.b32 %r1, ^%tid.q;", "undeclared register '%tid.q'");
  refuse_body("mov.b32 %r1, ^x;", "undeclared register, label, variable or function 'x'");
  refuse_body("bra ^x;", "undeclared label 'x'");
  refuse_body("{ x: }\nbra ^x;", "undeclared label 'x'");
  refuse_body("t: .branchtargets a, ^b;\na: ret;", "undeclared label 'b'");
  refuse_body("t: .branchtargets ^arg;", "is not a label");
  refuse_body("a: ret;\n^a: ret;", "'a' is declared twice in this scope; first on line 7");
  refuse_body(".reg .b32 x, ^x;", "'x' is declared twice in this scope");
  refuse_body(".reg .b32 ^%r5;", "one of the registers of line 6");
  refuse_body(".reg .b32 ^%r<3>;", "declared twice in this scope; first on line 6");
  refuse_body(".reg .b32 %q7, %q3;\n.reg .b32 ^%q<4>;", "declares again the name of line 7");
  refuse_body(".reg .b32 ^%tid;", "is a special register");
  refuse_body(".reg .b32 ^%q1<4>;", "must not end in a digit");
  refuse_body(".reg .b32 ^%q<0>;", "1 to 1048576 are accepted");
  refuse_body(".reg .b32 ^%q<1048577>;", "1 to 1048576 are accepted");
  refuse_body(".reg ^.v2 .b32 v;", "not supported");
  refuse_body(".reg .b32 ^arg;", "'arg' is declared twice");
  refuse_body("mov.b32 ^late, 0;\n.reg .b32 late;", "used before its declaration on line 8");
  refuse_body("@^x ret;", "undeclared register 'x' as a predicate");
  refuse_body("@%p1 ^;", "expected an instruction");
  refuse_body("mov.b32 %r1, 0^\nret;", "expected ',' or ';', found 'ret'");
  refuse_body("ret^", "expected an operand or ';', found '}'");
  refuse_body("mov.b32 %r1 ^%r2;", "expected ',' or ';', found '%r2'");
  refuse_body("mov.b32 %r1, ^;", "expected an operand behind ','");
  refuse_body("^mov..b32 %r1, %r2;", "has an empty part");
  refuse_body("^;", "expected an instruction");
  refuse_body("mov.b32 %r1, ^0f3F80000;", "0f takes 8 hexadecimal digits");
  refuse_body("mov.b32 %r1, ^0f3F80000g;", "bad number '0f3F80000g'");
  refuse_body("mov.b32 %r1, ^0d3F800000;", "0d takes 16");
  refuse_body("mov.b32 %r1, ^12ab;", "bad number '12ab'");
  refuse_body("mov.b32 %r1, ^0x;", "bad number '0x'");
  refuse_body("mov.b32 %r1, ^09;", "bad number '09'");
  refuse_body("mov.b32 %r1, ^1.2.3;", "bad number '1.2.3'");
  refuse_body("mov.b32 %r1, ^1e999;", "outside the range");
  refuse_body("mov.b64 %rd1, ^0x10000000000000000;", "does not fit in 64 bits");
  refuse_body("mov.b64 %rd1, -^9223372036854775809;", "does not fit in 64 bits");
  refuse_body("mov.f32 %r1, -^0f3F800000;", "takes no '-'");
  refuse_body("ld.b32 %r1, [%rd1^-4];", "write '+-4'");
  refuse_body("ld.b32 %r1, [%rd1+^%r2];", "expected a number");
  refuse_body("ld.b32 %r1, [%rd1+^1.5];", "not an integer");
  refuse_body("ld.b32 %r1, [%rd1+9223372036854775807+^1];", "does not fit in 64 bits");
  refuse_body("ld.b32 %r1, [^_];", "an address takes a register, a symbol or a number");
  refuse_body("ld.b32 %r1, [%rd1^;", "expected ']'");
  refuse_body("ld.b32 %r1, [%rd1, ^%r1];", "expected '{'");
  refuse_body("L: ld.b32 %r1, [^L];", "label 'L' is no address");
  refuse_body("mov.b64 %rd1, {%r1, ^{%r2}};", "expected an operand");
  refuse_body("mov.b64 %rd1, {^};", "expected an operand");
  refuse_body("mov.b64 %rd1, {%r1, %r2^;", "expected ',' or '}'");
  refuse_body("setp.eq.b32 %p1^|3, %r1, 0;", "'|' stands between two registers");
  refuse_body("selp.b32 %r1, 0, 1, !^3;", "expected a register behind '!'");
  refuse_body("mov.b32 %r1, ^~3;", "unexpected character '~'");
  refuse_body(".loc 1 ^x 3", "expected the line of .loc");
  refuse_body(".loc 1 2 3, function_name f, ^outlined_at 1 2 3", "expected 'inlined_at'");
  refuse_body(".pragma ^nounroll;", "expected a string");
  refuse_body("}\n^}", "expected a directive, found '}'");
  check_refused(kHead + ".entry k() ^{ ret;", "has no end");
  check_refused(kHead + ".entry k() { ^{ ret;", "has no end");
  std::string list = "%r1";
  for (int i = 0; i < 128; ++i) list += ",%r1";
  refuse_body("mov.b32 ^{" + list + "}, %r1;", "at most 128");
}

TEST_CASE("messages show the line, cut and in one line") {
  try {
    parse(entry("  mov.b32\t%r1, \x07;  "));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()) ==
          "line 7, column 16: unexpected character with code 0x07: 'mov.b32 %r1, ?;'");
  }
  try {
    parse(kHead + std::string(1 << 20, 'x'));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).size() < 400);
  }
}

TEST_CASE("hostile text costs time and memory in proportion") {
  const auto timed = [](const char* what, const std::string& text, bool is_accepted) {
    INFO(what);
    const auto start = std::chrono::steady_clock::now();
    bool accepted = true;
    try {
      parse(text);
    } catch (const Error&) {
      accepted = false;
    }
    CHECK(accepted == is_accepted);
    // A quadratic step over 1 MB would take minutes; sanitizers and busy machines stay far below this.
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
  };
  const auto repeated = [](const std::string& piece, size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += piece;
    return text;
  };
  const auto numbered = [](size_t count, auto piece) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += piece(std::to_string(i));
    return text;
  };
  constexpr size_t megabyte = 1 << 20;
  timed("nested scopes", entry(repeated("{", megabyte)), false);
  timed("brackets", entry("mov.b32 " + repeated("[", megabyte)), false);
  timed("section", kHead + ".section .debug " + repeated("{", megabyte), false);
  timed("guards", entry(repeated("@!", megabyte)), false);
  timed("minus signs", entry("mov.b32 %r1, " + repeated("-", megabyte)), false);
  timed("opcode", entry(repeated("a.b", megabyte)), false);
  timed("one number", entry("mov.b32 %r1, " + repeated("1", megabyte) + ";"), false);
  timed("blank lines and a late error", entry(repeated("\n", megabyte) + "?"), false);
  timed("scopes in a row", entry(repeated("{.reg .b32 t; mov.b32 t, 1;}", megabyte)), true);
  timed("ranges", entry(repeated("{.reg .b32 %q<1048576>; mov.b32 %q1048575, 1;}", megabyte)), true);
  timed("labels",
        entry(numbered(50000, [](const std::string& i) { return "bra L" + i + "; L" + i + ":\n"; })), true);
  timed("references through 60 scopes",
        entry(repeated("{", 60) + numbered(50000, [](const std::string& i) { return "bra L" + i + ";\n"; }) +
              repeated("}", 60) + numbered(50000, [](const std::string& i) { return "L" + i + ": "; })),
        true);
  timed("branch tables",
        entry("T: .branchtargets L" + repeated(",L", megabyte) + "; L: ret;" +
              repeated("brx.idx %r1, T;", megabyte)),
        true);
  timed("registers one by one",
        entry(numbered(50000, [](const std::string& i) { return ".reg .b32 q" + i + ";\n"; }) +
              repeated(".reg .b32 %z<5>; {", 18)),
        false);
  timed("operands", entry("op %r1" + repeated(",%r1", megabyte) + ";"), true);
  timed("variables", entry(repeated("{.local .b8 x[1073741824];}", megabyte)), true);
  timed("opcodes", entry(numbered(50000, [](const std::string& i) { return "op" + i + ".b32;\n"; })), true);
}
