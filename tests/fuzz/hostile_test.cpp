// SPDX-License-Identifier: Apache-2.0
// Modules made to overrun something: sizes, depths, and addresses near the end of a number's range. Each must
// end in a sentence that says so.
#include <chrono>
#include <string>

#include "support/catch.h"
#include "target.h"

using fa4::sim::test::digest;

namespace {

std::string end_of(const std::string& text) {
  return digest(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

const std::string kHead = ".version 9.0\n.target sm_100a\n.address_size 64\n";
std::string module_of(const std::string& variables, const std::string& params, const std::string& body) {
  return kHead + variables + ".visible .entry k(" + params + ")\n{\n" + body + "\n  ret;\n}\n";
}
// A body with %d1 = -`distance`, and a valid global address in %d2 that has been used.
std::string at_the_end(int distance, const std::string& access) {
  return module_of(".extern .shared .align 16 .b8 smem[];\n", ".param .u64 p",
                   "  .reg .b64 %d<4>;\n  .reg .b32 %r<8>;\n  .reg .pred %q;\n  .local .align 16 .b8 "
                   "l[64];\n  mov.u64 %d3, l;\n  st.local.u32 [%d3], 1;\n  ld.param.u64 %d2, [p];\n"
                   "  ld.global.u32 %r1, [%d2];\n  mov.b64 %d1, -" +
                       std::to_string(distance) + ";\n  mov.u32 %r2, 0;\n" + access);
}
bool says(const std::string& end, const std::string& head, const std::string& text) {
  return end.rfind(head, 0) == 0 && end.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("sizes beyond what a GPU has") {
  CHECK(says(end_of(module_of("", "", "  .reg .b32 %r<4294967295>;")), "refused", "4294967295 registers"));
  CHECK(says(end_of(module_of(".global .b8 x[18446744073709551615];\n", "", "")), "refused",
             "18446744073709551615"));
  CHECK(says(end_of(module_of(".shared .align 16 .b8 x[1000000000];\n", "", "")), "refused", "232448 bytes"));
  CHECK(says(end_of(module_of(
                 "", "", "  .local .align 16 .b8 x[1000000000];\n  .reg .b64 %d<2>;\n  mov.u64 %d1, x;")),
             "refused", "1000000000 bytes"));
  CHECK(says(end_of(module_of("",
                              ".param .b8 a[1000000000], .param .b8 b[1000000000], .param .b8 c[1000000000], "
                              ".param .b8 d[1000000000], .param .b8 e[1000000000]",
                              "")),
             "refused", "5000000000 bytes"));
  CHECK(says(end_of(kHead + ".visible .entry k()\n" + std::string(3'000'000, '{')), "refused", "64 deep"));
}

TEST_CASE("addresses at the end of the range") {
  for (const std::string space : {"global", "shared", "local", "param"}) {
    INFO(space);
    const std::string load = "  ld." + space;
    CHECK(says(end_of(at_the_end(4, load + ".u32 %r1, [%d1];")), "fault", "PTX line"));
    CHECK(says(end_of(at_the_end(16, load + ".v4.u32 {%r1, %r2, %r3, %r4}, [%d1];")), "fault", "PTX line"));
    CHECK(says(end_of(at_the_end(8, load + ".u64 %d3, [%d1];")), "fault", "PTX line"));
    CHECK(says(end_of(at_the_end(8, load + ".u32 %r1, [%d1+9223372036854775804];")), "fault", "PTX line"));
  }
  for (const std::string space : {".global", ".shared", ".local", ""}) {
    INFO(space);
    CHECK(says(end_of(at_the_end(4, "  st" + space + ".u32 [%d1], 1;")), "fault", "PTX line"));
    CHECK(says(end_of(at_the_end(16, "  st" + space + ".v4.u32 [%d1], {%r1, %r2, %r1, %r2};")), "fault",
               "PTX line"));
  }
  CHECK(says(end_of(at_the_end(8, "  atom.global.add.u64 %d3, [%d1], 1;")), "fault", "PTX line"));
  CHECK(says(end_of(at_the_end(8, "  atom.shared.add.u32 %r1, [%d1], 1;")), "fault", "PTX line"));
  CHECK(says(end_of(at_the_end(8, "  ld.global.u32 %r1, [%d2+9223372036854775807];")), "fault", "PTX line"));
  CHECK(says(end_of(at_the_end(8, "  mov.u32 %r5, smem;\n  st.shared.u32 [smem+9223372036854775804], 1;")),
             "fault", "PTX line"));
}

TEST_CASE("barriers and copies at addresses that no CTA has") {
  const std::string kOneLane =
      "  mov.u32 %r3, smem;\n  mov.u32 %r4, %tid.x;\n  setp.eq.u32 %q, %r4, 0;\n  @%q "
      "mbarrier.init.shared::cta.b64 [smem], 1;\n";
  // 2^32 above a valid address: what is cut off must not make it valid.
  const std::string high = "  mov.b64 %d1, 4294968320;\n";
  CHECK(says(end_of(at_the_end(8, high + "  mbarrier.init.b64 [%d1], 1;")), "fault",
             "outside the CTA's shared memory"));
  CHECK(says(end_of(at_the_end(8, "  mbarrier.init.b64 [%d1], 1;")), "fault",
             "outside the CTA's shared memory"));
  CHECK(says(end_of(at_the_end(8, "  mbarrier.arrive.b64 _, [%d1];")), "fault", "no mbarrier"));
  CHECK(says(
      end_of(at_the_end(16, kOneLane + "  @%q cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                                       "[%r3+64], [%d1], 16, [%r3];")),
      "fault", "bulk copy"));
  CHECK(says(
      end_of(at_the_end(16, kOneLane + "  @%q cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                                       "[%r3+64], [%d2], 4294967280, [%r3];")),
      "fault", "outside"));
}
