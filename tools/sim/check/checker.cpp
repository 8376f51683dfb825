// SPDX-License-Identifier: Apache-2.0
#include "checker.h"

#include <algorithm>

#include "../core/shared_memory.h"
#include "../core/tcgen05.h"

namespace fa4::sim::check {

// ---- life ----------------------------------------------------------------------------------------------------------------

void Checker::begin(const Cta& cta) {
  if (cta.rank != 0) return;  // the whole cluster is there when its first CTA begins
  cta_ = &cta;
  size_ = cta.cluster->size;
  if (cta.launch->code->communicates) grid_.begin_launch(cta.launch->serial);
  cta_warps_ = uint32_t(cta.warps.size());
  lanes_ = size_ * cta_warps_ * kLanes;
  warps_.resize(size_t(size_) * cta_warps_);
  for (size_t i = 0; i < warps_.size(); ++i) {
    WarpState& s = warps_[i];
    s.now = 1;
    s.groups.resize(1);
    s.groups[0].lanes = cta.cluster->ctas[i / cta_warps_]->warps[i % cta_warps_].alive;
    s.groups[0].clock = Clock(lanes_);
    s.groups[0].clock.plain[kBegun + i / cta_warps_] = 1;
    s.groups[0].tensor_seen.assign(Clock::size(lanes_), 0);
    s.releases.clear();
    s.loads.clear();
    s.stores.clear();
    s.store_waits.clear();
    s.proxy_fences.clear();
  }
  shared_bytes_ = (cta.shared_end + 64 + 63) / 64 * 64;
  shared_.assign(size_t(size_) * shared_bytes_ / 4, Cell{});
  tmem_.assign(size_t(size_) * kTmemCells, Cell{});
  bytes_of_word_.clear();
  byte_readers_.clear();
  shared_readers_.clear();
  tmem_readers_.clear();
  global_.clear();
  global_readers_.clear();
  global_parts_.clear();
  global_byte_readers_.clear();
  locations_.clear();
  fenced_.clear();
  seen_.clear();
  stored_rows_.clear();
  stored_begin_ = generic_begin_ = ~0ull;
  stored_end_ = generic_end_ = 0;
  barriers_.clear();
  barrier_at_.clear();
  cta_barriers_.assign(16 * size_, {Clock(lanes_), {}, {}});
  cluster_gathering_ = cluster_completed_ = Clock(lanes_);
  mmas_.assign(size_, MmaStream{Clock(lanes_), 0, {}, {0}});
  remote_uses_.clear();
  remote_reads_.assign(size_, {});
  newest_mma_.assign(lanes_, 0);
  copies_.clear();
  newest_wgmma_.assign(warps_.size(), {});
  newest_warpgroup_wgmma_.assign(warps_.size(), 0);
  wgmma_causes_.assign(warps_.size(), {});
  streams_.clear();
  snapshots_.clear();
  causes_.clear();
  free_snapshots_.clear();
  relaxed_ = false;
  if (provenance_) provenance_->clear();
  explained_.clear();
}

Finding* Checker::again(FindingKind kind, uint32_t first_op, uint32_t second_op) {
  for (Finding& f : findings_) {
    if (f.kind != kind || f.first_op != first_op || f.second_op != second_op || f.kernel != cta_->launch->code->name) continue;
    ++f.count;
    return &f;
  }
  return nullptr;
}

Finding Checker::new_finding(FindingKind kind, uint32_t first_op, uint32_t second_op) const {
  Finding f;
  f.kind = kind;
  f.cta = cta_->id;
  f.first_op = first_op;
  f.second_op = second_op;
  f.kernel = cta_->launch->code->name;
  return f;
}

void Checker::unobserved(const Access& access, const std::string& what, const std::string& chain, bool warning) {
  const uint32_t op = warning ? first_of_place(access.op) : access.op;
  if (again(FindingKind::unobserved_work, op, op)) return;
  Finding f = new_finding(FindingKind::unobserved_work, op, op);
  f.warning = warning;
  f.cycle = time_of(access.agent == Agent::mma ? access.index / kLanes : access.lanes);
  f.first = describe_access(access, access.agent != Agent::copy_out);
  f.second = what;
  f.chain = chain;
  findings_.push_back(std::move(f));
}

// Whatever was in flight must have been waited for by somebody, whether or not it happened to be over in this execution.
// What reaches a CTA's memory from elsewhere must be over, and known to somebody there, before the CTA ends.
void Checker::ended(const Cta& cta) {
  std::vector<Time> known(Clock::size(lanes_));
  const uint32_t first_warp = cta.rank * cta_warps_, first_lane_of_cta = first_warp * kLanes, end_lane = first_lane_of_cta + cta_warps_ * kLanes;
  for (uint32_t i = first_warp; i < first_warp + cta_warps_; ++i) {
    for (const Group& g : warps_[i].groups) {
      join(known, g.clock.plain);
      join(known, g.clock.tensor);
    }
  }
  const auto own = [&](uint32_t lane) { return lane >= first_lane_of_cta && lane < end_lane; };
  for (const auto& [lane, seen] : seen_) {
    if (own(lane)) join(known, seen.clock.plain);
  }
  const std::string ended = "the CTA ended and nobody has waited for it";
  const MmaStream& mma = mmas_[cta.rank];
  if (known[kMmaStream + cta.rank] < mma.issued) {
    unobserved(mma.newest, ended, "tcgen05.commit to an mbarrier | wait for that phase before the CTA ends");
  }
  for (const auto& [lane, pending] : copies_) {
    if (pending.first && own(lane)) unobserved(pending.second, ended, "cp.async.commit_group, cp.async.wait_group 0 or cp.async.wait_all by the thread that issued the copy before the CTA ends");
  }
  for (uint32_t i = first_warp; i < first_warp + cta_warps_; ++i) {
    const Access& newest = newest_wgmma_[i];
    if (newest.agent == Agent::wgmma && known[newest.index] < newest.time) {
      unobserved(newest, ended, "wgmma.commit_group, wgmma.wait_group 0 before the CTA ends");
    }
  }
  for (const Barrier& b : barriers_) {
    if (&cta_of(b.address) != &cta) continue;
    if (b.newest_copy.agent != Agent::nobody && known[b.component] < b.newest_copy.time) {
      unobserved(b.newest_copy, ended, "wait for the mbarrier phase that the copy completes before the CTA ends");
    }
    if (b.newest_commit.agent != Agent::nobody && known[b.component] < b.newest_commit.time) {
      unobserved(b.newest_commit, "the CTA ended and nobody has waited for the commit to " + barrier_text(b.address) + ", which may arrive in the shared memory of the next one",
                 "wait for the mbarrier phase that the newest commit completes before the CTA ends", true);
    }
  }
  for (const StoreStream& s : streams_) {
    if (own(s.lane) && s.issued > 0 && known[s.newest.index] < s.issued) {
      unobserved(s.newest, ended, "cp.async.bulk.commit_group, cp.async.bulk.wait_group.read 0 by the thread that issued the copy before the CTA ends",
                 cta.launch->model == Model::silicon);
    }
  }
  if (size_ > 1) require_nobody_here(cta, known);
  const bool in_flight = std::any_of(cta.cluster->ctas, cta.cluster->ctas + size_, [](const Cta* c) { return c->in_flight != 0; });
  for (const MBarrier& b : cta.mbarriers) {
    if (!b.live || b.tx == 0 || in_flight) continue;
    if (again(FindingKind::unbalanced_bytes, b.address, b.address)) continue;
    Finding f = new_finding(FindingKind::unbalanced_bytes, b.address, b.address);
    f.memory = barrier_text(flat(cta, b.address));
    f.second = "the CTA ended with " + std::to_string(b.tx < 0 ? -b.tx : b.tx) + (b.tx < 0 ? " bytes more than were announced" : " announced bytes that no copy brought");
    f.chain = "mbarrier.arrive.expect_tx with as many bytes as the copies of the phase bring";
    findings_.push_back(std::move(f));
  }
}

// ---- who knows what ------------------------------------------------------------------------------------------------------

Checker::Actor Checker::actor(const Warp& w, int lane) {
  WarpState& s = warps_[warp_of(w)];
  for (Group& g : s.groups) {
    if (g.lanes >> lane & 1) return {&s, &g, warp_of(w) * kLanes + uint32_t(lane), warp_of(w), w.cta->rank};
  }
  return {&s, &s.groups[0], warp_of(w) * kLanes + uint32_t(lane), warp_of(w), w.cta->rank};
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

// What `lanes` of a group know of tcgen05 operations. Each lane's fences are its own: of another lane of the warp, only
// what is known by synchronisation goes along.
void Checker::join_tensor(const Warp& w, const Group& from, Mask lanes, std::vector<Time>& into) const {
  const size_t own = kFirstLane + warp_of(w) * kLanes;
  const std::vector<Time>& clock = from.clock.tensor;
  for (size_t i = 0; i < own; ++i) into[i] = std::max(into[i], clock[i]);
  for (size_t i = own; i < own + kLanes; ++i) {
    into[i] = std::max(into[i], lanes >> (i - own) & 1 ? clock[i] : std::min(clock[i], from.clock.plain[i]));
  }
  for (size_t i = own + kLanes; i < clock.size(); ++i) into[i] = std::max(into[i], clock[i]);
}

void Checker::release(const Warp& w, const Op* op, Mask lanes, Clock& into) {
  WarpState& s = warps_[warp_of(w)];
  for (Group& g : s.groups) {
    if (!(g.lanes & lanes)) continue;
    into.join_untensored(g.clock);
    join_tensor(w, g, lanes, into.tensor);
  }
  for (Mask m = lanes; m; m &= m - 1) {
    Time& t = into.plain[kFirstLane + warp_of(w) * kLanes + uint32_t(first_lane(m))];
    t = std::max(t, s.now);
  }
  s.releases.push_back({s.now, op_index(op)});
  if (provenance_) provenance_->released(into.sources, Provenance::By::thread, warp_of(w), lanes, s.now, op_index(op));
  if (s.releases.size() > 256) s.releases.erase(s.releases.begin(), s.releases.begin() + 128);
  ++s.now;
}

void Checker::acquire(const Warp& w, Mask lanes, const Clock& from) {
  each_group(warps_[warp_of(w)], lanes, [&](Group& g) {
    join(g.clock.plain, from.plain);
    join(g.clock.proxy, from.proxy);
    join(g.clock.proxy_global, from.proxy_global);
    join(g.clock.proxy_cluster, from.proxy_cluster);
    join(g.clock.inits, from.inits);
    join(g.clock.cause, from.cause);
    if (!from.foreign.empty()) join(g.clock.foreign, from.foreign);
    join(g.tensor_seen, from.tensor);
  });
}

// All lanes of the warp have synchronised. Those that have exited were not there: what they knew stays theirs.
void Checker::merge_groups(const Warp& w) {
  WarpState& s = warps_[warp_of(w)];
  split(s, w.alive);
  const auto alive = [&](const Group& g) { return (g.lanes & w.alive) != 0; };
  Group& first = *std::find_if(s.groups.begin(), s.groups.end(), alive);
  for (Group& g : s.groups) {
    if (&g == &first || !alive(g)) continue;
    first.lanes |= g.lanes;
    first.clock.join_all(g.clock);
    join(first.tensor_seen, g.tensor_seen);
    g.lanes = 0;
  }
  std::erase_if(s.groups, [](const Group& g) { return g.lanes == 0; });
}

bool Checker::knows(const std::vector<Time>& clock, const Actor& who, const Access& a) const {
  switch (a.agent) {
    case Agent::nobody: return true;
    case Agent::lane: return a.index == who.lane || clock[kFirstLane + a.index] >= a.time;
    case Agent::warp:
    case Agent::owner: {
      if (a.time == kPending) return false;
      if (a.index == who.warp_index) return true;
      const Time* lanes = clock.data() + kFirstLane + a.index * kLanes;
      for (Mask m = a.lanes; m; m &= m - 1) {
        if (lanes[first_lane(m)] < a.time) return false;
      }
      return true;
    }
    case Agent::mma: return clock[kMmaStream + rank_of(a.index)] >= a.time;
    case Agent::wgmma: {
      const Time* const streams = clock.data() + a.index;
      return a.lanes & kWarpgroup ? *std::min_element(streams, streams + 4) >= a.time : *streams >= a.time;
    }
    case Agent::thread_copy:
    case Agent::copy_in:
    case Agent::copy_out: return a.time != kPending && clock[a.index] >= a.time;
  }
  return false;
}

bool Checker::knows_proxy(const Actor& who, const Access& a, Sense sense) {
  if (a.agent != Agent::lane && a.agent != Agent::thread_copy) return true;
  const Clock& all = who.group->clock;
  const std::vector<Time>& clock = sense == Sense::async_global ? all.proxy_global : is_remote(a) ? all.proxy_cluster : all.proxy;
  return !clock.empty() && clock[a.agent == Agent::lane ? kFirstLane + a.index : a.index] >= a.time;
}

// Whether a proxy fence of the thread that wrote, after the write, is known: the place where every published example has it.
bool Checker::fenced_by_writer(const Actor& who, const Access& a, Sense sense) const {
  if (a.agent != Agent::lane) return true;
  const Time known = a.index == who.lane ? kPending : who.group->clock.plain[kFirstLane + a.index];
  const auto& fences = warps_[a.index / kLanes].proxy_fences;
  const auto covers = [&](FenceKind kind) {
    if (kind == FenceKind::proxy_async) return true;
    if (sense == Sense::async_global) return kind == FenceKind::proxy_async_global;
    return kind == FenceKind::proxy_async_cluster || (kind == FenceKind::proxy_async_shared && !is_remote(a));
  };
  for (auto f = std::lower_bound(fences.begin(), fences.end(), a.time, [](const auto& fence, Time time) { return fence.time < time; });
       f != fences.end() && f->time < known; ++f) {
    if (covers(f->kind) && (f->lanes >> (a.index % kLanes) & 1)) return true;
  }
  return false;
}

// ---- accesses ------------------------------------------------------------------------------------------------------------

bool Checker::check(const Actor& who, const Access& before, const Access& now, const Cell* cell, bool before_wrote,
                    bool now_writes, Sense sense, Tensor tensor) {
  if (before.agent == Agent::mma && now.agent == Agent::mma) {
    // MMAs of a CTA execute in the order of their issue, whatever they share: the axiom, except for one thread's MMAs on
    // one accumulator of one shape, of which the documents say so. The issues themselves must have an order.
    const bool issued_before = before.index == now.index || who.group->clock.plain[kFirstLane + before.index] >= mmas_[rank_of(before.index)].issue[before.time];
    if (!issued_before) report(FindingKind::race, false, who, before, now, cell, before_wrote, now_writes);
    else if (before.index != now.index || before.lanes != now.lanes) axioms_ |= FA4SIM_AXIOM_MMA_ORDER;
    return issued_before;
  }
  // Atomic operations and other strong accesses never race with each other if their scopes take in both: any scope takes in
  // the whole CTA.
  if ((before.order & kStrong) && (now.order & kStrong) &&
      (size_ == 1 || (before.order & now.order & kBeyondCtaInCluster) || (before.agent == Agent::lane && rank_of(before.index) == who.rank))) {
    return true;
  }
  const bool silicon = cta_->launch->model == Model::silicon;
  if (silicon && before.agent == Agent::warp && before_wrote && !store_is_waited_for(who, before)) {
    if (now.agent == Agent::mma) {
      report(FindingKind::race, false, who, before, now, cell, before_wrote, now_writes);
      return false;
    }
    deviate(FindingKind::store_not_waited, who, before, now, cell, before_wrote, now_writes);
  }
  // Order between tcgen05 operations may come from their own fences around relaxed synchronisation (PTX ISA 9.7.16.6.3).
  if (tensor != Tensor::no && knows(who.group->clock.tensor, who, before)) {
    if (provenance_) explain_order(who, before, now, cell, before_wrote, now_writes, true);
    return true;
  }
  if (!knows(who.group->clock.plain, who, before)) {
    if (silicon && warpgroup_knows(who, before)) {
      deviate(FindingKind::wait_of_another_warp, who, before, now, cell, before_wrote, now_writes);
      return true;
    }
    report(FindingKind::race, false, who, before, now, cell, before_wrote, now_writes);
    return false;
  }
  if (sense != Sense::thread && before_wrote && !knows_proxy(who, before, sense)) {
    report(FindingKind::missing_proxy_fence, false, who, before, now, cell, before_wrote, now_writes);
    return false;
  }
  if (sense != Sense::thread && before_wrote && !fenced_by_writer(who, before, sense)) {
    report(FindingKind::distant_proxy_fence, true, who, before, now, cell, before_wrote, now_writes);
    return false;
  }
  if (tensor == Tensor::fenced && before.agent != Agent::owner) {
    if (silicon) axioms_ |= FA4SIM_AXIOM_TENSOR_FENCES;
    else report(FindingKind::missing_tensor_fence, true, who, before, now, cell, before_wrote, now_writes);
    return silicon;
  }
  if (provenance_) explain_order(who, before, now, cell, before_wrote, now_writes, false);
  return true;
}

void Checker::read_cells(Cell* cells, size_t count, size_t step, Readers& more, uint64_t first, const Actor& who, const Access& access,
                         Sense sense, Tensor tensor, Neighbour& neighbour, bool remembered) {
  for (size_t i = 0; i < count * step; i += step) {
    Cell& cell = cells[i];
    if (!neighbour.in_order || cell != neighbour.cell) {
      neighbour.cell = cell;
      neighbour.in_order = cell.write.agent == Agent::nobody || check(who, cell.write, access, &cell, true, false, sense, tensor);
      // The new reader stands for the old one if it comes after it.
      const bool replaces = !remembered || cell.read.agent == Agent::nobody ||
                            (cell.read.agent == access.agent && cell.read.index == access.index) ||
                            knows(who.group->clock.plain, who, cell.read);
      if (!replaces) {
        remember(more[first + i], cell.read);
        neighbour.in_order = false;
      }
    }
    if (remembered) cell.read = access;
  }
}

void Checker::write_cells(Cell* cells, size_t count, size_t step, Readers& more, uint64_t first, const Actor& who, const Access& access,
                          Sense sense, Tensor tensor) {
  Neighbour neighbour;
  for (size_t i = 0; i < count * step; i += step) {
    Cell& cell = cells[i];
    if (!neighbour.in_order || cell != neighbour.cell) {
      neighbour.cell = cell;
      const bool written_in_order = cell.write.agent == Agent::nobody || check(who, cell.write, access, &cell, true, true, sense, tensor);
      const bool read_in_order = cell.read.agent == Agent::nobody || check(who, cell.read, access, &cell, false, true, sense, tensor);
      neighbour.in_order = written_in_order && read_in_order;
    }
    if (!more.empty()) {
      if (const auto others = more.find(first + i); others != more.end()) {
        for (const Access& reader : others->second) check(who, reader, access, &cell, false, true, sense, tensor);
        more.erase(others);
      }
    }
    cell.write = access;
    cell.read = {};
  }
}

// ---- threads synchronise -------------------------------------------------------------------------------------------------

void Checker::warp_barrier(const Warp& w, const Op* op, Mask members) {
  WarpState& s = warps_[warp_of(w)];
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
      const uint32_t lane = kFirstLane + warp_of(w) * kLanes + uint32_t(first_lane(m));
      g.clock.plain[lane] = s.now;
      g.clock.tensor[lane] = s.now;
    }
  });
  s.releases.push_back({s.now, op_index(op)});
  if (provenance_) {
    Provenance::Sources all;
    provenance_->released(all, Provenance::By::warp_barrier, warp_of(w), members, s.now, op_index(op));
    provenance_->acquired(all, warp_of(w), members, op_index(op), "the warp", true);
  }
  ++s.now;
}

// Whoever arrives for one use of a barrier knows that the last one is over: otherwise it might have been counted there.
void Checker::require_last_use_over(const Warp& w, const Op* op, Mask lanes, uint32_t id) {
  if (relaxed_) return;
  const std::vector<Time>& known = actor(w, first_lane(lanes)).group->clock.plain;
  for (const CtaUse& use : cta_barriers_[16 * w.cta->rank + id].last) {
    if (use.warp == warp_of(w) || known[kFirstLane + use.warp * kLanes + uint32_t(first_lane(use.lanes))] >= use.time) continue;
    if (again(FindingKind::barrier_overlap, use.op, op_index(op))) return;
    Finding f = new_finding(FindingKind::barrier_overlap, use.op, op_index(op));
    f.cta = w.cta->id;
    f.cycle = w.time;
    f.memory = "barrier " + std::to_string(id) + (size_ == 1 ? "" : " of CTA " + std::to_string(w.cta->id));
    f.first = role(use.warp) + ": arrives at " + place(*cta_, cta_->launch->code->ops.data() + use.op);
    f.second = role(warp_of(w)) + ": arrives for the next use at " + place(*cta_, op) + ", and might have been counted in that one";
    f.last_sync = "nothing tells the second warp that the first one's use is over";
    f.chain = "a barrier of its own for each group of warps; or, between two uses, synchronisation with all warps that took part in the first";
    findings_.push_back(std::move(f));
    return;
  }
}

void Checker::cta_barrier_arrived(const Warp& w, const Op* op, Mask lanes, uint32_t id) {
  require_last_use_over(w, op, lanes, id);
  CtaBarrierState& barrier = cta_barriers_[16 * w.cta->rank + id];
  barrier.gathering.push_back({warp_of(w), lanes, warps_[warp_of(w)].now, op_index(op)});
  release(w, op, lanes, barrier.clock);
}

void Checker::cta_barrier_passed(const Warp& w, Mask lanes, uint32_t id) {
  const Clock& barrier = cta_barriers_[16 * w.cta->rank + id].clock;
  acquire(w, lanes, barrier);
  // The same instruction released before it waited.
  if (provenance_ && !warps_[warp_of(w)].releases.empty()) provenance_->acquired(barrier.sources, warp_of(w), lanes, warps_[warp_of(w)].releases.back().second, "barrier " + std::to_string(id));
  if (lanes == w.alive) merge_groups(w);
}

void Checker::cta_barrier_opened(const Cta& cta, uint32_t id) {
  CtaBarrierState& barrier = cta_barriers_[16 * cta.rank + id];
  barrier.clock.reset();
  std::swap(barrier.last, barrier.gathering);
  barrier.gathering.clear();
}

void Checker::fence(const Warp& w, const Op* op, Mask lanes, FenceKind kind) {
  WarpState& s = warps_[warp_of(w)];
  if (kind == FenceKind::memory) return memory_fence(w, op, lanes);
  if (kind == FenceKind::mbarrier_init) {
    for (Barrier& b : barriers_) {
      if (b.init.index / kLanes == warp_of(w) && (lanes >> (b.init.index % kLanes) & 1)) b.init_fenced = true;
    }
    if (cta_->launch->code->cluster_barriers) publish_inits(w, lanes);
    return;
  }
  if (provenance_ && (kind == FenceKind::before_thread_sync || kind == FenceKind::after_thread_sync)) {
    provenance_->fenced(warp_of(w), lanes, s.now, op_index(op), kind == FenceKind::before_thread_sync);
  }
  if (kind != FenceKind::before_thread_sync && kind != FenceKind::after_thread_sync) {
    s.proxy_fences.push_back({s.now, lanes, kind});
  }
  each_group(s, lanes, [&](Group& g) {
    if (kind == FenceKind::after_thread_sync) return join(g.clock.tensor, g.tensor_seen);
    const auto own = [&](std::vector<Time>& clock) {
      for (Mask m = lanes & g.lanes; m; m &= m - 1) clock[kFirstLane + warp_of(w) * kLanes + uint32_t(first_lane(m))] = s.now;
    };
    if (kind == FenceKind::before_thread_sync) return own(g.clock.tensor);
    if (kind != FenceKind::proxy_async_global) {
      join(g.clock.proxy, g.clock.plain);
      own(g.clock.proxy);
    }
    const bool all = kind == FenceKind::proxy_async;
    if (size_ > 1 && (all || kind == FenceKind::proxy_async_cluster)) {
      join(g.clock.proxy_cluster, g.clock.plain);
      own(g.clock.proxy_cluster);
    }
    if ((all || kind == FenceKind::proxy_async_global) && generic_begin_ < generic_end_) {
      join(g.clock.proxy_global, g.clock.plain);
      own(g.clock.proxy_global);
    }
  });
  if (kind != FenceKind::after_thread_sync) ++s.now;
}

// ---- mbarriers -----------------------------------------------------------------------------------------------------------

Checker::Barrier* Checker::find_barrier(uint32_t address) {
  const auto it = barrier_at_.find(address);
  return it == barrier_at_.end() ? nullptr : &barriers_[it->second];
}

void Checker::mbarrier_initialised(const Warp& w, const Op* op, int lane, uint32_t address) {
  shared_access(w, op, lane, *w.cta, address, 8, true);
  const Actor who = actor(w, lane);
  address = flat(*w.cta, address);
  const auto [it, added] = barrier_at_.try_emplace(address, uint32_t(barriers_.size()));
  if (added) {
    barriers_.emplace_back();
    barriers_.back().component = kFirstBarrier + std::min<uint32_t>(it->second, kBarriers - 1);
  }
  Barrier& b = barriers_[it->second];
  b.address = address;
  b.init = {Agent::lane, 0, uint16_t(who.lane), who.warp->now, op_index(op), 0};
  b.init_fenced = false;
  b.gathering = Clock(lanes_);
  b.completed = Clock(lanes_);
  b.far.assign(size_ > 1 ? 2 : 0, Clock(lanes_));
  b.far_released[0] = b.far_released[1] = false;
  b.uses.assign(lanes_, {});
}

// Who uses a barrier, or has an asynchronous agent use it, knows of its init. For a bulk copy NVIDIA's guides have it fenced too.
void Checker::require_visible_init(const Actor& who, Barrier& b, const Op* op, bool by_copy) {
  const std::vector<Time>& inits = who.group->clock.inits;
  const bool visible = knows(who.group->clock.plain, who, b.init) || (!inits.empty() && inits[kFirstLane + b.init.index] >= b.init.time);
  const bool fenced = !by_copy || b.init_fenced || who.group->clock.proxy[kFirstLane + b.init.index] >= b.init.time;
  if (visible && fenced) return;
  const Access now{Agent::lane, 0, uint16_t(who.lane), who.warp->now, op_index(op), 0};
  const FindingKind kind = visible ? FindingKind::barrier_init_fence : FindingKind::barrier_init;
  report(kind, visible, who, b.init, now, &shared_[b.address / 4], true, false);
}

void Checker::mbarrier_arriving(const Warp& w, const Op* op, Mask lanes, const Cta& owner, uint32_t address) {
  Barrier* b = find_barrier(flat(owner, address));
  if (!b) return;
  const bool far = &owner != w.cta;
  if (far) note_remote(w, op, lanes, owner, b->address);
  require_visible_init(actor(w, first_lane(lanes)), *b, op, false);
  used(w, op, lanes, *b);
  b->newest_arrival = {Agent::lane, 0, uint16_t(warp_of(w) * kLanes + uint32_t(first_lane(lanes))), warps_[warp_of(w)].now, op_index(op), 0};
  if (far && !(op->order & kBeyondCtaInCluster)) return;  // .cta: those who wait there learn nothing of it
  Clock& into = far ? b->far[0] : b->gathering;
  if (far) {
    b->far_released[0] = true;
    if ((op->order & kScopeUnnamed) && (op->order & kRelease)) axioms_ |= FA4SIM_AXIOM_CLUSTER_SCOPE;
  }
  if (op->order & kRelease) return release(w, op, lanes, into);
  for (Mask m = lanes; m; m &= m - 1) publish_relaxed(w, first_lane(m), into, far);
}

void Checker::mbarrier_completed(const Cta& owner, uint32_t address, uint32_t phase) {
  Barrier* b = find_barrier(flat(owner, address));
  if (!b) return;
  require_waits_seen(*b);
  b->waits.clear();
  std::fill(b->cause.begin(), b->cause.end(), 0);
  std::swap(b->gathering, b->completed);
  b->gathering.reset();
  if (!b->far.empty()) {
    std::swap(b->far[0], b->far[1]);
    b->far[0].reset();
    b->far_released[1] = std::exchange(b->far_released[0], false);
  }
  b->completed.plain[b->component] = b->completed.tensor[b->component] = phase + 1;
  if (provenance_) provenance_->completed(b->completed.sources, b->component, phase + 1, b->newest_arrival.op);
}

void Checker::mbarrier_waited(const Warp& w, const Op* op, Mask lanes, uint32_t address) {
  Barrier* b = find_barrier(flat(*w.cta, address));
  if (!b) return;
  require_visible_init(actor(w, first_lane(lanes)), *b, op, false);
  note_phase(w, op, lanes, *b);
  const bool by_parity = op->mode & 2;
  if (by_parity) {
    const Access wait{Agent::lane, 0, uint16_t(warp_of(w) * kLanes + uint32_t(first_lane(lanes))), warps_[warp_of(w)].now, op_index(op), 0};
    const auto same = std::find_if(b->waits.begin(), b->waits.end(), [&](const Access& a) { return a.index / kLanes == warp_of(w); });
    if (same == b->waits.end()) b->waits.push_back(wait);
    else *same = wait;
  }
  used(w, op, lanes, *b);
  if (provenance_ && (op->order & kAcquire)) {
    const std::string phase = ", phase " + std::to_string(b->completed.plain[b->component] - 1);
    provenance_->acquired(b->completed.sources, warp_of(w), lanes, op_index(op), barrier_text(b->address) + phase);
  }
  const bool far = !b->far.empty() && b->far_released[1] && (op->order & kBeyondCtaInCluster);
  if (op->order & kAcquire) {
    acquire(w, lanes, b->completed);
    if (!far) return;
    if (op->order & kScopeUnnamed) axioms_ |= FA4SIM_AXIOM_CLUSTER_SCOPE;
    if (provenance_) provenance_->acquired(b->far[1].sources, warp_of(w), lanes, op_index(op), barrier_text(b->address));
    return acquire(w, lanes, b->far[1]);
  }
  for (Mask m = lanes; m; m &= m - 1) {
    learn_relaxed(w, first_lane(m), b->completed, false);
    if (far) learn_relaxed(w, first_lane(m), b->far[1], true);
  }
}

}  // namespace fa4::sim::check
