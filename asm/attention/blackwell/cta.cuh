// SPDX-License-Identifier: Apache-2.0
// What every role is handed: the parameters, the barriers and the memories.
#pragma once

#include "../score.cuh"
#include "../task_walk.cuh"
#include "barriers.cuh"

namespace fa4::blackwell {

// Which S in TMEM a role is at: score MMAs take them in turn, for each stage of a block, then of the next. `number` counts them,
// modulo two rounds. Where there are as many as stages, each stage has its own; else the stages take all of them by turns. The phase
// of a turn can be told by its parity, since the turn before is over: its scores were committed before those of this stage's last
// block, which softmax has seen.
template <Config config>
struct SCursor {
  static constexpr int buffers = Layout<config>::s_buffers;
  int number;
  __device__ __forceinline__ int buffer(int stage) const {
    return buffers == config.q_stages ? stage : number < buffers ? number : number - buffers;
  }
  __device__ __forceinline__ uint32_t phase() const { return number < buffers ? 0 : 1; }
  __device__ __forceinline__ void advance(int steps) {
    number += steps;
    if (number >= 2 * buffers) number -= 2 * buffers;
  }
};

// The key blocks of all tasks as score MMAs take them: in one stream that runs ahead of the values'. Where O is staged over Q, the
// stream stops at the last block of a task until the values have come to the next: Q of that one lands when O of this one is stored.
// To the next block; false if the stream stops, or has ended. `moved`: whether it did not the last time. `values_begin`: the values
// have come to a task.
template <Config config, Reader reader>
__device__ __forceinline__ bool next_keys(BlockWalk<config, reader>& keys, bool moved, bool values_begin) {
  if constexpr (Layout<config>::o_over_q) return (values_begin || !keys.last()) && keys.next();
  else return moved && keys.next();
}

template <Config config>
__device__ __forceinline__ Tasks<config> tasks_of(const AttentionParams& params, uint32_t shared, const Barriers<config>& bar) {
  if constexpr (config.general()) return {params, {shared + Layout<config>::task_offset, bar.task_full, bar.task_empty}};
  else return {params, {}};
}

template <Config config>
struct Cta {
  using L = Layout<config>;

  const AttentionParams& params;
  Tasks<config> tasks;
  uint8_t* memory;  // dynamic shared memory
  uint32_t shared;  // its shared::cta address
  uint32_t tmem;    // address of column 0 of the allocation
  Barriers<config> bar;
  Mask<config.mask> mask;

  // shared::cta addresses of tiles.
  __device__ __forceinline__ uint32_t q_tile(int stage) const {
    return shared + L::q_offset + stage * config.q_tile_bytes();
  }
  __device__ __forceinline__ uint32_t k_tile(int slot) const { return shared + L::kv_offset + L::k_slot_offset(slot); }
  __device__ __forceinline__ uint32_t v_tile(int slot) const { return shared + L::kv_offset + L::v_slot_offset(slot); }
  __device__ __forceinline__ uint32_t o_tile(int stage) const {
    return shared + L::o_offset + stage * L::o_stage_bytes;
  }

  // The same O tile for ordinary stores, and the messages of softmax to correction.
  __device__ __forceinline__ uint8_t* o_bytes(int stage) const {
    return memory + L::o_offset + stage * L::o_stage_bytes;
  }
  __device__ __forceinline__ float& scale_or_sum(int stage, int row) const {
    return reinterpret_cast<float*>(memory + L::scale_or_sum_offset)[stage * kTileRows + row];
  }
  __device__ __forceinline__ float& row_max(int stage, int row) const {
    return reinterpret_cast<float*>(memory + L::row_max_offset)[stage * kTileRows + row];
  }

  // Addresses of tensor memory: of a whole accumulator, for MMAs, or with the lanes that the warp of `row` can reach.
  __device__ __forceinline__ uint32_t s_tmem(int buffer) const { return tmem + L::s_column + buffer * L::s_columns; }
  __device__ __forceinline__ uint32_t p_tmem(int buffer) const { return tmem + L::p_column + buffer * L::s_columns; }
  __device__ __forceinline__ uint32_t o_tmem(int stage) const { return tmem + L::o_column + stage * L::o_stage_columns; }
  __device__ __forceinline__ Cta of_row(int row) const {
    Cta cta = *this;
    cta.tmem += static_cast<uint32_t>(row / 32 * 32) << 16;
    return cta;
  }
};

}  // namespace fa4::blackwell
