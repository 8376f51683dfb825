// SPDX-License-Identifier: Apache-2.0
// What every role is handed: the parameters, the barriers, the memories, and the walk over the tasks of this
// CTA.
#pragma once

#include "barriers.cuh"
#include "blocks.h"
#include "params.h"
#include "scheduler.h"
#include "tile.h"

namespace fa4 {

struct Cta {
  const AttentionParams& params;
  SharedMap& map;
  uint32_t shared;  // shared::cta address of `map`
  uint32_t tmem;    // address of column 0 of the allocation
  Barriers bar;

  __device__ __forceinline__ uint32_t address(const void* p) const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
  }
};

// The tasks of this CTA, in order: for (TaskWalk walk(params); walk.next();) ... walk.task ...
class TaskWalk {
 public:
  __device__ explicit TaskWalk(const AttentionParams& params) : params_(params) {}

  __device__ __forceinline__ bool next() {
    const int32_t index = task_of(params_.scheduler, static_cast<int32_t>(blockIdx.x), wave_++,
                                  static_cast<int32_t>(gridDim.x), params_.task_count);
    if (index < 0) return false;
    task = decode_task(params_.scheduler, index, params_.task_count, params_.head_groups, params_.m_blocks,
                       params_.lpt_section_groups);
    return true;
  }

  template <bool causal>
  __device__ __forceinline__ int32_t blocks() const {
    return block_count<causal>(task.m_block, params_.packed_heads_log2, params_.seq_q, params_.seq_kv);
  }

  __device__ __forceinline__ int32_t position(int stage) const {
    return first_position(task.m_block, stage, params_.packed_heads_log2);
  }

  Task task{};

 private:
  const AttentionParams& params_;
  int32_t wave_ = 0;
};

}  // namespace fa4
