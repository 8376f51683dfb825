// SPDX-License-Identifier: Apache-2.0
// Copies, MMAs and commits: agents of their own, known to whoever has waited for them.
#include <algorithm>

#include "../core/shared_memory.h"
#include "../core/tcgen05.h"
#include "checker.h"

namespace fa4::sim::check {

uint32_t Checker::snapshot() {
  if (free_snapshots_.empty()) {
    snapshots_.emplace_back(lanes_);
    return uint32_t(snapshots_.size() - 1);
  }
  const uint32_t token = free_snapshots_.back();
  free_snapshots_.pop_back();
  return token;
}

uint32_t Checker::copy_in_issued(const Warp& w, const Event& event) {
  const Actor who = actor(w, event.lane);
  Barrier* b = find_barrier(event.address);
  if (b) require_visible_init(who, *b, event.op, true);
  const Access access{
      Agent::copy_in,   0, uint16_t(b ? b->component : kFirstBarrier), kPending, op_index(event.op),
      uint32_t(w.index)};
  shared_cells(who, access, event.shared, event.extent, true, Sense::async);
  read_box(event, who, access);
  if (b) b->newest_copy = access;
  // The completion makes the copy known and nothing of what its thread did before (PTX ISA 8.9.1.1).
  ++who.warp->now;
  return 0;
}

void Checker::copy_in_landed(const Event& event) {
  Barrier* b = find_barrier(event.address);
  const MBarrier* live = nullptr;
  if (b) live = mbarrier_in(*cta_, event.address, 8);
  if (!b || !live) return;
  b->newest_copy.time = live->phase + 1;
  b->newest_arrival = b->newest_copy;
  for (uint32_t i = event.shared / 4; i < (event.shared + event.extent) / 4; ++i) {
    const auto settle = [&](Access& a) {
      if (a.agent == Agent::copy_in && a.time == kPending) a.time = live->phase + 1;
    };
    settle(shared_[i].write);
    if (bytes_of_word_.empty()) continue;
    if (const auto split = bytes_of_word_.find(i); split != bytes_of_word_.end()) {
      for (Cell& cell : split->second) settle(cell.write);
    }
  }
}

Checker::StoreStream& Checker::stream(uint32_t lane, Component* component) {
  size_t i = 0;
  while (i < streams_.size() && streams_[i].lane != lane) ++i;
  if (i == streams_.size()) streams_.push_back({lane, {}, 0, {}});
  *component = kFirstStore + 2 * std::min<uint32_t>(uint32_t(i), kStoreStreams - 1);
  return streams_[i];
}

void Checker::copy_out_issued(const Warp& w, const Event& event) {
  const Actor who = actor(w, event.lane);
  Component component = 0;
  StoreStream& s = stream(who.lane, &component);
  const Time time = ++s.issued;
  if (s.groups.empty() || s.groups.back().first != event.group) s.groups.push_back({event.group, time});
  s.groups.back().second = time;
  Access access{Agent::copy_out, 0, uint16_t(component), time, op_index(event.op), uint32_t(w.index)};
  shared_cells(who, access, event.shared, event.extent, false, Sense::async);
  s.newest = access;
  ++access.index;  // what it writes is there when the whole store is complete
  log_box(event, who, access);
  ++who.warp->now;
}

void Checker::copy_group_waited(const Warp& w, Mask lanes, uint64_t first_pending_group, bool read_only) {
  for (Mask m = lanes; m; m &= m - 1) {
    const int lane = first_lane(m);
    const uint32_t thread = w.index * kLanes + uint32_t(lane);
    if (std::none_of(streams_.begin(), streams_.end(),
                     [&](const StoreStream& s) { return s.lane == thread; }))
      continue;
    Component component = 0;
    StoreStream& s = stream(thread, &component);
    Time done = 0;
    for (const auto& [group, time] : s.groups) {
      if (group < first_pending_group) done = std::max(done, time);
    }
    const std::vector<Time>& known = actor(w, lane).group->clock.plain;
    if (known[component] >= done && (read_only || known[component + 1] >= done)) continue;
    each_group(warps_[w.index], 1u << lane, [&](Group& g) {
      g.clock.plain[component] = std::max(g.clock.plain[component], done);
      if (!read_only) g.clock.plain[component + 1] = std::max(g.clock.plain[component + 1], done);
    });
    if (provenance_) {
      Provenance::Sources over;
      provenance_->completed(over, component, done, s.newest.op);
      if (!read_only) provenance_->completed(over, component + 1, done, s.newest.op);
      provenance_->acquired(over, w.index, 1u << lane, op_index(w.fragments[size_t(w.current)].pc) - 1,
                            "the bulk group");
    }
    std::erase_if(s.groups, [&](const auto& g) { return !read_only && g.first < first_pending_group; });
  }
}

// ---- cp.async: writes of a lane in the generic proxy that are over when the lane has waited, or when an mbarrier's phase is

// Calls f(access) for the newest writes of the cells.
template <class F>
void Checker::each_written(uint32_t address, uint32_t bytes, F f) {
  for (uint32_t word = address / 4; word < (address + bytes) / 4; ++word) {
    f(shared_[word].write);
    if (const auto split = bytes_of_word_.find(word); split != bytes_of_word_.end()) {
      for (Cell& cell : split->second) f(cell.write);
    }
  }
}

void Checker::thread_copy_issued(const Warp& w, const Op* op, int lane, uint32_t address, uint32_t bytes) {
  const Actor who = actor(w, lane);
  const Access access{Agent::thread_copy, 0, uint16_t(who.lane), kPending, op_index(op), uint32_t(w.index)};
  shared_cells(who, access, address, bytes, true, Sense::thread);
  auto& [count, newest] = copies_[who.lane];
  ++count;
  newest = access;
}

// From here on it is as if the lane had stored them now.
void Checker::thread_copy_waited(const Warp& w, int lane, uint32_t address, uint32_t bytes) {
  const Actor who = actor(w, lane);
  --copies_[who.lane].first;
  each_written(address, bytes, [&](Access& a) {
    if (a.agent == Agent::thread_copy && a.index == who.lane && a.time == kPending) a = {Agent::lane, 0, uint16_t(who.lane), who.warp->now, a.op, 0};
  });
}

void Checker::thread_copy_arrival_issued(const Warp& w, const Event& event) {
  if (Barrier* b = find_barrier(event.address)) {
    require_visible_init(actor(w, event.lane), *b, event.op, false);
    used(w, event.op, 1u << event.lane, *b);
  }
}

void Checker::thread_copy_arrived(const Event& event, uint32_t address, uint32_t bytes) {
  const uint32_t lane = event.warp * kLanes + event.lane;
  --copies_[lane].first;
  Barrier* b = find_barrier(event.address);
  const MBarrier* live = b ? mbarrier_in(*cta_, event.address, 8) : nullptr;
  if (!live) return;
  each_written(address, bytes, [&](Access& a) {
    if (a.agent != Agent::thread_copy || a.index != lane || a.time != kPending) return;
    a.index = uint16_t(b->component);
    a.time = live->phase + 1;
    b->newest_copy = a;
  });
}

void Checker::thread_copy_arriving(const Event& event) {
  if (Barrier* b = find_barrier(event.address)) b->newest_arrival = {Agent::lane, 0, uint16_t(event.warp * kLanes + event.lane), 0, op_index(event.op), 0};
}

void Checker::mma_issued(const Warp& w, const Op* op, int lane, const MmaAccess& mma) {
  const Actor who = actor(w, lane);
  const uint32_t accumulator = mma.d_column | mma.n << 9 | mma.m << 18;
  const Access access{Agent::mma, 0, uint16_t(who.lane), ++mmas_, op_index(op), accumulator};
  newest_mma_[who.lane] = mmas_;
  newest_mma_access_ = access;
  mma_issue_.push_back(who.warp->now);
  const auto read_operand = [&](const MatrixDescriptor& d, bool mn_major, uint32_t rows) {
    each_chunk(d, mn_major, rows, [&](uint32_t, uint32_t, uint32_t address) {
      shared_cells(who, access, address, 16, false, Sense::async);
    });
  };
  if (mma.a) {
    read_operand(*mma.a, mma.a_mn_major, mma.m);
  } else {
    const uint32_t first = mma.a_column * TensorMemory::partitions;
    read_cells(&tmem_[first], 8 * TensorMemory::partitions, tmem_readers_, first, who, access, Sense::thread,
               Tensor::fenced);
  }
  read_operand(*mma.b, mma.b_mn_major, mma.n);
  const uint32_t first = mma.d_column * TensorMemory::partitions;
  write_cells(&tmem_[first], size_t(mma.n) * TensorMemory::partitions, tmem_readers_, first, who, access,
              Sense::thread, Tensor::fenced);
  mma_clock_.join_untensored(who.group->clock);
  join_tensor(w, *who.group, 1u << lane, mma_clock_.tensor);
  Time& own = mma_clock_.plain[kFirstLane + who.lane];
  own = std::max(own, who.warp->now);
  if (provenance_)
    provenance_->released(mma_clock_.sources, Provenance::By::mma, w.index, 1u << lane, who.warp->now,
                          op_index(op));
  ++who.warp->now;
}

// A warp's part of a wgmma.mma_async is taken to read all of A and B: nothing says which warp reads what of A.
void Checker::wgmma_issued(const Warp& w, const Op* op, const WgmmaAccess& wgmma) {
  const Actor who = actor(w, 0);
  const Access access{Agent::wgmma, 0, uint16_t(kFirstWgmma + w.index), Time(wgmma.number), op_index(op), w.index};
  newest_wgmma_[w.index] = access;
  const auto read_operand = [&](const MatrixDescriptor& d, bool mn_major, uint32_t rows) {
    each_chunk(d, mn_major, rows, [&](uint32_t, uint32_t, uint32_t address) {
      shared_cells(who, access, address, 16, false, Sense::async);
    });
  };
  if (wgmma.a) read_operand(*wgmma.a, wgmma.a_mn_major, 64);
  read_operand(*wgmma.b, wgmma.b_mn_major, wgmma.n);
  ++who.warp->now;
}

void Checker::wgmma_waited(const Warp& w, uint64_t number) {
  each_group(warps_[w.index], w.alive, [&](Group& g) {
    Time& known = g.clock.plain[kFirstWgmma + w.index];
    known = std::max(known, Time(number));
  });
}

uint32_t Checker::commit_issued(const Warp& w, const Event& event) {
  const Actor who = actor(w, event.lane);
  if (Barrier* b = find_barrier(event.address)) {
    require_visible_init(who, *b, event.op, false);
    b->newest_commit = {Agent::mma, 0, uint16_t(who.lane), kPending, op_index(event.op), 0};
  }
  const uint32_t token = snapshot();
  causes_.resize(snapshots_.size());
  causes_[token] = who.group->clock.plain;
  causes_[token][kFirstLane + who.lane] = who.warp->now;
  Clock& clock = snapshots_[token];
  clock = mma_clock_;
  clock.plain[kMmaStream] = clock.tensor[kMmaStream] = newest_mma_[who.lane];
  if (provenance_)
    provenance_->completed(clock.sources, kMmaStream, newest_mma_[who.lane], op_index(event.op));
  return token;
}

void Checker::commit_landed(const Event& event) {
  if (Barrier* b = find_barrier(event.address)) {
    b->gathering.join_all(snapshots_[event.token]);
    join(b->cause, causes_[event.token]);
    b->newest_arrival = {Agent::mma, 0, uint16_t(event.warp * kLanes + event.lane), 0, op_index(event.op), 0};
    const MBarrier* live = mbarrier_in(*cta_, event.address, 8);
    if (live) b->newest_commit.time = live->phase + 1;
  }
  free_snapshots_.push_back(event.token);
}

}  // namespace fa4::sim::check
