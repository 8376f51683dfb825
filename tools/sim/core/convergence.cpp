// SPDX-License-Identifier: Apache-2.0
#include "convergence.h"

#include <algorithm>

#include "hex.h"

namespace fa4::sim {

using State = Fragment::State;

bool lanes_are_independent(const Cta& cta) {
  return cta.random && cta.launch->independent_lanes;
}

// ---- reconvergence points
// ------------------------------------------------------------------------------------------------

static void open_join(Warp& w, int16_t index) {
  Join& join = w.joins[index];
  Fragment merged;
  merged.pc = join.at;
  merged.mask = join.arrived;
  merged.join = join.parent;
  join.live = false;
  std::erase_if(w.fragments, [&](const Fragment& f) { return f.state == State::joining && f.join == index; });
  if (merged.mask) w.fragments.push_back(merged);
}

// Up to the join `end`, which they stay in.
static void leave_joins(Warp& w, int16_t join, int16_t end, Mask lanes) {
  while (join != end) {
    Join& j = w.joins[join];
    const int16_t parent = j.parent;
    j.expected &= ~lanes;
    if (j.live && j.arrived == j.expected) {
      if (j.expected)
        open_join(w, join);
      else
        j.live = false;
    }
    join = parent;
  }
}

void leave_joins(Warp& w, int16_t join, Mask lanes) {
  leave_joins(w, join, -1, lanes);
}

void arrive_at_join(Warp& w) {
  Fragment& f = w.fragment();
  Join& join = w.joins[f.join];
  join.arrived |= f.mask;
  f.state = State::joining;
  f.wait_begin = w.time;
  if (join.arrived == join.expected) open_join(w, f.join);
}

bool release_joins(Warp& w) {
  bool any = false;
  for (Fragment& f : w.fragments) {
    if (f.state != State::joining) continue;
    Join& join = w.joins[f.join];
    join.arrived &= ~f.mask;
    join.expected &= ~f.mask;
    f.state = State::ready;
    f.pc = join.at;
    f.join = join.parent;
    any = true;
  }
  return any;
}

// ---- the whole warp
// ------------------------------------------------------------------------------------------------------

Fragment& park(Warp& w, const Op* op, Mask mask, State state, const Op* pc) {
  int32_t at = w.current;
  if (w.fragment().mask != mask) {
    Fragment& others = w.fragment();
    Fragment stopped = others;
    others.mask &= ~mask;
    others.pc = op + 1;
    stopped.mask = mask;
    at = int32_t(w.fragments.size());
    w.fragments.push_back(stopped);
  }
  Fragment& f = w.fragments[size_t(at)];
  f.state = state;
  f.pc = pc;
  f.wait_begin = w.time;
  f.counted = false;
  return f;
}

// Lanes that wait at `op` for the others.
static Mask waiting_at(const Warp& w, const Op* op) {
  Mask lanes = 0;
  for (const Fragment& f : w.fragments) {
    if (f.state == State::whole_warp && f.pc == op) lanes |= f.mask;
  }
  return lanes;
}

// The innermost join that holds both fragments.
static int16_t common_join(const Warp& w, int16_t a, int16_t b) {
  for (; a >= 0; a = w.joins[a].parent) {
    for (int16_t c = b; c >= 0; c = w.joins[c].parent) {
      if (a == c) return a;
    }
  }
  return -1;
}

// All lanes wait at `op`: they go on as one.
static void meet(Warp& w, const Op* op) {
  Fragment whole;
  whole.pc = op;
  whole.mask = w.alive;
  whole.join = w.fragments.front().join;
  for (const Fragment& f : w.fragments) whole.join = common_join(w, whole.join, f.join);
  for (const Fragment& f : w.fragments) leave_joins(w, f.join, whole.join, f.mask);
  w.fragments.assign(1, whole);
  w.current = 0;
}

// Where the lanes of the warp are that are not in `here`.
static std::string whereabouts(const Warp& w, Mask here) {
  std::string text =
      "an .aligned instruction must be executed by all lanes of the warp together; only lanes " + hex(here) +
      " of " + hex(w.alive) + " are here";
  for (const Fragment& f : w.fragments) {
    if (f.mask & ~here)
      text += ", lanes " + hex(f.mask & ~here) + " at " +
              place(*w.cta, f.state == State::joining ? w.joins[f.join].at : f.pc);
  }
  return text;
}

bool gathered(Warp& w, const Op* op, Mask mask) {
  if (mask == w.alive) return true;
  // Lanes that run together and whose guards differ: no lane of an early return.
  if (mask != w.fragment().mask) fault(w, op, Fault::Kind::illegal_instruction, whereabouts(w, mask));
  const Mask here = mask | waiting_at(w, op);
  park(w, op, mask, State::whole_warp, op);
  if (here == w.alive) meet(w, op);
  return false;
}

bool whole_warp(Warp& w, const Op* op, Mask mask) {
  if (mask == w.alive) {
    if (w.alive == w.launched) return true;
    fault(w, op, Fault::Kind::illegal_instruction,
          "an .aligned instruction that is no barrier needs all lanes of the warp; lanes " +
              hex(w.launched & ~w.alive) + " have exited");
  }
  if (const Mask before = waiting_at(w, op); before && lanes_are_independent(*w.cta)) {
    fault(w, op, Fault::Kind::illegal_instruction, whereabouts(w, mask));
  }
  return gathered(w, op, mask);
}

bool waits_with(const Fragment& other, const Op* op, Mask members, bool barrier) {
  return other.state == State::warp_sync && other.members == members &&
         (other.pc == op || (barrier && other.at_warp_barrier));
}

void regroup(Warp& w) {
  for (const Fragment& f : w.fragments) {
    if (f.state != State::whole_warp || waiting_at(w, f.pc) != w.alive) continue;
    meet(w, f.pc);
    return;
  }
  for (Fragment& f : w.fragments) {
    if (f.state != State::warp_sync) continue;
    Mask here = 0;
    for (const Fragment& other : w.fragments) {
      if (waits_with(other, f.pc, f.members, f.at_warp_barrier)) here |= other.mask;
    }
    if (here == (f.members & w.alive)) f.state = State::ready;  // it comes again, as the last
  }
}

void settle(Warp& w) {
  const Fragment* aligned = nullptr;
  for (const Fragment& f : w.fragments) {
    switch (f.state) {
      case State::whole_warp:
        aligned = &f;
        break;
      case State::joining:
      case State::warp_sync:
        break;
      case State::cta_barrier:
        if (!f.counted) break;
        [[fallthrough]];
      default:
        return;
    }
  }
  if (release_joins(w) || !aligned) return;
  fault(w, aligned->pc, Fault::Kind::illegal_instruction, whereabouts(w, waiting_at(w, aligned->pc)));
}

}  // namespace fa4::sim
