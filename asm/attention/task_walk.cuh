// SPDX-License-Identifier: Apache-2.0
// The tasks of a CTA, in order: for (TaskWalk<config> walk(params); walk.next();) ... walk.task ...
// And the key blocks of all its tasks in one stream, for roles that begin with the next task before they are done with this one.
#pragma once

#include "task.h"

namespace fa4 {

template <Config config>
class TaskWalk {
 public:
  __device__ explicit TaskWalk(const AttentionParams& params) : params_(params) {}

  __device__ __forceinline__ bool next() {
    const int32_t index =
        task_of(params_.order, static_cast<int32_t>(blockIdx.x), wave_++, static_cast<int32_t>(gridDim.x));
    if (index < 0) return false;
    task = make_task<config>(params_, decode_task(params_.order, index));
    return true;
  }

  Task task{};

 private:
  const AttentionParams& params_;
  int32_t wave_ = 0;
};

// Blocks of a task run from the last to the first. A task without blocks has no part in it.
template <Config config>
class BlockWalk {
 public:
  __device__ BlockWalk(const AttentionParams& params, const Mask<config.mask>& mask) : tasks_(params), mask_(mask) {}

  __device__ __forceinline__ bool next() {
    first = block == begin_;
    while (block == begin_) {
      if (!tasks_.next()) return false;
      const BlockRegions visited = visited_blocks<config>(mask_, tasks_.task);
      begin_ = visited.begin;
      block = visited.end;
    }
    --block;
    return true;
  }

  __device__ const Task& task() const { return tasks_.task; }
  __device__ bool last() const { return block == begin_; }

  int32_t block = 0;
  bool first = false;  // of its task

 private:
  TaskWalk<config> tasks_;
  const Mask<config.mask>& mask_;
  int32_t begin_ = 0;
};

}  // namespace fa4
