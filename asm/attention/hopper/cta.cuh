// SPDX-License-Identifier: Apache-2.0
// What every role is handed: the parameters, the barriers, and the walk over the tasks of this CTA.
#pragma once

#include "../../ptx/fence.cuh"
#include "../../ptx/ldst.cuh"
#include "../../ptx/mbarrier.cuh"
#include "../../ptx/sync.cuh"
#include "../barrier_ring.cuh"
#include "../mask.h"
#include "../params.h"
#include "../scheduler.h"
#include "config.h"

namespace fa4::hopper {

// The mbarriers of one row of the table.
template <Config c, BarrierId id>
class BarrierRing {
 public:
  __device__ explicit BarrierRing(uint32_t shared) : first_(shared + Tile<c>::template kBarrierOffset<id>) {}
  __device__ __forceinline__ uint32_t address(int stage) const { return first_ + 8 * stage; }
  __device__ __forceinline__ void wait(int stage, uint32_t parity) const {
    while (!ptx::mbarrier_try_wait_parity(address(stage), parity)) {
    }
  }
  __device__ __forceinline__ void arrive(int stage) const { ptx::mbarrier_arrive(address(stage)); }
  __device__ __forceinline__ void arrive_expect_tx(int stage, uint32_t bytes) const {
    ptx::mbarrier_arrive_expect_tx(address(stage), bytes);
  }
  __device__ __forceinline__ void init() const {
#pragma unroll
    for (uint32_t stage = 0; stage < kCount; ++stage) ptx::mbarrier_init(address(stage), kArrivals);
  }

 private:
  static constexpr uint32_t kCount = barrier_count(id, c.consumers* kQSlots, c.kv_slots);
  static constexpr uint32_t kArrivals = barrier_arrivals(id, c.consumers);
  uint32_t first_;  // shared::cta address
};

template <Config c>
struct Cta {
  const AttentionParams& params;
  uint32_t shared;  // shared::cta address of the SharedMap
  BarrierRing<c, BarrierId::q_full> q_full;
  BarrierRing<c, BarrierId::q_empty> q_empty;
  BarrierRing<c, BarrierId::o_full> o_full;
  BarrierRing<c, BarrierId::kv_full> kv_full;
  BarrierRing<c, BarrierId::kv_empty> kv_empty;

  __device__ Cta(const AttentionParams& p, uint32_t s)
      : params(p), shared(s), q_full(s), q_empty(s), o_full(s), kv_full(s), kv_empty(s) {}

  __device__ __forceinline__ uint32_t q_tile(int slot, int consumer) const {
    return shared + static_cast<uint32_t>(offsetof(typename Tile<c>::SharedMap, q)) +
           (slot * c.consumers + consumer) * Tile<c>::kQBytes;
  }
  __device__ __forceinline__ uint32_t kv_tile(int slot) const {
    return shared + static_cast<uint32_t>(offsetof(typename Tile<c>::SharedMap, kv)) +
           slot * Tile<c>::kKvBytes;
  }
  __device__ __forceinline__ uint32_t task_record(int slot) const {
    return shared + static_cast<uint32_t>(offsetof(typename Tile<c>::SharedMap, task)) +
           slot * static_cast<int>(sizeof(typename Tile<c>::TaskRecord));
  }
  __device__ __forceinline__ void store_task(int slot, const typename Tile<c>::TaskRecord& task) const {
    ptx::st_shared_v4(task_record(slot), task.batch, task.head_group, task.first_position, task.blocks);
  }
  __device__ __forceinline__ typename Tile<c>::TaskRecord load_task(int slot) const {
    typename Tile<c>::TaskRecord task;
    ptx::ld_shared_v4(task.batch, task.head_group, task.first_position, task.blocks, task_record(slot));
    return task;
  }
  // Whether this CTA has a task in the given wave.
  __device__ __forceinline__ bool has_task(int32_t wave) const {
    return task_of(params.scheduler, static_cast<int32_t>(blockIdx.x), wave, static_cast<int32_t>(gridDim.x),
                   params.task_count) >= 0;
  }
  __device__ __forceinline__ void init_barriers() const {
    q_full.init();
    q_empty.init();
    o_full.init();
    kv_full.init();
    kv_empty.init();
    ptx::fence_mbarrier_init();
  }
};

template <Config c>
using MaskOf = Mask<c.causal ? MaskKind::causal : MaskKind::full>;

// The tasks of this CTA, in order: for (TaskWalk walk(cta); walk.next();) ... walk.task ...
template <Config c>
class TaskWalk {
 public:
  __device__ explicit TaskWalk(const Cta<c>& cta) : params_(cta.params) {}

  __device__ __forceinline__ bool next() {
    const int32_t index = task_of(params_.scheduler, static_cast<int32_t>(blockIdx.x), wave_++,
                                  static_cast<int32_t>(gridDim.x), params_.task_count);
    if (index < 0) return false;
    task = decode_task(params_.scheduler, index, params_.all_groups, params_.head_groups, params_.m_blocks,
                       params_.lpt_section_groups);
    // Sections by turns go from heavy to light and from light to heavy, the last one down to the lightest:
    // the cost of a task changes gradually along the whole order, so that turning round after each wave evens
    // it out also where sections meet within a wave.
    if (params_.scheduler == SchedulerKind::lpt) {
      const int32_t groups = params_.all_groups;
      const int32_t width = params_.lpt_section_groups;
      const int32_t section = (task.batch * params_.head_groups + task.head_group) / width;
      if (((groups - 1) / width - section) % 2 != 0) task.m_block = params_.m_blocks - 1 - task.m_block;
    }
    return true;
  }

  // Query position of the first row of a consumer; rows of one position are its packed heads.
  __device__ __forceinline__ int32_t position(int consumer) const {
    return (task.m_block * c.consumers + consumer) * (kWarpgroupRows >> params_.packed_heads_log2);
  }

  // Keys that the last valid position of the task sees.
  __device__ __forceinline__ int32_t keys() const {
    const int32_t last = (task.m_block + 1) * (Tile<c>::kTaskRows >> params_.packed_heads_log2) - 1;
    return MaskOf<c>{}.keys(last, params_.seq_q, params_.seq_kv).end;
  }

  // Key blocks that the task visits, all consumers alike. A task that sees no key visits one block past the
  // last key, where TMA reads nothing and delivers zeros, and masks all of it.
  __device__ __forceinline__ int32_t blocks() const {
    const int32_t n = keys();
    return n > c.block_keys ? (n - 1) / c.block_keys + 1 : 1;
  }

  TaskId task{};

 private:
  const AttentionParams& params_;
  int32_t wave_ = 0;
};

}  // namespace fa4::hopper
