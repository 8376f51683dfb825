// SPDX-License-Identifier: Apache-2.0
// Reading a disassembly: control words, labels, jumps.
#include "tools/time/sass.h"
#include "support/catch.h"
#include "text.h"

using namespace fa4::time;
using test::contains;
using test::Disassembly;

TEST_CASE("an instruction of ptxas is read with its control word") {
  // From the kernel: an arrive that waits for nothing, a load of tensor memory on scoreboard 2, a guarded
  // branch that waits for it.
  const std::vector<Function> functions = parse_disassembly(
      "//------\n\t.section\t.text.kernel,\"ax\",@progbits\nkernel:\n.text.kernel:\n"
      "        /*0000*/                   LDC R1, c[0x0][0x37c] ;            /* 0x0000df00ff017b82 */\n"
      "                                                                      /* 0x000fe20000000800 */\n"
      "        /*0010*/                   SHFL.IDX PT, R0, R0, RZ, 0x1f ;    /* 0x00001fff00007589 */\n"
      "                                                                      /* 0x000e6400000e0000 */\n"
      ".L_x_1:\n"
      "        /*0020*/                   R2UR UR15, R0 ;                    /* 0x00000000000f72ca */\n"
      "                                                                      /* 0x002fce00000e0000 */\n"
      "        /*0030*/               @P0 BRA `(.L_x_1) ;                    /* 0x0000000000ac0947 */\n"
      "                                                                      /* 0x000ff00003800000 */\n");
  REQUIRE(functions.size() == 1);
  REQUIRE(functions[0].name == "kernel");
  const std::vector<Instruction>& code = functions[0].code;
  REQUIRE(code.size() == 4);
  CHECK(code[0].opcode == "LDC");
  CHECK(code[0].operands == "R1, c[0x0][0x37c]");
  CHECK((code[0].stall == 1 && code[0].keep && code[0].writes == 7 && code[0].reads == 7 &&
         code[0].waits == 0));
  CHECK(code[1].base() == "SHFL");
  CHECK(code[1].is("IDX"));
  CHECK_FALSE(code[1].is("ID"));
  CHECK((code[1].stall == 2 && !code[1].keep == false && code[1].writes == 1));
  CHECK(code[2].waits == 2);
  CHECK(code[3].guard == "@P0");
  CHECK(code[3].targets == std::vector<uint32_t>{2});
  CHECK(code[3].stall == 8);
}

TEST_CASE("what follows an instruction") {
  Disassembly d("k");
  d.add("@P0 BRA `(.L_b)")
      .add("BRA.U UP0, `(.L_b)")
      .add("BRA `(.L_a)")
      .label(".L_a")
      .add("BRX R4 -0x990 (*\"BRANCH_TARGETS .L_a,.L_b\"*)");
  d.label(".L_b").add("@P1 EXIT").add("BSYNC B0").add("EXIT").add("NOP");
  const auto next = successors(parse_disassembly(d.text())[0]);
  using Next = std::vector<uint32_t>;
  CHECK(next[0] == Next{4, 1});
  CHECK(next[1] == Next{4, 2});
  CHECK(next[2] == Next{3});
  CHECK(next[3] == Next{3, 4});
  CHECK(next[4] == Next{5});
  CHECK(next[5] == Next{6});
  CHECK(next[6].empty());
}

TEST_CASE("what is no disassembly is refused") {
  CHECK_THROWS_AS(parse_disassembly("hello\n"), Error);
  CHECK_THROWS_WITH(parse_disassembly("\t.section\t.text.k,\"ax\"\n        /*0000*/  NOP ;\n"),
                    contains("-hex"));
  Disassembly d("k");
  d.add("BRA `(.L_elsewhere)");
  const Function f = parse_disassembly(d.text())[0];
  CHECK_THROWS_WITH(successors(f), contains("no target"));
}
