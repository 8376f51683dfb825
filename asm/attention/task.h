// SPDX-License-Identifier: Apache-2.0
// The unit of work, with everything about it that a role needs to know: whose it is, where it lies, how long its sequences
// are. One task is an m_block (all Q stages of a CTA) of one head group of one batch entry. Pure functions of integers, the
// same for device, host and tests.
//
// Packing: `packed_heads` query heads that share a KV head, a power of two, ride in the rows of a Q tile. Row r of a tile is
// position r / packed_heads of the tile, head r % packed_heads of the group.
#pragma once

#include "config.h"
#include "params.h"
#include "scheduler.h"

namespace fa4 {

// Lengths of a batch's entry in tokens, and where packed tensors have its first row and first key; else 0.
struct Entry {
  int32_t seq_q, seq_kv;
  int32_t first_row, first_key;
};

struct Task {
  int32_t batch;
  int32_t first_head;         // query head of row 0
  int32_t kv_head;
  int32_t packed_heads_log2;
  int32_t first_tile;         // of stage 0, counted from the start of the sequence
  int32_t positions;          // query positions of a tile
  int32_t rows;               // of its tiles, counted from row 0 of stage 0, so many belong to the sequence
  int32_t seq_q, seq_kv;      // lengths of its sequences, in tokens
  int32_t first_row;          // of its entry in packed Q, O and LSE; else 0
  // Where its sequences begin along the sequence dimension of the tensor maps, and which place of the maps' last dimension is theirs.
  int32_t q_origin, kv_origin;
  int32_t q_plane, k_plane, v_plane, o_plane;

  // Of row 0 of a stage.
  FA4_HOST_DEVICE int32_t position(int32_t stage) const { return (first_tile + stage) * positions; }
  FA4_HOST_DEVICE int32_t row_position(int32_t stage, int32_t row) const {
    return position(stage) + (row >> packed_heads_log2);
  }
  FA4_HOST_DEVICE int32_t row_head(int32_t row) const {
    return first_head + (row & ((1 << packed_heads_log2) - 1));
  }
};

// The task of a place in the problem, of an entry of such lengths.
template <Config config>
FA4_HOST_DEVICE Task make_task(const AttentionParams& params, const TaskId& id, const Entry& entry) {
  Task task;
  task.batch = id.batch;
  task.first_head = id.head_group << params.packed_heads_log2;
  task.kv_head = params.groups_per_kv_head.divide(id.head_group);
  task.packed_heads_log2 = params.packed_heads_log2;
  task.positions = config.tile_rows >> params.packed_heads_log2;
  task.first_tile = config.q_stages * id.m_block;
  const int32_t left = entry.seq_q - task.position(0);
  task.rows = left < config.q_stages * task.positions ? left << params.packed_heads_log2 : config.block_rows();
  task.seq_q = entry.seq_q;
  task.seq_kv = entry.seq_kv;
  if constexpr (config.general()) {
    const GeneralParams& general = params.general;
    const int32_t end_row = entry.first_row + entry.seq_q, end_key = entry.first_key + entry.seq_kv;
    task.first_row = entry.first_row;
    task.q_origin = kMapRows - entry.seq_q;
    task.kv_origin = kMapRows - entry.seq_kv;
    task.q_plane = general.q.plane(id.batch, end_row);
    task.k_plane = general.k.plane(id.batch, end_key);
    task.v_plane = general.v.plane(id.batch, end_key);
    task.o_plane = general.o.plane(id.batch, end_row);
  } else {
    task.first_row = task.q_origin = task.kv_origin = 0;
    task.q_plane = task.k_plane = task.v_plane = task.o_plane = id.batch;
  }
  return task;
}

// The same, where all entries have the lengths of the params.
template <Config config>
FA4_HOST_DEVICE Task make_task(const AttentionParams& params, const TaskId& id) {
  return make_task<config>(params, id, Entry{params.seq_q, params.seq_kv, 0, 0});
}

template <Config config>
FA4_HOST_DEVICE Mask<config.mask> mask_of(const AttentionParams& params) {
  if constexpr (config.general()) return {params.general.left, params.general.right, params.general.top_left != 0};
  return {};
}

// Key blocks that the task visits, all stages alike: those that a row of it sees. Where every task is to have a block, one that sees no
// key visits the block past the last key, of which TMA reads nothing and delivers zeros, and masks all of it. (Never block 0: the map
// of a sequence without keys describes one.)
template <Config config>
FA4_HOST_DEVICE BlockRegions visited_blocks(const Mask<config.mask>& mask, const Task& task) {
  const int32_t last = task.position(config.q_stages - 1) + task.positions - 1;
  const BlockRegions visited = mask.template visited<config.block_keys>(task.position(0), last, task.seq_q, task.seq_kv);
  if (!config.always_visits() || visited.begin < visited.end) return visited;
  const int32_t past = task.seq_kv > 0 ? (task.seq_kv - 1) / config.block_keys + 1 : 1;
  return {past, past, past, past + 1};
}

// The same blocks, parted for one stage.
template <Config config>
FA4_HOST_DEVICE BlockRegions stage_blocks(const Mask<config.mask>& mask, const Task& task, int32_t stage) {
  const int32_t first = task.position(stage);
  return mask.template regions<config.block_keys>(visited_blocks<config>(mask, task), first,
                                                  first + task.positions - 1, task.seq_q, task.seq_kv);
}

}  // namespace fa4
