// SPDX-License-Identifier: Apache-2.0
// What the CTAs of a cluster share: its barrier, and the addresses of each other's shared memory.
#include <algorithm>
#include <bit>

#include "builder.h"
#include "control.h"
#include "convergence.h"
#include "hex.h"
#include "shared_memory.h"
#include "visibility.h"
#include "warp_wide.h"

namespace fa4::sim {

using ptx::Type;
using Field = Builder::Field;

namespace {

// All threads have arrived: the phase ends, and those who wait go on from `time`.
void complete_cluster_barrier(Cluster& cluster, uint64_t time) {
  cluster.arrived = 0;
  for (uint32_t rank = 0; rank < cluster.size; ++rank) {
    for (Warp& w : cluster.ctas[rank]->warps) w.cluster_arrived = 0;
  }
  Observer* const observer = cluster.ctas[0]->observer;
  if (observer) observer->cluster_barrier_completed(cluster);
  for (uint32_t rank = 0; rank < cluster.size; ++rank) {
    Cta& cta = *cluster.ctas[rank];
    for (Warp& w : cta.warps) {
      for (Fragment& f : w.fragments) {
        if (f.state != Fragment::State::cluster_barrier) continue;
        f.state = Fragment::State::ready;
        w.cluster_unwaited &= ~f.mask;
        w.time = std::max(w.time, time);
        if (cta.observer)
          cta.observer->cluster_barrier_passed(w, f.pc - 1, f.mask);  // it stands behind its wait
      }
    }
  }
  Scheduler& scheduler = *cluster.ctas[0]->scheduler;
  scheduler.slice_end = std::min(scheduler.slice_end, time);  // the others may be due first
  ++scheduler.progress;
}

void complete_if_due(Cluster& cluster, uint64_t time) {
  if (cluster.live > 0 && cluster.arrived == cluster.live) complete_cluster_barrier(cluster, time);
}

// Op::count: .aligned.
const Op* arrive(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  if (op->count && !gathered(w, op, mask)) return nullptr;
  if (const Mask again = mask & w.cluster_unwaited) {
    fault(w, op, Fault::Kind::illegal_instruction,
          "lanes " + hex(again) +
              " arrive again at the cluster's barrier without a barrier.cluster.wait since they came last");
  }
  w.cluster_unwaited |= mask;
  w.cluster_arrived |= mask;
  ++cta.scheduler->progress;
  if (op->order & kRelease) publish(w, mask);
  if (cta.observer) cta.observer->cluster_barrier_arrived(w, op, mask);
  cta.cluster->arrived += uint32_t(std::popcount(mask));
  complete_if_due(*cta.cluster, w.time);
  return op + 1;
}

const Op* wait(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  if (op->count && !gathered(w, op, mask)) return nullptr;
  if (const Mask none = mask & ~w.cluster_unwaited) {
    fault(w, op, Fault::Kind::illegal_instruction,
          "lanes " + hex(none) + " wait at the cluster's barrier without having arrived");
  }
  if (w.cluster_arrived & mask) {
    Fragment& f = w.fragment();
    if (mask != f.mask)
      fault(w, op, Fault::Kind::illegal_instruction,
            "only lanes " + hex(mask) + " of " + hex(f.mask) +
                ", which run together, wait at the cluster's barrier: use a branch");
    f.state = Fragment::State::cluster_barrier;
    f.wait_begin = w.time;
    f.pc = op + 1;
    return nullptr;
  }
  w.cluster_unwaited &= ~mask;
  if (cta.observer) cta.observer->cluster_barrier_passed(w, op, mask);
  return op + 1;
}

bool in_shared_window(uint64_t address) {
  return address >= kSharedWindow && address < kSharedWindow + kWindowBytes;
}

// The address of the same offset in the CTA of rank b. Op::mode bit 0: 64 bits; Op::space: generic, or
// shared_cluster.
const Op* map_address(Warp& w, const Op* op, Mask mask) {
  const bool wide = op->mode & 1;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint64_t from = lane_bits(w.rows + op->a, lane, wide);
    const uint32_t rank = w.rows[op->b].lane[lane];
    if (op->space == AddressSpace::generic && !in_shared_window(from)) {
      fault(w, op, Fault::Kind::illegal_address,
            "mapa of generic address " + hex(from) + ", which is none of shared memory");
    }
    if (rank >= w.cta->cluster->size) {
      fault(w, op, Fault::Kind::illegal_instruction,
            "mapa to rank " + std::to_string(rank) + "; the cluster has " +
                std::to_string(w.cta->cluster->size) + (w.cta->cluster->size == 1 ? " CTA" : " CTAs"));
    }
    const uint64_t window = op->space == AddressSpace::generic ? kSharedWindow : 0;
    const uint64_t to = window + (uint64_t(rank) << kRankShift) + (from & ((1u << kRankShift) - 1));
    w.rows[op->d].lane[lane] = uint32_t(to);
    if (wide) w.rows[op->d + 1].lane[lane] = uint32_t(to >> 32);
  }
  return op + 1;
}

const Op* rank_of_address(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint64_t address = lane_bits(w.rows + op->a, lane, op->mode & 1);
    if (op->space == AddressSpace::generic && !in_shared_window(address)) {
      fault(w, op, Fault::Kind::illegal_address,
            "getctarank of generic address " + hex(address) + ", which is none of shared memory");
    }
    w.rows[op->d].lane[lane] = uint32_t(address) >> kRankShift;
  }
  return op + 1;
}

// mapa, getctarank: an address as a register, a variable or a sum of these.
Virtual take_address(Builder& b, const ptx::Operand& operand, Type t) {
  if (operand.kind != ptx::Operand::Kind::symbol && operand.kind != ptx::Operand::Kind::reg)
    b.refuse("an address is a register or a variable here");
  return b.source(operand, t);
}

void build_mapa(Builder& b, Modifiers& m) {
  const bool cluster = m.take("shared::cluster");
  const Type t = m.type();
  if (t != Type::u32 && t != Type::u64) b.refuse("mapa gives a .u32 or .u64");
  const bool wide = t == Type::u64;
  if (!cluster && !wide) b.refuse("a generic address has 64 bits: mapa.u64");
  const Virtual d = b.destination(b.operand(0), wide ? 2 : 1);
  const Virtual from = take_address(b, b.operand(1), t), rank = b.source(b.operand(2), Type::u32);
  Op& op = b.emit(map_address);
  op.mode = wide;
  op.space = cluster ? AddressSpace::shared_cluster : AddressSpace::generic;
  b.use(Field::a, from);
  b.use(Field::b, rank);
  b.def(Field::d, d);
}

void build_getctarank(Builder& b, Modifiers& m) {
  const bool cluster = m.take("shared::cluster");
  const Type t = m.type();
  if (t != Type::u32 && t != Type::u64) b.refuse("getctarank takes a .u32 or .u64 address");
  const bool wide = t == Type::u64;
  if (!cluster && !wide) b.refuse("a generic address has 64 bits: getctarank.u64");
  const Virtual d = b.destination(b.operand(0), 1), from = take_address(b, b.operand(1), t);
  Op& op = b.emit(rank_of_address);
  op.mode = wide;
  op.space = cluster ? AddressSpace::shared_cluster : AddressSpace::generic;
  b.use(Field::a, from);
  b.def(Field::d, d);
}

}  // namespace

void leave_cluster_barrier(Warp& w, Mask lanes) {
  Cluster& cluster = *w.cta->cluster;
  cluster.live -= uint32_t(std::popcount(lanes));
  cluster.arrived -= uint32_t(std::popcount(w.cluster_arrived & lanes));
  w.cluster_arrived &= ~lanes;
  complete_if_due(cluster, w.time);
}

void build_cluster_barrier(Builder& b, Modifiers& m) {
  const bool arrives = m.take("arrive");
  if (!arrives && !m.take("wait")) b.refuse("a cluster's barrier says .arrive or .wait");
  const auto semantics = m.take_any({"release", "relaxed", "acquire"});
  if (arrives ? semantics == "acquire" : semantics == "release" || semantics == "relaxed")
    b.refuse("barrier.cluster.arrive is .release or .relaxed, barrier.cluster.wait is .acquire");
  b.mark_cluster_barriers();
  Op& op = b.emit(arrives ? arrive : wait);
  op.count = m.take("aligned");
  op.order = uint8_t(kStrong | kBeyondCtaInCluster |
                     (semantics == "relaxed" ? 0
                      : arrives              ? kRelease
                                             : kAcquire));
  op.cycles = 20;
}

std::vector<FamilyRow> cluster_rows() {
  return {{"mapa", build_mapa}, {"getctarank", build_getctarank}};
}

}  // namespace fa4::sim
