// SPDX-License-Identifier: Apache-2.0
// State of the simulated machine: fragments, warps, a CTA with its shared memory, tensor memory and barriers, and the
// asynchronous agents' work in flight. Semantics (core/*.cpp) change it; the engine (engine/) decides when.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "../driver/fa4sim.h"
#include "../engine/device.h"
#include "global_memory.h"
#include "observer.h"
#include "op.h"
#include "tensor_map.h"
#include "tensor_memory.h"

namespace fa4::sim {

constexpr uint32_t kSharedBase = 0x400;              // first user byte; the driver reserves 1 KiB below
constexpr uint32_t kSharedLimit = 232448;            // user bytes a CTA can have
constexpr uint64_t kSharedWindow = 0x6000'0000'0000;  // generic addresses of shared, local and parameter space
constexpr uint64_t kLocalWindow = 0x6100'0000'0000;
constexpr uint64_t kParamWindow = 0x6200'0000'0000;
constexpr uint64_t kWindowBytes = 0x100'0000'0000;
constexpr uint32_t kRegisterFile = 65536;            // 32-bit registers of an SM
constexpr uint32_t kRankShift = 24;                  // a shared address is the CTA's rank in its cluster << 24, plus an offset
constexpr uint32_t kMaxClusterSize = 16;             // CTAs; more than 8 only where a kernel allows it

struct Cta;

// Lanes of a warp that share a program counter.
struct Fragment {
  enum class State : uint8_t {
    ready,
    mbarrier,    // a failed try_wait: until the phase completes
    cta_barrier, // bar.sync: until enough threads came
    cluster_barrier,  // barrier.cluster.wait: until all threads of the cluster have arrived
    bulk_group,  // cp.async.bulk.wait_group
    warp_sync,   // *.sync: until all lanes of the member mask came or exited
    whole_warp,  // .aligned: until the other lanes of the warp came or exited
    registers,   // setmaxnreg.inc: until the pool has enough
    wgmma_group, // wgmma.wait_group
    copy_group,  // cp.async.wait_group, wait_all
    joining,     // at a reconvergence point
  };
  const Op* pc = nullptr;
  Mask mask = 0;
  int16_t join = -1;          // innermost reconvergence point, index into Warp::joins
  State state = State::ready;
  bool time_limit = false;    // the next failed try_wait returns false (its time limit passed)
  uint32_t wait_object = 0;   // mbarrier address, barrier id, registers wanted
  uint32_t wait_value = 0;    // parity; groups that may stay pending
  Mask members = 0;           // warp_sync: the member mask; copy_group: the lanes that wait
  bool at_warp_barrier = false;  // warp_sync: the instruction is bar.warp.sync
  bool counted = false;       // cta_barrier: its warp has arrived; until then it waits for the warp's other lanes
  uint64_t wait_begin = 0;
};

// A point where lanes that diverged meet again.
struct Join {
  const Op* at = nullptr;
  Mask expected = 0, arrived = 0;
  int16_t parent = -1;
  bool live = false;
};

// One lane's bulk groups (cp.async.bulk.commit_group): a ring of counts of stores not yet read / not yet complete.
struct BulkGroups {
  static constexpr uint32_t capacity = 64;
  uint64_t oldest = 0, newest = 0;              // newest: the open group; oldest..newest-1 are committed
  uint16_t unread[capacity] = {}, unfinished[capacity] = {};
};

// An ordinary store that other threads do not see yet, and bytes that the asynchronous proxy may still see otherwise
// (visibility.h). Only under adversarial timing.
struct HeldStore {
  std::byte* at;        // in Cta::shared or in global memory
  Cta* owner;           // whose shared memory it is in; null: global memory
  uint64_t due;         // when it becomes visible at the latest
  uint8_t lane, bytes;
  std::byte data[32];
};
struct UnfencedBytes {
  std::byte* at;
  uint64_t due;
  uint8_t bytes;
  bool shared;
  std::byte other[32];  // what memory does not hold: the old bytes, or, in an AsyncView, the new ones
};

// A warp's wgmma groups.
struct WgmmaGroups {
  uint32_t open = 1;              // number of the group that commit_group will close
  uint32_t known = 0;             // the warp has waited for the groups up to this one
  uint32_t fences = 0;            // wgmma.fence
  uint64_t executed = 0;          // wgmma instructions of any kind
  uint64_t issued = 0;            // wgmma.mma_async
  uint64_t landed = 0;            // how many of them, which complete in order
  uint64_t core_free = 0, last_done = 0;  // cycles
  std::vector<uint32_t> pending;  // indices into Cta::wgmmas: issued and not waited for, in order
};

// Where undefined data comes from: a load of shared memory that nobody has written.
struct UndefinedSource {
  const Op* op;
  uint32_t rank, address;      // of the CTA whose memory it is, there
  uint32_t reader, warp, lane; // rank of the CTA that loaded it, warp and lane there
};
// Undefined bits of a warp's registers, predicates and local memory (undefined.h). Sources are indices into
// Cluster::undefined.
struct Undefined {
  std::vector<Row> rows;                      // [row]: bits
  std::vector<Mask> lanes;                    // [row]: where there are any
  std::vector<uint32_t> sources;              // [32 * row + lane]
  std::vector<Mask> predicates;
  std::vector<uint32_t> predicate_sources;    // [32 * predicate + lane]
  std::vector<uint8_t> local;                 // [lane][byte]: not 0: undefined; empty: none is
  std::unordered_map<uint64_t, uint32_t> local_sources;  // by lane and word
};

// A tcgen05.ld in flight.
struct TmemLoad {
  uint32_t number;
  uint16_t column, columns;
};

struct Warp {
  Row* rows = nullptr;
  uint32_t* predicates = nullptr;
  Cta* cta = nullptr;
  const Code* code = nullptr;
  uint32_t index = 0;          // in the CTA
  Mask launched = 0, alive = 0;  // lanes that it began with; those of them that have not exited
  uint64_t time = 0;           // cycles
  int32_t current = 0;         // fragment that runs
  std::vector<Fragment> fragments;
  std::vector<Join> joins;
  std::vector<std::byte> local;          // [lane][local_bytes]
  std::vector<BulkGroups> bulk;          // [lane], made on first use
  uint64_t last_mma_done[kLanes] = {};   // when the lane's newest MMA completes: what its commits wait for
  Mask cluster_arrived = 0;              // lanes whose barrier.cluster.arrive counts in the phase under way
  Mask cluster_unwaited = 0;             // lanes that have arrived and have not waited since
  uint32_t registers = 0;                // a thread, as setmaxnreg left it
  uint32_t setmaxnreg_count = 0;
  std::vector<uint32_t> tmem_pending_stores;  // (column << 16 | count) since the last wait::st
  // [row], only kept where the builder saw a risk, see delivery.cpp: what holds a register in flight; the number of the
  // wgmma.fence that must follow its newest access.
  std::vector<uint32_t> in_flight, accessed;
  uint32_t tmem_loads_issued = 0, tmem_loads_known = 0;  // numbers; known: by wait::ld. Kept likewise
  std::vector<TmemLoad> tmem_loads;      // since the last wait::ld; kept likewise
  WgmmaGroups wgmma;
  std::vector<uint32_t> copies;          // cp.async: indices into Cta::copies that some lane has not waited for, in order
  uint64_t copy_groups[kLanes] = {};     // number of the group that the lane's commit_group will close
  uint64_t copies_issued = 0, copies_done = 0;  // cp.async instructions; cycles
  fa4sim_warp_counters counters{};
  std::vector<HeldStore> held;           // in the order of their execution
  uint64_t spin_instructions = 0;        // in a row without progress, while other lanes of the warp wait
  std::unique_ptr<Undefined> undefined;  // null: everything is defined
  // The allocation that the last global access hit.
  uint64_t cached_start = 1, cached_end = 0;
  std::byte* cached_host = nullptr;

  Fragment& fragment() { return fragments[current]; }
};

struct MBarrier {
  uint32_t address = 0;
  uint32_t phase = 0;
  int32_t pending = 0, expected = 0;
  int64_t tx = 0;
  bool live = false;
  // For reports. Masks of warps, by rank of their CTA: whose arrivals, commits or copies it has counted, ever and in this
  // phase.
  uint32_t signallers[kMaxClusterSize] = {}, signallers_now[kMaxClusterSize] = {};
  uint32_t seen[32] = {};  // [warp]: phases that it has seen complete
  bool completed_by_thread = false;  // the last complete phase: by a thread's arrival or complete_tx
  // Under adversarial timing, of the last complete phase: every warp's first test_wait comes too early, while no thread
  // can know; mask of the warps that have made it.
  bool late = false;
  uint32_t tested_early = 0;

  void signalled_by(uint32_t rank, uint32_t warp) {
    signallers[rank] |= 1u << warp;
    signallers_now[rank] |= 1u << warp;
  }
  // Whether a thread may know that the last complete phase is complete: it completed it, or saw it and may have told others.
  bool known() const {
    return completed_by_thread || std::ranges::any_of(seen, [&](uint32_t phases) { return phases == phase; });
  }
  bool signalled() const { return std::ranges::any_of(signallers, [](uint32_t warps) { return warps != 0; }); }
};

struct CtaBarrier {
  uint32_t arrived = 0;   // threads
  uint32_t expected = 0;  // threads, 0: nobody came yet
  bool whole_cta = false; // no count was given: all threads that have not exited
  uint32_t warps = 0;     // mask of those that came
  uint32_t held = 0, lanes = 0;  // bar.red: threads whose predicate holds, threads that gave one
};

// CTAs that are resident together and reach each other's shared memory. A CTA that is launched without one is a cluster
// of its own.
struct Cluster {
  uint32_t size = 1;
  uint32_t extent[3] = {1, 1, 1};        // %cluster_nctaid
  uint32_t id[3] = {}, count[3] = {};    // %clusterid, %nclusterid
  Cta* ctas[kMaxClusterSize] = {};       // by rank
  // barrier.cluster: threads that have not exited, and those of them that have arrived in the phase under way.
  uint32_t live = 0, arrived = 0;
  std::vector<UndefinedSource> undefined;
  std::unordered_map<uint64_t, uint32_t> undefined_numbers;  // by op, rank and address
};

struct TmemAllocation {
  uint32_t column, columns;
};

// Work of an asynchronous agent, between issue and landing.
struct Event {
  enum class Kind : uint8_t {
    mma, commit, box_load, bulk_load, box_store_read, box_store_done, wgmma, thread_copy, thread_copy_arrival,
    shared_copy,   // from the CTA's shared memory to the target's
    remote_store,  // st.async, red.async
    // Under adversarial timing, what an agent does somewhere within its life: an MMA reads A or B, a load its source, a store
    // its source, and writes its destination.
    mma_read_a, mma_read_b, wgmma_read, load_fetch, store_fetch, store_write, copy_fetch
  };
  uint64_t time = 0, sequence = 0;
  Kind kind = Kind::mma;
  Cta* cta = nullptr;        // that issued it
  Cta* target = nullptr;     // whose shared memory it writes, or on whose mbarrier it completes
  uint16_t warp = 0, lane = 0;
  uint32_t address = 0;      // commit, loads, shared_copy, remote_store: the target's mbarrier
  uint32_t shared = 0;       // loads, shared_copy, remote_store: destination. stores: source
  uint32_t source = 0;       // shared_copy: where it reads the CTA's memory
  uint32_t bytes = 0;        // that are copied
  uint32_t extent = 0;       // of shared memory from its first to its last byte
  uint64_t global = 0;       // bulk copies: global address
  uint64_t group = 0;        // stores: bulk group of the lane; thread_copy_arrival: the warp's cp.async before it
  int32_t coordinates[5] = {};  // of a box; the words that a remote_store brings
  uint32_t slot = 0;         // mma: index into Cta::mmas; boxes: into Cta::maps; wgmma: into Cta::wgmmas; thread_copy: into Cta::copies
  uint32_t token = 0;        // the observer's
  const Op* op = nullptr;
};

struct MmaWork {
  uint64_t a_descriptor = 0, b_descriptor = 0;
  uint32_t d_column = 0, a_column = 0, instruction = 0;
  bool a_in_tmem = false, accumulate = false;
  uint64_t invalidations = 0;  // Cta::shared_invalidations at issue
};
// What an MMA has read: a[k * 128 + m], b[n * 16 + k].
struct MmaOperands {
  alignas(64) uint16_t a[16 * 128], b[256 * 16];
};

// One warp's part of a wgmma.mma_async: 16 rows.
struct WgmmaWork {
  const Op* op;
  uint64_t a_descriptor, b_descriptor;
  uint64_t invalidations;   // Cta::shared_invalidations at issue
  uint64_t number;          // among those that the warp issued, from 1
  uint32_t group;
  uint16_t warp;
  bool accumulate;
  bool done;                // the registers hold the result
  Row a[4];                 // A in registers, as they were at issue
  std::vector<std::byte> operands;  // under adversarial timing: A and B as they were read
};
struct WgmmaIssue {
  const Op* op;
  uint64_t a, b;
  bool accumulate;
};
// What the first warp of a warpgroup to come there executed, for the warps that have yet to.
template <class T>
struct WarpgroupHistory {
  uint64_t first = 0;              // how many have been forgotten
  std::vector<T> items;
};
struct Warpgroup {
  WarpgroupHistory<const Op*> executed;  // wgmma instructions of any kind
  WarpgroupHistory<WgmmaIssue> issued;   // wgmma.mma_async
  bool differs = false;                  // Model::silicon: its warps have executed different ones; said once
};

// One cp.async of a warp.
struct ThreadCopy {
  const Op* op;
  Mask lanes;               // that have not waited for it
  bool landed;
  uint64_t number;          // among those that the warp issued
  uint64_t source[kLanes], group[kLanes];
  uint32_t destination[kLanes];
  uint8_t bytes[kLanes];    // of the source
};

// What a launch has in common for all its CTAs.
struct LaunchState {
  const Code* code = nullptr;
  const Launch* launch = nullptr;
  GlobalMemory* memory = nullptr;
  uint64_t budget = 0;
  int64_t trace_cta = -1;
  std::vector<fa4sim_event>* trace = nullptr;
  const class NameTable* names = nullptr;
  uint32_t sm_count = 1;
  uint32_t cluster[3] = {1, 1, 1};  // CTAs
  bool explicit_cluster = false;    // the launch or the entry says so
  uint32_t dynamic_shared = 0;  // address of the first dynamic byte
  uint64_t adversarial_seed = 0;
  Model model = Model::isa;
  bool independent_lanes = false;  // with a seed: lanes that diverged need not come together again
  uint64_t serial = 0;          // launches of this device before this one
};

// The engine, as semantics see it.
class Scheduler {
 public:
  virtual void schedule(Event event) = 0;   // sets the sequence number
  uint64_t slice_end = 0;                   // the running warp stops when its time reaches this
  uint64_t progress = 0;                    // counts everything that may let a waiter go on
 protected:
  ~Scheduler() = default;
};

struct Cta {
  LaunchState* launch = nullptr;
  Scheduler* scheduler = nullptr;
  uint64_t id = 0;                  // linear in the grid
  uint32_t ctaid[3] = {};
  uint32_t smid = 0;
  Cluster* cluster = nullptr;
  uint32_t rank = 0, ctaid_in_cluster[3] = {};  // %cluster_ctarank, %cluster_ctaid
  uint32_t threads = 0;
  uint32_t shared_end = 0;          // first byte beyond static + dynamic shared memory
  uint32_t dynamic_shared = 0;      // address of the first dynamic byte
  std::vector<std::byte> shared;    // indexed by shared::cta address
  std::vector<uint64_t> shared_valid;        // one bit a byte: written and not in flight
  std::vector<uint64_t> shared_claimed;      // likewise, where it is not valid: a copy in flight will write it
  std::unordered_map<uint32_t, uint32_t> undefined_words;  // [address / 4]: undefined data was stored; into Cluster::undefined
  uint64_t shared_invalidations = 0;         // how often bytes became invalid
  std::vector<uint16_t> mbarrier_at;         // [address / 8]: index + 1 into mbarriers
  std::vector<MBarrier> mbarriers;
  CtaBarrier barriers[16];
  uint32_t barrier_users[16] = {};           // masks of warps that ever came; for reports
  TensorMemory tmem;
  std::vector<TmemAllocation> tmem_allocations;
  bool tmem_relinquished = false;
  std::vector<Warp> warps;
  std::vector<Row> rows;
  std::vector<uint32_t> predicates;
  std::vector<MmaWork> mmas;
  std::vector<std::unique_ptr<MmaOperands>> mma_operands;  // [slot], under adversarial timing: read before it completes
  std::vector<std::vector<std::byte>> store_images;        // [slot of maps], likewise: what a bulk store has read
  std::vector<UnfencedBytes> unfenced;                     // likewise, in its memory or of its global stores, oldest first
  std::vector<TensorMap> maps;
  std::vector<uint32_t> free_mmas, free_maps;
  std::vector<WgmmaWork> wgmmas;
  std::vector<uint32_t> free_wgmmas;
  std::vector<Warpgroup> warpgroups;
  std::vector<ThreadCopy> copies;
  std::vector<uint32_t> free_copies;
  std::vector<std::vector<uint32_t>> setmaxnreg_history;  // [warpgroup]
  uint32_t register_pool = 0;
  uint32_t in_flight = 0;                    // events of this CTA not yet landed
  uint64_t tensor_core_free = 0, last_mma_done = 0, tma_free = 0;
  uint64_t instructions = 0;                 // warp instructions, against the budget
  uint64_t mma_flop = 0;
  uint32_t live_warps = 0;
  std::vector<uint64_t> executed;            // [op]: thread instructions
  bool traced = false;
  bool over = false;                         // all lanes have exited ...
  uint64_t end = 0;                          // ... at this time; its memory is gone
  Observer* observer = nullptr;              // null: nobody watches
  uint64_t random = 0;                       // state of the adversarial choices; 0: nominal timing

  // All events of the CTA name where they come from through these.
  void trace(const fa4sim_event& event) {
    if (traced) launch->trace->push_back(event);
  }
};

// Scrambles 64 bits.
inline uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}
// An adversarial choice in 0..n-1, from the CTA's own sequence: the same for any number of host threads.
inline uint64_t drawn(Cta& cta, uint64_t n) {
  cta.random += 0x9E3779B97F4A7C15;
  return mixed(cta.random) % n;
}
// A moment after `from` and not after `to`.
inline uint64_t moment(Cta& cta, uint64_t from, uint64_t to) { return to <= from + 1 ? to : from + 1 + drawn(cta, to - from); }
// How long an asynchronous agent takes: the nominal time, or, drawn, anything from at once to many times that.
inline uint64_t delay(Cta& cta, uint64_t nominal) {
  if (!cta.random) return nominal;
  return 1 + drawn(cta, drawn(cta, 8) == 0 ? 16 * nominal : 2 * nominal);
}

// Stops the launch with a report that names the op's place, the warp and the message.
[[noreturn]] void fault(const Warp& warp, const Op* op, Fault::Kind kind, const std::string& message);
[[noreturn]] void fault(const Cta& cta, uint32_t warp, const Op* op, Fault::Kind kind, const std::string& message);

// "asm/attention/softmax.cuh:57 (PTX line 120: tcgen05.ld...)".
std::string place(const Cta& cta, const Op* op);
// "warp 12 (mma)".
std::string role_name(const Cta& cta, uint32_t warp);

// The event is in flight.
inline void send(Cta& cta, const Event& event) {
  ++cta.in_flight;
  cta.scheduler->schedule(event);
}

// What a lane holds in a register of 32 bits or, wide, in the two rows of one of 64.
inline uint64_t lane_bits(const Row* row, int lane, bool wide) {
  return wide ? uint64_t(row[0].lane[lane]) | uint64_t(row[1].lane[lane]) << 32 : row[0].lane[lane];
}
// [a + imm]. Op::mode bit 0: the register has 64 bits; with one of 32 the sum wraps.
inline uint64_t lane_address(const Warp& w, const Op* op, int lane) {
  const bool wide = op->mode & 1;
  const uint64_t sum = lane_bits(w.rows + op->a, lane, wide) + uint64_t(op->imm);
  return wide ? sum : uint32_t(sum);
}

}  // namespace fa4::sim
