// SPDX-License-Identifier: Apache-2.0
// What every role is handed: the parameters, the barriers, the tiles, and the records of the tasks.
#pragma once

#include "../../ptx/fence.cuh"
#include "../../ptx/ldst.cuh"
#include "../../ptx/mbarrier.cuh"
#include "../../ptx/sync.cuh"
#include "../barrier_ring.cuh"
#include "../task_walk.cuh"
#include "layout.h"

namespace fa4::hopper {

// Every barrier of the kernel, a member each by its name in the table. `shared` is the shared::cta address of dynamic
// shared memory.
template <Config config>
struct Barriers {
  __device__ explicit Barriers(uint32_t shared) : shared_(shared) {}

  // As the table says. One thread; everybody else must synchronise with it afterwards.
  __device__ __forceinline__ void init() const {
#define FA4_INIT(id, ...)                                                   \
  for (uint32_t i = 0; i < kBarrierStages<config, BarrierId::id>; ++i)      \
    ptx::mbarrier_init(shared_ + kBarrierOffset<config, BarrierId::id> + 8 * i, kBarrierArrivals<config, BarrierId::id>);
    FA4_HOPPER_BARRIERS(FA4_INIT)
#undef FA4_INIT
    ptx::fence_mbarrier_init();
  }

 private:
  uint32_t shared_;  // before the members that are made from it

 public:
#define FA4_MEMBER(id, name, flavour, ...)                     \
  BarrierOf<BarrierFlavour::flavour> id =                      \
      BarrierOf<BarrierFlavour::flavour>(shared_ + kBarrierOffset<config, BarrierId::id>);
  FA4_HOPPER_BARRIERS(FA4_MEMBER)
#undef FA4_MEMBER
};

template <Config config>
struct Cta {
  using L = Layout<config>;
  using TaskRecord = typename L::TaskRecord;

  const AttentionParams& params;
  uint32_t shared;  // shared::cta address of the SharedMap
  Barriers<config> bar;

  __device__ Cta(const AttentionParams& p, uint32_t s) : params(p), shared(s), bar(s) {}

  __device__ __forceinline__ uint32_t q_tile(int slot, int consumer) const {
    return shared + L::q_offset + (slot * L::consumers + consumer) * config.q_tile_bytes();
  }
  __device__ __forceinline__ uint32_t kv_tile(int slot) const {
    return shared + L::kv_offset + slot * config.k_tile_bytes();
  }
  __device__ __forceinline__ uint32_t task_record(int slot) const {
    return shared + L::task_offset + slot * static_cast<int>(sizeof(TaskRecord));
  }
  __device__ __forceinline__ void store_task(int slot, const TaskRecord& task) const {
    ptx::st_shared_v4(task_record(slot), task.batch, task.first_head, task.first_position, task.blocks);
  }
  __device__ __forceinline__ TaskRecord load_task(int slot) const {
    TaskRecord task;
    ptx::ld_shared_v4(task.batch, task.first_head, task.first_position, task.blocks, task_record(slot));
    return task;
  }
  // Whether this CTA has a task in the given wave.
  __device__ __forceinline__ bool has_task(int32_t wave) const {
    return task_of(params.order, static_cast<int32_t>(blockIdx.x), wave, static_cast<int32_t>(gridDim.x)) >= 0;
  }
};

// Key blocks that a task visits, all consumers alike. A task that sees no key visits one block past the last key, where
// TMA reads nothing and delivers zeros, and masks all of it.
template <Config config>
__device__ __forceinline__ int32_t blocks_of(const Task& task) {
  const int32_t seen = visited_blocks<config>(Mask<config.mask>{}, task).end;
  return seen > 0 ? seen : 1;
}

}  // namespace fa4::hopper
