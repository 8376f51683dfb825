// SPDX-License-Identifier: Apache-2.0
#include "mbarrier.h"

#include <algorithm>
#include <bit>

#include "builder.h"
#include "shared_memory.h"
#include "visibility.h"

namespace fa4::sim {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

namespace {

constexpr int64_t kMaxCount = (1 << 20) - 1;  // of arrivals and of transaction bytes
constexpr uint64_t kWakeCycles = 20;

void complete_phase_if_due(Cta& cta, MBarrier& barrier, uint64_t time) {
  ++cta.scheduler->progress;
  if (barrier.pending != 0 || barrier.tx != 0) return;
  if (cta.observer) cta.observer->mbarrier_completed(cta, barrier.address, barrier.phase);
  ++barrier.phase;
  barrier.completed_by_thread = false;
  barrier.late = cta.random && drawn(cta, 4) == 0;
  barrier.tested_early = 0;
  barrier.pending = barrier.expected;
  for (uint32_t rank = 0; rank < cta.cluster->size; ++rank) barrier.signallers_now[rank] = 0;
  for (Warp& w : cta.warps) {
    for (Fragment& f : w.fragments) {
      if (f.state != Fragment::State::mbarrier || f.wait_object != barrier.address) continue;
      f.state = Fragment::State::ready;
      w.time = std::max(w.time, time + kWakeCycles);
    }
  }
  cta.scheduler->slice_end = std::min(cta.scheduler->slice_end, time + kWakeCycles);
}

}  // namespace

MBarrier* find_mbarrier(Cta& cta, uint64_t address) {
  if (address % 8 != 0 || address < kSharedBase || address + 8 > cta.shared_end) return nullptr;
  const uint16_t index = cta.mbarrier_at[address / 8];
  return index && cta.mbarriers[index - 1].live ? &cta.mbarriers[index - 1] : nullptr;
}

std::string expect_tx(Cta& cta, MBarrier& barrier, int64_t bytes) {
  barrier.tx += bytes;
  ++cta.scheduler->progress;
  if (barrier.tx <= kMaxCount) return {};
  return "the transaction count of " + barrier_name(cta, barrier.address) + " becomes " + std::to_string(barrier.tx) +
         "; at most 2^20 - 1 bytes can be expected";
}

std::string complete_tx(Cta& cta, MBarrier& barrier, int64_t bytes, uint64_t time) {
  barrier.tx -= bytes;
  if (barrier.tx < -kMaxCount) {
    return "the transaction count of " + barrier_name(cta, barrier.address) + " becomes " + std::to_string(barrier.tx) +
           ": more bytes arrived than anybody expects";
  }
  complete_phase_if_due(cta, barrier, time);
  return {};
}

std::string arrive(Cta& cta, MBarrier& barrier, uint32_t count, uint64_t time) {
  if (count > uint32_t(barrier.pending)) {
    return std::to_string(count) + " arrivals on " + barrier_name(cta, barrier.address) + " in phase " +
           std::to_string(barrier.phase) + ", where only " + std::to_string(barrier.pending) + " of " +
           std::to_string(barrier.expected) + " are pending";
  }
  barrier.pending -= int32_t(count);
  complete_phase_if_due(cta, barrier, time);
  return {};
}

namespace {

// Op::space says whether the barrier may be another CTA's.
SharedPlace place_of(const Warp& w, const Op* op, int lane) {
  const uint64_t address = lane_bits(w.rows + op->a, lane, op->mode & 1) + uint64_t(op->imm);
  if (op->space == AddressSpace::shared_cluster) return require_place(w, op, op->mode & 1 ? address : uint32_t(address));
  return {w.cta, own_shared(*w.cta, address)};
}

struct FoundBarrier {
  Cta& owner;
  MBarrier& barrier;
};
FoundBarrier require(Warp& w, const Op* op, int lane) {
  const SharedPlace place = place_of(w, op, lane);
  MBarrier* barrier = find_mbarrier(*place.cta, place.address);
  if (!barrier) {
    fault(w, op, Fault::Kind::poison, "no mbarrier is initialised at " + shared_name(*place.cta, place.address) + of_cta(*w.cta, *place.cta));
  }
  return {*place.cta, *barrier};
}

void check(Warp& w, const Op* op, const std::string& error) {
  if (!error.empty()) fault(w, op, Fault::Kind::poison, error);
}

// Lanes with the same barrier, together.
template <class F>
void each_address(const Warp& w, const Op* op, Mask mask, F f) {
  while (mask) {
    const SharedPlace place = place_of(w, op, first_lane(mask));
    Mask same = 0;
    for (Mask m = mask; m; m &= m - 1) same |= Mask(place_of(w, op, first_lane(m)) == place) << first_lane(m);
    f(same, place.address);
    mask &= ~same;
  }
}

const Op* init(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint32_t address = place_of(w, op, lane).address;
    const uint32_t count = w.rows[op->b].lane[lane];
    if (address % 8 != 0) fault(w, op, Fault::Kind::misaligned_address, "an mbarrier is 8-byte aligned");
    check(w, op, outside_shared(cta, address, 8));
    if (count == 0 || count > kMaxCount) {
      fault(w, op, Fault::Kind::illegal_instruction, "mbarrier.init with a count of " + std::to_string(count) + "; 1 to 2^20 - 1 are possible");
    }
    if (mbarrier_in(cta, address, 8)) {
      fault(w, op, Fault::Kind::poison, "mbarrier.init of " + barrier_name(cta, address) + ", which is live");
    }
    uint16_t& index = cta.mbarrier_at[address / 8];
    if (!index) {
      cta.mbarriers.emplace_back();
      index = uint16_t(cta.mbarriers.size());
    }
    cta.mbarriers[index - 1] = {address, 0, int32_t(count), int32_t(count), 0, true};
    set_shared_valid(cta, address, 8, false);
    if (cta.observer) cta.observer->mbarrier_initialised(w, op, lane, address);
  }
  return op + 1;
}

const Op* inval(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) {
    MBarrier& barrier = require(w, op, first_lane(mask)).barrier;
    barrier.live = false;
    if (w.cta->observer) w.cta->observer->mbarrier_invalidated(w, op, first_lane(mask), barrier.address);
  }
  return op + 1;
}

// What an arrive returns: the phase and the arrivals that were pending, in an encoding of our own.
uint64_t state_of(const MBarrier& b) { return uint64_t(uint32_t(b.pending)) << 32 | b.phase; }

// Of the lanes that are still to arrive, those whose arrivals count in the barrier's present phase; the first in any case.
Mask same_phase(const Warp& w, const Op* op, Mask mask, const Cta& owner, const MBarrier& barrier) {
  Mask lanes = 0;
  for (int64_t pending = barrier.pending; mask && (pending > 0 || !lanes); mask &= mask - 1) {
    const int lane = first_lane(mask);
    if (const SharedPlace place = place_of(w, op, lane); place.cta != &owner || place.address != barrier.address) continue;
    lanes |= 1u << lane;
    pending -= op->size & 1 ? 1 : w.rows[op->b].lane[lane];
  }
  return lanes;
}

// size bit 0: register b holds bytes to expect, and it is 1 arrival; else the number of arrivals. Bit 1: arrive_drop. Bit 2:
// .noComplete.
const Op* arrive_lanes(Warp& w, const Op* op, Mask mask) {
  Observer* const observer = w.cta->observer;
  if (op->order & kRelease) publish(w, mask);
  Mask told = 0;  // lanes whose arrival the observer knows of: each in the phase in which it counts
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    const auto [owner, barrier] = require(w, op, lane);
    if (observer && !(told >> lane & 1)) {
      const Mask lanes = same_phase(w, op, m, owner, barrier);
      observer->mbarrier_arriving(w, op, lanes, owner, barrier.address);
      told |= lanes;
    }
    const uint64_t state = state_of(barrier);
    const uint32_t operand = w.rows[op->b].lane[lane];
    if (op->size & 1) check(w, op, expect_tx(owner, barrier, operand));
    const uint32_t count = op->size & 1 ? 1 : operand;
    if (count == 0) fault(w, op, Fault::Kind::illegal_instruction, "an arrival with a count of 0");
    if (op->size & 2) {
      if (barrier.expected < int32_t(count)) fault(w, op, Fault::Kind::poison, "arrive_drop takes away more arrivals than are expected");
      barrier.expected -= int32_t(count);
    }
    barrier.signalled_by(w.cta->rank, w.index);
    const uint32_t phase = barrier.phase;
    check(w, op, arrive(owner, barrier, count, w.time));
    if (barrier.phase != phase) barrier.completed_by_thread = true;
    if ((op->size & 4) && barrier.phase != phase) {
      fault(w, op, Fault::Kind::poison, "an arrival with .noComplete completes a phase of " + barrier_name(owner, barrier.address));
    }
    if (op->count) {
      w.rows[op->d].lane[lane] = uint32_t(state);
      w.rows[op->d + 1].lane[lane] = uint32_t(state >> 32);
    }
    ++w.counters.barrier_arrivals;
  }
  return op + 1;
}

const Op* expect_lanes(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const auto [owner, barrier] = require(w, op, lane);
    const uint32_t bytes = w.rows[op->b].lane[lane];
    const uint32_t phase = barrier.phase;
    check(w, op, op->size == 0 ? expect_tx(owner, barrier, bytes) : complete_tx(owner, barrier, bytes, w.time));
    if (barrier.phase != phase) barrier.completed_by_thread = true;
  }
  return op + 1;
}

// mode bit 1: parity form; bit 2: try_wait, which may suspend.
const Op* wait(Warp& w, const Op* op, Mask mask) {
  Mask passed = 0;
  uint32_t address = 0, value = 0;
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    const MBarrier& barrier = require(w, op, lane).barrier;
    address = barrier.address;
    value = w.rows[op->b].lane[lane];
    const bool done = op->mode & 2 ? phase_passed(barrier, value) : barrier.phase != value;
    passed |= Mask(done) << lane;
  }
  Fragment& f = w.fragment();
  // A try_wait may return false whenever it likes, and a test_wait while bytes or MMAs have completed the phase but no thread
  // can know; to each lane on its own, hardware asks once for all of them. Programs put a test_wait early, with a wait behind
  // it for the case that it fails: often enough it does, and sometimes that of every warp, so that none learns it from another.
  const bool may_suspend = op->mode & 4;
  MBarrier& asked = *find_mbarrier(*w.cta, address);
  const bool may_fail = may_suspend || !asked.known();
  const uint32_t warp = 1u << w.index;
  if (passed && !may_suspend && may_fail && asked.late && !(asked.tested_early & warp)) {
    asked.tested_early |= warp;
    passed = 0;
  } else if (passed && w.cta->random && may_fail && drawn(*w.cta, may_suspend ? 16 : 4) == 0) {
    const bool together = w.cta->launch->model == Model::silicon || drawn(*w.cta, 4) == 0;
    passed &= Mask(together ? 0 : mixed(drawn(*w.cta, ~0ull)));
    f.time_limit = may_suspend;
  }
  if (passed == 0 && (op->mode & 4) && !f.time_limit) {
    f.state = Fragment::State::mbarrier;
    f.pc = op;
    f.wait_object = address;
    f.wait_value = value;
    f.wait_begin = w.time;
    ++w.counters.parked;
    return nullptr;
  }
  if (passed && f.wait_begin && w.cta->traced) {
    fa4sim_event e{};
    e.kind = FA4SIM_EVENT_WAIT;
    e.begin = f.wait_begin;
    e.end = w.time;
    e.warp = w.index;
    e.address = address;
    w.cta->trace(e);
  }
  f.wait_begin = 0;
  f.time_limit = false;
  if (passed) {
    ++w.counters.barrier_waits;
    asked.seen[w.index] = asked.phase;
  }
  if (passed && w.cta->observer) {
    each_address(w, op, passed, [&](Mask lanes, uint32_t at) { w.cta->observer->mbarrier_waited(w, op, lanes, at); });
  }
  w.predicates[op->pd] = (w.predicates[op->pd] & ~mask) | passed;
  return op + 1;
}

const Op* pending_count(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    w.rows[op->d].lane[lane] = w.rows[op->a + 1].lane[lane];
  }
  return op + 1;
}
// Op::mode holds the FenceKind.
const Op* fence(Warp& w, const Op* op, Mask mask) {
  const auto kind = FenceKind(op->mode);
  if (kind == FenceKind::memory && (op->order & kRelease)) publish(w, mask);
  const bool to_async = kind == FenceKind::proxy_async || kind == FenceKind::proxy_async_shared || kind == FenceKind::proxy_async_cluster || kind == FenceKind::proxy_async_global;
  if (to_async && w.cta->random) publish_to_async(w, mask, kind);
  if (w.cta->observer) w.cta->observer->fence(w, op, mask, kind);
  return op + 1;
}
const Op* nothing(Warp&, const Op* op, Mask) { return op + 1; }

void build_mbarrier(Builder& b, Modifiers& m) {
  const auto verb = m.take_any({"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx", "test_wait", "try_wait", "pending_count"});
  if (verb.empty()) b.refuse("unknown mbarrier instruction");
  const bool and_expect = (verb == "arrive" || verb == "arrive_drop") && m.take("expect_tx");
  const bool parity = m.take("parity");
  const auto semantics = m.take_any({"release", "acquire", "relaxed"});
  const auto scope = m.take_any({"cta", "cluster"});
  const bool no_complete = (verb == "arrive" || verb == "arrive_drop") && m.take("noComplete");
  const auto space = m.take_any({"shared", "shared::cta", "shared::cluster"});
  if (m.type() != Type::b64) b.refuse("an mbarrier instruction has type .b64");
  const auto finish = [&](const Operand& at) {
    const bool wide = b.address(at, space == "shared::cluster" ? AddressSpace::shared_cluster : AddressSpace::shared);
    b.newest().mode |= wide;
    if (wide && !space.empty() && at.reg >= 0) b.refuse("a shared address has 32 bits");
    b.newest().cycles = 4;
    if (verb != "init" && verb != "inval") b.newest().order = uint8_t((semantics == "relaxed" ? kStrong : kStrong | kAcquire | kRelease) | (scope == "cta" ? 0 : kBeyondCtaInCluster) | (scope.empty() ? kScopeUnnamed : 0));
  };
  if (verb == "pending_count") {
    const Virtual x = b.source(b.operand(1), Type::b64), d = b.destination(b.operand(0), 1);
    b.emit(pending_count);
    b.use(Field::a, x);
    b.def(Field::d, d);
    return;
  }
  if ((verb == "init" || verb == "inval") && space == "shared::cluster") b.refuse("an mbarrier is initialised and ended by its own CTA: .shared::cta");
  if (verb == "init") {
    const Virtual count = b.source(b.operand(1), Type::u32);
    b.emit(init);
    b.use(Field::b, count);
    finish(b.operand(0));
    return;
  }
  if (verb == "inval") {
    b.emit(inval);
    finish(b.operand(0));
    return;
  }
  if (verb == "expect_tx" || verb == "complete_tx") {
    const Virtual bytes = b.source(b.operand(1), Type::u32);
    b.emit(expect_lanes).size = verb == "complete_tx";
    b.use(Field::b, bytes);
    finish(b.operand(0));
    return;
  }
  if (verb == "arrive" || verb == "arrive_drop") {
    // The destination is missing in the forms for another CTA's barrier of older ISA versions.
    const bool has_destination = b.operand(0).kind != Operand::Kind::address;
    const size_t at = has_destination ? 1 : 0;
    const bool wants_state = has_destination && b.operand(0).kind != Operand::Kind::sink;
    if (wants_state && space == "shared::cluster") b.refuse("an arrive on .shared::cluster returns no state: its destination is _");
    if (space == "shared::cluster" && no_complete) b.refuse("an arrive with .noComplete is one of the own CTA: .shared::cta");
    if (and_expect && b.operand_count() < at + 2) b.refuse("arrive.expect_tx needs the number of bytes");
    const Virtual count = b.operand_count() > at + 1 ? b.source(b.operand(at + 1), Type::u32) : b.constant(1, 1);
    const Virtual state = wants_state ? b.destination(b.operand(0), 2) : b.scratch(2);
    b.emit(arrive_lanes).size = uint8_t((and_expect ? 1 : 0) | (verb == "arrive_drop" ? 2 : 0) | (no_complete ? 4 : 0));
    b.newest().count = wants_state;
    b.use(Field::b, count);
    b.def(Field::d, state);
    finish(b.operand(at));
    return;
  }
  if (space == "shared::cluster") b.refuse("a wait takes a barrier of the own CTA: .shared::cta");
  const uint16_t p = b.predicate_destination(b.operand(0));
  const Virtual value = b.source(b.operand(2), parity ? Type::u32 : Type::b64);
  b.emit(wait).pd = p ? p : b.scratch_predicate();
  b.newest().mode = uint8_t((parity ? 2 : 0) | (verb == "try_wait" ? 4 : 0));
  b.use(Field::b, value);
  finish(b.operand(1));
}

// Fences order what this engine executes in order anyway; the happens-before checker is where they count.
void build_fence(Builder& b, Modifiers& m) {
  if (m.take("proxy")) {
    const auto proxies = m.take_any({"alias", "async", "async::generic", "tensormap::generic"});
    if (proxies.empty()) b.refuse("unknown proxy fence");
    m.take_any({"acquire", "release"});
    m.take_prefix("sync_restrict::");
    const auto space = m.take_any({"global", "shared::cta", "shared::cluster"});
    m.take_any({"cta", "cluster", "gpu", "sys"});
    const FenceKind kind = space.empty() ? FenceKind::proxy_async : space == "global" ? FenceKind::proxy_async_global :
                           space == "shared::cluster" ? FenceKind::proxy_async_cluster : FenceKind::proxy_async_shared;
    b.emit(proxies == "async" ? fence : nothing).mode = uint8_t(kind);
    return;
  }
  if (m.take("mbarrier_init")) {
    if (!m.take("release") || !m.take("cluster")) b.refuse("fence.mbarrier_init is .release.cluster");
    b.emit(fence).mode = uint8_t(FenceKind::mbarrier_init);
    return;
  }
  const auto semantics = m.take_any({"sc", "acq_rel", "acquire", "release"});
  m.take_prefix("sync_restrict::");
  const auto scope = m.take_any({"cta", "cluster", "gpu", "sys"});
  if (scope.empty()) b.refuse("a fence names its scope");
  Op& op = b.emit(fence);
  op.mode = uint8_t(FenceKind::memory);
  op.order = uint8_t((semantics != "release" ? kAcquire : 0) | (semantics != "acquire" ? kRelease : 0) |
                     (scope == "gpu" || scope == "sys" ? kBeyondCta : 0) | (scope == "cta" ? 0 : kBeyondCtaInCluster));
}

}  // namespace

std::vector<FamilyRow> mbarrier_rows() { return {{"mbarrier", build_mbarrier}, {"fence", build_fence}}; }

}  // namespace fa4::sim
