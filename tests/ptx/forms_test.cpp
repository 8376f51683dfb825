// SPDX-License-Identifier: Apache-2.0
// Every form of directive, operand and scope that the compiler emits or inline assembly uses, one by one.
#include <utility>

#include "support/catch.h"
#include "text.h"

using namespace fa4::sim::ptx;
using fa4::test::parse_body;
using fa4::test::parse_module;
using Kind = Operand::Kind;

namespace {

const Function& only(const Module& module) {
  REQUIRE(module.functions.size() == 1);
  return module.functions[0];
}

// The first instruction's operands.
const std::vector<Operand>& operands(const Module& module) {
  return only(module).instructions.at(0).operands;
}

std::string register_name(const Module& module, int32_t index) {
  return only(module).registers.at(static_cast<size_t>(index)).name;
}

std::string symbol_name(const Module& module, const Operand& operand) {
  return only(module).names.at(static_cast<size_t>(operand.symbol));
}

uint64_t immediate(const std::string& number) {
  const Module module = parse_body("mov.b64 %rd1, " + number + ";");
  const Operand& operand = operands(module).at(1);
  REQUIRE(operand.kind == Kind::immediate);
  return operand.bits;
}

}  // namespace

TEST_CASE("module header") {
  const Module module = parse(
      "// a comment\n.version 8.7\n/* another\n one */ .target sm_100f, debug\n.address_size 64\n"
      ".file 1 \"/a/b.cu\"\n.file 3 \"c.cuh\", 1700000000, 1234\n.pragma \"nounroll\";\n");
  CHECK(module.version_major == 8);
  CHECK(module.version_minor == 7);
  CHECK(module.target == "sm_100f");
  REQUIRE(module.files.size() == 4);
  CHECK(module.files[1] == "/a/b.cu");
  CHECK(module.files[2].empty());
  CHECK(module.files[3] == "c.cuh");
}

TEST_CASE("variables of the module") {
  const Module module = parse_module(
      ".global .align 4 .b8 table[6] = {1, 2,0x3, -1};\n"
      ".visible .global .u32 one = 7, two;\n"
      ".const .align 8 .f64 d = 0d3FF8000000000000;\n"
      ".weak .global .f32 f[3] = {0f3F800000, -2.5};\n"
      ".global .u64 wide[2] = {18446744073709551615, 1U};\n"
      ".global .s16 open[] = {1, -2, 0x7fff};\n"
      ".global .attribute(.managed) .align 4 .u32 managed = 3;\n"
      ".extern .shared .align 1024 .b8 smem[];\n"
      ".extern .shared .align 16 .b8 smem[];\n"
      ".shared .align 16 .b32 grid[2][3];\n"
      ".extern .global .u32 later;\n.global .u32 later = 9;\n");
  const auto& v = module.variables;
  REQUIRE(v.size() == 11);
  CHECK(v[0].name == "table");
  CHECK(v[0].space == Space::global);
  CHECK(v[0].alignment == 4);
  CHECK(v[0].size == 6);
  CHECK(v[0].initializer == std::vector<uint8_t>{1, 2, 3, 255});
  CHECK(v[0].location.line == 4);
  CHECK(v[0].location.column == 22);
  CHECK(v[1].initializer == std::vector<uint8_t>{7, 0, 0, 0});
  CHECK(v[1].alignment == 4);
  CHECK(v[2].name == "two");
  CHECK(v[2].initializer.empty());
  CHECK(v[3].space == Space::constant);
  CHECK(v[3].type == Type::f64);
  CHECK(v[3].initializer == std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0xF8, 0x3F});
  CHECK(v[4].size == 12);
  CHECK(v[4].initializer == std::vector<uint8_t>{0, 0, 0x80, 0x3F, 0, 0, 0x20, 0xC0});
  CHECK(v[5].initializer[7] == 255);
  CHECK(v[5].initializer[8] == 1);
  CHECK(v[6].size == 6);
  CHECK(v[6].initializer == std::vector<uint8_t>{1, 0, 0xFE, 0xFF, 0xFF, 0x7F});
  CHECK(v[7].is_managed);
  CHECK(!v[0].is_managed);
  CHECK(v[8].is_extern);
  CHECK(v[8].size == 0);
  CHECK(v[8].alignment == 1024);
  CHECK(v[9].size == 24);
  CHECK(!v[10].is_extern);
  CHECK(v[10].initializer[0] == 9);
}

TEST_CASE("heads of functions") {
  const Module module = parse_module(
      ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 a,\n\t.param .b64 b\n)\n;\n"
      ".func twice(.param .b32 x) .noreturn;\n"
      ".visible .entry k(\n\t.param .u64 .ptr .align 1 p0,\n\t.param .u64 .ptr .global .align 16 p1,\n"
      "\t.param .align 128 .b8 map[128],\n\t.param .u32 n\n)\n"
      ".maxntid 128, 2\n.reqntid 64\n.minnctapersm 3\n.maxnreg 168\n.explicitcluster\n.reqnctapercluster 2, "
      "1, 1\n"
      ".maxclusterrank 8\n.pragma \"nounroll\";\n{\n\tret;\n}\n"
      ".func twice(.param .b32 x) { ret; }\n"
      ".entry bare { exit; }\n");
  REQUIRE(module.functions.size() == 4);
  const Function& print = module.functions[0];
  CHECK(print.name == "vprintf");
  CHECK(!print.is_entry);
  CHECK(!print.has_body);
  REQUIRE(print.returns.size() == 1);
  CHECK(print.returns[0].name == "func_retval0");
  CHECK(print.params.size() == 2);
  const Function& twice = module.functions[1];
  CHECK(twice.has_body);
  CHECK(twice.instructions.size() == 1);
  const Function& k = module.functions[2];
  CHECK(k.is_entry);
  CHECK(k.location.line == 11);
  CHECK(k.location.column == 17);
  REQUIRE(k.params.size() == 4);
  CHECK(k.params[0].size == 8);
  CHECK(k.params[0].alignment == 8);
  CHECK(k.params[2].space == Space::param);
  CHECK(k.params[2].size == 128);
  CHECK(k.params[2].alignment == 128);
  CHECK(k.params[3].type == Type::u32);
  CHECK(std::vector<uint32_t>(k.max_threads, k.max_threads + 3) == std::vector<uint32_t>{128, 2, 1});
  CHECK(std::vector<uint32_t>(k.required_threads, k.required_threads + 3) == std::vector<uint32_t>{64, 1, 1});
  CHECK(std::vector<uint32_t>(k.cluster, k.cluster + 3) == std::vector<uint32_t>{2, 1, 1});
  CHECK(k.min_ctas == 3);
  CHECK(k.max_registers == 168);
  CHECK(k.max_cluster_rank == 8);
  CHECK(k.explicit_cluster);
  CHECK(module.functions[3].max_threads[0] == 0);
}

TEST_CASE("opcodes and their parts") {
  const Module module = parse_body(
      "tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, 1;\n"
      "add\n .s32\t.sat %r1, %r2, %r3;\n"
      "tcgen05.wait::ld.sync.aligned;\n"
      "add.s32.sat %r1, %r2, %r3;");
  const auto& list = only(module).instructions;
  REQUIRE(list.size() == 4);
  CHECK(list[0].opcode == "tcgen05.mma.cta_group::1.kind::f16");
  REQUIRE(list[0].parts.size() == 4);
  CHECK(list[0].parts[0] == "tcgen05");
  CHECK(list[0].parts[1] == "mma");
  CHECK(list[0].parts[3] == "kind::f16");
  CHECK(list[1].opcode == "add.s32.sat");
  CHECK(list[2].operands.empty());
  CHECK(list[2].parts[1] == "wait::ld");
  CHECK(list[3].parts.data() == list[1].parts.data());
  CHECK(module.opcodes.size() == 3);
}

TEST_CASE("a moved module keeps its views") {
  Module first = parse_body("ex2.approx.ftz.f32 %r1, %r2;\nret;");
  Module second = std::move(first);
  Module third;
  third = std::move(second);
  const Instruction copy = only(third).instructions[0];
  CHECK(copy.opcode == "ex2.approx.ftz.f32");
  CHECK(copy.parts[3] == "f32");
  CHECK(only(third).instructions[1].parts[0] == "ret");
}

TEST_CASE("immediates") {
  CHECK(immediate("3") == 3);
  CHECK(immediate("-1") == ~0ull);
  CHECK(immediate("0x1F") == 31);
  CHECK(immediate("0XffffffffFFFFFFFFU") == ~0ull);
  CHECK(immediate("4294967295U") == 0xFFFFFFFFull);
  CHECK(immediate("017") == 15);
  CHECK(immediate("0b101") == 5);
  CHECK(immediate("0") == 0);
  CHECK(immediate("-9223372036854775808") == 1ull << 63);
  CHECK(immediate("0f3F800000") == 0x3F800000);
  CHECK(immediate("0Fff800000") == 0xFF800000);
  CHECK(immediate("0d3FF8000000000000") == 0x3FF8000000000000);
  CHECK(immediate("1.5") == 0x3FF8000000000000);
  CHECK(immediate("-1.5") == 0xBFF8000000000000);
  CHECK(immediate("2.5E-1") == 0x3FD0000000000000);
  CHECK(immediate("1e3") == 0x408F400000000000);
  CHECK(immediate("WARP_SZ") == 32);
  const Module single = parse_body("mov.f32 %r1, 0f00000001;");
  CHECK(operands(single)[1].is_float);
  CHECK(!operands(single)[1].is_double);
  const Module wide = parse_body("mov.f64 %rd1, 1.0;");
  CHECK(operands(wide)[1].is_float);
  CHECK(operands(wide)[1].is_double);
  const Module integer = parse_body("mov.b32 %r1, 1;");
  CHECK(!operands(integer)[1].is_float);
}

TEST_CASE("operands") {
  SECTION("registers, sinks, pairs, negation, special registers") {
    const Module module =
        parse_body("op _, %r1, %r2|%p3, _|%p4, %r5|_, !%p6, %tid.x, %laneid, %clock64, %envreg31;");
    const auto& o = operands(module);
    CHECK(o[0].kind == Kind::sink);
    CHECK(o[1].kind == Kind::reg);
    CHECK(register_name(module, o[1].reg) == "%r1");
    CHECK(only(module).registers[static_cast<size_t>(o[1].reg)].type == Type::b32);
    CHECK(o[2].kind == Kind::reg_pair);
    CHECK(register_name(module, o[2].reg) == "%r2");
    CHECK(register_name(module, o[2].reg2) == "%p3");
    CHECK(o[3].reg == sink_reg);
    CHECK(register_name(module, o[3].reg2) == "%p4");
    CHECK(o[4].reg2 == sink_reg);
    CHECK(o[5].kind == Kind::reg);
    CHECK(o[5].negated);
    CHECK(!o[1].negated);
    CHECK(o[6].kind == Kind::special);
    CHECK(symbol_name(module, o[6]) == "%tid.x");
    CHECK(symbol_name(module, o[9]) == "%envreg31");
    CHECK(only(module).registers.size() == 6);
  }
  SECTION("addresses") {
    const Module module = parse_body(
        ".shared .b8 buffer[64];\nop [%r1], [%r1+4], [%rd1+-16], [buffer], [buffer+4], [16], [arg+8], "
        "[ %r1 + 4 + 0x10 - 2 ], [buffer+-4], [-8];");
    const auto& o = operands(module);
    for (const Operand& operand : o) CHECK(operand.kind == Kind::address);
    CHECK(register_name(module, o[0].reg) == "%r1");
    CHECK(o[0].offset == 0);
    CHECK(o[1].offset == 4);
    CHECK(o[2].offset == -16);
    CHECK(symbol_name(module, o[3]) == "buffer");
    CHECK(o[3].reg == -1);
    CHECK(o[4].offset == 4);
    CHECK(o[5].offset == 16);
    CHECK(o[5].reg == -1);
    CHECK(o[5].symbol == -1);
    CHECK(symbol_name(module, o[6]) == "arg");
    CHECK(o[7].offset == 18);
    CHECK(o[8].offset == -4);
    CHECK(o[9].offset == -8);
  }
  SECTION("tensors") {
    const Module module = parse_body("op [%rd1, {%r1, 0, %r2}], [arg+128,{%r3}];");
    const auto& o = operands(module);
    CHECK(o[0].kind == Kind::tensor);
    CHECK(register_name(module, o[0].reg) == "%rd1");
    REQUIRE(o[0].elements.size() == 3);
    CHECK(o[0].elements[1].kind == Kind::immediate);
    CHECK(register_name(module, o[0].elements[2].reg) == "%r2");
    CHECK(o[1].kind == Kind::tensor);
    CHECK(symbol_name(module, o[1]) == "arg");
    CHECK(o[1].offset == 128);
    CHECK(o[1].elements.size() == 1);
  }
  SECTION("symbols") {
    const Module module = parse_body(".shared .b8 buffer[64];\nmov.u32 %r1, buffer+4;\nmov.b64 %rd1, arg;");
    const auto& o = operands(module);
    CHECK(o[1].kind == Kind::symbol);
    CHECK(symbol_name(module, o[1]) == "buffer");
    CHECK(o[1].offset == 4);
    CHECK(symbol_name(module, only(module).instructions[1].operands[1]) == "arg");
  }
  SECTION("vectors, also without a blank behind the opcode") {
    std::string list = "{%r0";
    for (int i = 1; i < 128; ++i) list += ", %r" + std::to_string(i % 10);
    list += "}";
    const Module module = parse_body("tcgen05.ld.sync.aligned.32x32b.x128.b32" + list +
                                     ", [%r1];\nst.async.b32[%r1],{%r1,_,3};\nmov.b64 {%r1, %r2}, %rd1;");
    const auto& o = operands(module);
    CHECK(o[0].kind == Kind::vector);
    REQUIRE(o[0].elements.size() == 128);
    CHECK(register_name(module, o[0].elements[127].reg) == "%r7");
    CHECK(o[1].kind == Kind::address);
    const Instruction& store = only(module).instructions[1];
    CHECK(store.opcode == "st.async.b32");
    CHECK(store.operands[1].elements[1].kind == Kind::sink);
    CHECK(store.operands[1].elements[2].bits == 3);
  }
}

TEST_CASE("guards") {
  const Module module = parse_body(".reg .pred P;\n@%p1 ret;\n@!%p2 bra $L;\n@P exit;\n$L: ret;");
  const auto& list = only(module).instructions;
  CHECK(register_name(module, list[0].guard) == "%p1");
  CHECK(!list[0].guard_negated);
  CHECK(list[0].opcode == "ret");
  CHECK(list[0].location.column == 1);
  CHECK(list[1].guard_negated);
  CHECK(register_name(module, list[2].guard) == "P");
  CHECK(list[3].guard == -1);
}

TEST_CASE("labels") {
  const Module module = parse_body("bra $B;\n$A: $B: mov.b32 %r1, 0; @%p1 bra $A;\nbra.uni $C;\n$C:");
  const Function& k = only(module);
  REQUIRE(k.labels.size() == 3);
  const auto target = [&](size_t instruction) {
    const Operand& operand = k.instructions[instruction].operands[0];
    REQUIRE(operand.kind == Kind::label);
    return k.labels[static_cast<size_t>(operand.label)];
  };
  CHECK(target(0).name == "$B");
  CHECK(target(0).instruction == 1);
  CHECK(target(2).name == "$A");
  CHECK(target(2).instruction == 1);
  CHECK(target(3).instruction == 4);
  CHECK(k.instructions.size() == 4);
}

TEST_CASE("scopes have their own names") {
  const Module module = parse_body(
      ".reg .pred P; .reg .b32 t;\n"
      "mov.b32 t, 0;\n"
      "DONE: bra DONE;\n"
      "{ .reg .b64 t; .shared .b32 s; mov.b64 t, s; @P bra DONE; bra OUTSIDE;\n"
      "  { .reg .b16 t; .shared .b32 s; mov.b16 t, s; bra DONE; DONE: }\n"
      "  mov.b64 t, s; DONE: ret; }\n"
      "OUTSIDE: mov.b32 t, 1;\n"
      "{ .reg .b32 %r<3>; .param .b32 s; mov.b32 %r1, %r5; st.param.b32 [s], %r1; }\n"
      "mov.b32 %r1, 2;");
  const Function& k = only(module);
  const auto& list = k.instructions;
  const auto target = [&](size_t i) { return k.labels[static_cast<size_t>(list[i].operands[0].label)]; };
  const auto name = [&](size_t i, size_t operand) {
    return register_name(module, list[i].operands[operand].reg);
  };
  CHECK(name(0, 0) == "t");
  CHECK(target(1).name == "DONE");
  CHECK(target(1).instruction == 1);
  CHECK(name(2, 0) == "t#2");
  CHECK(k.registers[static_cast<size_t>(list[2].operands[0].reg)].type == Type::b64);
  CHECK(symbol_name(module, list[2].operands[1]) == "s");
  CHECK(target(3).name == "DONE#3");  // the one behind it in its own scope, not the outer one in front of it
  CHECK(target(3).instruction == 8);
  CHECK(target(4).name == "OUTSIDE");
  CHECK(name(5, 0) == "t#3");
  CHECK(symbol_name(module, list[5].operands[1]) == "s#2");
  CHECK(target(6).name == "DONE#2");
  CHECK(target(6).instruction == 7);
  CHECK(name(7, 0) == "t#2");
  CHECK(symbol_name(module, list[7].operands[1]) == "s");
  CHECK(name(9, 0) == "t");
  CHECK(name(10, 0) == "%r1");
  CHECK(name(10, 1) == "%r5");  // of the outer range
  CHECK(symbol_name(module, list[11].operands[0]) == "s#3");
  CHECK(name(12, 0) == "%r1#2");
  REQUIRE(k.variables.size() == 3);
  CHECK(k.variables[1].name == "s#2");
  CHECK(k.variables[2].space == Space::param);
}

TEST_CASE("a variable of a function hides one of the module") {
  const Module module = parse_module(
      ".global .b32 x;\n.func f() { .reg .b64 a; mov.b64 a, x; { .shared .b32 x; mov.b64 a, x; } mov.b64 a, "
      "x; }");
  const Function& f = only(module);
  CHECK(symbol_name(module, f.instructions[0].operands[1]) == "x");
  CHECK(symbol_name(module, f.instructions[1].operands[1]) == "x#2");
  CHECK(symbol_name(module, f.instructions[2].operands[1]) == "x");
  CHECK(f.variables[0].name == "x#2");
}

TEST_CASE("calls") {
  const Module module = parse_module(
      ".func (.param .b32 func_retval0) f(.param .b32 a, .param .align 16 .b8 b[24]);\n"
      ".func g();\n"
      ".entry k() {\n.reg .b32 %r<4>;\n"
      "{ // callseq 0, 0\n.param .b32 param0;\nst.param.b32 [param0], %r1;\n.param .align 16 .b8 "
      "param1[24];\n"
      ".param .b32 retval0;\ncall.uni (retval0), \nf, \n(\nparam0, \nparam1\n);\nld.param.b32 %r2, "
      "[retval0];\n}\n"
      "{ .param .b32 param0; call g, (param0); call g; call.uni g, (); }\n}\n");
  const Function& k = module.functions[2];
  const auto name = [&](const Operand& operand) { return k.names[static_cast<size_t>(operand.symbol)]; };
  const Instruction& call = k.instructions[1];
  CHECK(call.opcode == "call.uni");
  REQUIRE(call.operands.size() == 3);
  CHECK(call.operands[0].kind == Kind::call_list);
  CHECK(name(call.operands[0].elements.at(0)) == "retval0");
  CHECK(call.operands[1].kind == Kind::symbol);
  CHECK(name(call.operands[1]) == "f");
  REQUIRE(call.operands[2].elements.size() == 2);
  CHECK(name(call.operands[2].elements[1]) == "param1");
  CHECK(name(k.instructions[2].operands[1]) == "retval0");
  CHECK(name(k.instructions[3].operands[1].elements[0]) == "param0#2");
  CHECK(k.instructions[4].operands.size() == 1);
  CHECK(k.instructions[5].operands[1].elements.empty());
  REQUIRE(k.variables.size() == 4);
  CHECK(k.variables[1].name == "param1");
  CHECK(k.variables[1].size == 24);
  CHECK(k.variables[1].alignment == 16);
}

TEST_CASE("branch tables") {
  const Module module = parse_body("$T: .branchtargets $A, $B, $A;\nbrx.idx %r1, $T;\n$A: ret;\n$B: exit;");
  const Function& k = only(module);
  REQUIRE(k.branch_tables.size() == 1);
  const Operand& operand = k.instructions[0].operands[1];
  CHECK(operand.kind == Kind::branch_table);
  CHECK(operand.label == 0);
  REQUIRE(k.branch_tables[0].size() == 3);
  CHECK(k.labels[static_cast<size_t>(k.branch_tables[0][1])].name == "$B");
  CHECK(k.branch_tables[0][0] == k.branch_tables[0][2]);
}

TEST_CASE("source positions and descriptions") {
  const Module module = parse(
      fa4::test::entry("mov.b32 %r1, 0;\n\t.loc\t2 57 9, function_name $L__info_string0, inlined_at 1 40 3\n"
                       "\tadd.s32 \t%r1, %r2, %r3;\n.loc 1 41 3\n.pragma \"nounroll\";\nret;\n"
                       ".loc 7 1 1\nexit;") +
      ".file 1 \"attention.cu\"\n.file 2 \"softmax.cuh\"\n"
      ".section .debug_str\n{\n$L__info_string0:\n.b8 95, 0\n.b64 a-b\n// }\n{ \"}\" }\n}\n");
  const auto& list = only(module).instructions;
  CHECK(list[0].location.source_file == 0);
  CHECK(list[1].location.source_file == 2);
  CHECK(list[1].location.source_line == 57);
  CHECK(list[1].location.line == 9);
  CHECK(list[1].location.column == 2);
  CHECK(list[2].location.source_file == 1);
  CHECK(describe(module, list[0]) == "line 7: 'mov.b32 %r1, 0;'");
  CHECK(describe(module, list[1]) == "line 9: 'add.s32  %r1, %r2, %r3;' (softmax.cuh:57)");
  CHECK(describe(module, list[2]) == "line 12: 'ret;' (attention.cu:41)");
  CHECK(describe(module, list[3]) == "line 14: 'exit;'");
  CHECK(line_text(module, 1) == ".version 9.0");
  CHECK(line_text(module, 0).empty());
  CHECK(line_text(module, 1000).empty());
}

TEST_CASE("types and special registers") {
  CHECK(type_from_suffix("f16x2") == Type::f16x2);
  CHECK(type_from_suffix("e4m3") == Type::none);
  CHECK(size_in_bytes(Type::b128) == 16);
  CHECK(size_in_bytes(Type::bf16) == 2);
  CHECK(size_in_bytes(Type::pred) == 0);
  CHECK(is_special_register("%cluster_ctaid.z"));
  CHECK(is_special_register("%pm7"));
  CHECK(is_special_register("%pm7_64"));
  CHECK(!is_special_register("%pm8"));
  CHECK(!is_special_register("%tid.q"));
  CHECK(!is_special_register("%laneid.x"));
  CHECK(!is_special_register("%r1"));
}
