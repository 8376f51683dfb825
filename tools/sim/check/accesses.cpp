// SPDX-License-Identifier: Apache-2.0
// Threads' accesses to shared and global memory: words and parts of words, the memory order of atomics and
// fences, what the bulk engine writes to and reads from global memory, and CTAs that talk to each other.
#include "../core/shared_memory.h"
#include "checker.h"

namespace fa4::sim::check {

namespace {
// Atomic locations of shared and of global memory, in one table.
uint64_t shared_location(uint32_t address) {
  return address / 4;
}
uint64_t global_location(uint64_t address) {
  return 1ull << 62 | address / 4;
}
}  // namespace

void Checker::remember(std::vector<Access>& readers, const Access& access) {
  for (Access& reader : readers) {
    if (reader.agent != access.agent || reader.index != access.index) continue;
    reader = access;
    return;
  }
  readers.push_back(access);
}

// Words have a cell; where somebody accesses less than one, each byte gets its own from then on.
void Checker::shared_cells(const Actor& who, const Access& access, uint32_t address, uint32_t bytes,
                           bool write, Sense sense) {
  Neighbour neighbour;
  shared_cells(who, access, address, bytes, write, sense, neighbour);
}

void Checker::shared_cells(const Actor& who, const Access& access, uint32_t address, uint32_t bytes,
                           bool write, Sense sense, Neighbour& neighbour, bool remembered) {
  const auto cells = [&](Cell* from, size_t count, Readers& more, uint32_t first) {
    if (write)
      write_cells(from, count, 1, more, first, who, access, sense, Tensor::no);
    else
      read_cells(from, count, 1, more, first, who, access, sense, Tensor::no, neighbour, remembered);
  };
  if (bytes_of_word_.empty() && address % 4 == 0 && bytes % 4 == 0) {
    cells(&shared_[address / 4], bytes / 4, shared_readers_, address / 4);
    return;
  }
  const uint32_t end = address + bytes;
  for (uint32_t at = address; at < end;) {
    const uint32_t word = at / 4, stop = std::min(end, 4 * word + 4);
    auto split = bytes_of_word_.find(word);
    if (split == bytes_of_word_.end() && stop - at == 4) {
      cells(&shared_[word], 1, shared_readers_, word);
    } else {
      if (split == bytes_of_word_.end()) {
        split = bytes_of_word_.try_emplace(word).first;
        split->second.fill(shared_[word]);
        if (const auto readers = shared_readers_.find(word); readers != shared_readers_.end()) {
          for (uint32_t b = 0; b < 4; ++b) byte_readers_[4 * word + b] = readers->second;
        }
      }
      for (uint32_t b = at; b < stop; ++b) cells(&split->second[b % 4], 1, byte_readers_, b);
    }
    at = stop;
  }
}

void Checker::shared_access(const Warp& w, const Op* op, int lane, const Cta& owner, uint32_t address, uint32_t bytes,
                            bool write) {
  const Actor who = actor(w, lane);
  const bool remote = &owner != w.cta;
  const uint32_t at = flat(owner, address);
  const Access access{Agent::lane, op->order, uint16_t(who.lane), who.warp->now, op_index(op), remote ? kRemote : 0};
  if (remote) note_remote(w, op, 1u << lane, owner, at);
  shared_cells(who, access, at, bytes, write, Sense::thread);
  order_access(w, op, lane, shared_location(at), write, false);
}

void Checker::global_cells(const Actor& who, const Access& access, uint64_t address, uint32_t bytes,
                           bool write, Sense sense) {
  Neighbour neighbour;
  const uint64_t end = address + bytes;
  for (uint64_t at = address; at < end;) {
    const uint64_t word = at / 4, stop = std::min(end, 4 * word + 4);
    const auto cell = [&](Cell& c, Readers& more, uint64_t key) {
      if (write)
        write_cells(&c, 1, 1, more, key, who, access, sense, Tensor::no);
      else
        read_cells(&c, 1, 1, more, key, who, access, sense, Tensor::no, neighbour);
    };
    auto split = global_parts_.find(word);
    if (split == global_parts_.end() && stop - at == 4) {
      cell(global_[word], global_readers_, word);
    } else {
      if (split == global_parts_.end()) {
        split = global_parts_.try_emplace(word).first;
        split->second.fill(global_[word]);
        if (const auto readers = global_readers_.find(word); readers != global_readers_.end()) {
          for (uint32_t b = 0; b < 4; ++b) global_byte_readers_[4 * word + b] = readers->second;
        }
      }
      for (uint64_t b = at; b < stop; ++b) cell(split->second[b % 4], global_byte_readers_, b);
    }
    at = stop;
  }
}

void Checker::note_global_write(uint64_t begin, uint64_t end, uint32_t op, uint32_t warp) {
  const uint64_t launch = cta_->launch->serial;
  const std::string* writer = nullptr;
  if (!global_writes_.empty() && global_writes_.back().launch == launch && global_writes_.back().op == op && global_writes_.back().warp == warp) {
    writer = global_writes_.back().writer;
  } else {
    std::string& text = writers_[{launch, op, warp}];
    if (text.empty()) text = role(warp) + ": write at " + place(*cta_, cta_->launch->code->ops.data() + op);
    writer = &text;
  }
  global_writes_.push_back({launch, begin, end, cta_->id, op, uint16_t(warp), writer, cta_->launch->memory});
}

void Checker::global_access(const Warp& w, const Op* op, int lane, uint64_t address, uint32_t bytes,
                            bool write) {
  const Actor who = actor(w, lane);
  const Access access{Agent::lane, op->order, uint16_t(who.lane), who.warp->now, op_index(op), 0};
  memory_at_ = address;
  global_cells(who, access, address, bytes, write, Sense::thread);
  against_stored_rows(who, access, address, address + bytes, write);
  const bool communicates = cta_->launch->code->communicates;
  if (write) {
    generic_begin_ = std::min(generic_begin_, address);
    generic_end_ = std::max(generic_end_, address + bytes);
    if (!communicates)
      note_global_write(address, address + bytes, op_index(op), warp_of(w));
  }
  if (communicates) between_ctas(w, op, who, address, bytes, write);
  order_access(w, op, lane, global_location(address), write, true);
}

// ---- what the bulk engine does to global memory
// --------------------------------------------------------------------------

// Calls f(first byte, end) for the rows of global memory that a box covers.
template <class F>
void Checker::each_box_row(const Event& event, F f) const {
  const TensorMap& map = event.cta->maps[event.slot];
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
    f(address, address + uint64_t((end[0] - begin[0]) * element));
    uint32_t d = 1;
    while (d < map.rank && ++at[d] == end[d]) at[d] = begin[d], ++d;
    if (d >= map.rank) return;
  }
}

// Two bulk stores of one CTA to the same rows are ordered by the completion of the first, as for any other
// access.
void Checker::log_box(const Event& event, const Actor& who, const Access& access) {
  each_box_row(event, [&](uint64_t begin, uint64_t end) {
    if (!cta_->launch->code->communicates) {
      note_global_write(begin, end, op_index(event.op), event.warp);
    }
    memory_at_ = begin;
    against_stored_rows(who, access, begin, end, true);
    if (begin < generic_end_ && end > generic_begin_) {
      for (uint64_t at = begin; at < end; at += 4) {
        const auto cell = global_.find(at / 4);
        if (cell == global_.end()) continue;
        memory_at_ = at;
        write_cells(&cell->second, 1, 1, global_readers_, at / 4, who, access, Sense::async_global, Tensor::no);
      }
    }
    stored_rows_[begin] = {end, access};
    stored_begin_ = std::min(stored_begin_, begin);
    stored_end_ = std::max(stored_end_, end);
  });
}

// What a bulk load reads: rows that bulk stores or threads of this CTA wrote before.
void Checker::read_box(const Event& event, const Actor& who, const Access& access) {
  const auto row = [&](uint64_t begin, uint64_t end) {
    memory_at_ = begin;
    against_stored_rows(who, access, begin, end, false);
    if (begin >= generic_end_ || end <= generic_begin_) return;
    for (uint64_t at = begin; at < end; at += 4) {
      const auto cell = global_.find(at / 4);
      if (cell == global_.end() || cell->second.write.agent == Agent::nobody) continue;
      memory_at_ = at;
      check(who, cell->second.write, access, nullptr, true, false, Sense::async_global, Tensor::no);
    }
  };
  if (stored_begin_ >= stored_end_ && generic_begin_ >= generic_end_) return;
  if (event.kind == Event::Kind::bulk_load)
    row(event.global, event.global + event.bytes);
  else
    each_box_row(event, row);
}

void Checker::against_stored_rows(const Actor& who, const Access& access, uint64_t begin, uint64_t end,
                                  bool write) {
  if (begin >= stored_end_ || end <= stored_begin_) return;
  auto row = stored_rows_.lower_bound(begin);
  while (row != stored_rows_.begin() && std::prev(row)->second.end > begin) --row;
  for (; row != stored_rows_.end() && row->first < end; ++row) {
    if (row->second.end > begin)
      check(who, row->second.access, access, nullptr, true, write, Sense::thread, Tensor::no);
  }
}

// ---- atomics and fences
// --------------------------------------------------------------------------------------------------

// Everything that a thread with this clock knows of lanes of any CTA, for lanes of other CTAs.
ForeignClocks Checker::everything_known(const Clock& clock) const {
  ForeignClocks known = clock.foreign;
  join(known[cta_->id], std::vector<Time>(clock.plain.begin() + kFirstLane, clock.plain.end()));
  return known;
}

// What was published for other CTAs, and may have come from this one.
void Checker::learn_published(const ForeignClocks& published, Clock& into) const {
  for (const auto& [cta, lanes] : published) {
    if (cta != cta_->id) {
      join(into.foreign[cta], lanes);
      continue;
    }
    for (size_t i = 0; i < lanes.size(); ++i) into.plain[kFirstLane + i] = std::max(into.plain[kFirstLane + i], lanes[i]);
  }
}

// What a lane's newest releasing fence covers becomes known to whom reads what it writes now.
void Checker::publish_fenced(uint32_t lane, Clock& into) {
  const auto fenced = fenced_.find(lane);
  if (fenced == fenced_.end()) return;
  into.join_all(*fenced->second.clock);
  Time& own = into.plain[kFirstLane + lane];
  own = std::max(own, fenced->second.time);
}

// What a strong write that releases nothing passes on: what the thread's fence covers, and, of tcgen05
// operations, what its tcgen05.fence::before_thread_sync covers.
void Checker::publish_relaxed(const Warp& w, int lane, Clock& into, bool far) {
  relaxed_ = true;
  const Actor who = actor(w, lane);
  join_tensor(w, *who.group, 1u << lane, into.tensor);
  join(into.inits, who.group->clock.inits);
  join(into.cause, who.group->clock.cause);
  const auto fenced = fenced_.find(who.lane);
  if (fenced != fenced_.end() && (!far || fenced->second.beyond_cta_in_cluster)) publish_fenced(who.lane, into);
}

// A strong read that acquires nothing: known after the next fence; of tcgen05 operations, after the next
// tcgen05.fence::after_thread_sync.
void Checker::learn_relaxed(const Warp& w, int lane, const Clock& from, bool far) {
  relaxed_ = true;
  each_group(warps_[warp_of(w)], 1u << lane, [&](Group& g) {
    join(g.tensor_seen, from.tensor);
    join(g.clock.inits, from.inits);
    join(g.clock.cause, from.cause);
  });
  Seen& seen = seen_of(warp_of(w) * kLanes + uint32_t(lane));
  if (!far) return seen.clock.join_all(from);
  if (seen.far.empty()) seen.far.emplace_back(lanes_);
  seen.far[0].join_all(from);
}

Checker::Seen& Checker::seen_of(uint32_t lane) {
  const auto found = seen_.find(lane);
  return found != seen_.end() ? found->second : seen_.emplace(lane, Seen{Clock(lanes_), false, {}}).first->second;
}

Clock& Checker::clock_at(uint64_t location, uint32_t rank, bool far) {
  std::vector<Released>& all = locations_[location];
  for (Released& r : all) {
    if (r.rank == rank && r.far == far) return r.clock;
  }
  all.push_back({rank, far, Clock(lanes_)});
  return all.back().clock;
}

// A strong write that follows a release (or is one) and a strong read that precedes an acquire (or is one)
// synchronise when the read takes its value from the write, or from an atomic operation in between (PTX
// ISA 8.8, release and acquire patterns). A weak write ends what could be learnt at the location.
void Checker::order_access(const Warp& w, const Op* op, int lane, uint64_t location, bool write,
                           bool global) {
  const uint8_t order = op->order;
  const bool beyond = global && cta_->launch->code->communicates;
  const uint32_t thread = warp_of(w) * kLanes + uint32_t(lane);
  if (!(order & kStrong)) {
    if (!write) return;
    locations_.erase(location);
    if (beyond) grid_.publish(location, true, {});
    return;
  }
  if (!write) {
    if (order & kReduction) return;  // no acquire pattern (PTX ISA 8.11.1)
    if (const auto found = locations_.find(location); found != locations_.end()) {
      for (const Released& r : found->second) {
        const bool elsewhere = r.rank != w.cta->rank;
        if (elsewhere && !(r.far && (order & kBeyondCtaInCluster))) continue;
        if (provenance_ && (order & kAcquire))
          provenance_->acquired(r.clock.sources, warp_of(w), 1u << lane, op_index(op), "what was written there");
        if (order & kAcquire)
          acquire(w, 1u << lane, r.clock);
        else
          learn_relaxed(w, lane, r.clock, elsewhere);
      }
    }
    const ForeignClocks* published = beyond && (order & kBeyondCta) ? grid_.published(location) : nullptr;
    if (!published) return;
    if (order & kAcquire) {
      each_group(warps_[warp_of(w)], 1u << lane, [&](Group& g) { learn_published(*published, g.clock); });
    } else {
      Seen& seen = seen_of(thread);
      learn_published(*published, seen.clock);
      seen.beyond_cta = true;
    }
    return;
  }
  const bool atomic = order & kAtomic;
  const auto pass_on = [&](Clock& into) {
    if (order & kRelease)
      release(w, op, 1u << lane, into);
    else
      publish_relaxed(w, lane, into, false);
  };
  const auto fenced = fenced_.find(thread);
  const bool fenced_far = fenced != fenced_.end() && fenced->second.beyond_cta_in_cluster;
  const bool far = size_ > 1 && (order & kBeyondCtaInCluster) && ((order & kRelease) || fenced_far);
  if (!atomic) {
    if (const auto found = locations_.find(location); found != locations_.end()) {
      for (Released& r : found->second) r.clock.reset();
    }
  }
  Clock& at = clock_at(location, w.cta->rank, far);
  if (!beyond) return pass_on(at);
  const bool release_reaches = (order & kRelease) || (fenced != fenced_.end() && fenced->second.beyond_cta);
  if (!(order & kBeyondCta) || !release_reaches) {
    grid_.publish(location, !atomic, {});
    return pass_on(at);
  }
  Clock released(lanes_);
  pass_on(released);
  at.join_all(released);
  grid_.publish(location, !atomic, everything_known(released));
}

void Checker::memory_fence(const Warp& w, const Op* op, Mask lanes) {
  if (op->order & kAcquire) {
    for (Mask m = lanes; m; m &= m - 1) {
      const auto seen = seen_.find(warp_of(w) * kLanes + uint32_t(first_lane(m)));
      if (seen == seen_.end()) continue;
      Seen known = std::move(seen->second);
      seen_.erase(seen);
      // A fence of the CTA's scope makes nothing of other CTAs known.
      if (known.beyond_cta && !(op->order & kBeyondCta)) known.clock.foreign.clear();
      if (provenance_) provenance_->acquired(known.clock.sources, warp_of(w), m & (0u - m), op_index(op), "what was read before");
      acquire(w, m & (0u - m), known.clock);
      if (!known.far.empty() && (op->order & kBeyondCtaInCluster)) acquire(w, m & (0u - m), known.far[0]);
    }
  }
  if (!(op->order & kRelease)) return;
  WarpState& s = warps_[warp_of(w)];
  each_group(s, lanes, [&](Group& g) {
    const auto clock = std::make_shared<const Clock>(g.clock);
    for (Mask m = lanes & g.lanes; m; m &= m - 1) {
      fenced_[warp_of(w) * kLanes + uint32_t(first_lane(m))] = {clock, s.now, (op->order & kBeyondCta) != 0,
                                                                        (op->order & kBeyondCtaInCluster) != 0};
    }
  });
  s.releases.push_back({s.now, op_index(op)});
  ++s.now;
}

void Checker::between_ctas(const Warp& w, const Op* op, const Actor& who, uint64_t address, uint32_t bytes,
                           bool write) {
  const Grid::Access now{cta_->id, who.lane, who.warp->now, op_index(op), op->order, warp_of(w)};
  for (uint64_t word = address / 4; word < (address + bytes + 3) / 4; ++word) {
    grid_.access(
        word, now, write, who.group->clock.foreign, [&](const Grid::Access& before, bool before_wrote) {
          if (again(FindingKind::race, before.op, now.op)) return;
          const Op* ops = cta_->launch->code->ops.data();
          Finding f = new_finding(FindingKind::race, before.op, now.op);
          f.cycle = w.time;
          memory_at_ = word * 4;
          f.memory = memory_name(nullptr);
          f.first = "CTA " + std::to_string(before.cta) + ", " + role_name(*cta_, before.warp % cta_warps_) + ", lane " +
                    std::to_string(before.lane % kLanes) + (before_wrote ? ": write at " : ": read at ") +
                    place(*cta_, ops + before.op);
          f.second = "CTA " + std::to_string(now.cta) + ", " + role_name(*w.cta, w.index) + ", lane " +
                     std::to_string(now.lane % kLanes) + (write ? ": write at " : ": read at ") +
                     place(*cta_, op);
          f.last_sync = "no release whose scope reaches beyond the CTA leads from the first to the second";
          f.chain = std::string(before_wrote ? "write" : "read") +
                    ", fence.acq_rel.gpu and a relaxed atomic, or a release.gpu | acquire.gpu of the same "
                    "location, then " +
                    (write ? "write" : "read");
          findings_.push_back(std::move(f));
        });
  }
}

// ---- mbarriers as objects in memory
// --------------------------------------------------------------------------------------

// Threads use a barrier concurrently, but not while it is made or ended.
void Checker::used(const Warp& w, const Op* op, Mask lanes, Barrier& b) {
  for (Mask m = lanes; m; m &= m - 1) {
    Barrier::Use& use = b.uses[warp_of(w) * kLanes + uint32_t(first_lane(m))];
    use.time = warps_[warp_of(w)].now;
    use.op = op_index(op);
  }
}

void Checker::require_unused(const Actor& who, const Access& now, Barrier& b) {
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const Barrier::Use& use = b.uses[lane];
    if (use.time == 0 || lane == who.lane || who.group->clock.plain[kFirstLane + lane] >= use.time) continue;
    const Access before{Agent::lane, 0, uint16_t(lane), use.time, use.op, 0};
    report(FindingKind::barrier_reuse, false, who, before, now, &shared_[b.address / 4], false, true);
    return;
  }
}

// A wait names its phase by parity alone, which is good for the current phase and the one before. A lane that
// has waited for one phase after the other and comes when two more have completed passes a wait that was
// meant for an older one.
void Checker::note_phase(const Warp& w, const Op* op, Mask lanes, Barrier& b) {
  const MBarrier* live = live_barrier(b.address);
  if (!live) return;
  const bool by_parity = op->mode & 2;
  for (Mask m = lanes; m; m &= m - 1) {
    const int lane = first_lane(m);
    Barrier::Use& use = b.uses[warp_of(w) * kLanes + uint32_t(lane)];
    const uint32_t value = w.rows[op->b].lane[lane];
    const uint32_t wanted = by_parity ? use.seen : value;
    const bool next =
        by_parity && (use.seen & 1) == (value & 1);  // the phase after the newest that it has seen
    const bool missed =
        by_parity ? next && use.in_row >= 2 && live->phase > wanted + 2 : live->phase > value + 1;
    if (missed) {
      const Actor who = actor(w, lane);
      const Access now{Agent::lane, 0, uint16_t(who.lane), who.warp->now, op_index(op), 0};
      const Access before{Agent::lane, 0, uint16_t(who.lane), use.time, use.op, 0};
      phases_ = {wanted, live->phase};
      report(FindingKind::phase_skipped, by_parity, who, before, now, &shared_[b.address / 4], false, false);
    }
    if (live->phase == use.seen) continue;
    use.in_row = next && live->phase == use.seen + 1 ? use.in_row + 1 : 0;
    use.seen = live->phase;
  }
}

// A wait by parity that has not been made when the phase after its own completes does not end: an arrival
// that completes that phase has to come after the wait. Lanes of a warp stand for each other, as whatever
// they execute together joins them; so this speaks of waits that no lane of the warp has made.
void Checker::require_waits_seen(const Barrier& b) {
  if (relaxed_) return;
  for (const Access& wait : b.waits) {
    const size_t first = kFirstLane + wait.index / kLanes * kLanes;
    const auto seen_by = [&](const std::vector<Time>& clock) {
      return !clock.empty() &&
             *std::max_element(clock.begin() + first, clock.begin() + first + kLanes) >= wait.time;
    };
    if (seen_by(b.gathering.plain) || seen_by(b.gathering.cause) || seen_by(b.cause)) continue;
    if (!b.far.empty() && (seen_by(b.far[0].plain) || seen_by(b.far[0].cause))) continue;
    if (again(FindingKind::phase_overrun, wait.op, b.newest_arrival.op)) continue;
    const Op* ops = cta_->launch->code->ops.data();
    Finding f = new_finding(FindingKind::phase_overrun, wait.op, b.newest_arrival.op);
    f.cycle = time_of(wait.index / kLanes);
    f.memory = barrier_text(b.address);
    f.first = role(wait.index / kLanes) + ": wait by parity at " + place(*cta_, ops + wait.op);
    f.second = "the next phase completes by the arrival at " + place(*cta_, ops + b.newest_arrival.op) +
               ", which may come before that wait; the wait would then not end";
    f.chain =
        "wait, then an arrival or a barrier of threads that those wait for who arrive for the next phase";
    findings_.push_back(std::move(f));
  }
}

void Checker::mbarrier_invalidated(const Warp& w, const Op* op, int lane, uint32_t address) {
  Barrier* b = find_barrier(flat(*w.cta, address));
  if (!b) return;
  require_visible_init(actor(w, lane), *b, op, false);
  const Actor who = actor(w, lane);
  const Access now{Agent::lane, 0, uint16_t(who.lane), who.warp->now, op_index(op), 0};
  require_unused(who, now, *b);
  shared_access(w, op, lane, *w.cta, address, 8, true);
}

}  // namespace fa4::sim::check
