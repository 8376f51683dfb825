// SPDX-License-Identifier: Apache-2.0
// The one argument of every attention kernel: filled by runtime/plan on the host, read by the roles on the
// GPU. It is passed by value as a __grid_constant__; the tensor maps inside it are used where they lie.
#pragma once

#include <cuda.h>
#include <stdint.h>

#include "scheduler.h"

namespace fa4 {

// What becomes of a scaled score s before it is masked.
enum class ScoreKind : uint32_t {
  plain,
  softcap,  // cap * tanh(s / cap)
  alibi,    // s - slope * |i + off - j|
};

// Where an entry of the batch begins along the last dimension of a tensor map.
struct MapSteps {
  int32_t entry, row;  // for each entry of the batch, and for each row (or key) before its end

  FA4_HOST_DEVICE int32_t plane(int32_t index, int32_t end_row) const { return index * entry + end_row * row; }
};

// What the general kernels read besides.
//
// Rows behind the end of an entry may be another's, and a box of a tensor map must neither bring nor write them. So the maps
// clip where each entry ends. Their sequence dimension is of kMapRows rows, and row r of an entry of length n is at coordinate
// kMapRows - n + r of it, which lies outside exactly for r >= n. The last dimension moves that window to where the entry ends: its
// stride is the greatest common divisor of those of rows and entries. And the fourth takes the window's length back, always at
// coordinate kMapRows: its stride is 2^64 / kMapRows less that of a row, and addresses wrap at 2^64. (The map's own address may not
// lie so far before the tensor: a load whose box is wholly outside faults where that is not mapped.) Pieces of the head dimension are then copies
// of their own. plan.cpp makes these maps.
inline constexpr int32_t kMapRows = 1 << 30;

struct GeneralParams {
  // On the device, or null: where packed entries begin, batch + 1 of each; and how many rows of an entry count.
  const int32_t *cu_seqlens_q, *cu_seqlens_k, *seqused_q, *seqused_k;
  int32_t total_q, total_k;  // rows of packed tensors
  int32_t batch;
  MapSteps q, k, v, o;

  int32_t left, right;  // of the band (mask.h)
  uint32_t top_left;

  ScoreKind score;
  // What scores are multiplied by before that, with `scale` and `scale_log2` below what scores are multiplied by behind it: of a cap
  // |softmax scale| / cap, and cap; of ALiBi |softmax scale| * log2(e), and 1 / log2(e).
  float score_scale;
  const float* slopes;          // of ALiBi: element (entry, q_head) at entry * slopes_entry_stride + q_head
  int64_t slopes_entry_stride;  // in elements
  const float* sinks;           // q_heads, natural-log units; null: none

  // Where entries have lengths of their own CTAs take tasks as they become free, and count them here: zero before the launch, and
  // after it. Null: the static order.
  uint32_t* task_counter;
  int32_t keys_in_l2;  // of one KV head, that fit into the part of L2 that heads worked on at a time may occupy
};

struct alignas(128) AttentionParams {
  // Rank-5 views (64 elements of the head dimension, heads, sequence, pieces of 64 of the head dimension, batch)
  // with 128-byte swizzle. Q and O: box (64, packed_heads, tile_rows / packed_heads, pieces, 1); K and V: box
  // (64, 1, keys of a block, pieces, 1). `tile_rows`, and all that follows from it: of the kernel's Config. Where
  // the head dimension of Q and K, or that of V and O, is no multiple of 64: views (head dimension, heads, sequence, 1, batch) of
  // these two, and boxes of one piece.
  CUtensorMap q, k, v, o;

  // Natural-log sum of exponentials, fp32, element (batch, q_head, position) at
  // batch * lse_batch_stride + q_head * lse_head_stride + position. Null: not wanted.
  float* lse;
  int64_t lse_batch_stride, lse_head_stride;  // in elements. Of packed entries, which have no batch stride: 0, and positions count
                                              // from the first row of all

  // 1: the maps of Q and K, of V and O, are such (tile_copy.cuh); else 0. Those of general kernels always are, and not as here.
  uint32_t qk_pieces_apart, v_pieces_apart;

  int32_t seq_q, seq_kv;  // lengths in tokens: 1 <= seq_q, 0 <= seq_kv, both <= kMaxSequence (config.h)

  // Packing of query heads into the rows of a Q tile: packed_heads = gcd(q_heads / kv_heads, tile_rows), a
  // power of two. Row r of a tile is position r >> packed_heads_log2 of head r & (packed_heads - 1) of its
  // head group.
  int32_t packed_heads_log2;
  Divisor groups_per_kv_head;  // q_heads / kv_heads / packed_heads; KV head = head group / groups_per_kv_head

  // One task = (batch, head group, m_block). head_groups = q_heads / packed_heads; an m_block is all Q tiles of a task,
  // m_blocks = ceil(seq_q / (block_rows / packed_heads)).
  TaskOrder order;

  float scale_log2;        // |softmax scale| * log2(e): the exponent of a score s is (s - max) * scale_log2
  float scale;             // |softmax scale|
  uint32_t negate_scores;  // 1 when the softmax scale is negative (the score MMA then negates Q), else 0

  GeneralParams general;  // of general kernels only
};

}  // namespace fa4
