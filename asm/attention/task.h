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

struct Task {
  int32_t batch;
  int32_t first_head;         // query head of row 0
  int32_t kv_head;
  int32_t packed_heads_log2;
  int32_t first_tile;         // of stage 0, counted from the start of the sequence
  int32_t positions;          // query positions of a tile
  int32_t rows;               // of its tiles, counted from row 0 of stage 0, so many belong to the sequence
  int32_t seq_q, seq_kv;      // lengths of its sequences, in tokens
  int32_t q_origin, kv_origin;  // where they begin along the sequence dimension of the tensor maps

  // Of row 0 of a stage.
  FA4_HOST_DEVICE int32_t position(int32_t stage) const { return (first_tile + stage) * positions; }
  FA4_HOST_DEVICE int32_t row_position(int32_t stage, int32_t row) const {
    return position(stage) + (row >> packed_heads_log2);
  }
  FA4_HOST_DEVICE int32_t row_head(int32_t row) const {
    return first_head + (row & ((1 << packed_heads_log2) - 1));
  }
};

// The task of a place in the problem.
template <Config config>
FA4_HOST_DEVICE Task make_task(const AttentionParams& params, const TaskId& id) {
  Task task;
  task.batch = id.batch;
  task.first_head = id.head_group << params.packed_heads_log2;
  task.kv_head = params.groups_per_kv_head.divide(id.head_group);
  task.packed_heads_log2 = params.packed_heads_log2;
  task.positions = config.tile_rows >> params.packed_heads_log2;
  task.first_tile = config.q_stages * id.m_block;
  const int32_t left = params.seq_q - task.position(0);
  task.rows = left < config.q_stages * task.positions ? left << params.packed_heads_log2 : config.block_rows();
  task.seq_q = params.seq_q;
  task.seq_kv = params.seq_kv;
  task.q_origin = 0;
  task.kv_origin = 0;
  return task;
}

// Key blocks that the task visits, all stages alike: those that a row of it sees.
template <Config config>
FA4_HOST_DEVICE BlockRegions visited_blocks(const Mask<config.mask>& mask, const Task& task) {
  const int32_t last = task.position(config.q_stages - 1) + task.positions - 1;
  return mask.template visited<config.block_keys>(task.position(0), last, task.seq_q, task.seq_kv);
}

// The same blocks, parted for one stage.
template <Config config>
FA4_HOST_DEVICE BlockRegions stage_blocks(const Mask<config.mask>& mask, const Task& task, int32_t stage) {
  const int32_t first = task.position(stage);
  return mask.template regions<config.block_keys>(visited_blocks<config>(mask, task), first,
                                                  first + task.positions - 1, task.seq_q, task.seq_kv);
}

}  // namespace fa4
