// SPDX-License-Identifier: Apache-2.0
// CTAs of a cluster: its barrier, and the memory that they have of each other only while both are there.
#include <algorithm>

#include "../core/shared_memory.h"
#include "checker.h"

namespace fa4::sim::check {

// ---- names: of a CTA where there are several
// -----------------------------------------------------------------------------

namespace {
std::string of_owner(const Cta& owner) {
  return owner.cluster->size == 1 ? std::string() : " of CTA " + std::to_string(owner.id);
}
}  // namespace

std::string Checker::shared_text(uint32_t at) const {
  return shared_name(cta_of(at), at % shared_bytes_) + of_owner(cta_of(at));
}
std::string Checker::barrier_text(uint32_t at) const {
  return barrier_name(cta_of(at), at % shared_bytes_) + of_owner(cta_of(at));
}
std::string Checker::role(uint32_t warp) const {
  if (size_ == 1) return role_name(*cta_, warp);
  const Cta& cta = *cta_->cluster->ctas[warp / cta_warps_];
  return "CTA " + std::to_string(cta.id) + ", " + role_name(cta, warp % cta_warps_);
}

const MBarrier* Checker::live_barrier(uint32_t at) const {
  return mbarrier_in(cta_of(at), at % shared_bytes_, 8);
}

// ---- the barrier of the cluster
// ------------------------------------------------------------------------------------------

// Even a relaxed arrival says that its CTA has begun, and of which others it knows that.
void Checker::cluster_barrier_arrived(const Warp& w, const Op* op, Mask lanes) {
  if (op->order & kRelease) return release(w, op, lanes, cluster_gathering_);
  for (Mask m = lanes; m; m &= m - 1) {
    publish_relaxed(w, first_lane(m), cluster_gathering_, true);
    const std::vector<Time>& known = actor(w, first_lane(m)).group->clock.plain;
    for (uint32_t rank = 0; rank < size_; ++rank) {
      Time& begun = cluster_gathering_.plain[kBegun + rank];
      begun = std::max(begun, known[kBegun + rank]);
    }
  }
}

// Nobody arrives again before it has waited, so that one phase back is enough.
void Checker::cluster_barrier_completed(const Cluster&) {
  std::swap(cluster_gathering_, cluster_completed_);
  cluster_gathering_.reset();
}

void Checker::cluster_barrier_passed(const Warp& w, const Op* op, Mask lanes) {
  acquire(w, lanes, cluster_completed_);
  if (provenance_) {
    provenance_->acquired(cluster_completed_.sources, warp_of(w), lanes, op_index(op),
                          "the barrier of the cluster");
  }
}

// fence.mbarrier_init: what these lanes initialised is known to whoever synchronises with them, also by a
// relaxed arrival.
void Checker::publish_inits(const Warp& w, Mask lanes) {
  WarpState& s = warps_[warp_of(w)];
  each_group(s, lanes, [&](Group& g) {
    g.clock.inits.resize(g.clock.plain.size());
    for (Mask m = lanes & g.lanes; m; m &= m - 1) {
      g.clock.inits[kFirstLane + warp_of(w) * kLanes + uint32_t(first_lane(m))] = s.now;
    }
  });
  ++s.now;
}

// ---- memory of CTAs that come and go
// -------------------------------------------------------------------------------------

void Checker::require_begun(const Warp& w, const Op* op, Mask lanes, const Cta& owner, uint32_t at) {
  for (Mask m = lanes; m; m &= m - 1) {
    if (actor(w, first_lane(m)).group->clock.plain[kBegun + owner.rank] != 0) continue;
    if (again(FindingKind::cta_life, 0, op_index(op))) continue;
    Finding f = new_finding(FindingKind::cta_life, 0, op_index(op));
    f.cta = w.cta->id;
    f.cycle = w.time;
    f.memory = shared_text(at);
    f.first = "CTA " + std::to_string(owner.id) + " begins to run";
    f.second = role(warp_of(w)) + ", lane " + std::to_string(first_lane(m)) + ": " + place(*cta_, op);
    f.last_sync = "nothing says that it has begun";
    f.chain =
        "barrier.cluster.arrive | barrier.cluster.wait in all CTAs, then access to the memory of another";
    findings_.push_back(std::move(f));
  }
}

void Checker::note_remote(const Warp& w, const Op* op, Mask lanes, const Cta& owner, uint32_t at) {
  require_begun(w, op, lanes, owner, at);
  for (Mask m = lanes; m; m &= m - 1) {
    remote_uses_[{owner.rank, actor(w, first_lane(m)).lane}] = {warps_[warp_of(w)].now, op_index(op), at};
  }
}

// `known`: what the threads of the CTA, which has ended, knew together.
void Checker::require_nobody_here(const Cta& cta, const std::vector<Time>& known) {
  for (auto it = remote_uses_.lower_bound({cta.rank, 0});
       it != remote_uses_.end() && it->first.first == cta.rank; ++it) {
    const uint32_t lane = it->first.second;
    const RemoteUse& use = it->second;
    if (known[kFirstLane + lane] >= use.time || again(FindingKind::cta_life, use.op, 0)) continue;
    Finding f = new_finding(FindingKind::cta_life, use.op, 0);
    f.cta = cta.id;
    f.cycle = cta.end;
    f.memory = shared_text(use.at);
    f.first = role(lane / kLanes) + ", lane " + std::to_string(lane % kLanes) + ": " +
              place(*cta_, cta_->launch->code->ops.data() + use.op);
    f.second = "CTA " + std::to_string(cta.id) + " ends, and its memory with it";
    f.last_sync = "nothing that this lane released afterwards has been seen there";
    f.chain =
        "access, barrier.cluster.arrive | barrier.cluster.wait in the CTA whose memory it is, then its end";
    findings_.push_back(std::move(f));
  }
  for (const Access& read : remote_reads_[cta.rank]) {
    if (read.time != kPending && known[read.index] >= read.time) continue;
    unobserved(read, "the CTA ended and nothing says that the copy has read its memory",
               "wait in the other CTA for the mbarrier phase that the copy completes, then an arrival or a "
               "barrier of the cluster | end of this CTA");
  }
}

}  // namespace fa4::sim::check
