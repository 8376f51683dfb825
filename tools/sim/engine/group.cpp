// SPDX-License-Identifier: Apache-2.0
#include "group.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "../core/bulk.h"
#include "../core/builder.h"
#include "../core/convergence.h"
#include "../core/remote.h"
#include "../core/tcgen05.h"
#include "../core/thread_copy.h"
#include "../core/undefined.h"
#include "../core/visibility.h"
#include "../core/wgmma.h"

namespace fa4::sim {

namespace {

constexpr uint64_t kSliceCycles = 512;       // how far a warp may run ahead of the others
constexpr uint64_t kSpinInstructions = 65536;  // after so many without progress, waiting lanes of the warp go on

bool later(const Event& a, const Event& b) { return a.time != b.time ? a.time > b.time : a.sequence > b.sequence; }

uint32_t fixed_value(const FixedRow& f, const Warp& w, int lane) {
  const Cta& cta = *w.cta;
  const Launch& launch = *cta.launch->launch;
  const uint32_t thread = w.index * kLanes + uint32_t(lane);
  using Kind = FixedRow::Kind;
  switch (f.kind) {
    case Kind::constant: return f.value;
    case Kind::tid_x: return thread % launch.block[0];
    case Kind::tid_y: return thread / launch.block[0] % launch.block[1];
    case Kind::tid_z: return thread / launch.block[0] / launch.block[1];
    case Kind::ntid_x: return launch.block[0];
    case Kind::ntid_y: return launch.block[1];
    case Kind::ntid_z: return launch.block[2];
    case Kind::ctaid_x: return cta.ctaid[0];
    case Kind::ctaid_y: return cta.ctaid[1];
    case Kind::ctaid_z: return cta.ctaid[2];
    case Kind::nctaid_x: return launch.grid[0];
    case Kind::nctaid_y: return launch.grid[1];
    case Kind::nctaid_z: return launch.grid[2];
    case Kind::laneid: return uint32_t(lane);
    case Kind::warpid: return w.index;
    case Kind::nwarpid: return uint32_t(cta.warps.size());
    case Kind::smid: return cta.smid;
    case Kind::nsmid: return cta.launch->sm_count;
    case Kind::dynamic_shared_bytes: return launch.dynamic_shared_bytes;
    case Kind::total_shared_bytes: return cta.shared_end - kSharedBase;
    case Kind::lanemask_eq: return 1u << lane;
    case Kind::lanemask_lt: return (1u << lane) - 1;
    case Kind::lanemask_le: return (1u << lane) | ((1u << lane) - 1);
    case Kind::lanemask_gt: return ~((1u << lane) | ((1u << lane) - 1));
    case Kind::lanemask_ge: return ~((1u << lane) - 1);
    case Kind::zero: return 0;
    case Kind::shared_address: return f.value + (cta.rank << kRankShift);
    case Kind::clusterid_x: return cta.cluster->id[0];
    case Kind::clusterid_y: return cta.cluster->id[1];
    case Kind::clusterid_z: return cta.cluster->id[2];
    case Kind::nclusterid_x: return cta.cluster->count[0];
    case Kind::nclusterid_y: return cta.cluster->count[1];
    case Kind::nclusterid_z: return cta.cluster->count[2];
    case Kind::cluster_ctaid_x: return cta.ctaid_in_cluster[0];
    case Kind::cluster_ctaid_y: return cta.ctaid_in_cluster[1];
    case Kind::cluster_ctaid_z: return cta.ctaid_in_cluster[2];
    case Kind::cluster_nctaid_x: return cta.cluster->extent[0];
    case Kind::cluster_nctaid_y: return cta.cluster->extent[1];
    case Kind::cluster_nctaid_z: return cta.cluster->extent[2];
    case Kind::cluster_ctarank: return cta.rank;
    case Kind::cluster_nctarank: return cta.cluster->size;
    case Kind::is_explicit_cluster: return cta.launch->explicit_cluster;
    case Kind::global_address_low: return uint32_t(launch.global_addresses[f.value]);
    case Kind::global_address_high: return uint32_t(launch.global_addresses[f.value] >> 32);
  }
  return 0;
}

// Lanes that stand at the same place go on together: after bar.warp.sync a warp is whole again even if some of its lanes
// were let go from a reconvergence point.
void merge_fragments(Warp& w) {
  for (int32_t i = 0; i < int32_t(w.fragments.size());) {
    Fragment& f = w.fragment();
    const Fragment& other = w.fragments[size_t(i)];
    const bool together = i != w.current && other.state == Fragment::State::ready && other.pc == f.pc && other.join == f.join && !other.time_limit && !f.time_limit;
    if (!together) {
      ++i;
      continue;
    }
    f.mask |= other.mask;
    w.fragments.erase(w.fragments.begin() + i);
    if (w.current > i) --w.current;
  }
}

}  // namespace

Race::Race(size_t entrants) {
  while (leaves_ < entrants) leaves_ *= 2;
  times_.resize(leaves_);
  rounds_.resize(2 * leaves_);
  for (size_t i = 0; i < leaves_; ++i) rounds_[leaves_ + i] = uint32_t(i);
  for (size_t i = leaves_ - 1; i > 0; --i) rounds_[i] = rounds_[2 * i];
}

void Race::set(size_t entrant, const Times& times) {
  times_[entrant] = times;
  for (size_t i = (leaves_ + entrant) / 2; i > 0; i /= 2) {
    const uint32_t a = rounds_[2 * i], b = rounds_[2 * i + 1];
    rounds_[i] = times_[b].first < times_[a].first ? b : a;
  }
}

uint64_t Race::second() const {
  uint64_t time = times_[winner()].second;
  for (size_t i = leaves_ + winner(); i > 1; i /= 2) time = std::min(time, times_[rounds_[i ^ 1]].first);
  return time;
}

Group::Group(LaunchState& launch, const std::function<Observer*(uint32_t)>& observers, uint32_t resident_clusters)
    : launch_(launch), cluster_size_(launch.cluster[0] * launch.cluster[1] * launch.cluster[2]), clusters_(resident_clusters),
      race_(resident_clusters), earliest_(resident_clusters) {
  const uint32_t resident_ctas = resident_clusters * cluster_size_;
  ctas_.resize(resident_ctas);
  observers_.assign(resident_clusters, nullptr);
  for (uint32_t i = 0; observers && i < resident_clusters; ++i) observers_[i] = observers(i);
  occupied_.assign(resident_ctas, false);
}
Group::~Group() = default;

void Group::schedule(Event event) {
  event.sequence = sequence_++;
  ++progress;
  slice_end = std::min(slice_end, event.time);
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end(), later);
}

void Group::start_cluster(size_t place, uint64_t index) {
  Cluster& cluster = clusters_[place];
  cluster = {};
  cluster.size = cluster_size_;
  for (int d = 0; d < 3; ++d) {
    cluster.extent[d] = launch_.cluster[d];
    cluster.count[d] = launch_.launch->grid[d] / launch_.cluster[d];
    cluster.id[d] = uint32_t(index % cluster.count[d]);
    index /= cluster.count[d];
  }
  for (uint32_t rank = 0; rank < cluster_size_; ++rank) {
    const size_t slot = place * cluster_size_ + rank;
    if (!ctas_[slot]) ctas_[slot] = std::make_unique<Cta>();
    cluster.ctas[rank] = ctas_[slot].get();
    start(slot, rank, cluster);
    occupied_[slot] = true;
    ++occupied_ctas_;
  }
  for (uint32_t rank = 0; rank < cluster_size_; ++rank) {
    Cta& cta = *cluster.ctas[rank];
    if (cta.observer) cta.observer->begin(cta);
  }
}

void Group::start(size_t slot, uint32_t rank, Cluster& cluster) {
  Cta& cta = *ctas_[slot];
  const Code& code = *launch_.code;
  const Launch& launch = *launch_.launch;
  cta.launch = &launch_;
  cta.scheduler = this;
  cta.cluster = &cluster;
  cta.rank = rank;
  for (uint32_t d = 0; d < 3; ++d) {
    cta.ctaid_in_cluster[d] = rank % cluster.extent[d];
    rank /= cluster.extent[d];
    cta.ctaid[d] = cluster.id[d] * cluster.extent[d] + cta.ctaid_in_cluster[d];
  }
  cta.id = cta.ctaid[0] + launch.grid[0] * (cta.ctaid[1] + uint64_t(launch.grid[1]) * cta.ctaid[2]);
  cta.smid = uint32_t(cta.id % launch_.sm_count);
  cta.threads = launch.block[0] * launch.block[1] * launch.block[2];
  cta.dynamic_shared = launch_.dynamic_shared;
  cta.shared_end = std::max(launch_.dynamic_shared + launch.dynamic_shared_bytes, kSharedBase + code.static_shared_bytes);
  cta.shared.resize(cta.shared_end + 64);
  cta.shared_valid.assign(cta.shared_end / 64 + 2, 0);
  cta.shared_claimed.assign(cta.shared_end / 64 + 2, 0);
  cta.undefined_words.clear();
  cta.mbarrier_at.assign(cta.shared_end / 8 + 2, 0);
  cta.mbarriers.clear();
  std::fill(std::begin(cta.barriers), std::end(cta.barriers), CtaBarrier{});
  std::fill(std::begin(cta.barrier_users), std::end(cta.barrier_users), 0u);
  cta.tmem.reset();
  cta.tmem_allocations.clear();
  cta.tmem_relinquished = false;
  cta.mmas.clear();
  cta.maps.clear();
  cta.free_mmas.clear();
  cta.wgmmas.clear();
  cta.free_wgmmas.clear();
  cta.copies.clear();
  cta.free_copies.clear();
  cta.free_maps.clear();
  cta.unfenced.clear();
  const uint32_t warps = (cta.threads + kLanes - 1) / kLanes;
  cta.setmaxnreg_history.assign((warps + 3) / 4, {});
  cta.warpgroups.assign((warps + 3) / 4, {});
  cta.register_pool = 0;  // what the launch left over is nobody's
  cta.in_flight = 0;
  cta.tensor_core_free = cta.last_mma_done = cta.tma_free = 0;
  cta.instructions = 0;
  cta.mma_flop = 0;
  cta.live_warps = warps;
  cta.executed.assign(code.ops.size(), 0);
  cta.traced = launch_.trace_cta == int64_t(cta.id);
  cta.rows.resize(size_t(code.rows) * warps);
  cta.predicates.assign(size_t(code.predicates) * warps, 0);
  cta.warps.resize(warps);
  for (uint32_t i = 0; i < warps; ++i) {
    Warp& w = cta.warps[i];
    w = Warp{};
    w.rows = cta.rows.data() + size_t(code.rows) * i;
    w.predicates = cta.predicates.data() + size_t(code.predicates) * i;
    w.predicates[0] = kAllLanes;
    w.cta = &cta;
    w.code = &code;
    w.index = i;
    const uint32_t lanes = std::min(cta.threads - i * kLanes, uint32_t(kLanes));
    w.launched = w.alive = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
    w.registers = code.launch_registers;
    if (code.tracks_registers) {
      w.in_flight.assign(code.rows, 0);
      w.accessed.assign(code.rows, 1);
    }
    w.local.assign(size_t(code.local_bytes) * kLanes, std::byte{0});
    Fragment f;
    f.pc = code.ops.data();
    f.mask = w.alive;
    w.fragments.push_back(f);
    for (const FixedRow& row : code.fixed) {
      for (int lane = 0; lane < kLanes; ++lane) w.rows[row.row].lane[lane] = fixed_value(row, w, lane);
    }
  }
  cta.random = launch_.adversarial_seed == 0 ? 0 : mixed(launch_.adversarial_seed * 0x9E3779B97F4A7C15 + cta.id + 1) | 1;
  cluster.live += cta.threads;
  cta.over = false;
  cta.end = 0;
  cta.observer = observers_[slot / cluster_size_];
}

// Chooses a fragment of the warp that can run; false if all wait.
bool Group::pick_fragment(Warp& w) {
  const int32_t n = int32_t(w.fragments.size());
  if (w.current < n && w.fragments[w.current].state == Fragment::State::ready) return true;
  for (int32_t i = 0; i < n; ++i) {
    if (w.fragments[i].state == Fragment::State::ready) {
      w.current = i;
      return true;
    }
  }
  return false;
}

// The ready warp of a cluster that is furthest behind, for the race with those of the others.
void Group::find_ready(size_t place) {
  Race::Times times;
  earliest_[place] = nullptr;
  for (size_t i = place * cluster_size_; i < (place + 1) * cluster_size_; ++i) {
    if (!occupied_[i]) continue;
    for (Warp& w : ctas_[i]->warps) {
      if (!pick_fragment(w)) continue;
      if (w.time < times.first) {
        times.second = times.first;
        times.first = w.time;
        earliest_[place] = &w;
      } else {
        times.second = std::min(times.second, w.time);
      }
    }
  }
  race_.set(place, times);
}

// One slice: until the warp's fragment stops, or its time reaches slice_end.
void Group::run_warp(Warp& w) {
  if (w.fragments.size() > 1) merge_fragments(w);
  if (!w.undefined) return run_slice<false>(w);
  run_slice<true>(w);
  if (!holds_undefined(w)) w.undefined.reset();
}

template <bool undefined>
void Group::run_slice(Warp& w) {
  Cta& cta = *w.cta;
  Fragment* f = &w.fragment();
  const Op* op = f->pc;
  const Op* const first = w.code->ops.data();
  const Op* const meet = f->join >= 0 ? w.joins[f->join].at : nullptr;
  const Mask lanes = f->mask;
  const uint32_t lane_count = uint32_t(std::popcount(lanes));
  uint64_t instructions = 0;
  if (op == meet) {  // it was let go from a wait that stands just before the meeting point
    arrive_at_join(w);
    return;
  }
  for (;;) {
    cta.executed[size_t(op - first)] += lane_count;
    ++instructions;
    w.time += op->cycles;
    const Op* next;
    if constexpr (undefined) {
      next = step_undefined(w, op, lanes);
    } else {
      const Mask mask = lanes & (w.predicates[op->guard] ^ (op->guard_not ? kAllLanes : 0u));
      next = mask ? op->run(w, op, mask) : op + 1;
    }
    if (!next) break;
    op = next;
    if (op == meet) {
      w.fragment().pc = op;
      arrive_at_join(w);
      break;
    }
    if (w.time >= slice_end) {
      w.fragment().pc = op;
      break;
    }
  }
  w.counters.warp_instructions += instructions;
  w.counters.thread_instructions += instructions * lane_count;
  cta.instructions += instructions;
  if (cta.instructions > launch_.budget) {
    throw Fault(Fault::Kind::budget, "the CTA executed more than " + std::to_string(launch_.budget) +
                " warp instructions without coming to an end\n" + describe_waiters(resident()));
  }
}

// What another CTA sent on its way while this one was there must not come when it is gone.
static void check_target(const Event& event) {
  const Cta& target = *event.target;
  if (event.time <= target.end) return;
  fault(*event.cta, event.warp, event.op, Fault::Kind::poison, "it comes to CTA " + std::to_string(target.id) + " (rank " + std::to_string(target.rank) +
        " of the cluster), which has exited");
}

void Group::land(const Event& event) {
  --event.cta->in_flight;
  ++progress;
  if (event.target && event.target->over) check_target(event);  // stores to global memory have none
  switch (event.kind) {
    case Event::Kind::mma: land_mma(event); break;
    case Event::Kind::commit: land_commit(event); break;
    case Event::Kind::box_load: land_box_load(event); break;
    case Event::Kind::bulk_load: land_bulk_load(event); break;
    case Event::Kind::box_store_read: land_box_store_read(event); break;
    case Event::Kind::box_store_done: land_box_store_done(event); break;
    case Event::Kind::wgmma: land_wgmma(event); break;
    case Event::Kind::thread_copy: land_thread_copy(event); break;
    case Event::Kind::thread_copy_arrival: land_thread_copy_arrival(event); break;
    case Event::Kind::mma_read_a:
    case Event::Kind::mma_read_b: read_mma_operand(event); break;
    case Event::Kind::wgmma_read: read_wgmma_operands(event); break;
    case Event::Kind::load_fetch: fetch_load(event); break;
    case Event::Kind::store_fetch: fetch_store(event); break;
    case Event::Kind::store_write: write_store(event); break;
    case Event::Kind::copy_fetch: fetch_copy(event); break;
    case Event::Kind::shared_copy: land_shared_copy(event); break;
    case Event::Kind::remote_store: land_remote_store(event); break;
  }
}

std::vector<const Cta*> Group::resident() const {
  std::vector<const Cta*> all;
  for (size_t i = 0; i < ctas_.size(); ++i) {
    if (occupied_[i]) all.push_back(ctas_[i].get());
  }
  return all;
}

// Nothing can run and nothing is in flight. Before that is a deadlock, everything that need not wait is let go: first a
// try_wait returns false, as it may when its time limit passes; then lanes that wait for others to reconverge go on
// without them. True if somebody can run; false when that was tried and led to nothing.
bool Group::let_go() {
  if (progress_at_let_go_ != progress) {
    progress_at_let_go_ = progress;
    let_go_stage_ = 0;
    deadlock_report_ = "deadlock: nothing can run and nothing is in flight\n" + describe_waiters(resident());
  }
  bool any = false;
  while (!any && let_go_stage_ < 2) {
    for (size_t i = 0; i < ctas_.size(); ++i) {
      if (!occupied_[i]) continue;
      for (Warp& w : ctas_[i]->warps) {
        if (let_go_stage_ == 1) any |= release_joins(w);
        for (Fragment& f : w.fragments) {
          any |= let_go_stage_ == 0 && let_wgmma_wait_go(w, f);
          if (let_go_stage_ != 0 || f.state != Fragment::State::mbarrier) continue;
          f.state = Fragment::State::ready;
          f.time_limit = true;
          any = true;
        }
      }
    }
    ++let_go_stage_;
  }
  return any;
}

// Whether the event will write or read the CTA's shared or tensor memory.
static bool touches(const Event& event, const Cta& cta) {
  using Kind = Event::Kind;
  switch (event.kind) {
    case Kind::box_store_done:
    case Kind::store_write: return false;
    case Kind::box_store_read:
    case Kind::store_fetch: return event.cta == &cta;
    case Kind::shared_copy:
    case Kind::copy_fetch: return event.cta == &cta || event.target == &cta;
    default: return (event.target ? event.target : event.cta) == &cta;
  }
}

// The last warp has exited. What is still on its way into or out of the CTA's memory would meet the next CTA's there.
void Group::check_nothing_in_flight(const Cta& cta) const {
  for (const Event& event : events_) {
    if (event.time <= cta.end || !touches(event, cta)) continue;
    const bool source_unread = event.kind == Event::Kind::box_store_read || event.kind == Event::Kind::store_fetch;
    if (source_unread && launch_.model == Model::silicon) continue;  // the CTA's memory is there until it has been read
    std::string what;
    switch (event.kind) {
      case Event::Kind::mma:
      case Event::Kind::mma_read_a:
      case Event::Kind::mma_read_b: what = "MMA"; break;
      case Event::Kind::wgmma:
      case Event::Kind::wgmma_read: what = "wgmma.mma_async"; break;
      case Event::Kind::thread_copy: what = "copy"; break;
      case Event::Kind::thread_copy_arrival: what = "arrival"; break;
      case Event::Kind::commit: what = "commit"; break;
      case Event::Kind::box_store_read:
      case Event::Kind::store_fetch: what = "store, which has not read its source,"; break;
      case Event::Kind::shared_copy:
      case Event::Kind::copy_fetch: what = event.target == &cta ? "copy" : "copy, which has not read its source,"; break;
      case Event::Kind::remote_store: what = "asynchronous store"; break;
      default: what = "load"; break;
    }
    if (event.cta == &cta) fault(cta, event.warp, event.op, Fault::Kind::poison, "the CTA ended while this " + what + " was in flight");
    fault(*event.cta, event.warp, event.op, Fault::Kind::poison, "CTA " + std::to_string(cta.id) + " (rank " + std::to_string(cta.rank) +
          " of the cluster) ended while this " + what + " was on its way there");
  }
}

void Group::finish(Cta& cta) {
  check_warpgroups(cta);
  if (!cta.tmem_allocations.empty()) {
    fault(cta, 0, nullptr, Fault::Kind::illegal_instruction,
          "the CTA ended with " + std::to_string(cta.tmem_allocations.front().columns) + " TMEM columns allocated: tcgen05.dealloc is missing");
  }
}

void Group::run(const std::function<int64_t()>& next_cluster, const std::function<void(const Cta&)>& done) {
  const auto start_next = [&](size_t place) {
    const int64_t index = next_cluster();
    if (index < 0) return false;
    start_cluster(place, uint64_t(index));
    find_ready(place);
    return true;
  };
  bool more = true;
  for (size_t place = 0; place < clusters_.size() && more; ++place) more = start_next(place);
  while (occupied_ctas_ || !events_.empty()) {
    // The ready warp that is furthest behind, and the next one's time. What it does, and what comes of an event, changes nothing
    // about warps of other clusters.
    Warp* const best = earliest_[race_.winner()];
    size_t place = 0;
    if (!events_.empty() && (!best || events_.front().time <= best->time)) {
      std::pop_heap(events_.begin(), events_.end(), later);
      const Event event = events_.back();
      events_.pop_back();
      place = place_of(*event.cta);
      land(event);
    } else if (best) {
      place = place_of(*best->cta);
      const uint64_t second = race_.second();
      slice_end = (second == Race::kNever ? best->time : std::max(second, best->time)) + kSliceCycles;
      if (!events_.empty()) slice_end = std::min(slice_end, events_.front().time);
      if (best->cta->random) {
        // Warps take turns in any order and for any time: this one loses a while, and stops at an arbitrary point.
        publish_due(*best->cta, best->time);
        if (drawn(*best->cta, 4) == 0) best->time += drawn(*best->cta, 4 * kSliceCycles);
        slice_end = std::min(slice_end, best->time + 1 + drawn(*best->cta, kSliceCycles));
      }
      slice_end = std::max(slice_end, best->time + 1);
      const uint64_t before = progress;
      const bool waiting_lanes = best->fragments.size() > 1;
      try {
        run_warp(*best);
        if (best->fragments.size() > 1) settle(*best);
      } catch (const Fault&) {
        // What lanes do that were let go out of a deadlock is no more than its consequence.
        if (progress_at_let_go_ == progress && let_go_stage_ == 2) throw Fault(Fault::Kind::deadlock, deadlock_report_);
        throw;
      }
      if (waiting_lanes && progress == before) {
        best->spin_instructions += kSliceCycles;
        if (best->spin_instructions > kSpinInstructions) {
          release_joins(*best);
          best->current = int32_t((size_t(best->current) + 1) % std::max<size_t>(1, best->fragments.size()));
          best->spin_instructions = 0;
        }
      } else {
        best->spin_instructions = 0;
      }
    } else {
      if (!let_go()) throw Fault(Fault::Kind::deadlock, deadlock_report_);
      for (size_t i = 0; i < clusters_.size(); ++i) find_ready(i);
      continue;
    }
    end_ctas(place, done);
    const auto slot = occupied_.begin() + std::ptrdiff_t(place * cluster_size_);
    const bool over = std::find(slot, slot + cluster_size_, true) == slot + cluster_size_;
    if (over && more) more = start_next(place);
    if (!over || !more) find_ready(place);
  }
}

// CTAs of the cluster whose lanes have all exited end; what is in flight of them lands before their place is free.
void Group::end_ctas(size_t place, const std::function<void(const Cta&)>& done) {
  for (size_t i = place * cluster_size_; i < (place + 1) * cluster_size_; ++i) {
    if (!occupied_[i]) continue;
    Cta& cta = *ctas_[i];
    if (!cta.over) {
      if (std::any_of(cta.warps.begin(), cta.warps.end(), [](const Warp& w) { return w.alive != 0; })) continue;
      for (const Warp& w : cta.warps) cta.end = std::max(cta.end, w.time);
      cta.over = true;
      if (cta.random) publish_everything(cta);
      if (cta.observer) cta.observer->ended(cta);
      check_nothing_in_flight(cta);
    }
    if (cta.in_flight) continue;
    finish(cta);
    done(cta);
    occupied_[i] = false;
    --occupied_ctas_;
  }
}

}  // namespace fa4::sim
