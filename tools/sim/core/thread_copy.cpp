// SPDX-License-Identifier: Apache-2.0
// cp.async: 4, 8 or 16 bytes from global to shared memory for each lane, in groups of the lane's own. What a
// copy writes stays poison until its lane has waited for it, or until the arrival on an mbarrier that follows
// it.
#include "thread_copy.h"

#include <algorithm>
#include <cstring>

#include "mbarrier.h"
#include "shared_memory.h"
#include "visibility.h"

namespace fa4::sim {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

namespace {

constexpr uint64_t kLatency = 500, kArrivalLatency = 20;  // nominal, in cycles
constexpr uint32_t kMaxPending = (1 << 20) - 1;           // of an mbarrier

uint32_t take_slot(Cta& cta) {
  if (cta.free_copies.empty()) {
    cta.copies.emplace_back();
    return uint32_t(cta.copies.size() - 1);
  }
  const uint32_t slot = cta.free_copies.back();
  cta.free_copies.pop_back();
  return slot;
}

// Op::mode
constexpr uint8_t kWideShared = 1, kSourceSize = 2, kIgnoreSource = 4;

// Rows: a shared, b global, c the source's size if there is one. pa: ignore-src. size: bytes.
const Op* thread_copy(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  const uint32_t slot = take_slot(cta);
  ThreadCopy& copy = cta.copies[slot];
  copy.op = op;
  copy.lanes = mask;
  copy.landed = false;
  copy.number = w.copies_issued++;
  const auto refuse = [&](Fault::Kind kind, int lane, const std::string& text) {
    fault(w, op, kind, "lane " + std::to_string(lane) + ": " + text);
  };
  const Mask ignored =
      op->mode & kIgnoreSource ? (op->pa_not ? ~w.predicates[op->pa] : w.predicates[op->pa]) : 0;
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    const uint32_t to = own_shared(cta, lane_bits(w.rows + op->a, lane, op->mode & kWideShared));
    const uint64_t from = lane_bits(w.rows + op->b, lane, true);
    uint32_t bytes = op->mode & kSourceSize ? w.rows[op->c].lane[lane] : op->size;
    if (bytes > op->size)
      refuse(Fault::Kind::illegal_instruction, lane,
             "a source of " + std::to_string(bytes) + " bytes for a copy of " + std::to_string(op->size));
    if (ignored >> lane & 1) bytes = 0;
    if (const std::string outside = outside_shared(cta, to, op->size); !outside.empty())
      refuse(Fault::Kind::illegal_address, lane, outside);
    if (to % op->size || from % op->size)
      refuse(Fault::Kind::misaligned_address, lane,
             "the addresses of the copy are not aligned to its " + std::to_string(op->size) + " bytes");
    if (const MBarrier* barrier = mbarrier_in(cta, to, op->size))
      refuse(Fault::Kind::poison, lane,
             "the copy covers the live barrier " + barrier_name(cta, barrier->address));
    if (bytes) {
      std::byte* const source = cta.launch->memory->at(from, bytes);
      if (!source)
        refuse(Fault::Kind::illegal_address, lane,
               "the copy reads global memory that is not allocated: " + cta.launch->memory->describe(from));
      if (cta.observer) cta.observer->global_access(w, op, lane, from, bytes, false);
      if (!w.held.empty()) publish_overlapping(w, lane, source, bytes);
    }
    if (!w.held.empty()) publish_overlapping(w, lane, cta.shared.data() + to, op->size);
    copy.source[lane] = from;
    copy.destination[lane] = to;
    copy.bytes[lane] = uint8_t(bytes);
    copy.group[lane] = w.copy_groups[lane];
    claim_shared(cta, to, op->size);
    if (cta.observer) cta.observer->thread_copy_issued(w, op, lane, to, op->size);
  }
  w.copies.push_back(slot);
  Event event;
  event.kind = Event::Kind::thread_copy;
  event.time = w.time + delay(cta, kLatency);
  event.cta = &cta;
  event.warp = uint16_t(w.index);
  event.op = op;
  event.slot = slot;
  w.copies_done = std::max(w.copies_done, event.time);
  send(cta, event);
  return op + 1;
}

// Calls f(copy) for the copies of a lane for which `covered` holds, which its lane then has no more.
template <class Covered, class F>
void cover(Warp& w, int lane, Covered covered, F f) {
  Cta& cta = *w.cta;
  for (uint32_t slot : w.copies) {
    ThreadCopy& copy = cta.copies[slot];
    if (!(copy.lanes >> lane & 1) || !covered(copy)) continue;
    copy.lanes &= ~(1u << lane);
    set_shared_valid(cta, copy.destination[lane], copy.op->size, true);
    f(copy);
    if (copy.lanes == 0) cta.free_copies.push_back(slot);
  }
  std::erase_if(w.copies, [&](uint32_t slot) { return cta.copies[slot].lanes == 0; });
}

// Groups below this one are what a wait asks a lane for. wait_value ~0: all copies, also those in no group
// yet.
uint64_t awaited(const Warp& w, int lane, uint32_t may_stay_pending) {
  const uint64_t open = w.copy_groups[lane];
  if (may_stay_pending == ~0u) return open + 1;
  return open > may_stay_pending ? open - may_stay_pending : 0;
}

void pass(Warp& w, Mask mask, uint32_t may_stay_pending) {
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint64_t limit = awaited(w, lane, may_stay_pending);
    cover(
        w, lane, [&](const ThreadCopy& c) { return c.group[lane] < limit; },
        [&](const ThreadCopy& c) {
          if (w.cta->observer) w.cta->observer->thread_copy_waited(w, lane, c.destination[lane], c.op->size);
        });
    if (may_stay_pending == ~0u) ++w.copy_groups[lane];
  }
}

const Op* commit_group(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) ++w.copy_groups[first_lane(mask)];
  return op + 1;
}

const Op* wait(Warp& w, const Op* op, Mask mask) {
  Fragment& f = w.fragment();
  f.wait_value = uint32_t(op->imm);
  f.members = mask;
  if (thread_copies_passed(w, f)) {
    pass(w, mask, f.wait_value);
    return op + 1;
  }
  f.pc = op + 1;
  f.state = Fragment::State::copy_group;
  f.wait_begin = w.time;
  return nullptr;
}

// Rows: a the barrier's address. Op::size 1: .noinc.
const Op* arrive_after_copies(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint32_t address =
        own_shared(cta, lane_bits(w.rows + op->a, lane, op->mode & kWideShared) + uint64_t(op->imm));
    MBarrier* barrier = find_mbarrier(cta, address);
    if (!barrier)
      fault(w, op, Fault::Kind::poison,
            "no mbarrier is initialised at " + shared_name(cta, address));
    if (op->size == 0) {
      if (uint32_t(barrier->pending) >= kMaxPending)
        fault(w, op, Fault::Kind::illegal_instruction,
              "the pending count of " + barrier_name(cta, barrier->address) + " would pass 2^20 - 1");
      ++barrier->pending;
    }
    Event event;
    event.kind = Event::Kind::thread_copy_arrival;
    event.time = std::max(w.copies_done, w.time) + delay(cta, kArrivalLatency);
    event.cta = &cta;
    event.warp = uint16_t(w.index);
    event.lane = uint16_t(lane);
    event.op = op;
    event.address = address;
    event.group = w.copies_issued;
    if (cta.observer) cta.observer->thread_copy_arrival_issued(w, event);
    send(cta, event);
  }
  return op + 1;
}

}  // namespace

bool thread_copies_passed(const Warp& w, const Fragment& f) {
  for (uint32_t slot : w.copies) {
    const ThreadCopy& copy = w.cta->copies[slot];
    if (copy.landed) continue;
    for (Mask m = copy.lanes & f.members; m; m &= m - 1) {
      if (copy.group[first_lane(m)] < awaited(w, first_lane(m), f.wait_value)) return false;
    }
  }
  return true;
}

void land_thread_copy(const Event& event) {
  Cta& cta = *event.cta;
  ThreadCopy& copy = cta.copies[event.slot];
  copy.landed = true;
  for (Mask m = copy.lanes; m; m &= m - 1) {
    const int lane = first_lane(m);
    std::byte* const to = cta.shared.data() + copy.destination[lane];
    std::memset(to, 0, copy.op->size);
    if (copy.bytes[lane] == 0) continue;
    const std::byte* const from = cta.launch->memory->at(copy.source[lane], copy.bytes[lane]);
    if (!from) fault(cta, event.warp, event.op, Fault::Kind::illegal_address, "the copy's source was freed");
    std::memcpy(to, from, copy.bytes[lane]);
  }
  Warp& w = cta.warps[event.warp];
  for (Fragment& f : w.fragments) {
    if (f.state != Fragment::State::copy_group || !thread_copies_passed(w, f)) continue;
    f.state = Fragment::State::ready;
    w.time = std::max(w.time, event.time);
    pass(w, f.members, f.wait_value);
  }
}

void land_thread_copy_arrival(const Event& event) {
  Cta& cta = *event.cta;
  Warp& w = cta.warps[event.warp];
  MBarrier* barrier = find_mbarrier(cta, event.address);
  if (!barrier)
    fault(cta, event.warp, event.op, Fault::Kind::poison,
          "the arrival that follows copies comes but its mbarrier is gone");
  const int lane = event.lane;
  cover(
      w, lane, [&](const ThreadCopy& c) { return c.number < event.group; },
      [&](const ThreadCopy& c) {
        if (cta.observer) cta.observer->thread_copy_arrived(event, c.destination[lane], c.op->size);
      });
  if (cta.observer) cta.observer->thread_copy_arriving(event);
  barrier->signalled_by(cta.rank, event.warp);
  const std::string error = arrive(cta, *barrier, 1, event.time);
  if (!error.empty()) fault(cta, event.warp, event.op, Fault::Kind::poison, error);
}

// ---- from PTX
// ------------------------------------------------------------------------------------------------------------

void build_thread_copy(Builder& b, Modifiers& m) {
  if (m.take("commit_group")) {
    b.emit(commit_group);
    return;
  }
  const bool all = m.take("wait_all");
  if (all || m.take("wait_group")) {
    uint64_t n = ~0u;
    if (!all) {
      if (b.operand(0).kind != Operand::Kind::immediate || b.operand(0).is_float)
        b.refuse("wait_group takes an integer constant");
      n = std::min<uint64_t>(b.operand(0).bits, ~0u - 1);
    }
    b.emit(wait).imm = int64_t(n);
    return;
  }
  if (m.take("mbarrier")) {
    if (!m.take("arrive")) b.refuse("cp.async.mbarrier is cp.async.mbarrier.arrive");
    const bool no_increment = m.take("noinc");
    if (!m.take("shared")) m.take("shared::cta");
    if (m.type() != Type::b64) b.refuse("cp.async.mbarrier.arrive has type .b64");
    b.emit(arrive_after_copies).size = no_increment;
    const bool wide = b.address(b.operand(0), AddressSpace::shared);
    b.newest().mode = wide ? kWideShared : 0;
    return;
  }
  const bool all_levels = m.take("ca");
  if (!all_levels && !m.take("cg"))
    b.refuse(
        "cp.async is cp.async.ca, .cg, .commit_group, .wait_group, .wait_all, .mbarrier.arrive or .bulk");
  if (!(m.take("shared") || m.take("shared::cta")) || !m.take("global"))
    b.refuse("cp.async copies from .global to .shared");
  const bool hint = m.take("L2::cache_hint");
  m.take_prefix("L2::");  // how much to prefetch
  const Operand& size = b.operand(2);
  if (size.kind != Operand::Kind::immediate ||
      (size.bits != 16 && (!all_levels || (size.bits != 4 && size.bits != 8))))
    b.refuse("cp.async.ca copies 4, 8 or 16 bytes, cp.async.cg 16");
  // What may follow: how much of the source counts, or whether it is ignored; then the cache policy.
  const size_t operands = b.operand_count();
  if (operands > 4u + hint) b.refuse("an operand more than the modifiers ask for");
  if (hint && operands < 4) b.refuse("a cache policy is missing");
  const bool optional = operands == 4u + hint;
  const bool ignores = optional && b.register_type(b.operand(3)) == Type::pred;
  if (optional && !ignores && b.operand(3).kind == Operand::Kind::immediate && b.operand(3).bits > size.bits)
    b.refuse("the source's size is at most that of the copy");
  if (hint) b.source(b.operand(operands - 1), Type::b64);
  bool negated = false;
  const uint16_t ignore = ignores ? b.predicate(b.operand(3), &negated) : 0;
  const Virtual to = b.address_value(b.operand(0)), from = b.address_value(b.operand(1));
  const Virtual bytes = optional && !ignores ? b.source(b.operand(3), Type::u32) : kNoVirtual;
  if (b.rows(from) != 2) b.refuse("the source's address has 64 bits");
  Op& op = b.emit(thread_copy);
  op.size = uint8_t(size.bits);
  op.mode = uint8_t((b.rows(to) == 2 ? kWideShared : 0) | (bytes != kNoVirtual ? kSourceSize : 0) |
                    (ignores ? kIgnoreSource : 0));
  op.pa = ignore;
  op.pa_not = negated;
  op.cycles = 4;
  b.use(Field::a, to);
  b.use(Field::b, from);
  if (bytes != kNoVirtual) b.use(Field::c, bytes);
}

}  // namespace fa4::sim
