// SPDX-License-Identifier: Apache-2.0
// A register that tcgen05.ld writes holds nothing until the warp's wait::ld (or, under Model::silicon, until it is used). It may
// be moved before (compilers do so in
// software-pipelined loops), but nothing else may read it. A data-flow pass finds the few ops that could meet such a
// register; only those keep and look at shadow state while the kernel runs.
#include <algorithm>

#include "builder.h"
#include "machine.h"

namespace fa4::sim {

namespace {

bool is_move(const Op& op) {
  return op.run == lane_handler(LaneCode::mov32) || op.run == lane_handler(LaneCode::mov64) || op.run == lane_handler(LaneCode::mov128);
}

// A use of a register waits for the whole load that fills it.
void deliver(Warp& w, uint16_t load) {
  std::replace(w.undelivered.begin(), w.undelivered.end(), load, uint16_t(0));
  const uint32_t columns = w.tmem_loads[load - 1u];
  if (w.cta->observer) w.cta->observer->tmem_delivered(w, columns >> 16, columns & 0xFFFF);
}

const Op* checked(Warp& w, const Op* op, Mask mask) {
  const uint32_t index = uint32_t(op - w.code->ops.data());
  const DeliveryCheck& check = w.code->delivery.find(index)->second;
  if (check.move) {
    for (size_t i = 0; i < check.sources.size(); ++i) w.undelivered[check.destinations[i]] = w.undelivered[check.sources[i]];
    return check.run(w, op, mask);
  }
  for (uint16_t row : check.sources) {
    if (!w.undelivered[row]) continue;
    if (w.cta->launch->model == Model::silicon) {
      deliver(w, w.undelivered[row]);
    } else {
      fault(w, op, Fault::Kind::poison, "reads a register that tcgen05.ld has not delivered: tcgen05.wait::ld is missing before it");
    }
  }
  for (uint16_t row : check.destinations) w.undelivered[row] = 0;
  return check.run(w, op, mask);
}

}  // namespace

void Builder::find_undelivered_uses() {
  const size_t ops = code_.ops.size();
  guarded_.assign(ops, false);
  if (std::none_of(code_.ops.begin(), code_.ops.end(), [](const Op& op) { return op.run == tmem_load; })) return;
  std::vector<std::vector<uint32_t>> slots_of_op(ops);
  for (uint32_t s = 0; s < slots_.size(); ++s) slots_of_op[slots_[s].op].push_back(s);
  // Virtual registers that may be undelivered where a block begins.
  using Set = std::vector<bool>;
  std::vector<Set> entry(blocks_.size(), Set(virtual_rows_.size(), false));
  Set ever(virtual_rows_.size(), false);
  bool risky = false;
  const auto through = [&](uint32_t b, bool mark) {
    Set in_flight = entry[b];
    for (uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
      const Op& op = code_.ops[i];
      if (op.run == tmem_wait_load && op.guard == 0) {
        std::fill(in_flight.begin(), in_flight.end(), false);
        continue;
      }
      bool reads = false;
      for (uint32_t s : slots_of_op[i]) reads |= slots_[s].is_use && in_flight[slots_[s].v];
      if (reads && mark) risky = guarded_[i] = true;
      const bool makes = op.run == tmem_load || (reads && is_move(op));
      for (uint32_t s : slots_of_op[i]) {
        if (!slots_[s].is_def) continue;
        if (makes) ever[slots_[s].v] = in_flight[slots_[s].v] = true;
        else if (!slots_[s].is_use && op.guard == 0) in_flight[slots_[s].v] = false;
      }
    }
    return in_flight;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      const Set out = through(b, false);
      for (uint32_t s : blocks_[b].successors) {
        for (size_t v = 0; v < out.size(); ++v) {
          if (out[v] && !entry[s][v]) entry[s][v] = changed = true;
        }
      }
    }
  }
  for (uint32_t b = 0; b < blocks_.size(); ++b) through(b, true);
  if (!risky) {
    guarded_.assign(ops, false);
    return;
  }
  // Whatever else writes such a register makes it readable again.
  for (const Slot& slot : slots_) {
    if (slot.is_def && ever[slot.v] && code_.ops[slot.op].run != tmem_load) guarded_[slot.op] = true;
  }
}

void Builder::guard_undelivered_uses() {
  for (const Slot& slot : slots_) {
    if (!guarded_[slot.op]) continue;
    Op& op = code_.ops[slot.op];
    const auto [it, added] = code_.delivery.try_emplace(slot.op);
    if (added) {
      it->second.run = op.run;
      it->second.move = is_move(op);
    }
    // A slot names one row of a register; moves of wider ones touch the rows behind it too.
    const uint16_t row = slot.field == Field::d ? op.d : slot.field == Field::a ? op.a : slot.field == Field::b ? op.b : slot.field == Field::c ? op.c : code_.aux[slot.aux];
    const uint32_t rows = slot.field == Field::aux ? 1 : virtual_rows_[slot.v] - slot.row;
    const uint32_t moved = !it->second.move ? rows : op.run == lane_handler(LaneCode::mov32) ? 1 : op.run == lane_handler(LaneCode::mov64) ? 2 : 4;
    const bool source = slot.is_use && !(slot.is_def && slot.field == Field::d);
    for (uint32_t r = 0; r < std::min(rows, moved); ++r) {
      if (source) it->second.sources.push_back(uint16_t(row + r));
      if (slot.is_def) it->second.destinations.push_back(uint16_t(row + r));
    }
  }
  for (auto& [index, check] : code_.delivery) code_.ops[index].run = checked;
}

}  // namespace fa4::sim
