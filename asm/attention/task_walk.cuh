// SPDX-License-Identifier: Apache-2.0
// The tasks of a CTA, in order: for (TaskWalk<config> walk(params); walk.next();) ... walk.task ...
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

}  // namespace fa4
