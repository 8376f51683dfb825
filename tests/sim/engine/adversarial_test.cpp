// SPDX-License-Identifier: Apache-2.0
// What adversarial timing may choose, choice by choice: each program here has a mistake that no nominal run
// shows, and that shows for some seed, without the checker; what is right gives one result for every seed.
#include <set>

#include "litmus/tiles.h"
#include "support/catch.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

constexpr uint64_t kSeeds = 300;

// The word at `out` after the program, with nominal timing and then with every seed.
struct Outcomes {
  uint32_t nominal = 0;
  std::set<uint32_t> adversarial;
};

Outcomes outcomes(const std::string& body, Model model = Model::isa) {
  Outcomes all;
  Kernel kernel(entry_of(".param .u64 out, .param .u64 from",
                         prologue() + "  ld.param.u64 %d1, [from];\n" + body + "  ret;\n", 128),
                1, 4, 1 << 20);
  kernel.device().set_model(model);
  const uint64_t out = kernel.buffer<uint32_t>(1024), from = kernel.buffer<uint32_t>(2048);
  for (uint64_t seed = 0; seed <= kSeeds; ++seed) {
    std::memset(kernel.device().memory().at(out, 4096), 0, 4096);
    std::memset(kernel.device().memory().at(from, 8192), 0, 8192);
    kernel.device().set_adversarial(seed);
    kernel.run("kernel", {{1, 1, 1}, {128, 1, 1}, 65536}, out, from);
    const uint32_t value = kernel.read<uint32_t>(out, 1)[0];
    if (seed == 0)
      all.nominal = value;
    else
      all.adversarial.insert(value);
  }
  return all;
}

void always(uint32_t value, const std::string& body, Model model = Model::isa) {
  const Outcomes all = outcomes(body, model);
  INFO(body);
  CHECK(all.nominal == value);
  CHECK(all.adversarial == std::set<uint32_t>{value});
}
void at_times(uint32_t nominal, uint32_t other, const std::string& body) {
  const Outcomes all = outcomes(body);
  INFO(body);
  CHECK(all.nominal == nominal);
  CHECK(all.adversarial == std::set<uint32_t>{nominal, other});
}

const std::string kSync = "  bar.sync 0;\n";
std::string give(const std::string& reg) {
  return line("st.global.u32 [%out], " + reg);
}
// Thread 0 writes 16 bytes of shared memory.
std::string write(uint32_t offset, uint32_t value) {
  const std::string v = std::to_string(value);
  return line("mov.b32 %v0, " + v) +
         line("@%p0 st.shared.v4.b32 [smem+" + std::to_string(offset) + "], {%v0, %v0, %v0, %v0}");
}
const std::string kStoreBulk =
    "  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [smem+1024], 16;\n";
const std::string kCommitGroup = "  @%p0 cp.async.bulk.commit_group;\n",
                  kWaitGroup = "  @%p0 cp.async.bulk.wait_group 0;\n",
                  kWaitGroupRead = "  @%p0 cp.async.bulk.wait_group.read 0;\n";

// A word and a flag in shared memory, by another warp.
std::string message(const std::string& before_flag, const std::string& after_flag) {
  return line("@%p0 st.shared.u32 [smem+64], 1") + line("@%p0 st.shared.u32 [smem+128], 0") + kSync +
         by_thread(0, line("st.shared.u32 [smem+64], 2") + before_flag +
                          line("st.volatile.shared.u32 [smem+128], 1")) +
         by_thread(32, spin("ld.volatile.shared.u32 %r9, [smem+128]") + after_flag +
                           line("ld.shared.u32 %r1, [smem+64]") + give("%r1"));
}

}  // namespace

TEST_CASE("a store is seen by others when it has been released", "[adversarial]") {
  const std::string fence = line("fence.acq_rel.cta");
  at_times(2, 1, message("", ""));
  always(2, message(fence, fence));
  always(2, message("", ""), Model::silicon);
  SECTION("in global memory") {
    const auto text = [](const std::string& before) {
      return line("@%p0 st.global.u32 [%d1], 1") + line("@%p0 st.shared.u32 [smem+128], 0") + kSync +
             by_thread(
                 0, line("st.global.u32 [%d1], 2") + before + line("st.volatile.shared.u32 [smem+128], 1")) +
             by_thread(32, spin("ld.volatile.shared.u32 %r9, [smem+128]") + line("fence.acq_rel.cta") +
                               line("ld.global.u32 %r1, [%d1]") + give("%r1"));
    };
    at_times(2, 1, text(""));
    always(2, text(line("fence.acq_rel.cta")));
  }
  SECTION("by a relaxed arrival") {
    const auto text = [](const std::string& semantics) {
      return init_barrier(0, 1) + line("@%p0 st.shared.u32 [smem+64], 1") + kSync +
             by_thread(0, line("st.shared.u32 [smem+64], 2") + arrive(0, semantics)) +
             by_thread(32, wait_barrier(0, 0) + line("ld.shared.u32 %r1, [smem+64]") + give("%r1"));
    };
    at_times(2, 1, text(".relaxed.cta"));
    always(2, text(""));
    always(2, text(".release.cta"));
  }
}

TEST_CASE("a store is seen by other lanes of its warp after bar.warp.sync", "[adversarial]") {
  const auto text = [](const std::string& between) {
    return line("@%p0 st.shared.u32 [smem+64], 1") + kSync + line("@%p0 st.shared.u32 [smem+64], 2") +
           between + by_thread(1, line("ld.shared.u32 %r1, [smem+64]") + give("%r1"));
  };
  at_times(2, 1, text(""));
  at_times(2, 1, text(line("shfl.sync.idx.b32 %r2, %tid32, 0, 31, 0xffffffff")));
  always(2, text(line("bar.warp.sync 0xffffffff")));
}

TEST_CASE("a lane sees its own stores, in their order", "[adversarial]") {
  always(3, line("@%p0 st.shared.u32 [smem+64], 1") + line("@%p0 st.shared.u32 [smem+64], 3") +
                by_thread(0, line("ld.shared.u32 %r1, [smem+64]") + give("%r1")));
  always(0x00000502, line("@%p0 st.shared.u32 [smem+64], 2") +
                         by_thread(0, line("mov.b32 %r2, 5") + line("st.shared.u8 [smem+65], %r2") +
                                          line("ld.shared.u32 %r1, [smem+64]") + give("%r1")));
  always(7, line("@%p0 st.shared.u32 [smem+64], 3") +
                by_thread(0, line("atom.shared.add.u32 %r2, [smem+64], 4") +
                                 line("ld.shared.u32 %r1, [smem+64]") + give("%r1")));
  always(9, line("@%p0 st.global.u32 [%out], 8") + line("@%p0 st.global.u32 [%out], 9"));
}

TEST_CASE("local memory is the lane's own", "[adversarial]") {
  always(3, "  .local .align 4 .b32 own;\n" + line("mov.u64 %d2, own") + line("cvta.local.u64 %d2, %d2") +
                line("st.u32 [%d2], 3") + line("ld.u32 %r1, [%d2]") + by_thread(0, give("%r1")));
}

TEST_CASE("a bulk store of many bytes", "[adversarial]") {
  // The last of 4096 bytes that all threads wrote, from an address that is no multiple of 1024.
  always(9, line("mov.b32 %v0, 9") + line("shl.b32 %r5, %tid32, 5") + line("mov.u32 %r6, smem") +
                line("add.s32 %r5, %r5, %r6") + line("st.shared.v4.b32 [%r5+1040], {%v0, %v0, %v0, %v0}") +
                line("st.shared.v4.b32 [%r5+1056], {%v0, %v0, %v0, %v0}") + kProxyFence + kSync +
                line("@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d1], [smem+1040], 4096") +
                kCommitGroup + kWaitGroup +
                by_thread(0, line("ld.global.u32 %r1, [%d1+4092]") + give("%r1")));
}

TEST_CASE("a released store is seen by a bulk copy after a proxy fence", "[adversarial]") {
  const auto text = [](const std::string& fence) {
    return write(1024, 7) + kProxyFence + kSync + write(1024, 8) + fence + kSync + kStoreBulk + kCommitGroup +
           kWaitGroup;
  };
  at_times(8, 7, text(""));
  at_times(8, 7, text("  fence.proxy.async.global;\n"));
  always(8, text(kProxyFence));
  always(8, text("  fence.proxy.async;\n"));
}

TEST_CASE("a bulk store reads its source between issue and wait_group.read", "[adversarial]") {
  const std::string later = write(1024, 8) + kProxyFence;
  at_times(8, 7, write(1024, 7) + kProxyFence + kStoreBulk + later + kCommitGroup + kWaitGroup);
  always(8, write(1024, 7) + kProxyFence + later + kStoreBulk + kCommitGroup + kWaitGroup);
  always(7, write(1024, 7) + kProxyFence + kStoreBulk + kCommitGroup + kWaitGroupRead + later + kWaitGroup);
}

TEST_CASE("what a bulk store wrote is there after wait_group, not after wait_group.read", "[adversarial]") {
  const auto text = [](const std::string& wait) {
    return write(1024, 7) + kProxyFence + kStoreBulk + kCommitGroup + wait +
           by_thread(0, line("ld.global.u32 %r1, [%out]")) + kWaitGroup + by_thread(0, give("%r1"));
  };
  at_times(7, 0, text(kWaitGroupRead));
  always(7, text(kWaitGroup));
}

TEST_CASE("a bulk load reads its source between issue and completion", "[adversarial]") {
  const std::string change = line("@%p0 st.global.u32 [%d1], 5") + "  fence.proxy.async;\n",
                    load = expect_bytes(0, 16) + bulk_copy(1024, "%d1", 16, 0),
                    begin = init_barrier(0, 1) + "  fence.mbarrier_init.release.cluster;\n" + kSync,
                    end = wait_barrier(0, 0) + line("ld.shared.u32 %r1, [smem+1024]") +
                          by_thread(0, give("%r1"));
  at_times(5, 0, begin + load + change + end);
  always(5, begin + change + load + end);
}

TEST_CASE("an MMA reads its operands between issue and completion", "[adversarial]") {
  // All ones but for eight elements of A or B, which are zero at first: 16 products for D's first element,
  // or 8.
  const uint32_t ones = 0x3C003C00, all = 0x41800000, half = 0x41000000;
  const auto text = [&](uint32_t operand, bool in_time) {
    const std::string change = write(operand, ones) + kProxyFence;
    return tile_setup() + line("mov.b32 %v0, " + std::to_string(ones)) + store_operands() +
           write(operand, 0) + kProxyFence + kSync + (in_time ? change + mma() : mma() + change) +
           finish_mma() + kAfter + kLoadD + kWaitLoad + by_thread(0, give("%v1")) + free_tmem(64);
  };
  for (uint32_t operand : {1024u, 8192u}) {
    at_times(all, half, text(operand, false));
    always(all, text(operand, true));
  }
}

TEST_CASE("test_wait may overlook bytes that have landed, but nothing that a thread knows", "[adversarial]") {
  const std::string test =
      line("mbarrier.test_wait.parity.shared::cta.b64 %p3, [smem], 0") + line("selp.u32 %r1, 1, 0, %p3");
  // Thread 0 completes the phase itself, or another one does before a barrier of the CTA.
  always(1, init_barrier(0, 1) + kSync + by_thread(0, arrive(0) + test + give("%r1")));
  always(1, init_barrier(0, 1) + kSync + by_thread(64, arrive(0)) + kSync + by_thread(0, test + give("%r1")));
  // A copy completes it long before; whoever has seen it once sees it again, and may tell others.
  const std::string copy = by_thread(0, line("mbarrier.arrive.expect_tx.shared::cta.b64 _, [smem], 16") +
                                            line("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem+16], [%d1], 16, [smem]"));
  const std::string pause = line("nanosleep.u32 20000");
  at_times(1, 0, init_barrier(0, 1) + kSync + copy + pause + by_thread(0, test + give("%r1")));
  always(1, init_barrier(0, 1) + kSync + copy + by_thread(64, wait_barrier(0, 0)) + kSync + by_thread(0, test + give("%r1")));
}

TEST_CASE("try_wait may return false at any time", "[adversarial]") {
  at_times(1, 0,
           init_barrier(0, 1) + kSync + by_thread(0, arrive(0)) + kSync +
               by_thread(0, line("mbarrier.try_wait.parity.shared::cta.b64 %p3, [smem], 0") +
                                line("selp.u32 %r1, 1, 0, %p3") + give("%r1")));
}
