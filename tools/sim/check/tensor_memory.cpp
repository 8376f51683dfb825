// SPDX-License-Identifier: Apache-2.0
// Accesses of warps to tensor memory, and its allocation.
#include <algorithm>

#include "checker.h"

namespace fa4::sim::check {

void Checker::tmem_access(const Warp& w, const Op* op, uint32_t column, uint32_t columns, bool write) {
  const Actor who = actor(w, first_lane(w.alive));
  // A load, and by the ISA a store, is pending until it is waited for.
  const bool at_once = write && cta_->launch->model == Model::silicon;
  const Access access{Agent::warp, 0, uint16_t(warp_of(w)), at_once ? who.warp->now : kPending, op_index(op), w.alive};
  const uint32_t at = w.cta->rank * kTmemCells + column * TensorMemory::partitions + w.index % TensorMemory::partitions;
  Neighbour neighbour;
  if (write) write_cells(&tmem_[at], columns, TensorMemory::partitions, tmem_readers_, at, who, access, Sense::thread, Tensor::fenced);
  else read_cells(&tmem_[at], columns, TensorMemory::partitions, tmem_readers_, at, who, access, Sense::thread, Tensor::fenced, neighbour);
  (write ? who.warp->stores : who.warp->loads).push_back({column, columns});
}

// Loads or stores of these columns are over: from now on their time is known.
void Checker::settle_tmem(const Warp& w, uint32_t column, uint32_t columns, bool stores) {
  const Time now = warps_[warp_of(w)].now;
  const auto settle = [&](Access& a) {
    if (a.agent == Agent::warp && a.index == warp_of(w) && a.time == kPending) a.time = now;
  };
  for (uint32_t c = column; c < column + columns; ++c) {
    const uint32_t at = w.cta->rank * kTmemCells + c * TensorMemory::partitions + w.index % TensorMemory::partitions;
    if (stores) {
      settle(tmem_[at].write);
      continue;
    }
    settle(tmem_[at].read);
    if (const auto others = tmem_readers_.find(at); others != tmem_readers_.end()) {
      for (Access& a : others->second) settle(a);
    }
  }
}

void Checker::tmem_waited(const Warp& w, bool stores) {
  WarpState& s = warps_[warp_of(w)];
  if (stores && !s.stores.empty()) s.store_waits.push_back(s.now);
  auto& pending = stores ? s.stores : s.loads;
  for (const auto& [column, columns] : pending) settle_tmem(w, column, columns, stores);
  pending.clear();
}

void Checker::tmem_delivered(const Warp& w, uint32_t column, uint32_t columns) {
  settle_tmem(w, column, columns, false);
  axioms_ |= FA4SIM_AXIOM_LOAD_DELIVERY;
}

// The columns change hands: whatever was done to them before must be over and known.
void Checker::tmem_owned(const Warp& w, const Op* op, uint32_t column, uint32_t columns) {
  const Actor who = actor(w, first_lane(w.alive));
  const Access access{Agent::owner, 0, uint16_t(warp_of(w)), who.warp->now, op_index(op), w.alive};
  const uint32_t at = w.cta->rank * kTmemCells + column * TensorMemory::partitions;
  write_cells(&tmem_[at], size_t(columns) * TensorMemory::partitions, 1, tmem_readers_, at, who, access, Sense::thread, Tensor::either);
}

void Checker::tmem_allocated(const Warp& w, const Op* op, uint32_t column, uint32_t columns, uint32_t shared_address) {
  tmem_owned(w, op, column, columns);
  const Actor who = actor(w, first_lane(w.alive));
  const Access access{Agent::owner, 0, uint16_t(warp_of(w)), who.warp->now, op_index(op), w.alive};
  shared_cells(who, access, flat(*w.cta, shared_address), 4, true, Sense::thread);
}

void Checker::tmem_released(const Warp& w, const Op* op, uint32_t column, uint32_t columns) {
  tmem_owned(w, op, column, columns);
}

// ---- Model::silicon: a tcgen05.st that nobody waits for is there for whom its warp lets know of it -----------------------

bool Checker::store_is_waited_for(const Actor& who, const Access& store) const {
  const auto known = [&](const Access& a) { return knows(who.group->clock.plain, who, a) || knows(who.group->clock.tensor, who, a); };
  if (!known(store)) return true;  // a race as it is
  const std::vector<Time>& waits = warps_[store.index].store_waits;
  const auto wait = std::lower_bound(waits.begin(), waits.end(), store.time);
  if (wait == waits.end()) return false;
  Access waited = store;
  waited.time = *wait;
  return known(waited);
}

}  // namespace fa4::sim::check
