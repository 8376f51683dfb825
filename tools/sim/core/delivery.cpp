// SPDX-License-Identifier: Apache-2.0
// A register that tcgen05.ld or wgmma writes holds nothing until the warp has waited (or, for tcgen05.ld
// under Model::silicon, until it is used). It may be moved before (compilers do so in software-pipelined
// loops), but nothing else may read it. Those of a wgmma may not be written either, nor may its A registers,
// and between any other access to either and the wgmma a wgmma.fence must stand. A data-flow pass finds the
// few ops that could go against this; only those keep and look at shadow state while the kernel runs.
#include "delivery.h"

#include <algorithm>

#include "builder.h"
#include "wgmma.h"

namespace fa4::sim {

namespace {

bool is_move(const Op& op) {
  return op.run == lane_handler(LaneCode::mov32) || op.run == lane_handler(LaneCode::mov64) ||
         op.run == lane_handler(LaneCode::mov128);
}

// Warp::in_flight: what holds a register, and in the bits above the number of the tcgen05.ld or the wgmma
// group.
enum Holder : uint32_t { kNobody, kLoad, kAccumulator, kInput };
constexpr uint32_t kHolderBits = 2;

Holder holder(const Warp& w, uint16_t row) {
  const uint32_t mark = w.in_flight[row], until = mark >> kHolderBits;
  const Holder h = Holder(mark & 3);
  if (h == kNobody) return h;
  return until > (h == kLoad ? w.tmem_loads_known : w.wgmma.known) ? h : kNobody;
}

const char* const kRead[] = {
    "", "reads a register that tcgen05.ld has not delivered: tcgen05.wait::ld is missing before it (under the model silicon a use waits for the load)",
    "reads an accumulator of a wgmma.mma_async in flight: wgmma.wait_group is missing before it",
    "reads a register that is A of a wgmma.mma_async in flight: wgmma.wait_group is missing before it"};
const char* const kWritten[] = {
    "", "", "writes an accumulator of a wgmma.mma_async in flight: wgmma.wait_group is missing before it",
    "writes a register that is A of a wgmma.mma_async in flight: wgmma.wait_group is missing before it"};

void require_writable(Warp& w, const Op* op, uint16_t row) {
  const Holder h = holder(w, row);
  if (h == kAccumulator || h == kInput) fault(w, op, Fault::Kind::poison, kWritten[h]);
}

// The same for a register that is about to be read. Under Model::silicon the reader waits for the whole load
// that fills it.
Holder holder_at_read(Warp& w, uint16_t row) {
  const Holder h = holder(w, row);
  if (h != kLoad || w.cta->launch->model != Model::silicon) return h;
  const uint32_t mark = w.in_flight[row];
  std::replace(w.in_flight.begin(), w.in_flight.end(), mark, 0u);
  const auto load = std::find_if(w.tmem_loads.begin(), w.tmem_loads.end(),
                                 [&](const TmemLoad& l) { return l.number == mark >> kHolderBits; });
  if (w.cta->observer) w.cta->observer->tmem_delivered(w, load->column, load->columns);
  w.tmem_loads.erase(load);
  return kNobody;
}

const Op* checked(Warp& w, const Op* op, Mask mask) {
  const uint32_t index = uint32_t(op - w.code->ops.data());
  const DeliveryCheck& check = w.code->delivery.find(index)->second;
  if (check.move) {
    for (size_t i = 0; i < check.sources.size(); ++i) {
      const uint16_t from = check.sources[i].row, to = check.destinations[i].row;
      const Holder h = holder(w, from);
      require_writable(w, op, to);
      if (h == kAccumulator) complete_wgmmas(w);
      w.in_flight[to] = h == kLoad || h == kAccumulator ? w.in_flight[from] : 0;
      if (check.destinations[i].noted) w.accessed[to] = w.accessed[from];
    }
    return check.run(w, op, mask);
  }
  for (const auto [row, noted] : check.sources) {
    if (const Holder h = holder_at_read(w, row); h != kNobody) fault(w, op, Fault::Kind::poison, kRead[h]);
    if (noted) w.accessed[row] = w.wgmma.fences + 1;
  }
  for (const auto [row, noted] : check.destinations) {
    require_writable(w, op, row);
    w.in_flight[row] = 0;
    if (noted) w.accessed[row] = w.wgmma.fences + 1;
  }
  return check.run(w, op, mask);
}

}  // namespace

void issue_tmem_load(Warp& w, uint32_t column, uint32_t columns, std::span<const uint16_t> destinations) {
  if (w.in_flight.empty()) return;
  const uint32_t number = ++w.tmem_loads_issued;
  for (uint16_t row : destinations) w.in_flight[row] = number << kHolderBits | kLoad;
  // Where wait::ld never comes, the loads that no register waits for any more are forgotten.
  if (w.tmem_loads.size() > w.in_flight.size()) {
    std::erase_if(w.tmem_loads, [&](const TmemLoad& l) {
      return std::find(w.in_flight.begin(), w.in_flight.end(), l.number << kHolderBits | kLoad) ==
             w.in_flight.end();
    });
  }
  w.tmem_loads.push_back({number, uint16_t(column), uint16_t(columns)});
}

void wait_tmem_loads(Warp& w) {
  w.tmem_loads_known = w.tmem_loads_issued;
  w.tmem_loads.clear();
}

void issue_wgmma_registers(Warp& w, const Op* op, std::span<const uint16_t> accumulators,
                           std::span<const uint16_t> inputs) {
  if (w.in_flight.empty()) return;
  const auto require_fence = [&](uint16_t row) {
    if (w.accessed[row] > w.wgmma.fences)
      fault(
          w, op, Fault::Kind::poison,
          "wgmma.fence is missing between the last access to one of its registers and this wgmma.mma_async");
  };
  for (uint16_t row : accumulators) {
    const Holder h = holder(w, row);
    if (h == kLoad || h == kInput) fault(w, op, Fault::Kind::poison, h == kLoad ? kRead[h] : kWritten[h]);
    require_fence(row);
  }
  for (uint16_t row : inputs) {
    const Holder h = holder(w, row);
    if (h == kLoad || h == kAccumulator) fault(w, op, Fault::Kind::poison, kRead[h]);
    require_fence(row);
  }
  for (uint16_t row : inputs) w.in_flight[row] = w.wgmma.open << kHolderBits | kInput;
  for (uint16_t row : accumulators) w.in_flight[row] = w.wgmma.open << kHolderBits | kAccumulator;
}

// ---- the data-flow pass
// --------------------------------------------------------------------------------------------------

namespace {

// What may hold for a virtual register.
constexpr uint8_t kMayLoad = 1, kMayAccumulate = 2, kMayBeInput = 4, kMayBeInFlight = 7;
constexpr uint8_t kMayLackFence = 8;       // accessed since the newest wgmma.fence
constexpr uint8_t kMayBeUncommitted = 16;  // in flight, and in no wgmma group yet

}  // namespace

void Builder::find_undelivered_uses() {
  const size_t ops = code_.ops.size(), virtuals = virtual_rows_.size();
  guarded_.assign(ops, false);
  held_.assign(virtuals, {~0u, 0});
  lacks_fence_.assign(virtuals, false);
  const auto any = [&](Handler handler) {
    return std::any_of(code_.ops.begin(), code_.ops.end(), [&](const Op& op) { return op.run == handler; });
  };
  const bool wgmma = any(wgmma_mma_async);
  if (!wgmma && !any(tmem_load)) return;
  std::vector<std::vector<uint32_t>> slots_of_op(ops);
  for (uint32_t s = 0; s < slots_.size(); ++s) slots_of_op[slots_[s].op].push_back(s);
  using State = std::vector<uint8_t>;  // by virtual register
  std::vector<State> entry(blocks_.size(), State(virtuals, 0));
  if (wgmma) std::fill(entry[0].begin(), entry[0].end(), kMayLackFence);
  bool risky = false;
  uint8_t held = 0;  // in which states a register is held
  // The state at the end of a block, and what else a walk is for: to note the ops that may go against the
  // rules, or for how long registers are held.
  enum class Walk { state, mark, hold };
  const auto through = [&](uint32_t b, Walk walk) {
    const bool mark = walk == Walk::mark;
    State state = entry[b];
    const auto clear = [&](uint8_t bits) {
      for (uint8_t& s : state) s &= uint8_t(~bits);
    };
    const auto hold = [&](size_t v, uint32_t i) {
      if (walk == Walk::hold && (state[v] & held))
        held_[v] = {std::min(held_[v].first, i), std::max(held_[v].second, i)};
    };
    const auto hold_all = [&](uint32_t i) {
      for (size_t v = 0; v < virtuals && walk == Walk::hold; ++v) hold(v, i);
    };
    hold_all(blocks_[b].begin);
    for (uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
      const Op& op = code_.ops[i];
      const bool always = op.guard == 0;
      if (op.run == tmem_wait_load || op.run == wgmma_wait_group) hold_all(i);
      if (op.run == tmem_wait_load && always) clear(kMayLoad);
      if (op.run == wgmma_commit_group && always) clear(kMayBeUncommitted);
      if (op.run == wgmma_wait_group && always && op.imm == 0) {
        for (uint8_t& s : state) s &= uint8_t(~(s & kMayBeUncommitted ? 0 : kMayAccumulate | kMayBeInput));
      }
      if (op.run == wgmma_fence && always) clear(kMayLackFence);
      const bool move = is_move(op), mma = op.run == wgmma_mma_async;
      bool wrong = false;
      uint8_t moved = 0;
      for (uint32_t s : slots_of_op[i]) {
        const Slot& slot = slots_[s];
        uint8_t& now = state[slot.v];
        const bool registers = mma && slot.field == Field::aux;
        if (registers) {
          const uint8_t other = slot.is_def ? kMayLoad | kMayBeInput : kMayLoad | kMayAccumulate;
          risky |= mark && (now & (other | kMayLackFence));
          if (mark && (now & kMayLackFence)) lacks_fence_[slot.v] = true;
        } else if (slot.is_use) {
          wrong |= now & kMayBeInFlight;
          moved |= now;
          if (!move) now |= kMayLackFence;
        }
      }
      for (uint32_t s : slots_of_op[i]) {
        const Slot& slot = slots_[s];
        uint8_t& now = state[slot.v];
        hold(slot.v, i);
        if (mma && slot.field == Field::aux) {
          if (slot.is_def)
            now = kMayBeUncommitted | (always ? kMayAccumulate : uint8_t(now | kMayAccumulate));
          else
            now |= kMayBeInput | kMayBeUncommitted;
        } else if (slot.is_def) {
          wrong |= now & kMayBeInFlight;
          const uint8_t next = move                  ? uint8_t(moved & ~kMayBeInput)
                               : op.run == tmem_load ? uint8_t(kMayLoad | kMayLackFence)
                                                     : kMayLackFence;
          now = always && !slot.is_use ? next : uint8_t(now | next);
        }
        hold(slot.v, i);
      }
      // A load may write what another one has not delivered.
      if (mark && wrong && op.run != tmem_load) risky = guarded_[i] = true;
    }
    hold_all(blocks_[b].end - 1);
    return state;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = 0; b < blocks_.size(); ++b) {
      const State out = through(b, Walk::state);
      for (uint32_t s : blocks_[b].successors) {
        for (size_t v = 0; v < virtuals; ++v) {
          const uint8_t joined = entry[s][v] | out[v];
          changed |= joined != entry[s][v];
          entry[s][v] = joined;
        }
      }
    }
  }
  for (uint32_t b = 0; b < blocks_.size(); ++b) through(b, Walk::mark);
  code_.tracks_registers = risky;
  // A wgmma writes its accumulators whether anybody reads them or not: nobody else may have their rows until a wait
  // covers it. Of the others (a load's values are there at its issue, A is read then) shadow state alone is at stake.
  held = risky ? kMayBeInFlight : kMayAccumulate;
  for (uint32_t b = 0; b < blocks_.size(); ++b) through(b, Walk::hold);
  if (!risky) {
    guarded_.assign(ops, false);
    lacks_fence_.assign(virtuals, false);
    return;
  }
  // Accesses to registers that may lack a fence are all noted, those of what was moved into them too. No other register
  // may have their rows at any time: it would leave its own accesses there.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < ops; ++i) {
      if (!is_move(code_.ops[i])) continue;
      const auto lacks = [&](uint32_t s) { return slots_[s].is_def && lacks_fence_[slots_[s].v]; };
      if (std::none_of(slots_of_op[i].begin(), slots_of_op[i].end(), lacks)) continue;
      for (uint32_t s : slots_of_op[i]) {
        changed |= !lacks_fence_[slots_[s].v];
        lacks_fence_[slots_[s].v] = true;
      }
    }
  }
  for (const Slot& slot : slots_) {
    if (!lacks_fence_[slot.v]) continue;
    held_[slot.v] = {0, uint32_t(ops - 1)};
    const bool registers = code_.ops[slot.op].run == wgmma_mma_async && slot.field == Field::aux;
    if (!registers && code_.ops[slot.op].run != tmem_load) guarded_[slot.op] = true;
  }
}

void Builder::guard_undelivered_uses() {
  for (const Slot& slot : slots_) {
    if (!guarded_[slot.op]) continue;
    Op& op = code_.ops[slot.op];
    if (op.run == wgmma_mma_async && slot.field == Field::aux) continue;  // it looks at these itself
    const auto [it, added] = code_.delivery.try_emplace(slot.op);
    if (added) {
      it->second.run = op.run;
      it->second.move = is_move(op);
    }
    for (uint32_t r = 0; r < rows_touched(slot); ++r) {
      const DeliveryCheck::Register touched{uint16_t(row_of(slot) + r), lacks_fence_[slot.v]};
      if (reads(slot)) it->second.sources.push_back(touched);
      if (slot.is_def) it->second.destinations.push_back(touched);
    }
  }
  for (auto& [index, check] : code_.delivery) code_.ops[index].run = checked;
}

}  // namespace fa4::sim
