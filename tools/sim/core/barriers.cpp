// SPDX-License-Identifier: Apache-2.0
// Barriers of the threads of a CTA.
#include <algorithm>
#include <bit>

#include "builder.h"
#include "control.h"
#include "convergence.h"
#include "machine.h"
#include "visibility.h"

namespace fa4::sim {

using ptx::Type;
using Field = Builder::Field;

namespace {

constexpr uint8_t kArrive = 1;  // Op::mode: it does not wait for other warps

uint32_t live_threads(const Cta& cta) {  // in units of warps
  return 32 * uint32_t(std::count_if(cta.warps.begin(), cta.warps.end(),
                                     [](const Warp& w) { return w.alive != 0; }));
}

// What bar.red gives to the lanes that executed `op`. Op::size: 1 popc, 2 and, 3 or.
void give_reduction(Warp& w, const Op* op, Mask lanes, const CtaBarrier& barrier) {
  if (op->size == 0) return;
  if (op->size == 1) {
    for (Mask m = lanes; m; m &= m - 1) w.rows[op->d].lane[first_lane(m)] = barrier.held;
    return;
  }
  const bool r = op->size == 2 ? barrier.held == barrier.lanes : barrier.held != 0;
  w.predicates[op->pd] = (w.predicates[op->pd] & ~lanes) | (r ? lanes : 0);
}

// Lets everybody who waits at the barrier go on, from `time`.
void complete_cta_barrier(Cta& cta, uint32_t id, uint64_t time) {
  const CtaBarrier complete = cta.barriers[id];
  cta.barriers[id] = {};
  for (Warp& w : cta.warps) {
    for (Fragment& f : w.fragments) {
      if (f.state == Fragment::State::cta_barrier && f.wait_object == id && f.counted) {
        f.state = Fragment::State::ready;
        w.time = std::max(w.time, time);
        give_reduction(w, f.pc - 1, f.mask, complete);  // it stands behind its barrier
        if (cta.observer) cta.observer->cta_barrier_passed(w, f.mask, id);
      }
    }
  }
  if (cta.observer) cta.observer->cta_barrier_opened(cta, id);
  cta.scheduler->slice_end = time;  // the others may be due first
}

// Lanes that wait at the barrier for the others of their warp.
bool waits_for_warp(const Fragment& f, uint32_t id) {
  return f.state == Fragment::State::cta_barrier && f.wait_object == id && !f.counted;
}
Mask lanes_at(const Warp& w, uint32_t id) {
  Mask lanes = 0;
  for (const Fragment& f : w.fragments) lanes |= waits_for_warp(f, id) ? f.mask : 0;
  return lanes;
}

void lanes_arrive(Warp& w, const Op* op, Mask lanes, uint32_t id) {
  CtaBarrier& barrier = w.cta->barriers[id];
  if (op->size) {
    const Mask p = op->pa_not ? ~w.predicates[op->pa] : w.predicates[op->pa];
    barrier.held += uint32_t(std::popcount(p & lanes));
    barrier.lanes += uint32_t(std::popcount(lanes));
  }
  publish(w, lanes);
  if (w.cta->observer) w.cta->observer->cta_barrier_arrived(w, op, lanes, id);
}

// All lanes of the warp that have not exited are at the barrier, those of `lanes` with `op`, others wait
// there: the warp arrives, which counts as 32 threads. `given`: the count of the instruction; 0: all threads
// of the CTA. True if the barrier is complete.
bool warp_arrives(Warp& w, const Op* op, Mask lanes, uint32_t id, uint32_t given) {
  Cta& cta = *w.cta;
  CtaBarrier& barrier = cta.barriers[id];
  const uint32_t threads = given ? given : live_threads(cta);
  if (barrier.expected != 0 && barrier.expected != threads) {
    fault(w, op, Fault::Kind::illegal_instruction,
          "barrier " + std::to_string(id) + " is used with " + std::to_string(threads) + " threads while " +
              std::to_string(barrier.expected) + " are expected");
  }
  barrier.expected = threads;
  barrier.whole_cta = given == 0;
  barrier.arrived += kLanes;
  barrier.warps |= 1u << w.index;
  cta.barrier_users[id] |= 1u << w.index;
  ++cta.scheduler->progress;
  if (lanes) lanes_arrive(w, op, lanes, id);
  for (Fragment& f : w.fragments) {
    if (!waits_for_warp(f, id)) continue;
    const Op* own = f.pc - 1;  // it stands behind its barrier
    lanes_arrive(w, own, f.mask, id);
    f.counted = true;
    if (own->mode == kArrive) f.state = Fragment::State::ready;
  }
  return barrier.arrived >= barrier.expected;
}

// Lanes of the warp have exited: barriers of the whole CTA no longer wait for a warp that is gone, and a warp
// whose other lanes are all at a barrier arrives there.
void leave_cta_barriers(Warp& w) {
  Cta& cta = *w.cta;
  for (uint32_t id = 0; id < std::size(cta.barriers); ++id) {
    CtaBarrier& barrier = cta.barriers[id];
    if (w.alive == 0) {
      if (!barrier.whole_cta) continue;
      barrier.expected = live_threads(cta);
      if (barrier.arrived >= barrier.expected) complete_cta_barrier(cta, id, w.time);
      continue;
    }
    if (lanes_at(w, id) != w.alive) continue;
    const Fragment first = *std::find_if(w.fragments.begin(), w.fragments.end(),
                                         [&](const Fragment& f) { return waits_for_warp(f, id); });
    if (warp_arrives(w, first.pc - 1, 0, id, first.wait_value)) complete_cta_barrier(cta, id, w.time);
  }
}

}  // namespace

void leave_barriers(Warp& w, Mask lanes) {
  leave_cta_barriers(w);
  leave_cluster_barrier(w, lanes);
}

namespace {

// bar.sync, bar.arrive (Op::mode), bar.red; Op::count: .aligned. A barrier counts threads in units of warps:
// a warp arrives when all its lanes that have not exited are there, which without .aligned may come one by
// one and from several places.
const Op* cta_barrier(Warp& w, const Op* op, Mask mask) {
  if (op->count && !gathered(w, op, mask)) return nullptr;
  const int first = first_lane(mask);
  const uint32_t id = w.rows[op->a].lane[first], threads = w.rows[op->b].lane[first];
  if (id >= 16)
    fault(w, op, Fault::Kind::illegal_instruction, "barrier " + std::to_string(id) + "; there are 16");
  if (threads % 32 != 0 || threads > 1024) {
    fault(w, op, Fault::Kind::illegal_instruction,
          "barrier with " + std::to_string(threads) + " threads; a multiple of 32 up to 1024 is needed");
  }
  const auto wait = [&](bool counted) {
    Fragment& f = park(w, op, mask, Fragment::State::cta_barrier, op + 1);
    f.wait_object = id;
    f.wait_value = threads;
    f.counted = counted;
  };
  if ((mask | lanes_at(w, id)) != w.alive) {
    wait(false);
    return nullptr;
  }
  Cta& cta = *w.cta;
  const bool complete = warp_arrives(w, op, mask, id, threads), waits = op->mode != kArrive;
  if (!complete) {
    if (!waits) return op + 1;
    wait(true);
    return nullptr;
  }
  if (cta.observer && waits) cta.observer->cta_barrier_passed(w, mask, id);
  give_reduction(w, op, mask, cta.barriers[id]);
  complete_cta_barrier(cta, id, w.time);
  return op + 1;
}

// bar.red: d, barrier, {threads,} predicate.
void build_barrier_reduction(Builder& b, Modifiers& m, bool aligned) {
  const bool aligned_too = m.take("aligned") || aligned;
  const auto kind = m.take_any({"popc", "and", "or"});
  const Type t = m.type();
  const bool count = kind == "popc";
  if (kind.empty() || (count ? t != Type::u32 && t != Type::none : t != Type::pred))
    b.refuse("bar.red is .popc.u32, .and.pred or .or.pred");
  const bool given = b.operand_count() > 3;
  const Virtual id = b.source(b.operand(1), Type::u32),
                threads = given ? b.source(b.operand(2), Type::u32) : b.constant(0, 1);
  bool negated = false;
  const uint16_t p = b.predicate(b.operand(given ? 3 : 2), &negated);
  const uint16_t pd = count ? 0 : b.predicate_destination(b.operand(0));
  const Virtual d = count ? b.destination(b.operand(0), 1) : kNoVirtual;
  Op& op = b.emit(cta_barrier);
  op.count = aligned_too;
  op.cycles = 20;
  op.size = count ? 1 : kind == "and" ? 2 : 3;
  op.pa = p, op.pa_not = negated;
  op.pd = count || pd ? pd : b.scratch_predicate();
  b.use(Field::a, id);
  b.use(Field::b, threads);
  if (d != kNoVirtual) b.def(Field::d, d);
}

// bar{.cta}.sync|arrive, bar.warp.sync, barrier{.cta}.sync|arrive{.aligned}
void build_bar(Builder& b, Modifiers& m) {
  if (m.take("warp")) {
    if (!m.take("sync")) b.refuse("bar.warp.sync is the only warp form");
    build_warp_barrier(b);
    return;
  }
  const bool bar = b.instruction().parts[0] == "bar";
  if (!bar && m.take("cluster")) return build_cluster_barrier(b, m);
  m.take("cta");
  const bool aligned = m.take("aligned") || bar;
  if (m.take("red")) {
    build_barrier_reduction(b, m, aligned);
    return;
  }
  const bool arrive = m.take("arrive");
  if (!arrive && !m.take("sync")) b.refuse("a barrier says .sync, .arrive or .red");
  const Virtual id = b.source(b.operand(0), Type::u32);
  const Virtual threads = b.operand_count() > 1 ? b.source(b.operand(1), Type::u32) : b.constant(0, 1);
  if (arrive && b.operand_count() < 2) b.refuse("bar.arrive needs the number of threads");
  Op& op = b.emit(cta_barrier);
  op.mode = arrive ? kArrive : 0;
  op.count = aligned;
  op.cycles = 20;
  b.use(Field::a, id);
  b.use(Field::b, threads);
}

}  // namespace

std::vector<FamilyRow> barrier_rows() {
  return {{"bar", build_bar}, {"barrier", build_bar}};
}

}  // namespace fa4::sim
