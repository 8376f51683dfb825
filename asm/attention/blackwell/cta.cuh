// SPDX-License-Identifier: Apache-2.0
// What every role is handed: the parameters, the barriers and the memories.
#pragma once

#include "../score.cuh"
#include "../task_walk.cuh"
#include "barriers.cuh"

namespace fa4::blackwell {

// Which S in TMEM a role is at: score MMAs take them in turn, for stage 0 and 1 of a block, then of the next. `number` counts them,
// modulo two rounds. Where there are two, each stage has its own; of three, one serves both by turns. The phase of a turn can be
// told by its parity, since the turn before, the other stage's, is over: its scores were committed before those of this stage's last
// block, which softmax has seen.
template <Config config>
struct SCursor {
  static constexpr int buffers = Layout<config>::s_buffers;
  int number;
  __device__ __forceinline__ int buffer(int stage) const {
    return buffers == 2 ? stage : number < buffers ? number : number - buffers;
  }
  __device__ __forceinline__ uint32_t phase() const { return number < buffers ? 0 : 1; }
  __device__ __forceinline__ void advance(int steps) {
    number += steps;
    if (number >= 2 * buffers) number -= 2 * buffers;
  }
};

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
