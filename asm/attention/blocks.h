// SPDX-License-Identifier: Apache-2.0
// Which key blocks a task visits, and which of them need a mask: the three regions of the seed's causal edge
// (skipped, masked, unmasked). Pure functions of lengths, the same for device, host and tests.
//
// Bottom-right alignment: query position i sees the keys below i + seq_kv - seq_q + 1. Positions are clamped
// to the last valid one first, so that no sum leaves 32 bits; rows past the end of Q compute something that
// nobody stores.
#pragma once

#include "scheduler.h"
#include "tile.h"

namespace fa4 {

// Query position of the first row of stage `stage` of an m_block; rows of one position are its packed heads.
FA4_HOST_DEVICE int32_t first_position(int32_t m_block, int32_t stage, int32_t packed_heads_log2) {
  return (kQStages * m_block + stage) * (kTileRows >> packed_heads_log2);
}

// Keys that a query position may see: 0..result-1. May be negative under a causal mask when seq_q > seq_kv.
template <bool causal>
FA4_HOST_DEVICE int32_t visible_keys(int32_t position, int32_t seq_q, int32_t seq_kv) {
  const int32_t last = seq_q - 1;
  return causal ? seq_kv - (last - (position < last ? position : last)) : seq_kv;
}

// Key blocks that the task visits, both stages alike: those that its last valid position sees. 0: nothing to
// do.
template <bool causal>
FA4_HOST_DEVICE int32_t block_count(int32_t m_block, int32_t packed_heads_log2, int32_t seq_q,
                                    int32_t seq_kv) {
  const int32_t last =
      first_position(m_block, kQStages - 1, packed_heads_log2) + (kTileRows >> packed_heads_log2) - 1;
  const int32_t keys = visible_keys<causal>(last, seq_q, seq_kv);
  return keys > 0 ? keys / kBlockKeys + (keys % kBlockKeys != 0 ? 1 : 0) : 0;
}

// Of those, the low blocks 0..result-1 that every row of the stage sees entirely: they run no mask code.
template <bool causal>
FA4_HOST_DEVICE int32_t unmasked_block_count(int32_t m_block, int32_t stage, int32_t packed_heads_log2,
                                             int32_t seq_q, int32_t seq_kv) {
  const int32_t keys = visible_keys<causal>(first_position(m_block, stage, packed_heads_log2), seq_q, seq_kv);
  return keys > 0 ? keys / kBlockKeys : 0;
}

}  // namespace fa4
