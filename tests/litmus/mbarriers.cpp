// SPDX-License-Identifier: Apache-2.0
#include "tiles.h"

namespace fa4::sim::test {
namespace {

const std::string kSync = "  bar.sync 0;\n", kInitFence = "  fence.mbarrier_init.release.cluster;\n";
const std::string kReadTile = "  ld.shared.u32 %r1, [smem+1024];\n";
std::string load_tile(uint32_t bytes = 1024) {
  return bulk_copy(1024, "%d1", bytes, 0);
}
std::string ready(uint32_t arrivals = 1) {
  return init_barrier(0, arrivals) + kInitFence + kSync;
}
std::string inval(uint32_t barrier) {
  return "  @%p0 mbarrier.inval.shared::cta.b64 " + at(barrier) + ";\n";
}

// Waits by the state that an arrival gave.
const std::string kWaitState =
    "STATE:\n  mbarrier.try_wait.shared::cta.b64 %p13, [smem], %d9;\n  @!%p13 bra STATE;\n";

}  // namespace

std::vector<Litmus> mbarrier_litmus() {
  return {
      {"init: barrier, threads only", init_barrier(0, 128) + kSync + arrive(0) + wait_barrier(0, 0), "clean"},
      {"init: no barrier, same thread",
       by_thread(0, line("mbarrier.init.shared::cta.b64 [smem], 1") + arrive(0) + wait_barrier(0, 0)),
       "clean"},
      {"init: no barrier, other threads", init_barrier(0, 128) + arrive(0) + wait_barrier(0, 0),
       "barrier used before its init is visible"},
      {"init: fence and barrier, bulk copy",
       ready() + expect_bytes(0, 1024) + load_tile() + wait_barrier(0, 0), "clean"},
      {"init: proxy fence and barrier, bulk copy",
       init_barrier(0, 1) + "  fence.proxy.async.shared::cta;\n" + kSync + expect_bytes(0, 1024) +
           load_tile() + wait_barrier(0, 0),
       "clean"},
      {"init: no fence, bulk copy",
       init_barrier(0, 1) + kSync + expect_bytes(0, 1024) + load_tile() + wait_barrier(0, 0),
       "barrier init without its fence"},
      {"init: fence before the init, bulk copy",
       kInitFence + init_barrier(0, 1) + kSync + expect_bytes(0, 1024) + load_tile() + wait_barrier(0, 0),
       "barrier init without its fence"},
      {"init: no barrier, bulk copy by another thread",
       init_barrier(0, 1) +
           by_thread(32, "  nanosleep.u32 10000;\n" +
                             line("mbarrier.arrive.expect_tx.shared::cta.b64 _, [smem], 1024") +
                             line("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem+1024], "
                                  "[%d1], 1024, [smem]") +
                             wait_barrier(0, 0)),
       "barrier used before its init is visible"},
      {"init: no fence, commit",
       init_barrier(8, 1) + allocate_tmem(16, 64) + mma_registers() + commit(8) + wait_barrier(8, 0) +
           kAfter + free_tmem(64),
       "clean"},
      {"init: never", arrive(0), "poison"},
      {"init: twice", ready() + init_barrier(0, 1), "poison"},

      {"bytes: as announced", ready() + expect_bytes(0, 1024) + load_tile() + wait_barrier(0, 0) + kReadTile,
       "clean"},
      {"bytes: announced in two parts",
       ready() + "  @%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [smem], 512;\n" +
           expect_bytes(0, 512) + load_tile() + wait_barrier(0, 0) + kReadTile,
       "clean"},
      {"bytes: announced after the copy is issued",
       ready() + load_tile() + expect_bytes(0, 1024) + wait_barrier(0, 0) + kReadTile, "clean"},
      {"bytes: too few", ready() + expect_bytes(0, 512) + load_tile() + wait_barrier(0, 0), "deadlock"},
      {"bytes: too few, two copies",
       ready() + expect_bytes(0, 512) + bulk_copy(4096, "%d1", 512, 0) + load_tile(512) + wait_barrier(0, 0) +
           kReadTile,
       "race + poison"},
      {"bytes: too many", ready() + expect_bytes(0, 2048) + load_tile() + wait_barrier(0, 0), "deadlock"},
      {"bytes: none announced",
       ready() + by_thread(0, arrive(0)) + load_tile() + wait_barrier(0, 0) + kReadTile, "race + poison"},
      {"bytes: beyond the counter",
       ready() + "  @%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [smem], 1048576;\n", "poison"},

      {"arrivals: as many as expected", ready(128) + arrive(0) + wait_barrier(0, 0), "clean"},
      {"arrivals: one too few", ready(129) + arrive(0) + wait_barrier(0, 0), "deadlock"},
      {"arrivals: one too many in a phase",
       ready(2) + by_thread(0, line("mbarrier.arrive.shared::cta.b64 _, [smem], 3")), "poison"},
      {"arrivals: one warp twice",
       ready(64) + by_warp(0, arrive(0) + arrive(0)) + by_warp(1, wait_barrier(0, 0) + arrive(0)) +
           by_warp(2, wait_barrier(0, 0) + arrive(0)),
       "clean"},

      {"parity: the phase that completes",
       ready() + expect_bytes(0, 1024) + load_tile() + wait_barrier(0, 0) + kReadTile, "clean"},
      {"parity: of the phase before, passes at once",
       ready() + expect_bytes(0, 1024) + load_tile() + wait_barrier(0, 1) + kReadTile + wait_barrier(0, 0),
       "race + poison"},
      {"parity: not flipped for the second phase",
       ready() + expect_bytes(0, 1024) + load_tile() + wait_barrier(0, 0) + kReadTile + kSync +
           expect_bytes(0, 1024) + load_tile() + wait_barrier(0, 0) + kReadTile + wait_barrier(0, 1),
       "race + poison"},
      {"parity: a state in its place",
       ready(128) + line("mbarrier.arrive.shared::cta.b64 %d9, [smem]") + kWaitState, "clean"},
      {"phase skipped: a state of two phases ago",
       ready() + by_thread(0, line("mbarrier.arrive.shared::cta.b64 %d9, [smem]") + arrive(0) + arrive(0) +
                                  kWaitState),
       "barrier phase skipped"},
      {"phase skipped: every second wait is late",
       ready() + by_thread(0, arrive(0) + wait_barrier(0, 0) + arrive(0) + wait_barrier(0, 1) + arrive(0) +
                                  arrive(0) + arrive(0) + wait_barrier(0, 0)),
       "barrier phase skipped"},
      {"phase missed: an arrival that need not come after the wait",
       ready(64) + by_warp(0, arrive(0) + arrive(0)) + by_warp(1, arrive(0) + wait_barrier(0, 0)) +
           by_warp(2, wait_barrier(0, 0) + arrive(0)),
       "barrier phase that may be missed"},
      {"phase skipped: by one, for ever", ready() + by_thread(0, arrive(0) + arrive(0) + wait_barrier(0, 0)),
       "deadlock"},

      {"reuse: inval after a barrier",
       ready(128) + arrive(0) + wait_barrier(0, 0) + kSync + inval(0) + kSync +
           by_thread(64, "  st.shared.u32 [smem], 1;\n"),
       "clean"},
      {"reuse: inval while others may wait", ready(128) + arrive(0) + wait_barrier(0, 0) + inval(0),
       "barrier ended while others may use it + poison"},
      {"reuse: as data without inval",
       ready(128) + arrive(0) + wait_barrier(0, 0) + kSync + by_thread(64, "  st.shared.u32 [smem], 1;\n"),
       "poison"},
      {"reuse: as data, inval not visible",
       ready(128) + arrive(0) + wait_barrier(0, 0) + kSync + inval(0) +
           by_thread(64, "  nanosleep.u32 1000;\n  st.shared.u32 [smem], 1;\n"),
       "race"},
      {"reuse: initialised again after inval",
       ready(128) + arrive(0) + wait_barrier(0, 0) + kSync + inval(0) + ready(128) + arrive(0) +
           wait_barrier(0, 0),
       "clean"},
      {"reuse: under a bulk copy",
       ready() + expect_bytes(0, 1024) + bulk_copy(0, "%d1", 1024, 0) + wait_barrier(0, 0), "poison"},

      {"end: load in flight", ready() + expect_bytes(0, 1024) + load_tile(),
       "asynchronous work that nobody waited for + poison"},
      {"end: commit waited for",
       tile_setup() + load_operands() + mma() + commit(40) + finish_mma() + wait_barrier(40, 0) + kSync +
           free_tmem(64),
       "clean"},
      {"end: commit not waited for",
       tile_setup() + load_operands() + mma() + commit(40) + finish_mma() + kSync + free_tmem(64),
       "asynchronous work that nobody waited for"},
      {"end: tensor memory not freed", allocate_tmem(16, 64), "illegal instruction"},
  };
}

}  // namespace fa4::sim::test
