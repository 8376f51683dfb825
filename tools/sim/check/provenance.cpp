// SPDX-License-Identifier: Apache-2.0
#include "provenance.h"

#include <algorithm>

namespace fa4::sim::check {

namespace {
template <class T>
std::vector<T>& of_warp(std::vector<std::vector<T>>& all, uint32_t warp) {
  if (all.size() <= warp) all.resize(warp + 1);
  return all[warp];
}
}  // namespace

void Provenance::clear() {
  sequence_ = 0;
  releases_.clear();
  acquires_.clear();
  fences_.clear();
}

// A later release of the same lanes passes on all that an earlier one did.
void Provenance::released(Sources& into, By by, uint32_t warp, Mask lanes, Time time, uint32_t op) {
  const auto id = uint32_t(releases_.size());
  releases_.push_back({++sequence_, true, by, warp, lanes, time, op});
  const auto same = std::find_if(into.begin(), into.end(), [&](uint32_t other) {
    const Release& r = releases_[other];
    return r.by_lanes && r.by == by && r.warp == warp && r.lanes == lanes;
  });
  if (same == into.end())
    into.push_back(id);
  else
    *same = id;
}

void Provenance::completed(Sources& into, Component component, Time time, uint32_t op) {
  into.push_back(uint32_t(releases_.size()));
  releases_.push_back({++sequence_, false, By::thread, component, 0, time, op});
}

void Provenance::acquired(const Sources& from, uint32_t warp, Mask lanes, uint32_t op,
                          const std::string& object, bool warp_barrier) {
  of_warp(acquires_, warp).push_back({++sequence_, lanes, op, warp_barrier, object, from});
}

void Provenance::fenced(uint32_t warp, Mask lanes, Time time, uint32_t op, bool before) {
  of_warp(fences_, warp).push_back({++sequence_, lanes, time, op, before});
}

const Provenance::Fence* Provenance::newest_after(uint32_t warp, Mask lanes, uint64_t sequence) const {
  if (warp >= fences_.size()) return nullptr;
  for (auto f = fences_[warp].rbegin(); f != fences_[warp].rend(); ++f) {
    if (!f->before && (f->lanes & lanes) && f->sequence < sequence) return &*f;
  }
  return nullptr;
}

// The fence between the access and its release.
const Provenance::Fence* Provenance::before_release(const From& from, const Release& release) const {
  if (release.warp >= fences_.size()) return nullptr;
  for (const Fence& f : fences_[release.warp]) {
    if (f.before && (f.lanes >> (from.index % kLanes) & 1) && f.time >= from.time &&
        f.sequence < release.sequence)
      return &f;
  }
  return nullptr;
}

bool Provenance::is(const From& from, const Release& r, bool tensor) const {
  if (r.by_lanes != from.by_lane) return false;
  if (!r.by_lanes) return r.warp == from.index && r.time >= from.time;
  if (r.warp != from.index / kLanes || !(r.lanes >> (from.index % kLanes) & 1) || r.time < from.time)
    return false;
  return !tensor || r.by == By::warp_barrier || before_release(from, r);
}

std::vector<Provenance::Step> Provenance::path(const From& from, uint32_t lane, bool tensor) const {
  std::vector<Place> places{{lane / kLanes, Mask(1) << (lane % kLanes), sequence_ + 1, -1, 0, 0}};
  std::vector<bool> seen(releases_.size());
  for (size_t at = 0; at < places.size(); ++at) {
    const Place here = places[at];
    if (here.warp >= acquires_.size()) continue;
    const Fence* after = tensor ? newest_after(here.warp, here.lanes, here.sequence) : nullptr;
    const auto& acquires = acquires_[here.warp];
    for (size_t i = acquires.size(); i-- > 0;) {
      const Acquire& a = acquires[i];
      if (a.sequence >= here.sequence || !(a.lanes & here.lanes)) continue;
      if (tensor && !a.warp_barrier && (!after || a.sequence > after->sequence)) continue;
      for (uint32_t id : a.from) {
        if (is(from, releases_[id], tensor)) return steps(from, places, int32_t(at), id, uint32_t(i), tensor);
        if (seen[id] || !releases_[id].by_lanes) continue;
        seen[id] = true;
        places.push_back(
            {releases_[id].warp, releases_[id].lanes, releases_[id].sequence, int32_t(at), id, uint32_t(i)});
      }
    }
  }
  return {};
}

std::vector<Provenance::Step> Provenance::steps(const From& from, const std::vector<Place>& places,
                                                int32_t at, uint32_t release, uint32_t acquire,
                                                bool tensor) const {
  std::vector<Step> all;
  const Release& first = releases_[release];
  if (tensor && from.by_lane && first.by != By::warp_barrier)
    all.push_back({before_release(from, first)->op, int32_t(first.warp), {}});
  for (;;) {
    const Release& r = releases_[release];
    const Place& here = places[size_t(at)];
    const Acquire& a = acquires_[here.warp][acquire];
    const bool same = r.by_lanes && a.op == r.op && here.warp == r.warp;
    all.push_back({r.op, r.by_lanes ? int32_t(r.warp) : -1, same ? a.object : std::string()});
    if (r.by_lanes && r.by == By::mma) {
      for (uint32_t id : a.from) {
        if (releases_[id].by_lanes || releases_[id].warp >= kBegun) continue;
        all.push_back({releases_[id].op, -1, {}});
        break;
      }
    }
    if (!same) all.push_back({a.op, int32_t(here.warp), a.object});
    if (tensor && !a.warp_barrier)
      all.push_back({newest_after(here.warp, here.lanes, here.sequence)->op, int32_t(here.warp), {}});
    if (here.later < 0) return all;
    release = here.release;
    acquire = here.acquire;
    at = here.later;
  }
}

}  // namespace fa4::sim::check
