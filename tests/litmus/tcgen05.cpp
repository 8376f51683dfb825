// SPDX-License-Identifier: Apache-2.0
#include "tiles.h"

namespace fa4::sim::test {
namespace {

const std::string kSync = "  bar.sync 0;\n";
const std::string kFree = free_tmem(64);

// An MMA that writes D, then `between`, then tcgen05.ld of D by every warp.
std::string mma_to_load(const std::string& between) {
  return tile_setup() + load_operands() + mma() + between + kLoadD + kWaitLoad + kFree;
}

// Every warp stores 8 columns, A of an MMA by thread 0, handed over on the barrier at 32 that counts all
// threads.
const std::string kStoreA =
    "  tcgen05.st.sync.aligned.32x32b.x8.b32 [%r20+32], {%v0, %v0, %v0, %v0, %v0, %v0, %v0, %v0};\n";
std::string store_to_mma(const std::string& release, const std::string& acquire) {
  return tile_setup() + load_operands() + kStoreA + release + acquire + mma("%tm", "[%tm+32]") +
         finish_mma() + kAfter + kFree;
}
// Every warp reads D, then an MMA overwrites it.
std::string load_to_mma(const std::string& release, const std::string& acquire) {
  return tile_setup() + load_operands() + mma() + finish_mma() + kAfter + kLoadD + release + acquire + mma() +
         commit(40) + wait_barrier(40, 0) + kAfter + kWaitLoad + kFree;
}
const std::string kArrive = arrive(32), kWait = wait_barrier(32, 0);
const std::string kArriveRelaxed = arrive(32, ".relaxed.cta"), kWaitRelaxed = wait_as(".relaxed.cta", 32, 0);
// Warps 0 to 3 store to D, which warps 4 to 7 read.
std::string store_to_load(const std::string& release, const std::string& acquire) {
  return tile_setup() + line("and.b32 %r20, %warp, 3") + line("shl.b32 %r20, %r20, 21") + line("add.s32 %r20, %r20, %tm") +
         line("setp.lt.u32 %p8, %warp, 4") + "  @%p8 bra STORE;\n" + acquire + kAfter + kLoadD + kWaitLoad + "  bra.uni BOTH;\nSTORE:\n" +
         kStoreD + release + "BOTH:\n" + kBefore + kFree;
}
// Threads 0 and 32 each issue an MMA; %p6: thread 32.
std::string two_threads(const std::string& between) {
  return tile_setup() + load_operands() + line("setp.eq.u32 %p6, %tid32, 32") + mma() + between +
         mma("%tm", "%d5", "1", "%p6") + commit(8) +
         line("@%p6 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [smem+40]") +
         wait_barrier(8, 0) + wait_barrier(40, 0) + kAfter + kFree;
}

}  // namespace

std::vector<Litmus> tcgen05_litmus() {
  return {
      {"mma to ld: commit, wait, fence", mma_to_load(finish_mma() + kAfter), "clean"},
      {"mma to ld: no wait", mma_to_load(commit(8)) + wait_barrier(8, 0), "poison"},
      {"mma to ld: no commit",
       mma_to_load("  nanosleep.u32 100000;\n" + by_thread(0, arrive(8)) + wait_barrier(8, 0) + kAfter),
       "asynchronous work that nobody waited for + race"},
      {"mma to ld: no fence::after", mma_to_load(finish_mma()), "missing tcgen05 fence"},
      {"mma to ld: one thread waits, barrier",
       mma_to_load(commit(8) + by_thread(0, wait_barrier(8, 0)) + kBefore + kSync + kAfter),
       "missing tcgen05 fence"},
      {"mma to ld: one thread waits, fence on both sides",
       mma_to_load(commit(8) + by_thread(0, wait_barrier(8, 0) + kAfter) + kBefore + kSync + kAfter),
       "clean"},
      {"mma to ld: relaxed wait and fence",
       mma_to_load(commit(8) + wait_as(".relaxed.cluster", 8, 0) + kAfter), "clean"},
      {"mma to ld: relaxed wait, no fence", mma_to_load(commit(8) + wait_as(".relaxed.cluster", 8, 0)),
       "race"},

      {"st to mma: the whole chain", store_to_mma(kWaitStore + kBefore + kArrive, kWait + kAfter), "clean"},
      {"st to mma: no wait::st", store_to_mma(kBefore + kArrive, kWait + kAfter), "poison"},
      {"st to mma: wait::st after the arrival", store_to_mma(kBefore + kArrive + kWaitStore, kWait + kAfter), "race"},
      {"st to mma: no fence::before", store_to_mma(kWaitStore + kArrive, kWait + kAfter),
       "missing tcgen05 fence"},
      {"st to mma: no fence::after", store_to_mma(kWaitStore + kBefore + kArrive, kWait),
       "missing tcgen05 fence"},
      {"st to mma: nothing between the threads",
       store_to_mma(kWaitStore + kBefore, "  nanosleep.u32 10000;\n" + kAfter), "race"},
      {"st to mma: one lane arrives for its warp",
       tile_setup() + line("and.b32 %r24, %tid32, 31") + line("setp.eq.u32 %p7, %r24, 0") + load_operands() +
           kStoreA + kWaitStore + kBefore + line("@%p7 mbarrier.arrive.shared::cta.b64 _, [smem+32], 32") +
           kWait + kAfter + mma("%tm", "[%tm+32]") + finish_mma() + kAfter + kFree,
       "race"},
      {"st to mma: one lane arrives after a warp barrier",
       tile_setup() + line("and.b32 %r24, %tid32, 31") + line("setp.eq.u32 %p7, %r24, 0") + load_operands() +
           kStoreA + kWaitStore + kBefore + line("bar.warp.sync 0xffffffff") +
           line("@%p7 mbarrier.arrive.shared::cta.b64 _, [smem+32], 32") + kWait + kAfter +
           mma("%tm", "[%tm+32]") + finish_mma() + kAfter + kFree,
       "clean"},
      {"st to mma: relaxed with fences",
       store_to_mma(kWaitStore + kBefore + kArriveRelaxed, kWaitRelaxed + kAfter), "clean"},
      {"st to mma: relaxed without fence::before",
       store_to_mma(kWaitStore + kArriveRelaxed, kWaitRelaxed + kAfter), "race"},

      {"ld to mma: the whole chain", load_to_mma(kWaitLoad + kBefore + kArrive, kWait + kAfter), "clean"},
      {"ld to mma: no wait::ld", load_to_mma(kBefore + kArrive, kWait + kAfter), "race"},
      {"ld to mma: used before the arrival, no wait::ld",
       load_to_mma(line("add.u32 %r9, %v1, 1") + kBefore + kArrive, kWait + kAfter), "poison"},
      {"ld to mma: no fence::before", load_to_mma(kWaitLoad + kArrive, kWait + kAfter),
       "missing tcgen05 fence"},
      {"ld to mma: no fence::after", load_to_mma(kWaitLoad + kBefore + kArrive, kWait),
       "missing tcgen05 fence"},
      {"ld to mma: nothing between the threads",
       load_to_mma(kWaitLoad + kBefore, "  nanosleep.u32 10000;\n" + kAfter), "race"},
      {"ld to mma: relaxed with fences",
       load_to_mma(kWaitLoad + kBefore + kArriveRelaxed, kWaitRelaxed + kAfter), "clean"},

      {"ld to st: wait::ld",
       tile_setup() + kStoreD + kWaitStore + kLoadD + kWaitLoad + kStoreD + kWaitStore + kFree, "clean"},
      {"ld to st: no wait::ld",
       tile_setup() + kStoreD + kWaitStore + kLoadD + kStoreD + kWaitStore + kWaitLoad + kFree, "race"},
      {"st to ld: no wait::st", tile_setup() + kStoreD + kLoadD + kWaitLoad + kWaitStore + kFree, "poison"},
      {"st to ld of another warp: the whole chain", store_to_load(kWaitStore + kBefore + kArrive, kWait), "clean", 1, 256},
      {"st to ld of another warp: no wait::st", store_to_load(kBefore + kArrive, kWait), "poison", 1, 256},
      {"st to ld of another warp: wait::st after the arrival", store_to_load(kBefore + kArrive + kWaitStore, kWait), "race", 1, 256},
      {"st to ld of another warp: nothing between them", store_to_load(kWaitStore + kBefore, "  nanosleep.u32 10000;\n"), "race", 1, 256},
      {"ld to registers: before wait::ld",
       tile_setup() + kStoreD + kWaitStore + kLoadD + line("add.u32 %r9, %v1, 1") + kWaitLoad + kFree, "poison"},
      {"ld: all lanes of a partition, of an accumulator of 64 rows",
       tile_setup() +
           line("mov.u32 %r3, " + std::to_string(instruction_descriptor(false, false, false, 64, 16))) +
           load_operands() + mma() + finish_mma() + kAfter + kLoadD + kWaitLoad + kFree,
       "clean"},
      {"ld: what nobody has written", tile_setup() + kLoadD + kWaitLoad + kFree, "poison"},

      {"mma after mma: the same accumulator",
       tile_setup() + load_operands() + mma() + mma("%tm", "%d5", "1") + finish_mma() + kAfter + kFree,
       "clean"},
      {"mma after mma: another accumulator",
       tile_setup() + load_operands() + kStoreA + kWaitStore + kBefore + kArrive + kWait + kAfter +
           mma("%tm", "[%tm+32]") + mma("%tm+32") + finish_mma() + kAfter + kFree,
       "clean"},
      {"mma after mma: another thread, ordered", two_threads(kBefore + kSync + kAfter), "clean"},
      {"mma after mma: another thread, nothing between", two_threads("  nanosleep.u32 10000;\n"), "race"},
      {"commit: for many",
       tile_setup() + load_operands() + mma() + mma("%tm", "%d5", "1") + mma("%tm+16") + finish_mma() +
           kAfter + kLoadD + kWaitLoad + kFree,
       "clean"},
      {"commit: by another thread",
       tile_setup() + load_operands() + mma() + "  nanosleep.u32 100000;\n" + kBefore + kSync +
           by_thread(32,
                     line("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [smem+8]")) +
           wait_barrier(8, 0) + kAfter + kLoadD + kWaitLoad + kFree,
       "asynchronous work that nobody waited for + race"},

      {"alloc: barrier before the address is read", tile_setup() + kFree, "clean"},
      {"alloc: no barrier",
       "  @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem+16], 64;\n" +
           by_warp(1, "  nanosleep.u32 10000;\n  ld.shared.u32 %tm, [smem+16];\n") + kSync +
           line("ld.shared.u32 %tm, [smem+16]") + kFree,
       "race"},
      {"dealloc: after a barrier", tile_setup() + kStoreD + kWaitStore + kLoadD + kWaitLoad + kFree, "clean"},
      {"dealloc: reads of others pending", tile_setup() + kStoreD + kWaitStore + kLoadD + kFree + kWaitLoad,
       "race"},
      {"dealloc: no barrier",
       tile_setup() + kStoreD + kWaitStore + by_warp(0, "  nanosleep.u32 10000;\n") +
           "  @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 64;\n",
       "race"},
      {"dealloc: mma in flight", tile_setup() + load_operands() + mma() + kFree, "poison"},
      {"dealloc: mma not waited for",
       tile_setup() + load_operands() + mma() + "  nanosleep.u32 100000;\n" + kFree,
       "asynchronous work that nobody waited for + race"},
      {"outside: columns that are not allocated",
       tile_setup(32) + "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20+40], {%v0};\n" + free_tmem(32),
       "illegal address"},
      {"outside: another warp's lanes",
       tile_setup() + line("add.s32 %r20, %tm, 2097152") + kStoreD + kWaitStore + kFree, "illegal address"},
  };
}

}  // namespace fa4::sim::test
