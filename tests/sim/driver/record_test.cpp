// SPDX-License-Identifier: Apache-2.0
// What fa4sim_record keeps of chosen CTAs: each warp's synchronisation in its order, with the phase in which
// it counted.
#include <vector>

#include "driver.h"

namespace {

// Two warps: warp 1's lanes arrive twice on an mbarrier that warp 0 waits for; they meet at bar 0 before and
// after.
constexpr const char* kPtx = R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry meet(.param .u64 out)
{
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %d<9>;
.shared .align 8 .b64 bar;
mov.u32 %r1, %tid.x;
mov.u32 %r2, bar;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra MADE;
mbarrier.init.shared::cta.b64 [%r2], 32;
MADE:
bar.sync 0;
setp.lt.u32 %p2, %r1, 32;
@%p2 bra WAITS;
mbarrier.arrive.shared::cta.b64 _, [%r2];
bar.sync 0;
mbarrier.arrive.shared::cta.b64 _, [%r2];
bra END;
WAITS:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 1;
@!%p3 bra WAITS;
AGAIN:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 0;
@!%p3 bra AGAIN;
bar.sync 0;
LAST:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r2], 1;
@!%p3 bra LAST;
END:
ld.param.u64 %d1, [out];
cvta.to.global.u64 %d2, %d1;
mov.u32 %r3, %ctaid.x;
mul.wide.u32 %d3, %r3, 4;
add.s64 %d4, %d2, %d3;
st.global.u32 [%d4], 1;
ret;
}
)";

std::vector<fa4sim_sync> take(uint64_t cta) {
  std::vector<fa4sim_sync> records(CALL(fa4sim_take_sync, cta, nullptr, 0));
  CHECK(CALL(fa4sim_take_sync, cta, records.data(), records.size()) == records.size());
  return records;
}

}  // namespace

TEST_CASE("chosen CTAs alone are executed, and what they did to synchronise is kept") {
  TestContext context;
  CUmodule module;
  SUCCEEDS(cuModuleLoadData, &module, kPtx);
  CUfunction function;
  SUCCEEDS(cuModuleGetFunction, &function, module, "meet");
  CUdeviceptr out;
  SUCCEEDS(cuMemAlloc, &out, 8 * 4);
  SUCCEEDS(cuMemsetD32, out, 0, 8);
  void* params[] = {&out};
  const uint64_t chosen[] = {5, 2, 99};  // the launch has no CTA 99
  REQUIRE(CALL(fa4sim_record, chosen, 3) == 0);
  SUCCEEDS(cuLaunchKernel, function, 8, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr);
  uint32_t ran[8];
  SUCCEEDS(cuMemcpyDtoH, ran, out, sizeof ran);
  for (uint32_t cta = 0; cta < 8; ++cta) CHECK(ran[cta] == (cta == 2 || cta == 5));

  CHECK(CALL(fa4sim_take_sync, 0, nullptr, 0) == 0);
  CHECK(CALL(fa4sim_take_sync, 99, nullptr, 0) == 0);
  for (uint64_t cta : {2, 5}) {
    const std::vector<fa4sim_sync> records = take(cta);
    struct Expected {
      uint32_t kind, lanes;
      int32_t phase;
    };
    const std::vector<Expected> warp0 = {{FA4SIM_SYNC_INIT, 1, -1},         {FA4SIM_SYNC_CTA_BARRIER, ~0u, 0},
                                         {FA4SIM_SYNC_WAIT, ~0u, -1},       {FA4SIM_SYNC_WAIT, ~0u, 0},
                                         {FA4SIM_SYNC_CTA_BARRIER, ~0u, 1}, {FA4SIM_SYNC_WAIT, ~0u, 1}};
    const std::vector<Expected> warp1 = {{FA4SIM_SYNC_CTA_BARRIER, ~0u, 0},
                                         {FA4SIM_SYNC_ARRIVE, ~0u, 0},
                                         {FA4SIM_SYNC_CTA_BARRIER, ~0u, 1},
                                         {FA4SIM_SYNC_ARRIVE, ~0u, 1}};
    for (uint32_t w = 0; w < 2; ++w) {
      const std::vector<Expected>& expected = w == 0 ? warp0 : warp1;
      size_t i = 0;
      for (const fa4sim_sync& r : records) {
        if (r.warp != w || r.kind == FA4SIM_SYNC_BRANCH) continue;
        REQUIRE(i < expected.size());
        INFO("warp " << w << " record " << i);
        CHECK((r.kind == expected[i].kind && r.lanes == expected[i].lanes && r.phase == expected[i].phase &&
               r.flags == 0));
        CHECK(r.line > 10);
        if (r.kind == FA4SIM_SYNC_ARRIVE || r.kind == FA4SIM_SYNC_WAIT)
          CHECK(r.address == 0x400);
        ++i;
      }
      CHECK(i == expected.size());
    }
    // Warp 0's lanes but the first pass the init; all of both warps go to one side; a wait's loop is left by falling through.
    const auto branch = [&](uint32_t warp, size_t index) {
      for (const fa4sim_sync& r : records)
        if (r.warp == warp && r.kind == FA4SIM_SYNC_BRANCH && index-- == 0) return r;
      FAIL("no such branch");
      return fa4sim_sync{};
    };
    CHECK((branch(0, 0).together == ~0u && branch(0, 0).taken == ~1u));
    CHECK((branch(0, 1).together == ~0u && branch(0, 1).taken == ~0u));
    CHECK((branch(1, 0).together == ~0u && branch(1, 0).taken == ~0u));
    CHECK(branch(0, 0).address > branch(0, 0).instruction);
    CHECK(branch(0, 0).instruction == branch(1, 0).instruction);
    CHECK(CALL(fa4sim_take_sync, cta, nullptr, 0) == 0);
  }

  // Off again: all run, and nothing is kept.
  REQUIRE(CALL(fa4sim_record, nullptr, 0) == 0);
  SUCCEEDS(cuLaunchKernel, function, 8, 1, 1, 64, 1, 1, 0, nullptr, params, nullptr);
  SUCCEEDS(cuMemcpyDtoH, ran, out, sizeof ran);
  for (uint32_t x : ran) CHECK(x == 1);
  CHECK(CALL(fa4sim_take_sync, 2, nullptr, 0) == 0);
  SUCCEEDS(cuMemFree, out);
  SUCCEEDS(cuModuleUnload, module);
}

TEST_CASE("recording is refused where it cannot be right") {
  TestContext context;
  const uint64_t cta = 0;
  CHECK(CALL(fa4sim_record, nullptr, 1) != 0);
  says("the list of CTAs is null");
  REQUIRE(CALL(fa4sim_check, 1) == 0);
  CHECK(CALL(fa4sim_record, &cta, 1) != 0);
  says("fa4sim_check(0)");
  REQUIRE(CALL(fa4sim_check, 0) == 0);
  CHECK(CALL(fa4sim_record, &cta, 1) == 0);
  CHECK(CALL(fa4sim_record, nullptr, 0) == 0);
}
