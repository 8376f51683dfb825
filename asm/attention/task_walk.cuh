// SPDX-License-Identifier: Apache-2.0
// The tasks of a CTA, in order: for (TaskWalk<config, Reader::lane> walk(tasks); walk.next();) ... walk.task ...
// And the key blocks of all its tasks in one stream, for roles that begin with the next task before they are done with this one.
#pragma once

#include "task_ring.cuh"

namespace fa4 {

// Who walks: one elected lane, or all lanes of a warp together.
enum class Reader { lane, warp };

// Each role finds out for itself which tasks are the CTA's, from numbers of the launch; in a general kernel it is told.
template <Config config, Reader reader>
class TaskWalk {
 public:
  __device__ explicit TaskWalk(const Tasks<config>& tasks) : tasks_(tasks) {}

  __device__ __forceinline__ bool next() {
    if constexpr (config.general()) {
      if (number_ >= 0 && last()) return false;
      give_back();
      ++number_;
      const int slot = TaskRing::slot(number_);
      const uint32_t phase = TaskRing::full_phase(number_);
      if constexpr (reader == Reader::warp) tasks_.ring.full.wait_warp(slot, phase);
      else tasks_.ring.full.wait(slot, phase);
      task = again();
    } else {
      const int32_t index =
          task_of(tasks_.params.order, static_cast<int32_t>(blockIdx.x), number_++, static_cast<int32_t>(gridDim.x));
      if (index < 0) return false;
      task = make_task<config>(tasks_.params, decode_task(tasks_.params.order, index));
    }
    return true;
  }

  // Of a general kernel. No task follows.
  __device__ __forceinline__ bool last() const { return tasks_.ring.load(TaskRing::slot(number_)).last != 0; }
  // The task once more, in a general kernel from its record: for what is seldom asked and need not lie in registers.
  __device__ __forceinline__ Task again() const {
    if constexpr (config.general()) {
      const TaskRecord record = tasks_.ring.load(TaskRing::slot(number_));
      return make_task<config>(tasks_.params, record.id, record.entry);
    } else {
      return task;
    }
  }

  Task task{};

 private:
  // The record's slot, once the walk goes on.
  __device__ __forceinline__ void give_back() const {
    if constexpr (reader == Reader::warp) {
      ptx::bar_warp_sync();
      tasks_.ring.empty.arrive_if(TaskRing::slot(number_), threadIdx.x % 32 == 0);
    } else {
      tasks_.ring.empty.arrive(TaskRing::slot(number_));
    }
  }

  const Tasks<config>& tasks_;
  // In a general kernel of the task, among the CTA's; else of the next one, which is its wave.
  int32_t number_ = config.general() ? -1 : 0;
};

// Blocks of a task run from the last to the first. A task without blocks has no part in it.
template <Config config, Reader reader>
class BlockWalk {
 public:
  __device__ BlockWalk(const Tasks<config>& tasks, const Mask<config.mask>& mask) : tasks_(tasks), mask_(mask) {}

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
  TaskWalk<config, reader> tasks_;
  const Mask<config.mask>& mask_;
  int32_t begin_ = 0;
};

}  // namespace fa4
