// SPDX-License-Identifier: Apache-2.0
// Reports of kernels that come to no end name the cycle of who waits for whom, or the cause.
#include "litmus.h"
#include "sim/engine/faults.h"

using namespace fa4::sim;
using namespace fa4::sim::test;
using Kind = Fault::Kind;

namespace {

const std::string kSyncCluster = "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";

std::string ready() {
  return init_barrier(0, 1) + init_barrier(8, 1) + cta_sync();
}
// Thread `thread` does `text`.
std::string round(uint32_t thread, uint32_t own, uint32_t other, uint32_t parity, bool arrive_first) {
  const std::string signal = arrive(own), wait = wait_barrier(other, parity);
  return by_thread(thread, arrive_first ? signal + wait : wait + signal);
}

}  // namespace

TEST_CASE("a cycle of two warps") {
  // One orderly round; then each waits for the other before it arrives.
  const std::string body = ready() + round(0, 0, 8, 0, true) + round(32, 8, 0, 0, true) + cta_sync() +
                           round(0, 0, 8, 1, false) + round(32, 8, 0, 1, false);
  CHECK(
      fault_in(body, Kind::deadlock,
               {"cycle: warp 0 waits on mbarrier 0x408 for warp 1, which waits on mbarrier 0x400 for warp 0"},
               64) == "");
}

TEST_CASE("a cycle of an mbarrier and a barrier of the CTA") {
  const std::string body = ready() + by_thread(0, arrive(0)) + by_warp(1, wait_barrier(0, 0)) + cta_sync() +
                           by_warp(0, "  bar.sync 1, 64;\n" + by_thread(0, arrive(0))) +
                           by_warp(1, wait_barrier(0, 1) + "  bar.sync 1, 64;\n") + cta_sync();
  CHECK(fault_in(ready() + "  bar.sync 1, 64;\n" + body.substr(ready().size()), Kind::deadlock,
                 {"cycle: warp 0 waits on barrier 1 for warp 1, which waits on mbarrier 0x400 for warp 0"},
                 64) == "");
}

TEST_CASE("cycles through the CTAs of a cluster") {
  const auto report = [](const std::string& body, const std::vector<std::string>& says) {
    Kernel kernel(entry_of(".param .u64 out",
                           prologue() + line("mov.u32 %r40, %cluster_ctarank") +
                               line("xor.b32 %r41, %r40, 1") + line("mov.u32 %r42, smem") +
                               line("mapa.shared::cluster.u32 %r43, %r42, %r41") + ready() + kSyncCluster +
                               body + kSyncCluster + "  ret;\n",
                           64));
    const uint64_t out = kernel.buffer<uint32_t>(64);
    return fault_of(kernel, {{2, 1, 1}, {64, 1, 1}, 1024, {2, 1, 1}}, Kind::deadlock, says, out);
  };
  const std::string there = line("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r43]");
  // One orderly round; then each waits for the other's arrival before it arrives there.
  const std::string round_trip = by_thread(0, there + wait_barrier(0, 0)) + kSyncCluster;
  const std::string first = "warp 0 of CTA 0 (rank 0)", second = "warp 0 of CTA 1 (rank 1)";
  CHECK(report(round_trip + by_thread(0, wait_barrier(0, 1) + there),
               {"cycle: " + first + " waits on mbarrier 0x400 for " + second +
                ", which waits on mbarrier 0x400 for " + first + "\n"}) == "");
  // One waits for an arrival that the other makes after the barrier of the cluster.
  CHECK(report(round_trip + only("%r40, 0", by_thread(0, wait_barrier(0, 1))) + kSyncCluster +
                   by_thread(0, there),
               {"cycle: " + first + " waits on mbarrier 0x400 for " + second +
                ", which waits on the barrier of the cluster for " + first + "\n"}) == "");
  // No cycle: the other has gone without an arrival.
  CHECK(report(round_trip + only("%r40, 1", "  ret;\n") + by_thread(0, wait_barrier(0, 1)),
               {"cause: " + first + " waits on mbarrier 0x400 for " + second + ", which has exited"}) == "");
}

TEST_CASE("causes that are no cycle") {
  CHECK(fault_in(ready() + by_thread(0, arrive(0)) + by_warp(1, wait_barrier(0, 0) + wait_barrier(0, 1)),
                 Kind::deadlock, {"cause: warp 1 waits on mbarrier 0x400 for warp 0, which has exited"},
                 64) == "");
  CHECK(fault_in(ready() + wait_barrier(0, 0), Kind::deadlock,
                 {"cause: warp 0 waits on mbarrier 0x400, which nothing has signalled so far"}, 64) == "");
  CHECK(fault_in(ready() + by_thread(0, arrive(0) + arrive(0)) + cta_sync() + by_warp(1, wait_barrier(0, 0)),
                 Kind::deadlock,
                 {"this warp has seen 0 phases complete and 2 more have since: the wait came too late"},
                 64) == "");
  CHECK(fault_in(ready() + expect_bytes(0, 96) + bulk_copy(1024, "%d1", 64, 0) + wait_barrier(0, 0),
                 Kind::deadlock, {"32 bytes missing, which no copy in flight will bring"}, 64) == "");
}

TEST_CASE("the cause is the barrier whose bytes nothing will bring, not one that waits for it") {
  // Warp 0 loads and waits for `empty` (8), warp 1 waits for `full` (0) and arrives at `ready` (16) and
  // `empty`, warp 2 waits for `ready`.
  const auto turn = [](uint32_t parity, const std::string& announce) {
    return by_thread(0, announce + bulk_copy(1024, "%d1", 64, 0) + wait_barrier(8, parity)) +
           by_thread(32, wait_barrier(0, parity) + arrive(16) + arrive(8)) +
           by_thread(64, wait_barrier(16, parity));
  };
  const std::string begin = init_barrier(0, 1) + init_barrier(8, 1) + init_barrier(16, 1) + cta_sync(),
                    once = expect_bytes(0, 64),
                    twice = line("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [smem], 64") + once;
  CHECK(fault_in(begin + turn(0, once) + turn(1, once), Kind::deadlock, {}, 96) ==
        "the kernel ran to its end");
  const std::string missing =
      "cause: warp 1 waits on mbarrier 0x400, with 64 bytes missing, which no copy in flight will bring\n";
  CHECK(fault_in(begin + turn(0, twice), Kind::deadlock, {missing}, 96) == "");
  // The second time it is known who signals what, and warps 0 and 1 wait for each other.
  CHECK(fault_in(begin + turn(0, once) + turn(1, twice), Kind::deadlock, {missing}, 96) == "");
  CHECK(fault_in(begin + turn(0, expect_bytes(0, 32)), Kind::deadlock,
                 {"cause: warp 1 waits on mbarrier 0x400, with 32 bytes more than were announced\n"},
                 96) == "");
}

TEST_CASE("the cause is a barrier whose arrivals nobody is known to owe") {
  const std::string begin = init_barrier(0, 3) + init_barrier(8, 1) + cta_sync();
  CHECK(
      fault_in(begin + by_thread(0, wait_barrier(8, 0)) +
                   by_thread(32, arrive(0) + arrive(0) + wait_barrier(0, 0) + arrive(8)),
               Kind::deadlock,
               {"cause: warp 1 waits on mbarrier 0x400, with 1 of 3 arrivals pending, though all warps that "
                "ever signalled it have done so in this phase\n"},
               64) == "");
  CHECK(fault_in(by_warp(0, line("bar.sync 1, 96")) + by_warp(1, line("bar.sync 1, 96")), Kind::deadlock,
                 {"cause: warp 0 waits on barrier 1, where 64 of 96 threads came and no others ever did\n"},
                 64) == "");
}

TEST_CASE("a kernel that runs for ever stops with the same report") {
  const std::string stuck =
      ready() + round(0, 0, 8, 0, true) + round(32, 8, 0, 0, true) + cta_sync() + round(0, 0, 8, 1, false) +
      round(32, 8, 0, 1, false) +
      by_warp(2, "  st.shared.u32 [smem+64], 0;\n" + spin("ld.volatile.shared.u32 %r9, [smem+64]"));
  CHECK(fault_in(stuck, Kind::budget,
                 {"20000", "cycle: warp 0 waits on mbarrier 0x408 for warp 1", "warp 2, all lanes: can run"},
                 96, 20000) == "");
}

TEST_CASE("a freed allocation is named") {
  Kernel kernel(entry_of(".param .u64 out, .param .u64 from",
                         prologue() + "  ld.param.u64 %d1, [from];\n  ld.global.u32 %r1, [%d1+16];\n  ret;\n",
                         32));
  const uint64_t out = kernel.buffer<uint32_t>(64), from = kernel.buffer<uint32_t>(64);
  kernel.device().memory().release(from);
  CHECK(fault_of(kernel, {{1, 1, 1}, {32, 1, 1}, 1024}, Kind::illegal_address,
                 {"byte 16 of the 256-byte allocation", "which was freed"}, out, from) == "");
}
