// SPDX-License-Identifier: Apache-2.0
// Where roles learn of the tasks of their CTA: numbers of the launch, and in a general kernel a ring of records (task_record.h) in
// shared memory.
#pragma once

#include <stddef.h>

#include "../ptx/ldst.cuh"
#include "barrier_ring.cuh"
#include "task_record.h"

namespace fa4 {

// Task number n of the CTA has slot n % kTaskSlots. A reader keeps it until it goes on to the next. It begins with task -1, which
// there is not, and gives its slot back.
struct TaskRing {
  uint32_t records;  // shared::cta address of the first
  MBarrier full, empty;

  // The slot of a task, and the parities to wait for: a reader until it is written, the scheduler until all have given it back.
  __device__ static constexpr int slot(int32_t number) { return number & (kTaskSlots - 1); }
  __device__ static constexpr uint32_t full_phase(int32_t number) { return static_cast<uint32_t>(number) / kTaskSlots % 2; }
  __device__ static constexpr uint32_t empty_phase(int32_t number) { return full_phase(number + 1) ^ 1; }

  __device__ __forceinline__ void store(int slot, const TaskRecord& r) const {
    const uint32_t at = records + slot * static_cast<int>(sizeof(TaskRecord));
    ptx::st_shared_v4(at, r.id.batch, r.id.head_group, r.id.m_block, r.last);
    ptx::st_shared_v4(at + 16, r.entry.seq_q, r.entry.seq_kv, r.entry.first_row, r.entry.first_key);
  }
  __device__ __forceinline__ void store_last(int slot, int32_t last) const {
    ptx::st_shared_b32(records + slot * static_cast<int>(sizeof(TaskRecord)) + static_cast<int>(offsetof(TaskRecord, last)), last);
  }
  __device__ __forceinline__ TaskRecord load(int slot) const {
    const uint32_t at = records + slot * static_cast<int>(sizeof(TaskRecord));
    TaskRecord r;
    ptx::ld_shared_v4(r.id.batch, r.id.head_group, r.id.m_block, r.last, at);
    ptx::ld_shared_v4(r.entry.seq_q, r.entry.seq_kv, r.entry.first_row, r.entry.first_key, at + 16);
    return r;
  }
};

struct NoTaskRing {};

template <Config config>
struct Tasks {
  const AttentionParams& params;
  std::conditional_t<config.general(), TaskRing, NoTaskRing> ring;
};

}  // namespace fa4
