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

uint32_t Checker::copy_in_issued(const Warp& w, const Event& event) {
  const Actor who = actor(w, event.lane);
  const Cta& target = *event.target;
  const uint32_t to = flat(target, event.shared);
  Barrier* b = find_barrier(flat(target, event.address));
  if (&target != w.cta) require_begun(w, event.op, 1u << event.lane, target, to);
  const bool store = event.kind == Event::Kind::remote_store, between = event.kind == Event::Kind::shared_copy;
  if (b) require_visible_init(who, *b, event.op, !store);
  // Of reductions each element is an atomic operation.
  const bool reduces = (store || between) && event.op->target != 0;
  const uint8_t order = reduces ? kStrong | kAtomic | kReduction | kBeyondCtaInCluster : 0;
  const Access access{Agent::copy_in, order, uint16_t(b ? b->component : kFirstBarrier), kPending, op_index(event.op), warp_of(w)};
  if (between) {
    const Access read{Agent::copy_in, 0, access.index, kPending, access.op, access.lanes};
    shared_cells(who, read, flat(*w.cta, event.source), event.extent, false, Sense::async);
    if (&target != w.cta) {
      std::vector<Access>& reads = remote_reads_[w.cta->rank];  // the newest for each barrier
      const auto same = std::find_if(reads.begin(), reads.end(), [&](const Access& a) { return a.index == read.index; });
      if (same == reads.end()) reads.push_back(read);
      else *same = read;
    }
  }
  shared_cells(who, access, to, event.extent, true, store ? Sense::thread : Sense::async);
  if (!store && !between) read_box(event, who, access);
  if (b) b->newest_copy = access;
  // The completion makes the copy known and nothing of what its thread did before (PTX ISA 8.9.1.1).
  ++who.warp->now;
  return 0;
}

void Checker::copy_in_landed(const Event& event) {
  Barrier* b = find_barrier(flat(*event.target, event.address));
  const MBarrier* live = b ? live_barrier(b->address) : nullptr;
  if (!live) return;
  const Time over = live->phase + 1;
  b->newest_copy.time = over;
  b->newest_arrival = b->newest_copy;
  const auto settle = [&](Access& a) {
    if (a.agent == Agent::copy_in && a.time == kPending && a.index == b->component) a.time = over;
  };
  each_written(flat(*event.target, event.shared), event.extent, settle);
  if (event.kind != Event::Kind::shared_copy) return;
  const uint32_t source = flat(*event.cta, event.source);
  for (uint32_t word = source / 4; word < (source + event.extent) / 4; ++word) {
    settle(shared_[word].read);
    if (const auto others = shared_readers_.find(word); others != shared_readers_.end()) {
      for (Access& a : others->second) settle(a);
    }
    if (const auto split = bytes_of_word_.find(word); split != bytes_of_word_.end()) {
      for (uint32_t byte = 0; byte < 4; ++byte) {
        settle(split->second[byte].read);
        if (const auto others = byte_readers_.find(4 * word + byte); others != byte_readers_.end()) {
          for (Access& a : others->second) settle(a);
        }
      }
    }
  }
  for (Access& a : remote_reads_[event.cta->rank]) settle(a);
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
  Access access{Agent::copy_out, 0, uint16_t(component), time, op_index(event.op), uint32_t(warp_of(w))};
  shared_cells(who, access, flat(*w.cta, event.shared), event.extent, false, Sense::async);
  s.newest = access;
  ++access.index;  // what it writes is there when the whole store is complete
  log_box(event, who, access);
  ++who.warp->now;
}

void Checker::copy_group_waited(const Warp& w, Mask lanes, uint64_t first_pending_group, bool read_only) {
  for (Mask m = lanes; m; m &= m - 1) {
    const int lane = first_lane(m);
    const uint32_t thread = warp_of(w) * kLanes + uint32_t(lane);
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
    each_group(warps_[warp_of(w)], 1u << lane, [&](Group& g) {
      g.clock.plain[component] = std::max(g.clock.plain[component], done);
      if (!read_only) g.clock.plain[component + 1] = std::max(g.clock.plain[component + 1], done);
    });
    if (provenance_) {
      Provenance::Sources over;
      provenance_->completed(over, component, done, s.newest.op);
      if (!read_only) provenance_->completed(over, component + 1, done, s.newest.op);
      provenance_->acquired(over, warp_of(w), 1u << lane, op_index(w.fragments[size_t(w.current)].pc) - 1,
                            "the bulk group");
    }
    std::erase_if(s.groups, [&](const auto& g) { return !read_only && g.first < first_pending_group; });
  }
}

// ---- cp.async: writes of a lane in the generic proxy that are over when the lane has waited, or when an mbarrier's phase is

void Checker::thread_copy_issued(const Warp& w, const Op* op, int lane, uint32_t address, uint32_t bytes) {
  const Actor who = actor(w, lane);
  const Access access{Agent::thread_copy, 0, uint16_t(who.lane), kPending, op_index(op), uint32_t(warp_of(w))};
  shared_cells(who, access, flat(*w.cta, address), bytes, true, Sense::thread);
  auto& [count, newest] = copies_[who.lane];
  ++count;
  newest = access;
}

// From here on it is as if the lane had stored them now.
void Checker::thread_copy_waited(const Warp& w, int lane, uint32_t address, uint32_t bytes) {
  const Actor who = actor(w, lane);
  --copies_[who.lane].first;
  each_written(flat(*w.cta, address), bytes, [&](Access& a) {
    if (a.agent == Agent::thread_copy && a.index == who.lane && a.time == kPending) a = {Agent::lane, 0, uint16_t(who.lane), who.warp->now, a.op, 0};
  });
}

void Checker::thread_copy_arrival_issued(const Warp& w, const Event& event) {
  if (Barrier* b = find_barrier(barrier_of(event))) {
    require_visible_init(actor(w, event.lane), *b, event.op, false);
    used(w, event.op, 1u << event.lane, *b);
  }
}

void Checker::thread_copy_arrived(const Event& event, uint32_t address, uint32_t bytes) {
  const uint32_t lane = warp_of(event) * kLanes + event.lane;
  --copies_[lane].first;
  Barrier* b = find_barrier(barrier_of(event));
  const MBarrier* live = b ? live_barrier(b->address) : nullptr;
  if (!live) return;
  each_written(flat(*event.cta, address), bytes, [&](Access& a) {
    if (a.agent != Agent::thread_copy || a.index != lane || a.time != kPending) return;
    a.index = uint16_t(b->component);
    a.time = live->phase + 1;
    b->newest_copy = a;
  });
}

void Checker::thread_copy_arriving(const Event& event) {
  if (Barrier* b = find_barrier(barrier_of(event))) b->newest_arrival = {Agent::lane, 0, uint16_t(warp_of(event) * kLanes + event.lane), 0, op_index(event.op), 0};
}

void Checker::mma_issued(const Warp& w, const Op* op, int lane, const MmaAccess& mma) {
  const Actor who = actor(w, lane);
  const uint32_t accumulator = mma.d_column | mma.n << 9 | mma.m << 18;
  MmaStream& stream = mmas_[w.cta->rank];
  const Access access{Agent::mma, 0, uint16_t(who.lane), ++stream.issued, op_index(op), accumulator};
  newest_mma_[who.lane] = stream.issued;
  stream.newest = access;
  stream.issue.push_back(who.warp->now);
  const uint32_t tmem = w.cta->rank * kTmemCells;
  const auto read_operand = [&](const MatrixDescriptor& d, bool mn_major, uint32_t rows) {
    Neighbour neighbour;
    each_chunk(d, mn_major, rows, [&](uint32_t, uint32_t, uint32_t address) {
      shared_cells(who, access, flat(*w.cta, address), 16, false, Sense::async, neighbour);
    });
  };
  if (mma.a) {
    read_operand(*mma.a, mma.a_mn_major, mma.m);
  } else {
    const uint32_t first = tmem + mma.a_column * TensorMemory::partitions;
    for (uint32_t partition = 0; partition < TensorMemory::partitions; ++partition) {
      Neighbour neighbour;
      read_cells(&tmem_[first + partition], 8, TensorMemory::partitions, tmem_readers_, first + partition, who, access,
                 Sense::thread, Tensor::fenced, neighbour);
    }
  }
  read_operand(*mma.b, mma.b_mn_major, mma.n);
  const uint32_t first = tmem + mma.d_column * TensorMemory::partitions;
  write_cells(&tmem_[first], size_t(mma.n) * TensorMemory::partitions, 1, tmem_readers_, first, who, access,
              Sense::thread, Tensor::fenced);
  stream.clock.join_untensored(who.group->clock);
  join_tensor(w, *who.group, 1u << lane, stream.clock.tensor);
  Time& own = stream.clock.plain[kFirstLane + who.lane];
  own = std::max(own, who.warp->now);
  if (provenance_)
    provenance_->released(stream.clock.sources, Provenance::By::mma, warp_of(w), 1u << lane, who.warp->now,
                          op_index(op));
  ++who.warp->now;
}

// A warp's part of a wgmma.mma_async is taken to read all of A and B: nothing says which warp reads what of A. The four warps of a
// warpgroup execute the same ones, so what a later write is held against is one read for all four, from the first issue on.
void Checker::wgmma_issued(const Warp& w, const Op* op, const WgmmaAccess& wgmma) {
  const Actor who = actor(w, 0);
  const uint32_t warp = warp_of(w), first = first_of_warpgroup(warp);
  const Time number = Time(wgmma.number);
  newest_wgmma_[warp] = {Agent::wgmma, 0, uint16_t(wgmma_stream(warp)), number, op_index(op), warp};
  const Access access{Agent::wgmma, 0, uint16_t(wgmma_stream(first)), number, op_index(op), first | kWarpgroup};
  const bool first_issue = number > newest_warpgroup_wgmma_[first];
  if (first_issue) newest_warpgroup_wgmma_[first] = number;
  if (cta_->launch->model == Model::silicon) note_wgmma_cause(w, Time(wgmma.number));
  const auto read_operand = [&](const MatrixDescriptor& d, bool mn_major, uint32_t rows) {
    Neighbour neighbour;
    each_chunk(d, mn_major, rows, [&](uint32_t, uint32_t, uint32_t address) {
      shared_cells(who, access, flat(*w.cta, address), 16, false, Sense::async, neighbour, first_issue);
    });
  };
  if (wgmma.a) read_operand(*wgmma.a, wgmma.a_mn_major, 64);
  read_operand(*wgmma.b, wgmma.b_mn_major, wgmma.n);
  ++who.warp->now;
}

void Checker::wgmma_waited(const Warp& w, uint64_t number) {
  each_group(warps_[warp_of(w)], w.alive, [&](Group& g) {
    Time& known = g.clock.plain[wgmma_stream(warp_of(w))];
    known = std::max(known, Time(number));
  });
  if (cta_->launch->model == Model::silicon) learn_wgmma_cause(w, Time(number));
}

// ---- Model::silicon: the four warps of a warpgroup execute a wgmma together -------------------------------------------

// A wgmma that one warp has waited for has been issued by the others too: what they did before came before that wait.
void Checker::note_wgmma_cause(const Warp& w, Time number) {
  std::vector<WgmmaCause>& causes = wgmma_causes_[first_of_warpgroup(warp_of(w))];
  auto at = std::find_if(causes.begin(), causes.end(), [&](const WgmmaCause& c) { return c.number == number; });
  if (at == causes.end()) at = causes.insert(causes.end(), {number, 0, {}});
  const WarpState& s = warps_[warp_of(w)];
  for (const Group& g : s.groups) {
    join(at->known, g.clock.plain);
    join(at->known, g.clock.cause);
  }
  for (uint32_t lane = 0; lane < kLanes; ++lane) at->known[kFirstLane + warp_of(w) * kLanes + lane] = s.now;
}

void Checker::learn_wgmma_cause(const Warp& w, Time number) {
  std::vector<WgmmaCause>& causes = wgmma_causes_[first_of_warpgroup(warp_of(w))];
  for (WgmmaCause& cause : causes) {
    if (cause.number > number) continue;
    if (cause.number == number) each_group(warps_[warp_of(w)], w.alive, [&](Group& g) { join(g.clock.cause, cause.known); });
    cause.waited |= 1u << w.index % 4;
  }
  std::erase_if(causes, [](const WgmmaCause& cause) { return cause.waited == 15; });
}

bool Checker::warpgroup_knows(const Actor& who, const Access& before) const {
  if (before.agent != Agent::wgmma) return false;
  const uint32_t first = first_of_warpgroup(before.lanes & ~kWarpgroup);
  for (uint32_t warp = first; warp < first + 4; ++warp) {
    if (who.group->clock.plain[wgmma_stream(warp)] >= before.time) return true;
  }
  return false;
}

void Checker::warpgroup_deviates(FindingKind kind, const Warp& w, const Op* first, const Op* then, const std::string& others,
                                 const std::string& own, const char* chain) {
  const uint32_t at = first_of_place(op_index(first)), then_at = first_of_place(op_index(then));
  if (again(kind, at, then_at)) return;
  Finding f = new_finding(kind, at, then_at);
  f.warning = true;
  f.cta = w.cta->id;
  f.cycle = w.time;
  f.first = "another warp of the warpgroup: " + others;
  f.second = role(warp_of(w)) + ": " + own;
  f.chain = chain;
  findings_.push_back(std::move(f));
}

void Checker::register_counts_differ(const Warp& w, const Op* op, uint32_t registers) {
  warpgroup_deviates(FindingKind::register_counts, w, op, op, "setmaxnreg " + std::to_string(registers),
                     "setmaxnreg " + std::to_string(op->imm) + " at " + place(*w.cta, op),
                     "the same setmaxnreg in all warps of the warpgroup");
}

void Checker::warpgroup_differs(const Warp& w, const Op* op, const Op* other) {
  warpgroup_deviates(FindingKind::warpgroup_parted, w, other, op ? op : other, place(*w.cta, other),
                     op ? place(*w.cta, op) : "exit, without it", "the same wgmma instructions in all warps of the warpgroup");
}

uint32_t Checker::commit_issued(const Warp& w, const Event& event) {
  const Actor who = actor(w, event.lane);
  if (event.target != w.cta) require_begun(w, event.op, 1u << event.lane, *event.target, barrier_of(event));
  if (Barrier* b = find_barrier(barrier_of(event))) {
    require_visible_init(who, *b, event.op, false);
    b->newest_commit = {Agent::mma, 0, uint16_t(who.lane), kPending, op_index(event.op), 0};
  }
  const uint32_t token = snapshot();
  causes_.resize(snapshots_.size());
  causes_[token] = who.group->clock.plain;
  join(causes_[token], who.group->clock.cause);
  causes_[token][kFirstLane + who.lane] = who.warp->now;
  Clock& clock = snapshots_[token];
  clock = mmas_[w.cta->rank].clock;
  const Component mmas = kMmaStream + w.cta->rank;
  clock.plain[mmas] = clock.tensor[mmas] = newest_mma_[who.lane];
  if (provenance_)
    provenance_->completed(clock.sources, mmas, newest_mma_[who.lane], op_index(event.op));
  return token;
}

void Checker::commit_landed(const Event& event) {
  if (Barrier* b = find_barrier(barrier_of(event))) {
    const bool far = event.target != event.cta;
    (far ? b->far[0] : b->gathering).join_all(snapshots_[event.token]);
    if (far) b->far_released[0] = true;
    join(b->cause, causes_[event.token]);
    b->newest_arrival = {Agent::mma, 0, uint16_t(warp_of(event) * kLanes + event.lane), 0, op_index(event.op), 0};
    if (const MBarrier* live = live_barrier(b->address)) b->newest_commit.time = live->phase + 1;
  }
  free_snapshots_.push_back(event.token);
}

}  // namespace fa4::sim::check
