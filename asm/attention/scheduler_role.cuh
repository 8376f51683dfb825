// SPDX-License-Identifier: Apache-2.0
// Scheduler: one warp of a general kernel that finds the tasks of its CTA and hands them to the other roles, a few ahead of them.
//
// Where all entries of the batch have the same lengths, the order is the static one of scheduler.h. Where they have lengths of their
// own, which are on the device alone, nobody knows beforehand how much work there is: tasks are numbered in the order of entries,
// and a CTA that becomes free takes the next number. The number says which entry it is by the tasks of the entries before it, a
// lane of the warp counting for each of 32 entries.
#pragma once

#include "task_ring.cuh"

namespace fa4 {

// Tasks of a batch whose entries have lengths of their own, found in ascending order. For all lanes of a warp.
template <Config config>
class EntrySearch {
 public:
  __device__ explicit EntrySearch(const AttentionParams& params)
      : params_(params), lane_(static_cast<int32_t>(threadIdx.x % 32)) {
    count_tasks();
  }

  // Task number `index`, not below the last one that was asked for. False, and `passed()` is their number, when there is none.
  __device__ bool find(int32_t index, TaskRecord& record) {
    // Unsigned: numbers asked for in vain may pass 2^31.
    while (static_cast<uint32_t>(index) - static_cast<uint32_t>(passed_) >=
           static_cast<uint32_t>(__shfl_sync(kAllLanes, tasks_through_, 31))) {
      passed_ += __shfl_sync(kAllLanes, tasks_through_, 31);
      first_entry_ += 32;
      if (first_entry_ >= params_.general.batch) {
        first_entry_ = params_.general.batch;
        count_tasks();
        return false;
      }
      count_tasks();
    }
    const int32_t in_group = index - passed_;
    const int owner = __ffs(static_cast<int>(__ballot_sync(kAllLanes, in_group < tasks_through_))) - 1;
    const int32_t before = __shfl_sync(kAllLanes, tasks_through_, owner - 1);  // of no meaning for the first
    const GeneralParams& general = params_.general;
    const int32_t entry = first_entry_ + owner;
    Entry& found = record.entry;
    found.seq_q = length(general.cu_seqlens_q, general.seqused_q, entry, params_.seq_q, general.total_q, found.first_row);
    found.seq_kv = length(general.cu_seqlens_k, general.seqused_k, entry, params_.seq_kv, general.total_k, found.first_key);
    record.id = place(in_group - (owner > 0 ? before : 0), m_blocks_of(found.seq_q), found.seq_kv);
    record.id.batch = entry;
    return true;
  }

  __device__ int32_t passed() const { return passed_; }

 private:
  static constexpr uint32_t kAllLanes = 0xffffffffu;

  __device__ int32_t head_groups() const { return params_.order.head_groups.value; }
  __device__ int32_t m_blocks_of(int32_t seq_q) const {
    const int32_t positions = config.block_rows() >> params_.packed_heads_log2;
    return seq_q / positions + (seq_q % positions != 0 ? 1 : 0);
  }

  // How many rows of its side an entry has, and the first of them in a packed tensor; whatever stands on the device, within the
  // bounds that the launch was made for.
  __device__ static int32_t length(const int32_t* cu_seqlens, const int32_t* used, int32_t entry, int32_t bound, int32_t total,
                                   int32_t& first) {
    int32_t length = bound;
    first = 0;
    if (cu_seqlens != nullptr) {
      first = min(max(cu_seqlens[entry], 0), total);
      length = min(min(max(cu_seqlens[entry + 1], first), total) - first, bound);
    }
    return used != nullptr ? min(max(used[entry], 0), length) : length;
  }

  // Of 32 entries, those up to and with the lane's.
  __device__ void count_tasks() {
    const GeneralParams& general = params_.general;
    const int32_t entry = first_entry_ + lane_;
    int32_t seq_q = 0, first_row;
    if (entry < general.batch)
      seq_q = length(general.cu_seqlens_q, general.seqused_q, entry, params_.seq_q, general.total_q, first_row);
    tasks_through_ = m_blocks_of(seq_q) * head_groups();
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      const int32_t before = __shfl_up_sync(kAllLanes, tasks_through_, static_cast<uint32_t>(distance));
      if (lane_ >= distance) tasks_through_ += before;
    }
  }

  // Head groups take turns, so many at a time that their keys and values stay in the L2 cache; their m_blocks go from the last, which
  // sees the most keys under a causal mask, down.
  __device__ TaskId place(int32_t in_entry, int32_t m_blocks, int32_t seq_kv) const {
    const int32_t groups_per_kv_head = params_.groups_per_kv_head.value;
    const int32_t fitting_heads = seq_kv > 0 ? params_.general.keys_in_l2 / seq_kv : 1;
    const int32_t at_a_time = min(min(max(fitting_heads, 1), head_groups() / groups_per_kv_head) * groups_per_kv_head, head_groups());
    const int32_t section = in_entry / (at_a_time * m_blocks);
    const int32_t in_section = in_entry - section * at_a_time * m_blocks;
    const int32_t groups = min(at_a_time, head_groups() - section * at_a_time);
    const int32_t row = in_section / groups;
    return {0, section * at_a_time + in_section - row * groups, m_blocks - 1 - row};
  }

  const AttentionParams& params_;
  int32_t lane_;
  int32_t first_entry_ = 0;    // of the 32 that the lanes count for
  int32_t passed_ = 0;         // tasks of the entries before them
  int32_t tasks_through_ = 0;  // of the entries from the first of the 32 to the lane's
};

template <Config config>
__device__ __forceinline__ void scheduler_role(const Tasks<config>& tasks) {
  const AttentionParams& params = tasks.params;
  const int32_t cta = static_cast<int32_t>(blockIdx.x), grid = static_cast<int32_t>(gridDim.x);
  const bool first_lane = threadIdx.x % 32 == 0;
  const bool counted = params.general.task_counter != nullptr;
  EntrySearch<config> entries(params);
  int32_t wave = 0, taken = 0;  // taken: the last number from the counter

  const auto next = [&](TaskRecord& record) {
    int32_t index;
    if (!counted) {
      index = task_of(params.order, cta, wave++, grid);
      if (index < 0) return false;
      record.id = decode_task(params.order, index);
      record.entry = {params.seq_q, params.seq_kv, 0, 0};
      return true;
    }
    index = cta;
    if (wave++ != 0) {
      if (first_lane) taken = static_cast<int32_t>(ptx::atom_add_relaxed_gpu(params.general.task_counter, 1u));
      taken = __shfl_sync(0xffffffffu, taken, 0);
      index = grid + taken;
    }
    return entries.find(index, record);
  };

  // A record is written when its task is found, and handed out when it is known whether another follows. A CTA without any task gets
  // one of an entry of no length, which stores nothing.
  for (int32_t number = -1;; ++number) {
    TaskRecord record{};
    const bool more = next(record);
    if (number >= 0) {
      if (first_lane) {
        tasks.ring.store_last(TaskRing::slot(number), more ? 0 : 1);
        tasks.ring.full.arrive(TaskRing::slot(number));
      }
      if (!more) break;
    }
    tasks.ring.empty.wait_warp(TaskRing::slot(number + 1), TaskRing::empty_phase(number + 1));
    if (first_lane) tasks.ring.store(TaskRing::slot(number + 1), record);
  }
  // Every CTA has asked once in vain. The last to do so clears the counter.
  if (counted && first_lane && taken == max(entries.passed(), grid) - 1) ptx::st_relaxed_gpu(params.general.task_counter, 0u);
}

}  // namespace fa4
