// SPDX-License-Identifier: Apache-2.0
#include "tiles.h"

namespace fa4::sim::test {
namespace {

const std::string kSync = "  bar.sync 0;\n";

// Ordinary stores of the operands, then `between`, then the MMA.
std::string stores_to_mma(const std::string& first, const std::string& between,
                          const std::string& before_mma = "") {
  return tile_setup() + first + store_operands() + between + before_mma + mma() + finish_mma() + kAfter +
         free_tmem(64);
}
// Threads 0..63 write a box of 1 KiB at byte 1024.
const std::string kWriteBox =
    "  shl.b32 %r22, %tid32, 4;\n  mov.u32 %r23, smem;\n  add.s32 %r22, %r22, %r23;\n  setp.lt.u32 %p5, "
    "%tid32, 64;\n  mov.b32 %v0, 0;\n"
    "  @%p5 st.shared.v4.b32 [%r22+1024], {%v0, %v0, %v0, %v0};\n";
const std::string kStoreBox =
    "  @%p0 cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d2, {0, 0}], [smem+1024];\n";
const std::string kCommit = "  @%p0 cp.async.bulk.commit_group;\n";
std::string wait_group(const std::string& form) {
  return "  @%p0 cp.async.bulk.wait_group" + form + ";\n";
}
const std::string kStored = kWriteBox + kProxyFence + kSync + kStoreBox + kCommit;
const std::string kStore1d =
    "  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%out], [smem+1024], 1024;\n";
const std::string kStored1d = kWriteBox + kProxyFence + kSync + kStore1d;
const std::string kOverwriteLast = "  @%p0 st.shared.u32 [smem+2044], 1;\n";
const std::string kOverwrite = "  @%p0 st.shared.u32 [smem+1024], 1;\n";

std::string barrier_ready() {
  return init_barrier(0, 1) + "  fence.mbarrier_init.release.cluster;\n" + kSync;
}
std::string load_tile(uint32_t bytes = 1024) {
  return expect_bytes(0, bytes) + bulk_copy(1024, "%d1", bytes, 0);
}
const std::string kReadTile = "  ld.shared.u32 %r1, [smem+1024];\n";

}  // namespace

std::vector<Litmus> proxy_litmus() {
  return {
      {"stores to mma: fence in the writers", stores_to_mma("", kProxyFence + kSync), "clean"},
      {"stores to mma: fence in the issuing thread, after the barrier",
       stores_to_mma("", kSync, "  @%p0 fence.proxy.async.shared::cta;\n"),
       "proxy fence not in the writing thread"},
      {"stores to mma: fence in a third thread, between two barriers",
       stores_to_mma("", kSync + by_thread(64, kProxyFence) + kSync),
       "proxy fence not in the writing thread"},
      {"stores to mma: fences on both sides", stores_to_mma("", kProxyFence + kSync, kProxyFence), "clean"},
      {"stores to mma: fence of all spaces", stores_to_mma("", "  fence.proxy.async;\n" + kSync), "clean"},
      {"stores to mma: no fence", stores_to_mma("", kSync), "missing proxy fence"},
      {"stores to mma: fence before the stores", stores_to_mma(kProxyFence, kSync), "missing proxy fence"},
      {"stores to mma: fence for global memory", stores_to_mma("", "  fence.proxy.async.global;\n" + kSync),
       "missing proxy fence"},
      {"stores to mma: memory fence instead", stores_to_mma("", "  fence.acq_rel.cta;\n" + kSync),
       "missing proxy fence"},
      {"stores to mma: fence in the issuing thread, before the barrier",
       stores_to_mma("", "  @%p0 fence.proxy.async.shared::cta;\n" + kSync), "missing proxy fence"},
      {"stores to mma: fence in the writers, after the barrier",
       stores_to_mma("", kSync + "  @!%p0 fence.proxy.async.shared::cta;\n"), "missing proxy fence"},
      {"stores to mma: fence, no barrier",
       stores_to_mma("", kProxyFence + by_warp(0, "  nanosleep.u32 10000;\n")), "race"},

      {"stores to bulk store: fence and barrier", kStored + wait_group(" 0"), "clean"},
      {"stores to bulk store: fence in the issuing thread, after the barrier",
       kWriteBox + kSync + kProxyFence + kStoreBox + kCommit + wait_group(" 0"),
       "proxy fence not in the writing thread"},
      {"stores to bulk store: no fence", kWriteBox + kSync + kStoreBox + kCommit + wait_group(" 0"),
       "missing proxy fence"},
      {"stores to bulk store: no barrier",
       kWriteBox + kProxyFence + by_warp(0, "  nanosleep.u32 10000;\n") + kStoreBox + kCommit +
           wait_group(" 0"),
       "race"},

      {"stores to bulk store of one dimension: fence and barrier", kStored1d + kCommit + wait_group(" 0"),
       "clean"},
      {"stores to bulk store of one dimension: no fence",
       kWriteBox + kSync + kStore1d + kCommit + wait_group(" 0"), "missing proxy fence"},
      {"bulk store of one dimension to stores: no wait",
       kStored1d + kCommit + kOverwriteLast + wait_group(" 0"), "race"},
      {"bulk store of one dimension to stores: wait_group.read",
       kStored1d + kCommit + wait_group(".read 0") + kOverwriteLast + wait_group(" 0"), "clean"},

      {"bulk load to threads: wait", barrier_ready() + load_tile() + wait_barrier(0, 0) + kReadTile, "clean"},
      {"bulk load to threads: no wait",
       barrier_ready() + load_tile() + by_warp(1, kReadTile) + wait_barrier(0, 0), "race + poison"},
      {"bulk load to threads: wait by another thread, barrier",
       barrier_ready() + load_tile() + by_warp(2, wait_barrier(0, 0)) + kSync + kReadTile, "clean"},
      {"bulk load to threads: wait by another thread, no barrier",
       barrier_ready() + load_tile() + by_warp(0, wait_barrier(0, 0)) +
           by_warp(1, "  nanosleep.u32 100000;\n" + kReadTile),
       "race"},
      {"bulk load to mma: wait",
       tile_setup() + load_operands() + mma() + finish_mma() + kAfter + free_tmem(64), "clean"},
      {"bulk load to mma: no wait",
       tile_setup() + expect_bytes(0, 4608) + bulk_copy(1024, "%d1", 4096, 0) +
           bulk_copy(8192, "%d1", 512, 0) + mma() + finish_mma() + free_tmem(64),
       "poison"},
      {"bulk load: what its thread did before",
       barrier_ready() + init_barrier(8, 1) + kSync +
           by_thread(0, expect_bytes(0, 1024) + "  st.shared.u32 [smem+4096], 1;\n" +
                            bulk_copy(1024, "%d1", 1024, 0)) +
           by_warp(1, wait_barrier(0, 0) + "  ld.shared.u32 %r1, [smem+4096];\n"),
       "race"},

      {"threads to bulk load: reads, barrier",
       barrier_ready() + load_tile() + wait_barrier(0, 0) + kReadTile + kSync + load_tile() +
           wait_barrier(0, 1),
       "clean"},
      {"threads to bulk load: reads, no barrier",
       barrier_ready() + load_tile() + wait_barrier(0, 0) + kReadTile + load_tile() + wait_barrier(0, 1),
       "race + poison"},
      {"threads to bulk load: stores, fence and barrier",
       barrier_ready() + kWriteBox + kProxyFence + kSync + load_tile() + wait_barrier(0, 0), "clean"},
      {"threads to bulk load: stores, no fence",
       barrier_ready() + kWriteBox + kSync + load_tile() + wait_barrier(0, 0), "missing proxy fence"},

      {"mma to bulk load: commit and wait",
       tile_setup() + load_operands() + kSync + mma() + finish_mma() + expect_bytes(0, 512) +
           bulk_copy(8192, "%d1", 512, 0) + wait_barrier(0, 1) + kAfter + free_tmem(64),
       "clean"},
      {"mma to bulk load: no wait",
       tile_setup() + load_operands() + kSync + mma() + expect_bytes(0, 512) +
           bulk_copy(8192, "%d1", 512, 0) + finish_mma() + wait_barrier(0, 1) + free_tmem(64),
       "race + poison"},
      {"mma to bulk load: commit before the mma",
       tile_setup() + load_operands() + kSync + mma() + commit(8) + mma() + wait_barrier(8, 0) +
           expect_bytes(0, 512) + bulk_copy(8192, "%d1", 512, 0) + wait_barrier(0, 1) + commit(40) +
           wait_barrier(40, 0) + kAfter + free_tmem(64),
       "race + poison"},
      {"mma to stores: commit and wait",
       tile_setup() + load_operands() + mma() + finish_mma() + "  @%p0 st.shared.u32 [smem+8192], 1;\n" +
           kAfter + free_tmem(64),
       "clean"},
      {"mma to stores: no wait",
       tile_setup() + load_operands() + mma() + "  @%p0 st.shared.u32 [smem+8192], 1;\n" + finish_mma() +
           kAfter + free_tmem(64),
       "race"},

      {"bulk store to stores: wait_group.read",
       kStored + wait_group(".read 0") + kOverwrite + wait_group(" 0"), "clean"},
      {"bulk store to stores: no wait", kStored + kOverwrite + wait_group(" 0"), "race"},
      {"bulk store to stores: wait_group.read 1",
       kStored + wait_group(".read 1") + kOverwrite + wait_group(" 0"), "race"},
      {"bulk store to stores: no commit_group",
       kWriteBox + kProxyFence + kSync + kStoreBox + wait_group(".read 0") + kOverwrite + kCommit +
           wait_group(" 0"),
       "race"},
      {"bulk store to stores: another thread waits",
       kStored + by_thread(32, "  cp.async.bulk.wait_group.read 0;\n  st.shared.u32 [smem+1024], 1;\n") +
           wait_group(" 0"),
       "race"},
      {"bulk store to stores: another thread, after a barrier",
       kStored + wait_group(".read 0") + kSync + by_thread(32, "  st.shared.u32 [smem+1024], 1;\n") +
           wait_group(" 0"),
       "clean"},
      {"bulk store to bulk load: wait_group.read",
       barrier_ready() + kStored + wait_group(".read 0") + load_tile() + wait_barrier(0, 0) +
           wait_group(" 0"),
       "clean"},
      {"bulk store to bulk load: no wait",
       barrier_ready() + kStored + load_tile() + wait_barrier(0, 0) + wait_group(" 0"), "race + poison"},
      {"bulk store to global reads: wait_group",
       kStored + wait_group(" 0") + "  @%p0 ld.global.u32 %r1, [%out];\n", "clean"},
      {"bulk store to global reads: wait_group.read",
       kStored + wait_group(".read 0") + "  @%p0 ld.global.u32 %r1, [%out];\n" + wait_group(" 0"), "race"},
      {"bulk store: nobody waits", kStored, "asynchronous work that nobody waited for + poison"},

      {"global stores to bulk load: fence.proxy.async.global",
       barrier_ready() + "  @%p0 st.global.u32 [%d1+64], 1;\n  @%p0 fence.proxy.async.global;\n" +
           load_tile() + wait_barrier(0, 0),
       "clean"},
      {"global stores to bulk load: fence.proxy.async",
       barrier_ready() + "  @%p0 st.global.u32 [%d1+64], 1;\n  @%p0 fence.proxy.async;\n" + load_tile() +
           wait_barrier(0, 0),
       "clean"},
      {"global stores to bulk load: fence in the issuing thread, after the barrier",
       barrier_ready() + by_thread(32, "  st.global.u32 [%d1+64], 1;\n") + kSync +
           "  @%p0 fence.proxy.async.global;\n" + load_tile() + wait_barrier(0, 0),
       "proxy fence not in the writing thread"},
      {"global stores to bulk load: no fence",
       barrier_ready() + "  @%p0 st.global.u32 [%d1+64], 1;\n" + load_tile() + wait_barrier(0, 0),
       "missing proxy fence"},
      {"global stores to bulk load: fence for shared memory",
       barrier_ready() + "  @%p0 st.global.u32 [%d1+64], 1;\n" + kProxyFence + load_tile() +
           wait_barrier(0, 0),
       "missing proxy fence"},
      {"global stores to bulk load: another thread, no barrier",
       barrier_ready() + by_thread(32, "  st.global.u32 [%d1+64], 1;\n  fence.proxy.async.global;\n") +
           by_warp(0, "  nanosleep.u32 10000;\n") + load_tile() + wait_barrier(0, 0),
       "race"},
  };
}

}  // namespace fa4::sim::test
