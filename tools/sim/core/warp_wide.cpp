// SPDX-License-Identifier: Apache-2.0
// Instructions that work across the lanes of a warp, and the barrier of these lanes.
#include <algorithm>
#include <bit>

#include "builder.h"
#include "control.h"
#include "convergence.h"
#include "hex.h"
#include "machine.h"
#include "undefined.h"
#include "visibility.h"
#include "warp_wide.h"

namespace fa4::sim {

using ptx::Type;
using Field = Builder::Field;

uint32_t uniform(Warp& w, const Op* op, uint16_t row, Mask mask, const char* what) {
  const uint32_t first = w.rows[row].lane[first_lane(mask)];
  for (Mask m = mask; m; m &= m - 1) {
    if (w.rows[row].lane[first_lane(m)] != first)
      fault(w, op, Fault::Kind::illegal_instruction,
            std::string(what) + " differs between the lanes of the warp");
  }
  return first;
}

namespace {

using WarpWide = void (*)(Warp&, const Op*, Mask members);

void warp_barrier(Warp& w, const Op* op, Mask members) {
  publish(w, members);
  if (w.cta->observer) w.cta->observer->warp_barrier(w, op, members);
}

// Gathers the lanes of the member mask that have not exited; the last fragment to come executes for all.
// Lanes meet at one instruction; bar.warp.sync alone may stand in several places. Lanes that come together
// may name different masks: groups of their own.
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
      fault(w, op, Fault::Kind::illegal_instruction,
            "lanes " + hex(group) + " execute it but their member mask is " + hex(members));
    }
    Mask here = group;
    for (const Fragment& other : w.fragments) {
      if (waits_with(other, op, name, body == warp_barrier)) here |= other.mask;
    }
    if (here != members) {
      waiting[waiting_groups++] = group;
      continue;
    }
    body(w, op, members);
    through |= group;
    for (Fragment& other : w.fragments) {
      if (!waits_with(other, op, name, body == warp_barrier)) continue;
      other.state = Fragment::State::ready;
      ++other.pc;
      others = true;
    }
  }
  if (through == mask && !others) return op + 1;
  Fragment f = w.fragment();
  const Mask on = through | (f.mask & ~mask);  // with those whose guard is false
  if (on) {
    w.fragment().mask = on;
    w.fragment().pc = op + 1;  // the engine lets those at one place go on together
  }
  for (uint32_t i = 0; i < waiting_groups; ++i) {
    f.pc = op;
    f.mask = waiting[i];
    f.state = Fragment::State::warp_sync;
    f.members = named.lane[first_lane(f.mask)];
    f.at_warp_barrier = body == warp_barrier;
    f.wait_begin = w.time;
    if (i == 0 && !on)
      w.fragment() = f;
    else
      w.fragments.push_back(f);
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
    case 0:
      result = p != 0;
      break;  // any
    case 1:
      result = p == members;
      break;  // all
    case 2:
      result = p == members || p == 0;
      break;  // uni
    default:  // ballot
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
  int sources[kLanes];
  for (Mask m = members; m; m &= m - 1) {
    const int lane = first_lane(m);
    const int segment = int(c.lane[lane] >> 8 & 31), clamp = int(c.lane[lane] & 31),
              offset = int(b.lane[lane] & 31);
    const int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
    int source = lane;
    bool in_range = false;
    switch (op->mode) {
      case 0:
        source = lane - offset;
        in_range = source >= highest;
        break;
      case 1:
        source = lane + offset;
        in_range = source <= highest;
        break;
      case 2:
        source = lane ^ offset;
        in_range = source <= highest;
        break;
      default:
        source = lowest | (offset & ~segment);
        in_range = source <= highest;
        break;
    }
    if (!in_range)
      source = lane;
    else
      valid |= 1u << lane;
    if (!(members >> source & 1)) {
      fault(w, op, Fault::Kind::illegal_instruction,
            "lane " + std::to_string(lane) + " reads lane " + std::to_string(source) +
                (w.alive >> source & 1 ? ", which is not in the member mask " + hex(members)
                                       : ", which has exited"));
    }
    d.lane[lane] = a.lane[source];
    sources[lane] = source;
  }
  if (w.undefined) shuffle_undefined(w, op, members, sources);
  if (op->pd) w.predicates[op->pd] = (w.predicates[op->pd] & ~members) | valid;
}

// redux.sync: mode 0 add, 1 min, 2 max (signed if size is 1), 3 and, 4 or, 5 xor
void redux(Warp& w, const Op* op, Mask members) {
  const Row a = w.rows[op->a];
  uint32_t r = a.lane[first_lane(members)];
  for (Mask m = members & (members - 1); m; m &= m - 1) {
    const uint32_t x = a.lane[first_lane(m)];
    switch (op->mode) {
      case 0:
        r += x;
        break;
      case 1:
        r = op->size ? uint32_t(std::min(int32_t(r), int32_t(x))) : std::min(r, x);
        break;
      case 2:
        r = op->size ? uint32_t(std::max(int32_t(r), int32_t(x))) : std::max(r, x);
        break;
      case 3:
        r &= x;
        break;
      case 4:
        r |= x;
        break;
      default:
        r ^= x;
        break;
    }
  }
  for (Mask m = members; m; m &= m - 1) w.rows[op->d].lane[first_lane(m)] = r;
}

// match: mode bit 0 .all, bit 1 64 bits.
void match(Warp& w, const Op* op, Mask members) {
  const auto value = [&](int lane) {
    return w.rows[op->a].lane[lane] | (op->mode & 2 ? uint64_t(w.rows[op->a + 1].lane[lane]) << 32 : 0);
  };
  uint64_t values[kLanes];
  for (Mask m = members; m; m &= m - 1) values[first_lane(m)] = value(first_lane(m));
  Mask equal[kLanes] = {};
  for (Mask m = members; m; m &= m - 1) {
    const int lane = first_lane(m);
    for (Mask n = members; n; n &= n - 1)
      equal[lane] |= Mask(values[first_lane(n)] == values[lane]) << first_lane(n);
  }
  const bool all = equal[first_lane(members)] == members;
  for (Mask m = members; m; m &= m - 1)
    w.rows[op->d].lane[first_lane(m)] = op->mode & 1 ? (all ? members : 0) : equal[first_lane(m)];
  if (op->pd) w.predicates[op->pd] = (w.predicates[op->pd] & ~members) | (all ? members : 0);
}

const Op* activemask(Warp& w, const Op* op, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) w.rows[op->d].lane[first_lane(m)] = mask;
  return op + 1;
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
  if (kind.empty() || t != (kind == "ballot" ? Type::b32 : Type::pred))
    b.refuse("vote.sync is .any, .all, .uni (.pred) or .ballot (.b32)");
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
  const Virtual x = b.source(b.operand(1), Type::b32), lane = b.source(b.operand(2), Type::b32),
                c = b.source(b.operand(3), Type::b32);
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
  if (mode < 0 || (t != Type::s32 && t != Type::u32 && t != Type::b32))
    b.refuse("this form of redux.sync is not supported");
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

}  // namespace

void build_warp_barrier(Builder& b) {
  build_member_mask(b, 0, gather<warp_barrier>);
}

std::vector<FamilyRow> warp_rows() {
  return {{"elect", build_elect}, {"vote", build_vote},   {"shfl", build_shfl},
          {"match", build_match}, {"redux", build_redux}, {"activemask", build_activemask}};
}

}  // namespace fa4::sim
