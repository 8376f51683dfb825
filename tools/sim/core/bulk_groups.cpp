// SPDX-License-Identifier: Apache-2.0
#include "bulk_groups.h"

#include <algorithm>

namespace fa4::sim {

BulkGroups& groups(Warp& w, int lane) {
  if (w.bulk.empty()) w.bulk.resize(kLanes);
  return w.bulk[lane];
}

bool bulk_groups_passed(const Warp& w, const Fragment& f) {
  if (w.bulk.empty()) return true;
  for (Mask m = f.mask; m; m &= m - 1) {
    const BulkGroups& g = w.bulk[first_lane(m)];
    const uint64_t limit = g.newest > f.wait_value ? g.newest - f.wait_value : 0;
    for (uint64_t i = g.oldest; i < limit; ++i) {
      const size_t at = i % BulkGroups::capacity;
      if (f.wait_object ? g.unread[at] : g.unfinished[at]) return false;
    }
  }
  return true;
}

namespace {

void note_passed(const Warp& w, const Fragment& f) {
  if (!w.cta->observer || w.bulk.empty()) return;
  for (Mask m = f.mask; m; m &= m - 1) {
    const uint64_t newest = w.bulk[first_lane(m)].newest;
    w.cta->observer->copy_group_waited(w, m & (0u - m), newest > f.wait_value ? newest - f.wait_value : 0,
                                       f.wait_object != 0);
  }
}

}  // namespace

void retire(BulkGroups& g) {
  while (g.oldest < g.newest && g.unfinished[g.oldest % BulkGroups::capacity] == 0) ++g.oldest;
}

const Op* commit_bulk_group(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) {
    BulkGroups& g = groups(w, first_lane(mask));
    ++g.newest;
    if (g.newest - g.oldest >= BulkGroups::capacity)
      fault(w, op, Fault::Kind::illegal_instruction, "more than 64 bulk groups of one thread are pending");
  }
  return op + 1;
}

const Op* wait_bulk_group(Warp& w, const Op* op, Mask) {
  Fragment& f = w.fragment();
  f.wait_object = op->mode;
  f.wait_value = uint32_t(op->imm);
  f.pc = op + 1;
  if (bulk_groups_passed(w, f)) {
    note_passed(w, f);
    return op + 1;
  }
  f.state = Fragment::State::bulk_group;
  f.wait_begin = w.time;
  return nullptr;
}

void wake_bulk_waiters(const Event& event) {
  Warp& w = event.cta->warps[event.warp];
  for (Fragment& f : w.fragments) {
    if (f.state != Fragment::State::bulk_group || !bulk_groups_passed(w, f)) continue;
    f.state = Fragment::State::ready;
    w.time = std::max(w.time, event.time);
    note_passed(w, f);
  }
}

}  // namespace fa4::sim
