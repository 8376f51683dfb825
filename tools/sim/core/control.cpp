// SPDX-License-Identifier: Apache-2.0
// Control flow with a program counter for each lane, barriers of threads, and instructions that work across a warp.
#include <algorithm>
#include <bit>

#include "builder.h"
#include "visibility.h"
#include "machine.h"
#include "warp_wide.h"

namespace fa4::sim {

using ptx::Type;
using Field = Builder::Field;

namespace {

std::string hex(uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

// Lets a lane leave the joins that expect it, and opens those that were waiting for it alone.
void leave_joins(Warp& w, int16_t join, Mask lanes);

void open_join(Warp& w, int16_t index) {
  Join& join = w.joins[index];
  Fragment merged;
  merged.pc = join.at;
  merged.mask = join.arrived;
  merged.join = join.parent;
  join.live = false;
  std::erase_if(w.fragments, [&](const Fragment& f) { return f.state == Fragment::State::joining && f.join == index; });
  if (merged.mask) w.fragments.push_back(merged);
}

void leave_joins(Warp& w, int16_t join, Mask lanes) {
  while (join >= 0) {
    Join& j = w.joins[join];
    const int16_t parent = j.parent;
    j.expected &= ~lanes;
    if (j.live && j.arrived == j.expected) {
      if (j.expected) open_join(w, join);
      else j.live = false;
    }
    join = parent;
  }
}

}  // namespace

// The fragment reached the place where its lanes meet the others: it waits there.
void arrive_at_join(Warp& w) {
  Fragment& f = w.fragment();
  Join& join = w.joins[f.join];
  join.arrived |= f.mask;
  f.state = Fragment::State::joining;
  f.wait_begin = w.time;
  if (join.arrived == join.expected) open_join(w, f.join);
}

// Lets the lanes that wait at a reconvergence point go on without the others: a lane may spin on something that a
// waiting lane will do.
bool release_joins(Warp& w) {
  bool any = false;
  for (Fragment& f : w.fragments) {
    if (f.state != Fragment::State::joining) continue;
    Join& join = w.joins[f.join];
    join.arrived &= ~f.mask;
    join.expected &= ~f.mask;
    f.state = Fragment::State::ready;
    f.pc = join.at;
    f.join = join.parent;
    any = true;
  }
  return any;
}

// Lanes that diverged come together again behind the branch in practice, but the ISA does not promise it.
static bool lanes_are_independent(const Cta& cta) { return cta.random && cta.launch->independent_lanes; }

const Op* branch(Warp& w, const Op* op, Mask taken) {
  Fragment& f = w.fragment();
  const Op* ops = w.code->ops.data();
  if (taken == f.mask) return ops + op->target;
  const Op* meet = op->join < w.code->ops.size() ? ops + op->join : nullptr;
  if (lanes_are_independent(*w.cta) && drawn(*w.cta, 2) == 0) meet = nullptr;
  int16_t join = f.join;
  if (meet && !(join >= 0 && w.joins[join].at == meet)) {
    auto free = std::find_if(w.joins.begin(), w.joins.end(), [](const Join& j) { return !j.live; });
    if (free == w.joins.end()) free = w.joins.insert(w.joins.end(), Join{});
    *free = {meet, f.mask, 0, f.join, true};
    join = int16_t(free - w.joins.begin());
  }
  Fragment other = f;
  other.mask = f.mask & ~taken;
  other.pc = op + 1;
  other.join = join;
  f.mask = taken;
  f.pc = ops + op->target;
  f.join = join;
  const bool first_joins = f.pc == meet, second_joins = other.pc == meet;
  w.fragments.push_back(other);
  const int32_t second = int32_t(w.fragments.size() - 1);
  // One side may be at the meeting point already.
  if (first_joins) {
    arrive_at_join(w);
  } else if (second_joins) {
    w.current = second;
    arrive_at_join(w);
  }
  return nullptr;
}

const Op* branch_uniform(Warp& w, const Op* op, Mask taken) {
  if (taken != w.fragment().mask) {
    fault(w, op, Fault::Kind::illegal_instruction, "bra.uni is taken by lanes " + hex(taken) + " of " + hex(w.fragment().mask));
  }
  return w.code->ops.data() + op->target;
}

namespace {

uint32_t live_threads(const Cta& cta) {  // in units of warps
  return 32 * uint32_t(std::count_if(cta.warps.begin(), cta.warps.end(), [](const Warp& w) { return w.alive != 0; }));
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
      if (f.state == Fragment::State::cta_barrier && f.wait_object == id) {
        f.state = Fragment::State::ready;
        w.time = std::max(w.time, time);
        give_reduction(w, f.pc - 1, f.mask, complete);  // it stands behind its barrier
        if (cta.observer) cta.observer->cta_barrier_passed(w, f.mask, id);
      }
    }
  }
  if (cta.observer) cta.observer->cta_barrier_opened(id);
  cta.scheduler->slice_end = time;  // the others may be due first
}

// Barriers of the whole CTA no longer wait for a warp that has exited.
void leave_cta_barriers(Warp& w) {
  Cta& cta = *w.cta;
  for (uint32_t id = 0; id < std::size(cta.barriers); ++id) {
    CtaBarrier& barrier = cta.barriers[id];
    if (!barrier.whole_cta) continue;
    barrier.expected = live_threads(cta);
    if (barrier.arrived >= barrier.expected) complete_cta_barrier(cta, id, w.time);
  }
}

}  // namespace

const Op* exit_lanes(Warp& w, const Op* op, Mask lanes) {
  w.alive &= ~lanes;
  if (w.alive == 0) leave_cta_barriers(w);
  const int16_t join = w.fragment().join;
  if (w.fragment().mask == lanes) {
    w.fragments.erase(w.fragments.begin() + w.current);
  } else {
    w.fragment().mask &= ~lanes;
    w.fragment().pc = op + 1;
  }
  leave_joins(w, join, lanes);
  ++w.cta->scheduler->progress;
  return nullptr;
}

namespace {

const Op* trap(Warp& w, const Op* op, Mask) {
  fault(w, op, Fault::Kind::trap, "trap");
}
const Op* nothing(Warp&, const Op* op, Mask) { return op + 1; }

const Op* sleep(Warp& w, const Op* op, Mask mask) {
  w.time += w.rows[op->a].lane[first_lane(mask)];
  return op + 1;
}
const Op* clock64(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) {
    const int i = first_lane(mask);
    w.rows[op->d].lane[i] = uint32_t(w.time);
    if (op->size == 8) w.rows[op->d + 1].lane[i] = uint32_t(w.time >> 32);
  }
  return op + 1;
}

}  // namespace

void require_whole_warp(Warp& w, const Op* op, Mask mask) {
  if (mask != w.alive) {
    fault(w, op, Fault::Kind::illegal_instruction,
          "an .aligned instruction must be executed by all lanes of the warp together; only lanes " + hex(mask) +
              " of " + hex(w.alive) + " are here");
  }
}

uint32_t uniform(Warp& w, const Op* op, uint16_t row, Mask mask, const char* what) {
  const uint32_t first = w.rows[row].lane[first_lane(mask)];
  for (Mask m = mask; m; m &= m - 1) {
    if (w.rows[row].lane[first_lane(m)] != first) fault(w, op, Fault::Kind::illegal_instruction, std::string(what) + " differs between the lanes of the warp");
  }
  return first;
}

namespace {

// bar.sync, bar.arrive (mode 1). The barrier counts threads in units of warps; lanes of a warp that come one by one, as
// the form without .aligned allows, count when all are there.
const Op* cta_barrier(Warp& w, const Op* op, Mask mask) {
  // Lanes that a choice of ours keeps apart come one by one: __syncthreads() is this instruction, and it gathers them.
  if (op->count && !lanes_are_independent(*w.cta)) require_whole_warp(w, op, mask);
  const int first = first_lane(mask);
  const uint32_t id = w.rows[op->a].lane[first];
  uint32_t threads = w.rows[op->b].lane[first];
  if (id >= 16) fault(w, op, Fault::Kind::illegal_instruction, "barrier " + std::to_string(id) + "; there are 16");
  Cta& cta = *w.cta;
  const bool whole_cta = threads == 0;
  if (whole_cta) threads = live_threads(cta);
  if (threads % 32 != 0 || threads > 1024) {
    fault(w, op, Fault::Kind::illegal_instruction, "barrier with " + std::to_string(threads) + " threads; a multiple of 32 up to 1024 is needed");
  }
  CtaBarrier& barrier = cta.barriers[id];
  if (barrier.expected != 0 && barrier.expected != threads) {
    fault(w, op, Fault::Kind::illegal_instruction, "barrier " + std::to_string(id) + " is used with " + std::to_string(threads) +
          " threads while " + std::to_string(barrier.expected) + " are expected");
  }
  const bool arrive_only = op->mode == 1;
  Mask here = mask;
  for (const Fragment& other : w.fragments) {
    if (&other != &w.fragment() && other.state == Fragment::State::cta_barrier && other.wait_object == id) here |= other.mask;
  }
  const bool warp_complete = here == w.alive;
  if (!warp_complete && (arrive_only || mask != w.fragment().mask)) {
    fault(w, op, Fault::Kind::illegal_instruction, "only lanes " + hex(here) + " of " + hex(w.alive) +
          " come to the barrier; an arrival of part of a warp is not supported");
  }
  if (op->size) {
    const Mask p = op->pa_not ? ~w.predicates[op->pa] : w.predicates[op->pa];
    barrier.held += uint32_t(std::popcount(p & mask));
    barrier.lanes += uint32_t(std::popcount(mask));
  }
  if (warp_complete) {
    barrier.expected = threads;
    barrier.whole_cta = whole_cta;
    barrier.arrived += 32;
    barrier.warps |= 1u << w.index;
    cta.barrier_users[id] |= 1u << w.index;
    ++cta.scheduler->progress;
  }
  publish(w, mask);
  if (cta.observer) cta.observer->cta_barrier_arrived(w, op, mask, id);
  const bool complete = warp_complete && barrier.arrived >= barrier.expected;
  if (!complete) {
    if (arrive_only) return op + 1;
    Fragment& f = w.fragment();
    f.state = Fragment::State::cta_barrier;
    f.wait_object = id;
    f.wait_begin = w.time;
    f.pc = op + 1;
    return nullptr;
  }
  if (cta.observer && !arrive_only) cta.observer->cta_barrier_passed(w, mask, id);
  give_reduction(w, op, mask, barrier);
  complete_cta_barrier(cta, id, w.time);
  return op + 1;
}

// ---- warp-wide instructions with a member mask --------------------------------------------------------------------------

using WarpWide = void (*)(Warp&, const Op*, Mask members);

void warp_barrier(Warp& w, const Op* op, Mask members) {
  publish(w, members);
  if (w.cta->observer) w.cta->observer->warp_barrier(w, op, members);
}

// Gathers the lanes of the member mask; the last fragment to come executes for all. Lanes meet at one instruction;
// bar.warp.sync alone may stand in several places. Lanes that come together may name different masks: groups of their own.
template <WarpWide body>
const Op* gather(Warp& w, const Op* op, Mask mask) {
  const Row& named = w.rows[op->c];
  Mask through = 0;     // lanes whose group was complete
  bool others = false;  // some of it came before, in other fragments
  Mask waiting[kLanes];
  uint32_t waiting_groups = 0;
  for (Mask left = mask; left;) {
    const uint32_t name = named.lane[first_lane(left)];
    const Mask members = name & w.alive;
    Mask group = 0;
    for (int lane = 0; lane < kLanes; ++lane) group |= Mask(named.lane[lane] == name) << lane;
    group &= left;
    left &= ~group;
    if (group & ~members) {
      fault(w, op, Fault::Kind::illegal_instruction, "lanes " + hex(group) + " execute it but their member mask is " + hex(members));
    }
    const auto meets = [&](const Fragment& other) {
      if (other.state != Fragment::State::warp_sync || other.members != members) return false;
      return other.pc == op || (body == warp_barrier && other.pc->run == op->run);
    };
    Mask here = group;
    for (const Fragment& other : w.fragments) {
      if (meets(other)) here |= other.mask;
    }
    if (here != members) {
      waiting[waiting_groups++] = group;
      continue;
    }
    body(w, op, members);
    through |= group;
    for (Fragment& other : w.fragments) {
      if (!meets(other)) continue;
      other.state = Fragment::State::ready;
      ++other.pc;
      others = true;
    }
  }
  if (through == mask && !others) return op + 1;
  Fragment f = w.fragment();
  if (through) {
    w.fragment().mask = through;
    w.fragment().pc = op + 1;  // the engine lets those at one place go on together
  }
  for (uint32_t i = 0; i < waiting_groups; ++i) {
    f.pc = op;
    f.mask = waiting[i];
    f.state = Fragment::State::warp_sync;
    f.members = named.lane[first_lane(f.mask)] & w.alive;
    f.wait_begin = w.time;
    if (i == 0 && !through) w.fragment() = f;
    else w.fragments.push_back(f);
  }
  return nullptr;
}

void elect(Warp& w, const Op* op, Mask members) {
  const int leader = first_lane(members);
  if (op->pd) w.predicates[op->pd] = (w.predicates[op->pd] & ~members) | 1u << leader;
  for (Mask m = members; m; m &= m - 1) w.rows[op->d].lane[first_lane(m)] = uint32_t(leader);
}

void vote(Warp& w, const Op* op, Mask members) {
  const Mask p = (op->pa_not ? ~w.predicates[op->pa] : w.predicates[op->pa]) & members;
  bool result = false;
  switch (op->mode) {
    case 0: result = p != 0; break;                    // any
    case 1: result = p == members; break;              // all
    case 2: result = p == members || p == 0; break;    // uni
    default:                                           // ballot
      for (Mask m = members; m; m &= m - 1) w.rows[op->d].lane[first_lane(m)] = p;
      return;
  }
  w.predicates[op->pd] = (w.predicates[op->pd] & ~members) | (result ? members : 0);
}

// shfl.sync: mode 0 up, 1 down, 2 bfly, 3 idx
void shuffle(Warp& w, const Op* op, Mask members) {
  const Row a = w.rows[op->a], b = w.rows[op->b];
  const auto* aux = w.code->aux.data() + op->aux;
  const Row c = w.rows[aux[0]];
  Row& d = w.rows[op->d];
  Mask valid = 0;
  for (Mask m = members; m; m &= m - 1) {
    const int lane = first_lane(m);
    const int segment = int(c.lane[lane] >> 8 & 31), clamp = int(c.lane[lane] & 31), offset = int(b.lane[lane] & 31);
    const int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
    int source = lane;
    bool in_range = false;
    switch (op->mode) {
      case 0: source = lane - offset; in_range = source >= highest; break;
      case 1: source = lane + offset; in_range = source <= highest; break;
      case 2: source = lane ^ offset; in_range = source <= highest; break;
      default: source = lowest | (offset & ~segment); in_range = source <= highest; break;
    }
    if (!in_range) source = lane;
    else valid |= 1u << lane;
    if (!(members >> source & 1)) {
      fault(w, op, Fault::Kind::illegal_instruction, "lane " + std::to_string(lane) + " reads lane " + std::to_string(source) +
            ", which is not in the member mask " + hex(members));
    }
    d.lane[lane] = a.lane[source];
  }
  if (op->pd) w.predicates[op->pd] = (w.predicates[op->pd] & ~members) | valid;
}

// redux.sync: mode 0 add, 1 min, 2 max (signed if size is 1), 3 and, 4 or, 5 xor
void redux(Warp& w, const Op* op, Mask members) {
  const Row a = w.rows[op->a];
  uint32_t r = a.lane[first_lane(members)];
  for (Mask m = members & (members - 1); m; m &= m - 1) {
    const uint32_t x = a.lane[first_lane(m)];
    switch (op->mode) {
      case 0: r += x; break;
      case 1: r = op->size ? uint32_t(std::min(int32_t(r), int32_t(x))) : std::min(r, x); break;
      case 2: r = op->size ? uint32_t(std::max(int32_t(r), int32_t(x))) : std::max(r, x); break;
      case 3: r &= x; break;
      case 4: r |= x; break;
      default: r ^= x; break;
    }
  }
  for (Mask m = members; m; m &= m - 1) w.rows[op->d].lane[first_lane(m)] = r;
}

// match: mode bit 0 .all, bit 1 64 bits.
void match(Warp& w, const Op* op, Mask members) {
  const auto value = [&](int lane) { return w.rows[op->a].lane[lane] | (op->mode & 2 ? uint64_t(w.rows[op->a + 1].lane[lane]) << 32 : 0); };
  uint64_t values[kLanes];
  for (Mask m = members; m; m &= m - 1) values[first_lane(m)] = value(first_lane(m));
  Mask equal[kLanes] = {};
  for (Mask m = members; m; m &= m - 1) {
    const int lane = first_lane(m);
    for (Mask n = members; n; n &= n - 1) equal[lane] |= Mask(values[first_lane(n)] == values[lane]) << first_lane(n);
  }
  const bool all = equal[first_lane(members)] == members;
  for (Mask m = members; m; m &= m - 1) w.rows[op->d].lane[first_lane(m)] = op->mode & 1 ? (all ? members : 0) : equal[first_lane(m)];
  if (op->pd) w.predicates[op->pd] = (w.predicates[op->pd] & ~members) | (all ? members : 0);
}

const Op* activemask(Warp& w, const Op* op, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) w.rows[op->d].lane[first_lane(m)] = mask;
  return op + 1;
}

// setmaxnreg: the registers of an SM are a pool; .inc waits until it has enough (mode 1).
const Op* setmaxnreg(Warp& w, const Op* op, Mask mask) {
  require_whole_warp(w, op, mask);
  Cta& cta = *w.cta;
  const uint32_t wanted = uint32_t(op->imm);
  std::vector<uint32_t>& history = cta.setmaxnreg_history[w.index / 4];
  if (w.setmaxnreg_count < history.size() && history[w.setmaxnreg_count] != wanted) {
    fault(w, op, Fault::Kind::illegal_instruction, "setmaxnreg " + std::to_string(wanted) + " where another warp of the warpgroup asked for " +
          std::to_string(history[w.setmaxnreg_count]));
  }
  if (op->mode == 1) {
    if (wanted < w.registers) fault(w, op, Fault::Kind::illegal_instruction, "setmaxnreg.inc to " + std::to_string(wanted) + " below the present " + std::to_string(w.registers));
    const uint32_t more = (wanted - w.registers) * kLanes;
    if (more > cta.register_pool) {
      Fragment& f = w.fragment();
      f.state = Fragment::State::registers;
      f.wait_object = more;
      f.wait_begin = w.time;
      f.pc = op;
      return nullptr;
    }
    cta.register_pool -= more;
  } else {
    if (wanted > w.registers) fault(w, op, Fault::Kind::illegal_instruction, "setmaxnreg.dec to " + std::to_string(wanted) + " above the present " + std::to_string(w.registers));
    cta.register_pool += (w.registers - wanted) * kLanes;
    for (Warp& other : cta.warps) {
      for (Fragment& f : other.fragments) {
        if (f.state == Fragment::State::registers) {
          f.state = Fragment::State::ready;
          other.time = std::max(other.time, w.time);
        }
      }
    }
    cta.scheduler->slice_end = w.time;
  }
  ++cta.scheduler->progress;
  if (w.setmaxnreg_count == history.size()) history.push_back(wanted);
  ++w.setmaxnreg_count;
  w.registers = wanted;
  return op + 1;
}

// ---- from PTX ------------------------------------------------------------------------------------------------------------

void build_branch(Builder& b, Modifiers& m) {
  const bool uniform = m.take("uni");
  if (b.operand(0).kind != ptx::Operand::Kind::label) b.refuse("bra needs a label");
  b.emit(uniform ? branch_uniform : branch).target = uint32_t(b.operand(0).label);
}
void build_exit(Builder& b, Modifiers& m) {
  m.take("uni");
  b.emit(exit_lanes);
}
void build_trap(Builder& b, Modifiers&) { b.emit(trap); }
void build_nanosleep(Builder& b, Modifiers& m) {
  if (m.type() != Type::u32) b.refuse("nanosleep works on .u32");
  const Virtual n = b.source(b.operand(0), Type::u32);
  b.emit(sleep);
  b.use(Field::a, n);
}
void build_activemask(Builder& b, Modifiers& m) {
  if (m.type() != Type::b32) b.refuse("activemask works on .b32");
  const Virtual d = b.destination(b.operand(0), 1);
  b.emit(activemask);
  b.def(Field::d, d);
}

void build_member_mask(Builder& b, size_t index, Handler handler) {
  const Virtual members = b.source(b.operand(index), Type::b32);
  b.emit(handler);
  b.use(Field::c, members);
}

// bar.red: d, barrier, {threads,} predicate.
void build_barrier_reduction(Builder& b, Modifiers& m, bool aligned) {
  const bool aligned_too = m.take("aligned") || aligned;
  const auto kind = m.take_any({"popc", "and", "or"});
  const Type t = m.type();
  const bool count = kind == "popc";
  if (kind.empty() || (count ? t != Type::u32 && t != Type::none : t != Type::pred)) b.refuse("bar.red is .popc.u32, .and.pred or .or.pred");
  const bool given = b.operand_count() > 3;
  const Virtual id = b.source(b.operand(1), Type::u32), threads = given ? b.source(b.operand(2), Type::u32) : b.constant(0, 1);
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
    build_member_mask(b, 0, gather<warp_barrier>);
    return;
  }
  if (m.take("cluster")) b.refuse("clusters are not supported");
  m.take("cta");
  const bool bar = b.instruction().parts[0] == "bar";
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
  op.mode = arrive;
  op.count = aligned;
  op.cycles = 20;
  b.use(Field::a, id);
  b.use(Field::b, threads);
}

void build_elect(Builder& b, Modifiers& m) {
  if (!m.take("sync")) b.refuse("elect is elect.sync");
  const ptx::Operand& d = b.operand(0);
  if (d.kind != ptx::Operand::Kind::reg_pair) b.refuse("elect.sync writes d|p");
  const Virtual lane = d.reg == ptx::sink_reg ? b.scratch(1) : d.reg;
  const uint16_t p = d.reg2 == ptx::sink_reg ? 0 : b.predicate_of(d.reg2);
  build_member_mask(b, 1, gather<elect>);
  b.newest().pd = p;
  b.def(Field::d, lane);
}

void build_vote(Builder& b, Modifiers& m) {
  if (!m.take("sync")) b.refuse("vote is vote.sync");
  const auto kind = m.take_any({"any", "all", "uni", "ballot"});
  const Type t = m.type();
  if (kind.empty() || t != (kind == "ballot" ? Type::b32 : Type::pred)) b.refuse("vote.sync is .any, .all, .uni (.pred) or .ballot (.b32)");
  bool negated = false;
  const uint16_t p = b.predicate(b.operand(1), &negated);
  const uint16_t pd = kind == "ballot" ? 0 : b.predicate_destination(b.operand(0));
  const Virtual d = kind == "ballot" ? b.destination(b.operand(0), 1) : kNoVirtual;
  build_member_mask(b, 2, gather<vote>);
  b.newest().mode = kind == "any" ? 0 : kind == "all" ? 1 : kind == "uni" ? 2 : 3;
  b.newest().pa = p;
  b.newest().pa_not = negated;
  b.newest().pd = pd;
  if (d != kNoVirtual) b.def(Field::d, d);
}

void build_shfl(Builder& b, Modifiers& m) {
  if (!m.take("sync")) b.refuse("shfl is shfl.sync");
  const auto kind = m.take_any({"up", "down", "bfly", "idx"});
  if (kind.empty() || m.type() != Type::b32) b.refuse("shfl.sync is .up, .down, .bfly or .idx on .b32");
  const ptx::Operand& d = b.operand(0);
  const bool pair = d.kind == ptx::Operand::Kind::reg_pair;
  const Virtual v = pair ? (d.reg == ptx::sink_reg ? b.scratch(1) : d.reg) : b.destination(d, 1);
  const uint16_t p = pair && d.reg2 != ptx::sink_reg ? b.predicate_of(d.reg2) : 0;
  const Virtual x = b.source(b.operand(1), Type::b32), lane = b.source(b.operand(2), Type::b32), c = b.source(b.operand(3), Type::b32);
  build_member_mask(b, 4, gather<shuffle>);
  b.newest().mode = kind == "up" ? 0 : kind == "down" ? 1 : kind == "bfly" ? 2 : 3;
  b.newest().pd = p;
  b.use(Field::a, x);
  b.use(Field::b, lane);
  b.aux_use(c);
  b.def(Field::d, v);
}

void build_redux(Builder& b, Modifiers& m) {
  if (!m.take("sync")) b.refuse("redux is redux.sync");
  static constexpr std::string_view kinds[] = {"add", "min", "max", "and", "or", "xor"};
  int mode = -1;
  for (int i = 0; i < 6; ++i) {
    if (mode < 0 && m.take(kinds[i])) mode = i;
  }
  const Type t = m.type();
  if (mode < 0 || (t != Type::s32 && t != Type::u32 && t != Type::b32)) b.refuse("this form of redux.sync is not supported");
  const Virtual d = b.destination(b.operand(0), 1), x = b.source(b.operand(1), Type::b32);
  build_member_mask(b, 2, gather<redux>);
  b.newest().mode = uint8_t(mode);
  b.newest().size = t == Type::s32;
  b.use(Field::a, x);
  b.def(Field::d, d);
}

void build_match(Builder& b, Modifiers& m) {
  const auto kind = m.take_any({"any", "all"});
  if (kind.empty() || !m.take("sync")) b.refuse("match is match.any.sync or match.all.sync");
  const Type t = m.type();
  if (t != Type::b32 && t != Type::b64) b.refuse("match works on .b32 and .b64");
  const ptx::Operand& d = b.operand(0);
  const bool pair = d.kind == ptx::Operand::Kind::reg_pair;
  if (pair && kind == "any") b.refuse("match.any has no predicate");
  const Virtual v = pair ? (d.reg == ptx::sink_reg ? b.scratch(1) : d.reg) : b.destination(d, 1);
  const uint16_t p = pair && d.reg2 != ptx::sink_reg ? b.predicate_of(d.reg2) : 0;
  const Virtual x = b.source(b.operand(1), t);
  build_member_mask(b, 2, gather<match>);
  b.newest().mode = uint8_t((kind == "all" ? 1 : 0) | (t == Type::b64 ? 2 : 0));
  b.newest().pd = p;
  b.use(Field::a, x);
  b.def(Field::d, v);
}

// brx.idx index, list: a branch for each label, by comparison; an index beyond the list is a fault.
void build_indexed_branch(Builder& b, Modifiers& m) {
  m.take("uni");
  if (!m.take("idx")) b.refuse("brx is brx.idx");
  if (b.operand(1).kind != ptx::Operand::Kind::branch_table) b.refuse("brx.idx needs a .branchtargets list");
  const std::vector<int32_t>& labels = b.function().branch_tables[size_t(b.operand(1).label)];
  const Virtual index = b.source(b.operand(0), Type::u32);
  const uint16_t taken = b.scratch_predicate();
  for (size_t i = 0; i < labels.size(); ++i) {
    const Virtual number = b.constant(i, 1);
    Op& compare = b.emit(LaneCode::setp_u32);
    compare.mode = uint8_t(Compare::eq);
    compare.pd = taken;
    const uint16_t guard = compare.guard;
    const bool guard_not = compare.guard_not;
    compare.guard = 0, compare.guard_not = false;
    b.use(Field::a, index);
    b.use(Field::b, number);
    if (guard) {  // the instruction's own guard holds for each of its branches
      Op& both = b.emit(LaneCode::pred_and);
      both.pa = taken, both.pb = guard, both.pb_not = guard_not, both.pd = taken;
      both.guard = 0, both.guard_not = false;
    }
    Op& jump = b.emit(branch);
    jump.target = uint32_t(labels[i]);
    jump.guard = taken, jump.guard_not = false;
  }
  b.emit(trap);
}

void build_setmaxnreg(Builder& b, Modifiers& m) {
  const bool inc = m.take("inc");
  if ((!inc && !m.take("dec")) || !m.take("sync") || !m.take("aligned") || m.type() != Type::u32) {
    b.refuse("setmaxnreg is setmaxnreg.{inc,dec}.sync.aligned.u32");
  }
  const ptx::Operand& n = b.operand(0);
  if (n.kind != ptx::Operand::Kind::immediate || n.bits < 24 || n.bits > 256 || n.bits % 8 != 0) {
    b.refuse("setmaxnreg takes an immediate from 24 to 256, a multiple of 8");
  }
  Op& op = b.emit(setmaxnreg);
  op.mode = inc;
  op.imm = int64_t(n.bits);
}

void build_griddepcontrol(Builder& b, Modifiers& m) {
  // Grids run one after the other: what they depend on has finished.
  if (!m.take("wait") && !m.take("launch_dependents")) b.refuse("griddepcontrol is .wait or .launch_dependents");
  b.emit(nothing);
}

}  // namespace

bool read_clock(Builder& b, const ptx::Operand& operand, uint32_t rows) {
  const std::string& name = b.function().names[operand.symbol];
  if (name != "%clock64" && name != "%clock" && name != "%globaltimer") return false;
  if ((name == "%clock") != (rows == 1)) b.refuse(name + " does not have this width");
  const Virtual d = b.destination(b.operand(0), rows);
  b.emit(clock64).size = uint8_t(rows * 4);
  b.def(Field::d, d);
  return true;
}

std::vector<FamilyRow> control_rows() {
  return {{"bra", build_branch}, {"exit", build_exit}, {"ret", build_exit}, {"trap", build_trap}, {"bar", build_bar},
          {"barrier", build_bar}, {"elect", build_elect}, {"vote", build_vote}, {"shfl", build_shfl}, {"match", build_match}, {"brx", build_indexed_branch},
          {"redux", build_redux}, {"activemask", build_activemask}, {"setmaxnreg", build_setmaxnreg},
          {"nanosleep", build_nanosleep}, {"griddepcontrol", build_griddepcontrol}};
}

}  // namespace fa4::sim
