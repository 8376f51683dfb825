// SPDX-License-Identifier: Apache-2.0
// The one argument of every attention kernel: filled by runtime/plan on the host, read by the roles on the
// GPU. It is passed by value as a __grid_constant__; the tensor maps inside it are used where they lie.
#pragma once

#include <cuda.h>
#include <stdint.h>

#include "scheduler.h"

namespace fa4 {

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
  int64_t lse_batch_stride, lse_head_stride;  // in elements

  uint32_t qk_pieces_apart, v_pieces_apart;  // 1: the maps of Q and K, of V and O, are such (tile_copy.cuh); else 0

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
};

}  // namespace fa4
