// SPDX-License-Identifier: Apache-2.0
// mbarriers, by the documented state machine: phases, parity, transaction counts ahead and behind, drops,
// invalidation.
#include "async.h"
#include "support/catch.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

// A straight line of mbarrier instructions by one thread on the barrier at `smem`, with what each test must
// answer.
class Script {
 public:
  Script& step(const std::string& instruction) {
    text_ += "  " + instruction + "\n";
    return *this;
  }
  Script& init(uint32_t count) {
    return step("mbarrier.init.shared::cta.b64 [smem], " + std::to_string(count) + ";");
  }
  Script& arrive(uint32_t count = 1) {
    return step("mbarrier.arrive.shared::cta.b64 _, [smem], " + std::to_string(count) + ";");
  }
  Script& drop() { return step("mbarrier.arrive_drop.shared::cta.b64 _, [smem];"); }
  Script& expect(uint32_t bytes) {
    return step("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [smem], " + std::to_string(bytes) + ";");
  }
  Script& complete(uint32_t bytes) {
    return step("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [smem], " + std::to_string(bytes) + ";");
  }
  Script& arrive_expect(uint32_t bytes) {
    return step("mbarrier.arrive.expect_tx.shared::cta.b64 _, [smem], " + std::to_string(bytes) + ";");
  }
  Script& inval() { return step("mbarrier.inval.shared::cta.b64 [smem];"); }
  Script& parity(uint32_t p, bool expected) {
    return answer("mbarrier.test_wait.parity.shared::cta.b64 %p2, [smem], " + std::to_string(p) + ";",
                  expected);
  }
  Script& try_parity(uint32_t p, bool expected) {
    return answer("mbarrier.try_wait.parity.shared::cta.b64 %p2, [smem], " + std::to_string(p) + ";",
                  expected);
  }
  Script& arrive_state(int slot) {
    return step("mbarrier.arrive.shared::cta.b64 %d" + std::to_string(slot) + ", [smem];");
  }
  Script& state(int slot, bool expected) {
    return answer("mbarrier.test_wait.shared::cta.b64 %p2, [smem], %d" + std::to_string(slot) + ";",
                  expected);
  }
  Script& pending(int slot, uint32_t expected) {
    step("mbarrier.pending_count.b64 %r0, %d" + std::to_string(slot) + ";");
    return record("%r0", expected);
  }
  // The phase that parity names has completed, and the other one has not.
  Script& phase(uint32_t completed) { return parity(completed % 2, false).parity(completed % 2 ^ 1, true); }

  void run() {
    Kernel kernel(entry_of(".param .u64 out", prologue() + text_ + "  ret;", 32));
    const uint64_t out = kernel.buffer<uint32_t>(expected_.size() + 1);
    kernel.run("kernel", {{1, 1, 1}, {1, 1, 1}, 64}, out);
    CHECK(kernel.read<uint32_t>(out, expected_.size()) == expected_);
  }

 private:
  Script& answer(const std::string& instruction, bool expected) {
    step(instruction);
    step("selp.b32 %r0, 1, 0, %p2;");
    return record("%r0", expected);
  }
  Script& record(const std::string& reg, uint32_t expected) {
    step("st.global.b32 [%out+" + std::to_string(4 * expected_.size()) + "], " + reg + ";");
    expected_.push_back(expected);
    return *this;
  }
  std::string text_;
  std::vector<uint32_t> expected_;
};

}  // namespace

TEST_CASE("mbarrier: phases and parity") {
  Script s;
  s.init(2).parity(0, false).parity(1, true);  // a fresh barrier
  s.arrive().parity(0, false).arrive().parity(0, true).parity(1, false);
  s.arrive(2).parity(1, true).parity(0, false);
  for (uint32_t phase = 2; phase < 7; ++phase) s.arrive(2).phase(phase + 1);
  s.try_parity(0, true);
  s.run();
}

TEST_CASE("mbarrier: transaction bytes ahead of and behind the arrivals") {
  Script()
      .init(1)
      .arrive_expect(96)
      .parity(0, false)
      .complete(32)
      .parity(0, false)
      .complete(64)
      .parity(0, true)  // arrival first
      .complete(16)
      .parity(1, false)
      .arrive_expect(16)
      .parity(1, true)  // bytes first: the count goes below zero
      .expect(8)
      .parity(0, false)
      .arrive()
      .parity(0, false)
      .complete(8)
      .parity(0, true)
      .expect(8)
      .complete(8)
      .parity(1, false)
      .arrive()
      .parity(1, true)  // bytes and their announcement before the arrival
      .run();
}

TEST_CASE("mbarrier: arrive_drop lowers what later phases expect") {
  Script()
      .init(3)
      .arrive()
      .drop()
      .parity(0, false)
      .arrive()
      .parity(0, true)
      .arrive()
      .parity(1, false)
      .arrive()
      .parity(1, true)  // two from now on
      .drop()
      .arrive()
      .phase(3)
      .arrive()
      .phase(4)
      .arrive()
      .phase(5)
      .run();
}

TEST_CASE("mbarrier: states, pending counts, invalidation and a second life") {
  Script()
      .init(2)
      .arrive_state(1)
      .state(1, false)
      .arrive_state(2)
      .state(1, true)
      .state(2, true)
      .pending(1, 2)
      .pending(2, 1)
      .arrive_state(3)
      .state(3, false)
      .state(2, true)  // the phase just before is still known
      .inval()
      .step("st.shared.b64 [smem], 0;")
      .init(1)
      .parity(0, false)
      .arrive()
      .parity(0, true)
      .run();
}

TEST_CASE("mbarrier: a wait across warps, many phases") {
  // Warp 0 produces into one word, warp 1 consumes; two barriers of one arrival a lane.
  std::string body = prologue() + init_barrier(0, 32) + init_barrier(8, 32) + cta_sync();
  body += R"(
  mov.u32 %r10, 0;
  and.b32 %r1, %tid32, 31;
  mul.lo.s32 %r2, %r1, 4;
  mov.u32 %r3, smem;
  add.s32 %r2, %r2, %r3;
  mul.wide.u32 %d1, %r1, 4;
  add.s64 %out, %out, %d1;
  @!%p1 bra CONSUME;
PRODUCE:
  and.b32 %r4, %r10, 1;
  xor.b32 %r5, %r4, 1;
EMPTY:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [smem+8], %r5;
  @!%p2 bra EMPTY;
  mad.lo.s32 %r6, %r10, 100, %r1;
  st.shared.u32 [%r2+128], %r6;
  mbarrier.arrive.shared::cta.b64 _, [smem];
  add.s32 %r10, %r10, 1;
  setp.lt.s32 %p3, %r10, 9;
  @%p3 bra PRODUCE;
  ret;
CONSUME:
  and.b32 %r4, %r10, 1;
FULL:
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [smem], %r4;
  @!%p2 bra FULL;
  ld.shared.u32 %r6, [%r2+128];
  st.global.u32 [%out], %r6;
  add.s64 %out, %out, 128;
  mbarrier.arrive.shared::cta.b64 _, [smem+8];
  add.s32 %r10, %r10, 1;
  setp.lt.s32 %p3, %r10, 9;
  @%p3 bra CONSUME;
  ret;
)";
  Kernel kernel(entry_of(".param .u64 out", body, 64));
  const uint64_t out = kernel.buffer<uint32_t>(9 * 32);
  kernel.run("kernel", {{1, 1, 1}, {64, 1, 1}, 512}, out);
  const auto got = kernel.read<uint32_t>(out, 9 * 32);
  for (uint32_t i = 0; i < 9 * 32; ++i) CHECK(got[i] == i / 32 * 100 + i % 32);
}
