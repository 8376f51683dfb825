// SPDX-License-Identifier: Apache-2.0
#include "checker.h"

#include <algorithm>

#include "../core/shared_memory.h"
#include "../core/tcgen05.h"

namespace fa4::sim::check {

// ---- life ----------------------------------------------------------------------------------------------------------------

void Checker::begin(const Cta& cta) {
  cta_ = &cta;
  lanes_ = uint32_t(cta.warps.size()) * kLanes;
  warps_.resize(cta.warps.size());
  for (size_t i = 0; i < warps_.size(); ++i) {
    WarpState& s = warps_[i];
    s.now = 1;
    s.groups.resize(1);
    s.groups[0].lanes = kAllLanes;
    s.groups[0].clock = Clock(lanes_);
    s.groups[0].tensor_seen.assign(kFirstLane + lanes_, 0);
    s.releases.clear();
    s.loads.clear();
    s.stores.clear();
  }
  shared_.assign((cta.shared_end + 3) / 4 + 16, Cell{});
  tmem_.assign(TensorMemory::columns * TensorMemory::partitions, Cell{});
  bytes_of_word_.clear();
  shared_readers_.clear();
  tmem_readers_.clear();
  global_.clear();
  global_readers_.clear();
  barriers_.clear();
  barrier_at_.clear();
  for (Clock& c : cta_barriers_) c = Clock(lanes_);
  mma_clock_ = Clock(lanes_);
  mmas_ = 0;
  newest_mma_.assign(lanes_, 0);
  streams_.clear();
  snapshots_.clear();
  free_snapshots_.clear();
}

void Checker::ended(bool work_in_flight) {
  if (!work_in_flight) return;
  Finding f;
  f.kind = FindingKind::unobserved_work;
  f.cta = cta_->id;
  f.memory = cta_->launch->code->name;
  f.second = "all threads have exited while copies, MMAs or commits were still in flight";
  f.chain = "wait for the last commit of every ring, and cp.async.bulk.wait_group 0, before the CTA ends";
  merge(findings_, {f});
}

// ---- who knows what ------------------------------------------------------------------------------------------------------

Checker::Actor Checker::actor(const Warp& w, int lane) {
  WarpState& s = warps_[w.index];
  for (Group& g : s.groups) {
    if (g.lanes >> lane & 1) return {&s, &g, w.index * kLanes + uint32_t(lane), w.index};
  }
  return {&s, &s.groups[0], w.index * kLanes + uint32_t(lane), w.index};
}

void Checker::split(WarpState& s, Mask lanes) {
  for (size_t i = 0, n = s.groups.size(); i < n; ++i) {
    if (!(s.groups[i].lanes & lanes) || !(s.groups[i].lanes & ~lanes)) continue;
    Group part = s.groups[i];
    part.lanes &= lanes;
    s.groups[i].lanes &= ~lanes;
    s.groups.push_back(std::move(part));
  }
}

template <class F>
void Checker::each_group(WarpState& s, Mask lanes, F f) {
  split(s, lanes);
  for (Group& g : s.groups) {
    if (g.lanes & lanes) f(g);
  }
}

void Checker::release(const Warp& w, const Op* op, Mask lanes, Clock& into) {
  WarpState& s = warps_[w.index];
  for (Group& g : s.groups) {
    if (g.lanes & lanes) into.join_all(g.clock);
  }
  for (Mask m = lanes; m; m &= m - 1) {
    Time& t = into.plain[kFirstLane + w.index * kLanes + uint32_t(first_lane(m))];
    t = std::max(t, s.now);
  }
  s.releases.push_back({s.now, op_index(op)});
  if (s.releases.size() > 256) s.releases.erase(s.releases.begin(), s.releases.begin() + 128);
  ++s.now;
}

void Checker::acquire(const Warp& w, Mask lanes, const Clock& from) {
  each_group(warps_[w.index], lanes, [&](Group& g) {
    join(g.clock.plain, from.plain);
    join(g.clock.proxy, from.proxy);
    join(g.tensor_seen, from.tensor);
  });
}

void Checker::merge_groups(const Warp& w) {
  WarpState& s = warps_[w.index];
  for (size_t i = 1; i < s.groups.size(); ++i) {
    s.groups[0].lanes |= s.groups[i].lanes;
    s.groups[0].clock.join_all(s.groups[i].clock);
    join(s.groups[0].tensor_seen, s.groups[i].tensor_seen);
  }
  s.groups.resize(1);
}

bool Checker::knows(const std::vector<Time>& clock, const Actor& who, const Access& a) {
  switch (a.agent) {
    case Agent::nobody: return true;
    case Agent::lane: return a.index == who.lane || clock[kFirstLane + a.index] >= a.time;
    case Agent::warp: {
      if (a.time == kPending) return false;
      if (a.index == who.warp_index) return true;
      const Time* lanes = clock.data() + kFirstLane + a.index * kLanes;
      for (Mask m = a.lanes; m; m &= m - 1) {
        if (lanes[first_lane(m)] < a.time) return false;
      }
      return true;
    }
    case Agent::mma: return clock[kMmaStream] >= a.time;
    case Agent::copy_in:
    case Agent::copy_out: return a.time != kPending && clock[a.index] >= a.time;
  }
  return false;
}

bool Checker::knows_proxy(const Actor& who, const Access& a) const {
  return a.agent != Agent::lane || who.group->clock.proxy[kFirstLane + a.index] >= a.time;
}

// ---- accesses ------------------------------------------------------------------------------------------------------------

void Checker::check(const Actor& who, const Access& before, const Access& now, const Cell* cell, bool before_wrote,
                    bool now_writes, Sense sense, bool tensor) {
  // MMAs of a CTA execute in order, whatever they share.
  if (before.agent == Agent::mma && now.agent == Agent::mma) return;
  if (!knows(who.group->clock.plain, who, before)) {
    report(FindingKind::race, false, who, before, now, cell, before_wrote, now_writes);
  } else if (sense == Sense::async && before_wrote && !knows_proxy(who, before)) {
    report(FindingKind::missing_proxy_fence, false, who, before, now, cell, before_wrote, now_writes);
  } else if (tensor && !knows(who.group->clock.tensor, who, before)) {
    report(FindingKind::missing_tensor_fence, true, who, before, now, cell, before_wrote, now_writes);
  }
}

void Checker::read_cells(Cell* cells, size_t count, Readers& more, uint32_t first, const Actor& who, const Access& access,
                         Sense sense, bool tensor) {
  for (size_t i = 0; i < count; ++i) {
    Cell& cell = cells[i];
    if (cell.write.agent != Agent::nobody) check(who, cell.write, access, &cell, true, false, sense, tensor);
    // The new reader stands for the old one if it comes after it.
    const bool replaces = cell.read.agent == Agent::nobody || (cell.read.agent == Agent::mma && access.agent == Agent::mma) ||
                          (cell.read.agent == access.agent && cell.read.index == access.index) ||
                          knows(who.group->clock.plain, who, cell.read);
    if (!replaces) more[first + uint32_t(i)].push_back(cell.read);
    cell.read = access;
  }
}

void Checker::write_cells(Cell* cells, size_t count, Readers& more, uint32_t first, const Actor& who, const Access& access,
                          Sense sense, bool tensor) {
  for (size_t i = 0; i < count; ++i) {
    Cell& cell = cells[i];
    if (cell.write.agent != Agent::nobody) check(who, cell.write, access, &cell, true, true, sense, tensor);
    if (cell.read.agent != Agent::nobody) check(who, cell.read, access, &cell, false, true, sense, tensor);
    if (!more.empty()) {
      if (const auto others = more.find(first + uint32_t(i)); others != more.end()) {
        for (const Access& reader : others->second) check(who, reader, access, &cell, false, true, sense, tensor);
        more.erase(others);
      }
    }
    cell.write = access;
    cell.read = {};
  }
}

void Checker::shared_access(const Warp& w, const Op* op, int lane, uint32_t address, uint32_t bytes, bool write) {
  const Actor who = actor(w, lane);
  const Access access{Agent::lane, uint16_t(who.lane), who.warp->now, op_index(op), 0};
  const uint32_t first = address / 4, count = (address + bytes + 3) / 4 - first;
  // Neighbours may share a word: accesses narrower than that are ordered by the word only for the same lane.
  if (bytes < 4) {
    narrow_access(who, access, address, bytes, write);
  } else if (write) {
    write_cells(&shared_[first], count, shared_readers_, first, who, access, Sense::thread, false);
  } else {
    read_cells(&shared_[first], count, shared_readers_, first, who, access, Sense::thread, false);
  }
}

// Bytes have cells of their own once somebody accesses less than a word.
void Checker::narrow_access(const Actor& who, const Access& access, uint32_t address, uint32_t bytes, bool write) {
  const uint32_t word = address / 4;
  auto [it, added] = bytes_of_word_.try_emplace(word);
  if (added) it->second.fill(shared_[word]);
  Readers none;
  for (uint32_t b = address % 4; b < address % 4 + bytes; ++b) {
    if (write) write_cells(&it->second[b], 1, none, 0, who, access, Sense::thread, false);
    else read_cells(&it->second[b], 1, none, 0, who, access, Sense::thread, false);
  }
}

void Checker::global_access(const Warp& w, const Op* op, int lane, uint64_t address, uint32_t bytes, bool write) {
  const Actor who = actor(w, lane);
  const Access access{Agent::lane, uint16_t(who.lane), who.warp->now, op_index(op), 0};
  for (uint64_t word = address / 4; word < (address + bytes + 3) / 4; ++word) {
    Cell& cell = global_[word];
    if (write) write_cells(&cell, 1, global_readers_, uint32_t(word), who, access, Sense::thread, false);
    else read_cells(&cell, 1, global_readers_, uint32_t(word), who, access, Sense::thread, false);
  }
  if (write) global_writes_.push_back({address, address + bytes, cta_->id, op_index(op), uint16_t(w.index)});
}

void Checker::tmem_access(const Warp& w, const Op* op, uint32_t column, uint32_t columns, bool write) {
  const Actor who = actor(w, first_lane(w.alive));
  const Access access{Agent::warp, uint16_t(w.index), kPending, op_index(op), w.alive};
  for (uint32_t c = column; c < column + columns; ++c) {
    const uint32_t at = c * TensorMemory::partitions + w.index % TensorMemory::partitions;
    if (write) write_cells(&tmem_[at], 1, tmem_readers_, at, who, access, Sense::thread, true);
    else read_cells(&tmem_[at], 1, tmem_readers_, at, who, access, Sense::thread, true);
  }
  (write ? who.warp->stores : who.warp->loads).push_back({column, columns});
}

// The warp's loads or stores are over: from now on their time is known.
void Checker::tmem_waited(const Warp& w, bool stores) {
  WarpState& s = warps_[w.index];
  auto& pending = stores ? s.stores : s.loads;
  const auto settle = [&](Access& a) {
    if (a.agent == Agent::warp && a.index == w.index && a.time == kPending) a.time = s.now;
  };
  for (const auto& [column, columns] : pending) {
    for (uint32_t c = column; c < column + columns; ++c) {
      const uint32_t at = c * TensorMemory::partitions + w.index % TensorMemory::partitions;
      if (stores) {
        settle(tmem_[at].write);
      } else {
        settle(tmem_[at].read);
        if (const auto others = tmem_readers_.find(at); others != tmem_readers_.end()) {
          for (Access& a : others->second) settle(a);
        }
      }
    }
  }
  pending.clear();
}

void Checker::tmem_allocated(const Warp& w, const Op* op, uint32_t column, uint32_t columns, uint32_t shared_address) {
  const Actor who = actor(w, first_lane(w.alive));
  const Access access{Agent::warp, uint16_t(w.index), who.warp->now, op_index(op), w.alive};
  for (uint32_t c = column; c < column + columns; ++c) {
    write_cells(&tmem_[c * TensorMemory::partitions], TensorMemory::partitions, tmem_readers_, c * TensorMemory::partitions, who,
                access, Sense::thread, false);
  }
  write_cells(&shared_[shared_address / 4], 1, shared_readers_, shared_address / 4, who, access, Sense::thread, false);
}

void Checker::tmem_released(const Warp& w, const Op* op, uint32_t column, uint32_t columns) {
  tmem_allocated(w, op, column, columns, 0);
}

// ---- threads synchronise -------------------------------------------------------------------------------------------------

void Checker::warp_barrier(const Warp& w, const Op* op, Mask members) {
  WarpState& s = warps_[w.index];
  if (s.groups.size() > 1) {
    if (members == w.alive) {
      merge_groups(w);
    } else {
      Clock common(lanes_);
      each_group(s, members, [&](Group& g) { common.join_all(g.clock); });
      each_group(s, members, [&](Group& g) { g.clock.join_all(common); });
    }
  }
  each_group(s, members, [&](Group& g) {
    for (Mask m = members; m; m &= m - 1) {
      const uint32_t lane = kFirstLane + w.index * kLanes + uint32_t(first_lane(m));
      g.clock.plain[lane] = s.now;
      g.clock.tensor[lane] = s.now;
    }
  });
  s.releases.push_back({s.now, op_index(op)});
  ++s.now;
}

void Checker::cta_barrier_arrived(const Warp& w, const Op* op, Mask lanes, uint32_t id) {
  release(w, op, lanes, cta_barriers_[id]);
}

void Checker::cta_barrier_passed(const Warp& w, Mask lanes, uint32_t id) {
  acquire(w, lanes, cta_barriers_[id]);
  if (lanes == w.alive) merge_groups(w);
}

void Checker::cta_barrier_opened(uint32_t id) { cta_barriers_[id].reset(); }

void Checker::fence(const Warp& w, const Op* op, Mask lanes, FenceKind kind) {
  (void)op;
  WarpState& s = warps_[w.index];
  if (kind == FenceKind::mbarrier_init) {
    for (Barrier& b : barriers_) {
      if (b.init.index / kLanes == w.index && (lanes >> (b.init.index % kLanes) & 1)) b.init_fenced = true;
    }
    return;
  }
  each_group(s, lanes, [&](Group& g) {
    std::vector<Time>* own = nullptr;
    switch (kind) {
      case FenceKind::proxy_async:
        join(g.clock.proxy, g.clock.plain);
        own = &g.clock.proxy;
        break;
      case FenceKind::before_thread_sync: own = &g.clock.tensor; break;
      default: join(g.clock.tensor, g.tensor_seen); break;
    }
    if (!own) return;
    for (Mask m = lanes & g.lanes; m; m &= m - 1) (*own)[kFirstLane + w.index * kLanes + uint32_t(first_lane(m))] = s.now;
  });
  if (kind != FenceKind::after_thread_sync) ++s.now;
}

// ---- mbarriers -----------------------------------------------------------------------------------------------------------

Checker::Barrier* Checker::find_barrier(uint32_t address) {
  const auto it = barrier_at_.find(address);
  return it == barrier_at_.end() ? nullptr : &barriers_[it->second];
}

void Checker::mbarrier_initialised(const Warp& w, const Op* op, int lane, uint32_t address) {
  shared_access(w, op, lane, address, 8, true);
  const Actor who = actor(w, lane);
  const auto [it, added] = barrier_at_.try_emplace(address, uint32_t(barriers_.size()));
  if (added) {
    barriers_.emplace_back();
    barriers_.back().component = kFirstBarrier + std::min<uint32_t>(it->second, kBarriers - 1);
  }
  Barrier& b = barriers_[it->second];
  b.address = address;
  b.init = {Agent::lane, uint16_t(who.lane), who.warp->now, op_index(op), 0};
  b.init_fenced = false;
  b.gathering = Clock(lanes_);
  b.completed = Clock(lanes_);
}

// A thread uses a barrier after it knows of its init; an asynchronous agent needs the init fenced as well.
void Checker::require_visible_init(const Actor& who, Barrier& b, const Op* op, bool by_async) {
  const bool visible = knows(who.group->clock.plain, who, b.init);
  const bool fenced = !by_async || b.init_fenced || who.group->clock.proxy[kFirstLane + b.init.index] >= b.init.time;
  if (visible && fenced) return;
  const Access now{Agent::lane, uint16_t(who.lane), who.warp->now, op_index(op), 0};
  report(FindingKind::barrier_init, false, who, b.init, now, &shared_[b.address / 4], true, false);
}

void Checker::mbarrier_arriving(const Warp& w, const Op* op, Mask lanes, uint32_t address) {
  Barrier* b = find_barrier(address);
  if (!b) return;
  require_visible_init(actor(w, first_lane(lanes)), *b, op, false);
  release(w, op, lanes, b->gathering);
}

void Checker::mbarrier_completed(uint32_t address, uint32_t phase) {
  Barrier* b = find_barrier(address);
  if (!b) return;
  std::swap(b->gathering, b->completed);
  b->gathering.reset();
  b->completed.plain[b->component] = b->completed.tensor[b->component] = phase + 1;
}

void Checker::mbarrier_waited(const Warp& w, const Op* op, Mask lanes, uint32_t address) {
  Barrier* b = find_barrier(address);
  if (!b) return;
  require_visible_init(actor(w, first_lane(lanes)), *b, op, false);
  acquire(w, lanes, b->completed);
}

// ---- asynchronous agents -------------------------------------------------------------------------------------------------

uint32_t Checker::snapshot(const Actor& who) {
  uint32_t token;
  if (free_snapshots_.empty()) {
    token = uint32_t(snapshots_.size());
    snapshots_.emplace_back(lanes_);
  } else {
    token = free_snapshots_.back();
    free_snapshots_.pop_back();
  }
  Clock& clock = snapshots_[token];
  clock = who.group->clock;
  Time& own = clock.plain[kFirstLane + who.lane];
  own = std::max(own, who.warp->now);
  return token;
}

uint32_t Checker::copy_in_issued(const Warp& w, const Event& event) {
  const Actor who = actor(w, event.lane);
  Barrier* b = find_barrier(event.address);
  if (b) require_visible_init(who, *b, event.op, true);
  const Access access{Agent::copy_in, uint16_t(b ? b->component : kFirstBarrier), kPending, op_index(event.op), uint32_t(w.index)};
  write_cells(&shared_[event.shared / 4], event.extent / 4, shared_readers_, event.shared / 4, who, access, Sense::async, false);
  const uint32_t token = snapshot(who);
  ++who.warp->now;
  return token;
}

void Checker::copy_in_landed(const Event& event) {
  Barrier* b = find_barrier(event.address);
  const MBarrier* live = nullptr;
  if (b) live = mbarrier_in(*cta_, event.address, 8);
  if (!b || !live) return;
  for (uint32_t i = event.shared / 4; i < (event.shared + event.extent) / 4; ++i) {
    Access& a = shared_[i].write;
    if (a.agent == Agent::copy_in && a.time == kPending) a.time = live->phase + 1;
  }
  b->gathering.join_all(snapshots_[event.token]);
  free_snapshots_.push_back(event.token);
}

Checker::StoreStream& Checker::stream(uint32_t lane, Component* component) {
  size_t i = 0;
  while (i < streams_.size() && streams_[i].lane != lane) ++i;
  if (i == streams_.size()) streams_.push_back({lane, {}, 0});
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
  const Access access{Agent::copy_out, uint16_t(component), time, op_index(event.op), uint32_t(w.index)};
  read_cells(&shared_[event.shared / 4], event.extent / 4, shared_readers_, event.shared / 4, who, access, Sense::async, false);
  log_box(event);
  ++who.warp->now;
}

// The rows of global memory that a box covers.
void Checker::log_box(const Event& event) {
  const TensorMap& map = cta_->maps[event.slot];
  const int64_t element = map.element_bytes();
  int64_t begin[5] = {}, end[5] = {};
  for (uint32_t d = 0; d < map.rank; ++d) {
    begin[d] = std::max<int64_t>(0, event.coordinates[d]);
    end[d] = std::min<int64_t>(int64_t(map.extents[d]), int64_t(event.coordinates[d]) + map.box[d]);
    if (begin[d] >= end[d]) return;
  }
  int64_t at[5];
  std::copy(begin, begin + 5, at);
  for (;;) {
    uint64_t address = map.address + uint64_t(begin[0] * element);
    for (uint32_t d = 1; d < map.rank; ++d) address += uint64_t(at[d]) * map.strides[d];
    global_writes_.push_back({address, address + uint64_t((end[0] - begin[0]) * element), cta_->id, op_index(event.op), event.warp});
    uint32_t d = 1;
    while (d < map.rank && ++at[d] == end[d]) at[d] = begin[d], ++d;
    if (d >= map.rank) return;
  }
}

void Checker::copy_group_waited(const Warp& w, Mask lanes, uint64_t first_pending_group, bool read_only) {
  for (Mask m = lanes; m; m &= m - 1) {
    const int lane = first_lane(m);
    Component component = 0;
    StoreStream& s = stream(w.index * kLanes + uint32_t(lane), &component);
    Time done = 0;
    for (const auto& [group, time] : s.groups) {
      if (group < first_pending_group) done = std::max(done, time);
    }
    each_group(warps_[w.index], 1u << lane, [&](Group& g) {
      g.clock.plain[component] = std::max(g.clock.plain[component], done);
      if (!read_only) g.clock.plain[component + 1] = std::max(g.clock.plain[component + 1], done);
    });
    std::erase_if(s.groups, [&](const auto& g) { return !read_only && g.first < first_pending_group; });
  }
}

void Checker::mma_issued(const Warp& w, const Op* op, int lane, const MmaAccess& mma) {
  const Actor who = actor(w, lane);
  const Access access{Agent::mma, 0, ++mmas_, op_index(op), uint32_t(w.index)};
  newest_mma_[who.lane] = mmas_;
  const auto read_operand = [&](const MatrixDescriptor& d, bool mn_major, uint32_t rows) {
    each_chunk(d, mn_major, rows, [&](uint32_t, uint32_t, uint32_t address) {
      Cell* cells = &shared_[address / 4];
      // Four cells that the same access wrote and MMAs read are the common case.
      for (int i = 0; i < 4; ++i) read_cells(cells + i, 1, shared_readers_, address / 4 + uint32_t(i), who, access, Sense::async, false);
    });
  };
  if (mma.a) {
    read_operand(*mma.a, mma.a_mn_major, mma.m);
  } else {
    const uint32_t first = mma.a_column * TensorMemory::partitions;
    read_cells(&tmem_[first], 8 * TensorMemory::partitions, tmem_readers_, first, who, access, Sense::thread, true);
  }
  read_operand(*mma.b, mma.b_mn_major, mma.n);
  const uint32_t first = mma.d_column * TensorMemory::partitions;
  write_cells(&tmem_[first], size_t(mma.n) * TensorMemory::partitions, tmem_readers_, first, who, access, Sense::thread, true);
  mma_clock_.join_all(who.group->clock);
  Time& own = mma_clock_.plain[kFirstLane + who.lane];
  own = std::max(own, who.warp->now);
  ++who.warp->now;
}

uint32_t Checker::commit_issued(const Warp& w, const Event& event) {
  const Actor who = actor(w, event.lane);
  if (Barrier* b = find_barrier(event.address)) require_visible_init(who, *b, event.op, true);
  const uint32_t token = snapshot(who);
  Clock& clock = snapshots_[token];
  clock = mma_clock_;
  clock.plain[kMmaStream] = clock.tensor[kMmaStream] = newest_mma_[who.lane];
  return token;
}

void Checker::commit_landed(const Event& event) {
  if (Barrier* b = find_barrier(event.address)) b->gathering.join_all(snapshots_[event.token]);
  free_snapshots_.push_back(event.token);
}

}  // namespace fa4::sim::check
