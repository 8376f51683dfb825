// SPDX-License-Identifier: Apache-2.0
// Where everything of a specialisation lives on a Blackwell: warps, registers, shared memory, TMEM columns. One place,
// plain C++, checked when compiled.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../config.h"
#include "barrier_table.h"
#include "tmem.h"

namespace fa4::blackwell {

inline constexpr int kTileRows = 128;     // of a Q tile: M of an MMA

// Correction rescales O, and the epilogue reads it, in chunks of this many columns.
inline constexpr int kRescaleTile = 16;

// The choices for a head dimension. 128: the seed's. 64: tiles are half as large, so the ring is six slots deep, three blocks, in
// the memory of the seed's three; so is O, which leaves room for a third S. 96: the seed's, with fewer MMAs. 192 with 128: O over Q,
// a ring of unlike tiles. 256: TMEM holds one O of 256 columns beside two S, so there is one Q stage, whose scores run ahead; and shared
// memory a K and a V beside its Q.
constexpr Config make_config(ElementType element, MaskKind mask, int qk_dim, int v_dim, Exp2 exp2 = Exp2::mufu) {
  Config config{element, mask, qk_dim, v_dim, kTileRows, 2, 128, 3, OPlace::own, exp2};
  if (qk_dim <= 64) config.kv_slots = 6;
  if (qk_dim > 128) config.o_place = OPlace::over_q;
  if (v_dim > 128) config.q_stages = 1;
  if (v_dim > 128) config.kv_slots = 2;
  return config;
}

template <Config config>
struct Layout {
  // The cast: warpgroups split by function. Warp indices in the CTA.
  static constexpr int softmax_warp = 0;  // a warpgroup for each Q stage
  static constexpr int correction_warp = 4 * config.q_stages;
  static constexpr int mma_warp = correction_warp + 4;  // drives both MMAs, owns TMEM
  static constexpr int load_warp = mma_warp + 1;
  static constexpr int store_warp = mma_warp + 2;
  static constexpr int scheduler_warp = mma_warp + 3;  // of a general kernel; else idle
  static constexpr int threads = (config.q_stages + 2) * kWarpgroupThreads;

  // Registers a thread holds once its role starts; at launch all have the same, a multiple of 8. The roles use up the CTA's: what a
  // launch leaves of the SM's, no role can have.
  static constexpr int launch_registers = launch_registers_of(threads);
  static constexpr int softmax_registers = config.q_stages == 2 ? 192 : 240;
  static constexpr int correction_registers = config.q_stages == 2 ? 80 : 160;
  static constexpr int other_registers = config.q_stages == 2 ? 48 : 104;
  static_assert(kWarpgroupThreads * (config.q_stages * softmax_registers + correction_registers + other_registers) ==
                threads * launch_registers);
  static_assert(softmax_registers >= launch_registers && correction_registers <= launch_registers &&
                other_registers <= launch_registers);

  // TMEM, in columns: all S, and behind them an O for each Q stage. P (16 bit) lies in the upper half of the S it came from.
  static constexpr int s_buffers = blackwell::s_buffers(config);
  // With more S than Q stages, the scores of a block are there before the value MMA of the block before: s_ready does not speak for
  // it, and O is still only after o_ready, once a block. Else o_ready comes once a task.
  static constexpr bool scores_ahead = s_buffers > config.q_stages;
  static_assert(s_buffers >= config.q_stages && s_buffers <= 2 * config.q_stages);
  static constexpr int s_columns = config.block_keys;
  static constexpr int p_columns = config.block_keys * kElementBytes / 4;
  static constexpr int s_column = 0;
  static constexpr int p_column = s_column + s_columns - p_columns;
  static constexpr int o_column = s_column + s_buffers * s_columns;
  static constexpr int o_stage_columns = config.v_dim;
  static constexpr int used_columns = o_column + config.q_stages * o_stage_columns;
  static_assert(used_columns <= kTmemColumns);
  static_assert(config.tile_rows == kTileRows && config.block_rows() <= kMaxBlockRows);

  // MMA instructions of a product, of K = 16. P is handed over in two parts: the value MMA starts on the first three
  // quarters.
  static constexpr int score_steps = config.qk_dim / kMmaK;
  static constexpr int value_steps = config.block_keys / kMmaK;
  static constexpr int value_steps_before_tail = value_steps * 3 / 4;

  // Slots of the ring hold K and V, where these are unlike in turn. There a slot begins where the tile of the other kind before
  // it ends: K in an odd slot follows V, and V follows K. A larger tile then reaches into what the next slot held, and may be loaded
  // when that one is empty, too.
  static constexpr int pair_bytes = config.k_tile_bytes() + config.v_tile_bytes();
  static constexpr int larger_bytes =
      config.k_tile_bytes() > config.v_tile_bytes() ? config.k_tile_bytes() : config.v_tile_bytes();
  FA4_HOST_DEVICE static constexpr int k_slot_offset(int slot) {
    return slot_offset(slot, config.k_tile_bytes(), config.v_tile_bytes());
  }
  FA4_HOST_DEVICE static constexpr int v_slot_offset(int slot) {
    return slot_offset(slot, config.v_tile_bytes(), config.k_tile_bytes());
  }
  FA4_HOST_DEVICE static constexpr int slot_offset(int slot, int tile_bytes, int other_bytes) {
    return tile_bytes == other_bytes ? slot * tile_bytes : slot / 2 * pair_bytes + (slot % 2 != 0 ? other_bytes : 0);
  }
  static constexpr bool unlike_tiles = config.k_tile_bytes() != config.v_tile_bytes();
  static_assert(!unlike_tiles || !scores_ahead);  // else two K come one after the other
  FA4_HOST_DEVICE static constexpr bool reaches_next_slot(int slot, int tile_bytes) {
    return unlike_tiles && tile_bytes == larger_bytes && slot % 2 == 0 && slot + 1 < config.kv_slots;
  }
  static constexpr int ring_bytes = config.kv_slots / 2 * pair_bytes + (config.kv_slots % 2 != 0 ? larger_bytes : 0);

  // Dynamic shared memory, in bytes from its start. The tiles come first.
  static constexpr int row_floats_bytes = config.q_stages * kTileRows * 4;
  static constexpr int q_offset = 0;
  static constexpr int kv_offset = q_offset + config.q_stages * config.q_tile_bytes();
  static constexpr int own_o_offset = kv_offset + ring_bytes;
  static constexpr bool o_over_q = config.o_place == OPlace::over_q;
  static constexpr int o_offset = o_over_q ? q_offset : own_o_offset;
  static constexpr int o_stage_bytes = o_over_q ? config.q_tile_bytes() : config.o_tile_bytes();
  // Softmax to correction: acc_scale of a block, at the end the row's sum; and the maximum that the sum refers to, in
  // score units.
  static constexpr int scale_or_sum_offset =
      own_o_offset + (o_over_q ? 0 : config.q_stages * config.o_tile_bytes());
  static constexpr int row_max_offset = scale_or_sum_offset + row_floats_bytes;
  static constexpr int barriers_offset = row_max_offset + row_floats_bytes;
  static constexpr int barriers_bytes = 8 * barrier_table(config).slots();
  static constexpr int tmem_base_offset = barriers_offset + barriers_bytes;  // written by tcgen05.alloc
  static constexpr int task_offset = (tmem_base_offset + 4 + 15) / 16 * 16;  // ring of records; of a general kernel
  static constexpr int task_bytes = task_slots(config) * static_cast<int>(sizeof(TaskRecord));
  static constexpr int shared_bytes = config.general() ? task_offset + task_bytes : (tmem_base_offset + 4 + 7) / 8 * 8;
  static_assert(shared_bytes <= kMaxSharedBytes);
  static_assert(config.q_tile_bytes() % kSharedAlignment == 0 && config.k_tile_bytes() % kSharedAlignment == 0 &&
                config.v_tile_bytes() % kSharedAlignment == 0 && config.o_tile_bytes() <= o_stage_bytes);
  static_assert(barriers_offset % 8 == 0);
  static_assert(barrier_table(config).consistent());
};

// Byte offset of one mbarrier from the start of dynamic shared memory.
template <Config config>
constexpr uint32_t barrier_offset(BarrierId id, uint32_t stage) {
  return static_cast<uint32_t>(Layout<config>::barriers_offset) + 8 * (barrier_table(config).slot(id) + stage);
}

// The table's numbers as constants that device code may use.
template <Config config, BarrierId id>
inline constexpr uint32_t kBarrierOffset = barrier_offset<config>(id, 0);
template <Config config, BarrierId id>
inline constexpr uint32_t kBarrierStages = barrier_table(config)[id].stages;
template <Config config, BarrierId id>
inline constexpr uint32_t kBarrierArrivals = barrier_table(config)[id].arrivals;

}  // namespace fa4::blackwell
