// SPDX-License-Identifier: Apache-2.0
#include "recorder.h"

#include <algorithm>
#include <utility>

#include "../core/machine.h"
#include "../core/observer.h"

namespace fa4::sim {

namespace record {

// Watches the CTAs of one cluster. A CTA alone is the usual case; the records of several are kept side by
// side.
class CtaRecorder final : public Observer {
 public:
  explicit CtaRecorder(Recorder& recorder) : recorder_(recorder) {}

  void begin(const Cta& cta) override {
    if (records_.size() <= cta.rank) records_.resize(cta.rank + 1);
    records_[cta.rank].clear();
    std::fill(std::begin(generations_[cta.rank]), std::end(generations_[cta.rank]), 0u);
    cluster_generation_ = 0;
  }
  void ended(const Cta& cta) override {
    // What other CTAs of the cluster have under way may still name a phase here; without a cluster, nothing
    // has.
    if (recorder_.wants(cta.id)) recorder_.keep(cta.id, std::exchange(records_[cta.rank], {}));
  }

  void branched(const Warp& w, const Op* op, Mask lanes, Mask taken, const Op* target) override {
    fa4sim_sync& r = add(w, op, lanes, FA4SIM_SYNC_BRANCH);
    r.flags = 0;
    r.taken = taken;
    r.address = w.code->instruction[size_t(target - w.code->ops.data())];
  }
  void shared_access(const Warp&, const Op*, int, const Cta&, uint32_t, uint32_t, bool) override {}
  void global_access(const Warp&, const Op*, int, uint64_t, uint32_t, bool) override {}
  void tmem_access(const Warp& w, const Op* op, uint32_t column, uint32_t columns, bool write) override {
    fa4sim_sync& r = add(w, op, w.fragments[size_t(w.current)].mask,
                         write ? FA4SIM_SYNC_TMEM_STORE : FA4SIM_SYNC_TMEM_LOAD);
    r.address = column;
    r.bytes = columns * 128;  // of the warp's 32 lanes of tensor memory
  }
  void register_counts_differ(const Warp&, const Op*, uint32_t) override {}
  void warpgroup_differs(const Warp&, const Op*, const Op*) override {}
  void tmem_waited(const Warp&, bool) override {}
  void tmem_delivered(const Warp&, uint32_t, uint32_t) override {}
  void tmem_allocated(const Warp&, const Op*, uint32_t, uint32_t, uint32_t) override {}
  void tmem_released(const Warp&, const Op*, uint32_t, uint32_t) override {}
  void warp_barrier(const Warp&, const Op*, Mask) override {}
  void cta_barrier_arrived(const Warp& w, const Op* op, Mask lanes, uint32_t id) override {
    fa4sim_sync& r = add(w, op, lanes, FA4SIM_SYNC_CTA_BARRIER);
    r.address = id;
    r.phase = int32_t(generations_[w.cta->rank][id]);
  }
  void cta_barrier_passed(const Warp&, Mask, uint32_t) override {}
  void cta_barrier_opened(const Cta& cta, uint32_t id) override { ++generations_[cta.rank][id]; }
  void cluster_barrier_arrived(const Warp& w, const Op* op, Mask lanes) override {
    add(w, op, lanes, FA4SIM_SYNC_CLUSTER_ARRIVE).phase = int32_t(cluster_generation_);
  }
  void cluster_barrier_completed(const Cluster&) override { ++cluster_generation_; }
  void cluster_barrier_passed(const Warp& w, const Op* op, Mask lanes) override {
    add(w, op, lanes, FA4SIM_SYNC_CLUSTER_WAIT).phase = int32_t(cluster_generation_) - 1;
  }
  void fence(const Warp&, const Op*, Mask, FenceKind) override {}

  void mbarrier_initialised(const Warp& w, const Op* op, int lane, uint32_t address) override {
    add(w, op, 1u << lane, FA4SIM_SYNC_INIT).address = address;
  }
  void mbarrier_invalidated(const Warp&, const Op*, int, uint32_t) override {}
  void mbarrier_arriving(const Warp& w, const Op* op, Mask lanes, const Cta& owner,
                         uint32_t address) override {
    fa4sim_sync& r = add(w, op, lanes, FA4SIM_SYNC_ARRIVE);
    r.address = address;
    r.phase = phase_of(owner, address);
    if (&owner != w.cta) r.flags |= FA4SIM_SYNC_REMOTE;
  }
  void mbarrier_completed(const Cta&, uint32_t, uint32_t) override {}
  void mbarrier_waited(const Warp& w, const Op* op, Mask lanes, uint32_t address) override {
    fa4sim_sync& r = add(w, op, lanes, FA4SIM_SYNC_WAIT);
    r.address = address;
    r.phase = phase_of(*w.cta, address) - 1;
  }

  uint32_t copy_in_issued(const Warp& w, const Event& event) override {
    fa4sim_sync& r = add(w, event.op, 1u << event.lane, FA4SIM_SYNC_COPY_IN);
    r.address = event.address;
    r.bytes = event.bytes;
    return uint32_t(records_[w.cta->rank].size() - 1);
  }
  void copy_in_landed(const Event& event) override { land(event); }
  void copy_out_issued(const Warp& w, const Event& event) override {
    add(w, event.op, 1u << event.lane, FA4SIM_SYNC_COPY_OUT).bytes = event.bytes;
  }
  void copy_group_waited(const Warp&, Mask, uint64_t, bool) override {}
  void thread_copy_issued(const Warp&, const Op*, int, uint32_t, uint32_t) override {}
  void thread_copy_waited(const Warp&, int, uint32_t, uint32_t) override {}
  void thread_copy_arrival_issued(const Warp&, const Event&) override {}
  void thread_copy_arrived(const Event&, uint32_t, uint32_t) override {}
  void thread_copy_arriving(const Event&) override {}
  void mma_issued(const Warp& w, const Op* op, int lane, const MmaAccess& access) override {
    fa4sim_sync& r = add(w, op, 1u << lane, FA4SIM_SYNC_MMA);
    r.address = access.d_column;
    r.m = uint16_t(access.m);
    r.n = uint16_t(access.n);
    if (!access.a) r.flags |= FA4SIM_SYNC_A_NOT_SHARED;
  }
  void wgmma_issued(const Warp& w, const Op* op, const WgmmaAccess& access) override {
    fa4sim_sync& r = add(w, op, kAllLanes, FA4SIM_SYNC_MMA);
    r.m = 64;
    r.n = uint16_t(access.n);
    if (!access.a) r.flags |= FA4SIM_SYNC_A_NOT_SHARED;
  }
  void wgmma_waited(const Warp&, uint64_t) override {}
  uint32_t commit_issued(const Warp& w, const Event& event) override {
    add(w, event.op, 1u << event.lane, FA4SIM_SYNC_COMMIT).address = event.address;
    return uint32_t(records_[w.cta->rank].size() - 1);
  }
  void commit_landed(const Event& event) override { land(event); }

 private:
  static int32_t phase_of(const Cta& owner, uint32_t address) {
    return int32_t(owner.mbarriers[owner.mbarrier_at[address / 8] - 1u].phase);
  }

  fa4sim_sync& add(const Warp& w, const Op* op, Mask lanes, fa4sim_sync_kind kind) {
    std::vector<fa4sim_sync>& records = records_[w.cta->rank];
    const size_t index = size_t(op - w.code->ops.data());
    fa4sim_sync r{};
    r.kind = uint16_t(kind);
    r.warp = uint16_t(w.index);
    r.instruction = w.code->instruction[index];
    r.line = w.code->locations[index].line;
    r.lanes = lanes;
    r.together = w.current >= 0 ? w.fragments[size_t(w.current)].mask : lanes;
    r.phase = -1;
    // One execution of an instruction tells of its lanes one after the other.
    const size_t place = size_t(w.cta->rank) * FA4SIM_MAX_WARPS + w.index;
    if (last_.size() <= place) last_.resize(place + 1);
    Last& last = last_[place];
    if (last.op == op && last.time == w.time && lanes > last.lanes) r.flags |= FA4SIM_SYNC_CONTINUED;
    last = {op, w.time, lanes};
    if (!recorder_.wants(w.cta->id)) records.clear();  // nobody will ask for them
    records.push_back(r);
    return records.back();
  }

  void land(const Event& event) {
    if (event.cta->over || !recorder_.wants(event.cta->id)) return;
    fa4sim_sync& r = records_[event.cta->rank][event.token];
    r.phase = phase_of(*event.target, event.address);
    if (event.target != event.cta) r.flags |= FA4SIM_SYNC_REMOTE;
  }

  struct Last {
    const Op* op = nullptr;
    uint64_t time = 0;
    Mask lanes = 0;
  };
  Recorder& recorder_;
  std::vector<std::vector<fa4sim_sync>> records_;  // [rank]
  std::vector<Last> last_;                         // [rank * FA4SIM_MAX_WARPS + warp]
  uint32_t generations_[kMaxClusterSize][16] = {};
  uint32_t cluster_generation_ = 0;
};

}  // namespace record

Recorder::Recorder() : all_(true), only_(0) {}
Recorder::Recorder(uint64_t cta) : all_(false), only_(cta) {}
Recorder::~Recorder() = default;

Observer* Recorder::observer(uint32_t slot) {
  const std::lock_guard lock(mutex_);
  if (recorders_.size() <= slot) recorders_.resize(slot + 1);
  if (!recorders_[slot]) recorders_[slot] = std::make_unique<record::CtaRecorder>(*this);
  return recorders_[slot].get();
}

void Recorder::keep(uint64_t cta, std::vector<fa4sim_sync> records) {
  const std::lock_guard lock(mutex_);
  records_[cta] = std::move(records);
}

size_t Recorder::count(uint64_t cta) const {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(cta);
  return found == records_.end() ? 0 : found->second.size();
}

std::vector<fa4sim_sync> Recorder::take(uint64_t cta) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(cta);
  if (found == records_.end()) return {};
  std::vector<fa4sim_sync> records = std::move(found->second);
  records_.erase(found);
  return records;
}

}  // namespace fa4::sim
