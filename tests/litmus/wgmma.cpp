// SPDX-License-Identifier: Apache-2.0
// wgmma, and the copies of single threads. A of 64 x 16 at byte 1024 (2 KiB) and B of 16 x 16 at byte 8192
// (512 bytes) of shared memory, no swizzle; accumulators %v0 to %v7, A in registers %r40 to %r43.
#include "tiles.h"

namespace fa4::sim::test {
namespace {

const std::string kSync = "  bar.sync 0;\n";

std::string descriptor(uint32_t start, uint32_t leading, uint32_t stride) {
  return std::to_string(uint64_t(start >> 4) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32);
}
std::string setup() {
  std::string text =
      init_barrier(0, 1) + init_barrier(8, 128) + init_barrier(40, 1) +
      "  fence.mbarrier_init.release.cluster;\n" + kSync +
      line("mov.b64 %d5, " + descriptor(kSmem + 1024, 128, 256)) +
      line("mov.b64 %d6, " + descriptor(kSmem + 8192, 128, 256)) + line("shl.b32 %r22, %tid32, 4") +
      line("mov.u32 %r23, smem") + line("add.s32 %r22, %r22, %r23") + line("setp.lt.u32 %p5, %tid32, 32") +
      line("mov.b32 %r21, 0") + line("mul.wide.u32 %d9, %tid32, 4") + line("add.u64 %d9, %d9, %out");
  for (int i = 0; i < 8; ++i) text += line("mov.b32 %v" + std::to_string(i) + ", 0");
  for (int i = 40; i < 44; ++i) text += line("mov.b32 %r" + std::to_string(i) + ", 0");
  return text;
}
const std::string kStores = line("st.shared.v4.b32 [%r22+1024], {%r21, %r21, %r21, %r21}") +
                            line("@%p5 st.shared.v4.b32 [%r22+8192], {%r21, %r21, %r21, %r21}");
const std::string kLoads =
    expect_bytes(0, 2048 + 512) + bulk_copy(1024, "%d1", 2048, 0) + bulk_copy(8192, "%d1", 512, 0);
const std::string kFence = line("wgmma.fence.sync.aligned"),
                  kCommit = line("wgmma.commit_group.sync.aligned");
std::string wait(uint32_t n = 0) {
  return line("wgmma.wait_group.sync.aligned " + std::to_string(n));
}
std::string mma(const std::string& a = "%d5", const std::string& transposes = "0, 0") {
  return line("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " + registers(8) + ", " + a +
              ", %d6, 1, 1, 1, " + transposes);
}
const std::string kRegisterMma = mma("{%r40, %r41, %r42, %r43}", "0");
const std::string kRun = kFence + mma() + kCommit + wait();
const std::string kLoaded = setup() + kLoads + wait_barrier(0, 0);
const std::string kOverwrite = by_thread(40, line("st.shared.u32 [smem+8192], 1"));
// A use of it.
std::string keep_own(const std::string& reg) {
  return line("st.global.b32 [%d9], " + reg);
}
const std::string kKeep = keep_own("%v0");

// Text for the warps of the first warpgroup, and for one thread of another warp behind it.
std::string producer_and_warpgroup(const std::string& producer, const std::string& warpgroup) {
  return "  setp.lt.u32 %p8, %warp, 4;\n  @%p8 bra GROUP;\n" + by_thread(128, producer) + "  bra.uni BOTH;\nGROUP:\n" + warpgroup +
         "BOTH:\n";
}
// Thread 128 fills B again when the barrier at 40 says so.
std::string filled_again(const std::string& release) {
  return setup() + kLoads +
         producer_and_warpgroup(wait_barrier(40, 0) + line("mbarrier.arrive.expect_tx.shared::cta.b64 _, [smem], 512") +
                                    line("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem+8192], [%d1], 512, [smem]") +
                                    wait_barrier(0, 1),
                                wait_barrier(0, 0) + kRun + release);
}

std::vector<Litmus> wgmma() {
  std::vector<Litmus> list = {
      {"stores to wgmma: fence in the writers", setup() + kStores + kProxyFence + kSync + kRun, "clean"},
      {"stores to wgmma: no fence", setup() + kStores + kSync + kRun, "missing proxy fence"},
      {"stores to wgmma: wgmma.fence instead", setup() + kStores + kFence + kSync + kRun,
       "missing proxy fence"},
      {"stores to wgmma: fence, no barrier",
       setup() + kStores + kProxyFence + line("nanosleep.u32 10000") + kRun, "race"},
      {"bulk load to wgmma: wait", kLoaded + kRun, "clean"},
      {"bulk load to wgmma: no wait", setup() + kLoads + kRun, "poison"},

      {"wgmma to stores: wait and barrier", kLoaded + kRun + kSync + kOverwrite, "clean"},
      {"wgmma to stores: no wait", kLoaded + kFence + mma() + kCommit + kSync + kOverwrite + wait(), "race"},
      {"wgmma to stores: wait for all but one",
       kLoaded + kFence + mma() + kCommit + wait(1) + kSync + kOverwrite + wait(), "race"},
      {"wgmma to stores: no commit_group",
       kLoaded + kFence + mma() + wait() + kSync + kOverwrite + kCommit + wait(), "race"},
      {"wgmma to stores: wait, no barrier", kLoaded + kRun + kOverwrite, "race"},
      {"wgmma to bulk load: wait and barrier",
       kLoaded + kRun + kSync + expect_bytes(40, 512) + bulk_copy(8192, "%d1", 512, 40) + wait_barrier(40, 0),
       "clean"},
      {"wgmma to bulk load: wait, no barrier",
       kLoaded + kRun + expect_bytes(40, 512) + bulk_copy(8192, "%d1", 512, 40) + wait_barrier(40, 0),
       "race"},

      {"wgmma to bulk load: released by all warps",
       filled_again(line("bar.sync 1, 128") + by_thread(0, arrive(40))), "clean", 1, 160},
      {"wgmma to bulk load: released by one thread that has waited", filled_again(by_thread(0, arrive(40))),
       "barrier phase that may be missed + race", 1, 160},
      {"wgmma to bulk load: released by one thread that has not waited",
       setup() + kLoads +
           producer_and_warpgroup(wait_barrier(40, 0) + line("st.shared.u32 [smem+8192], 1"),
                                  wait_barrier(0, 0) + kFence + mma() + kCommit + by_thread(0, arrive(40)) + wait()),
       "race", 1, 160},

      {"accumulators: after the wait", kLoaded + kRun + kKeep, "clean"},
      {"accumulators: no wait", kLoaded + kFence + mma() + kCommit + kKeep + wait(), "poison"},
      {"accumulators: a wait for older groups", kLoaded + kFence + mma() + kCommit + wait(1) + kKeep + wait(),
       "poison"},
      {"accumulators: no commit_group", kLoaded + kFence + mma() + wait() + kKeep + kCommit + wait(),
       "poison"},
      {"accumulators: moved before the wait, used after it",
       kLoaded + kFence + mma() + kCommit + line("mov.b32 %r45, %v0") + wait() + keep_own("%r45"), "clean"},
      {"accumulators: moved and used before the wait",
       kLoaded + kFence + mma() + kCommit + line("mov.b32 %r45, %v0") + keep_own("%r45") + wait(), "poison"},
      {"accumulators: written before the wait",
       kLoaded + kFence + mma() + kCommit + line("add.u32 %v0, %r21, 1") + wait() + kKeep, "poison"},
      {"accumulators: of the next wgmma of the same shape",
       kLoaded + kFence + mma() + mma() + kCommit + wait() + kKeep, "clean"},
      {"accumulators: of a wgmma of another shape",
       kLoaded + kFence + mma() +
           line("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " + registers(4) +
                ", %d5, %d6, 1, 1, 1, 0, 0") +
           kCommit + wait(),
       "poison"},
      {"accumulators: written, then no wgmma.fence",
       kLoaded + kRun + line("add.u32 %v0, %v0, 1") + mma() + kCommit + wait(), "poison"},
      {"accumulators: written, then wgmma.fence", kLoaded + kRun + line("add.u32 %v0, %v0, 1") + kRun,
       "clean"},
      {"accumulators: the first wgmma without wgmma.fence", kLoaded + mma() + kCommit + wait(), "poison"},
      {"a in registers: kept until the wait",
       kLoaded + kFence + kRegisterMma + kCommit + wait() + line("add.u32 %r40, %r40, 1") + keep_own("%r40"),
       "clean"},
      {"a in registers: changed before the wait",
       kLoaded + kFence + kRegisterMma + kCommit + line("add.u32 %r40, %r21, 1") + wait() + keep_own("%r40"),
       "poison"},
      {"a in registers: of two wgmmas", kLoaded + kFence + kRegisterMma + kRegisterMma + kCommit + wait(),
       "clean"},
      {"a in registers: written, then no wgmma.fence",
       kLoaded + kFence + line("add.u32 %r40, %r21, 1") + kRegisterMma + kCommit + wait(), "poison"},

      {"warpgroup: a warp is missing", kLoaded + kFence + by_warp(1, mma()) + kCommit + wait(),
       "illegal instruction"},
      {"warpgroup: scale-d of their own",
       kLoaded + line("setp.ne.u32 %p6, %warp, 0") + kFence +
           line("wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " + registers(8) +
                ", %d5, %d6, %p6, 1, 1, 0, 0") +
           kCommit + wait(),
       "illegal instruction"},
      {"warpgroup: one warp fences once more",
       kLoaded + kFence + by_warp(1, kFence) + mma() + kCommit + wait() + kKeep, "illegal instruction"},
      {"warpgroup: one warp closes one more group",
       kLoaded + kFence + mma() + kCommit + by_warp(1, kCommit) + wait() + kKeep, "illegal instruction"},
      {"warpgroup: one warp waits once more", kLoaded + kFence + mma() + kCommit + by_warp(1, wait()) + wait() + kKeep,
       "illegal instruction"},
      {"warpgroup: one warp does not wait",
       kLoaded + kFence + mma() + kCommit + "  @%p1 bra UNWAITED;\n" + wait() + "UNWAITED:\n",
       "asynchronous work that nobody waited for + illegal instruction"},
      {"warpgroup: setmaxnreg counts of their own",
       line("setp.eq.u32 %p6, %warp, 3") + line("@%p6 setmaxnreg.dec.sync.aligned.u32 24") +
           line("@!%p6 setmaxnreg.dec.sync.aligned.u32 32"),
       "illegal instruction"},
      {"warpgroup: one warp waits before the others issue",
       kLoaded + "  @%p1 bra FIRST;\n" + wait_barrier(40, 0) + "FIRST:\n" + kRun + by_thread(0, arrive(40)), "clean"},
      {"wgmma: nobody waits", kLoaded + kFence + mma() + kCommit,
       "asynchronous work that nobody waited for + poison"},
  };
  for (Litmus& test : list) test.target = "sm_90a";
  return list;
}

std::string copy(uint32_t bytes = 16) {
  return line("cp.async.ca.shared.global [%r22+1024], [%d8], " + std::to_string(bytes));
}
const std::string kReadOwn = line("ld.shared.u32 %r1, [%r22+1024]");
const std::string kReadNext = line("xor.b32 %r24, %r22, 512") + line("ld.shared.u32 %r1, [%r24+1024]");
const std::string kCopyCommit = line("cp.async.commit_group"), kCopyWait = line("cp.async.wait_group 0");
const std::string kArrive = line("cp.async.mbarrier.arrive.noinc.shared.b64 [smem+8]");

std::vector<Litmus> thread_copies() {
  const std::string start = setup() + line("mul.wide.u32 %d8, %tid32, 16") + line("add.u64 %d8, %d8, %d1");
  return {
      {"cp.async: wait_group, own bytes", start + copy() + kCopyCommit + kCopyWait + kReadOwn, "clean"},
      {"cp.async: wait_all, own bytes", start + copy() + line("cp.async.wait_all") + kReadOwn, "clean"},
      {"cp.async: no wait", start + copy() + kCopyCommit + kReadOwn + kCopyWait, "race + poison"},
      {"cp.async: no commit_group", start + copy() + kCopyWait + kReadOwn + line("cp.async.wait_all"),
       "race + poison"},
      {"cp.async: wait for all but one",
       start + copy() + kCopyCommit + line("cp.async.wait_group 1") + kReadOwn + kCopyWait, "race + poison"},
      {"cp.async: barrier instead of a wait", start + copy() + kCopyCommit + kSync + kReadOwn + kCopyWait,
       "race + poison"},
      {"cp.async: wait and barrier, bytes of others",
       start + copy() + kCopyCommit + kCopyWait + kSync + kReadNext, "clean"},
      {"cp.async: wait, no barrier, bytes of others",
       start + copy() + kCopyCommit + kCopyWait + by_warp(0, line("nanosleep.u32 10000") + kReadNext),
       "race"},
      {"cp.async: arrival on an mbarrier", start + copy() + kArrive + wait_barrier(8, 0) + kReadNext,
       "clean"},
      {"cp.async: arrival on an mbarrier, an ordinary one",
       start + copy() + arrive(8) + wait_barrier(8, 0) + kReadNext + line("cp.async.wait_all"),
       "race + poison"},
      {"cp.async: over bytes that others read, barrier",
       start + kStores + kSync + kReadNext + kSync + copy() + line("cp.async.wait_all"), "clean"},
      {"cp.async: over bytes that others read, no barrier",
       start + kStores + kSync + kReadNext + copy() + line("cp.async.wait_all"), "race + poison"},
      {"cp.async to bulk store: wait, fence and barrier",
       start + copy() + line("cp.async.wait_all") + kProxyFence + kSync +
           line("@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {0, 0}], [smem+1024]") +
           line("@%p0 cp.async.bulk.commit_group") + line("@%p0 cp.async.bulk.wait_group 0"),
       "clean"},
      {"cp.async to bulk store: no fence",
       start + copy() + line("cp.async.wait_all") + kSync +
           line("@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {0, 0}], [smem+1024]") +
           line("@%p0 cp.async.bulk.commit_group") + line("@%p0 cp.async.bulk.wait_group 0"),
       "missing proxy fence"},
      {"cp.async to bulk store: fence before the wait",
       start + copy() + kProxyFence + line("cp.async.wait_all") + kSync +
           line("@%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {0, 0}], [smem+1024]") +
           line("@%p0 cp.async.bulk.commit_group") + line("@%p0 cp.async.bulk.wait_group 0"),
       "missing proxy fence"},
      {"cp.async: nobody waits", start + copy() + kCopyCommit,
       "asynchronous work that nobody waited for + poison"},
  };
}

}  // namespace

std::vector<Litmus> wgmma_litmus() {
  return wgmma();
}
std::vector<Litmus> thread_copy_litmus() {
  return thread_copies();
}

}  // namespace fa4::sim::test
