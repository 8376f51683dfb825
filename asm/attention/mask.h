// SPDX-License-Identifier: Apache-2.0
// Which keys a query sees, and which key blocks a tile of queries visits: skipped, masked, unmasked, masked, skipped (the
// seed's causal edge, on either side). Pure functions of lengths and positions, the same for device, host and tests.
//
// Bottom-right alignment: with off = seq_kv - seq_q, query i sees the keys from i + off - left to i + off + right. Causal
// is right = 0 with an unbounded left. Positions are clamped to the last valid one first, so that no sum leaves 32 bits;
// rows past the end of Q compute something that nobody stores.
#pragma once

#include <stdint.h>

#include "host_device.h"

namespace fa4 {

enum class MaskKind : uint32_t { full, causal, window };

struct KeyRange {
  int32_t begin, end;  // half open; no key when end <= begin, and end may be negative
};

// Key blocks of a tile, visited from the last to the first: masked, unmasked, masked. The first and the last blocks of
// the visited ones may need a mask, those between do not; the others are skipped.
struct BlockRegions {
  int32_t begin, unmasked_begin, unmasked_end, end;
};

template <MaskKind kind>
struct Mask {
  // Keys that a row sees before and behind its diagonal, >= 0; INT32_MAX for an unbounded side. Of a window only.
  int32_t left = 0, right = 0;

  // A mask without a lower bound sees a prefix of the keys: begin is a compile-time 0, and so is its share of the code.
  static constexpr bool bounded_below = kind == MaskKind::window;

  // Keys that the query at `position` sees.
  FA4_HOST_DEVICE KeyRange keys(int32_t position, int32_t seq_q, int32_t seq_kv) const {
    if constexpr (kind == MaskKind::full) return {0, seq_kv};
    const int32_t last = seq_q - 1;
    const int32_t behind = last - (position < last ? position : last);  // positions behind it
    if constexpr (kind == MaskKind::causal) return {0, seq_kv - behind};
    const int32_t diagonal = seq_kv - 1 - behind;
    return {diagonal > left ? diagonal - left : 0, behind > right ? diagonal + right + 1 : seq_kv};
  }

  // Blocks that rows at the positions from `first` to `last` visit. The keys of a row move up with its position, so its
  // first and last row tell.
  template <int block_keys>
  FA4_HOST_DEVICE BlockRegions visited(int32_t first, int32_t last, int32_t seq_q, int32_t seq_kv) const {
    const int32_t end = keys(last, seq_q, seq_kv).end;
    const int32_t blocks = end > 0 ? end / block_keys + (end % block_keys != 0 ? 1 : 0) : 0;
    int32_t begin = 0;
    if constexpr (bounded_below) {
      begin = keys(first, seq_q, seq_kv).begin / block_keys;
      begin = begin < blocks ? begin : blocks;
    }
    return {begin, begin, begin, blocks};
  }

  // The same blocks, and of them those that every row at the positions from `first` to `last` sees entirely.
  template <int block_keys>
  FA4_HOST_DEVICE BlockRegions regions(const BlockRegions& visited, int32_t first, int32_t last, int32_t seq_q,
                                       int32_t seq_kv) const {
    const int32_t end = keys(first, seq_q, seq_kv).end;
    BlockRegions r = visited;
    r.unmasked_end = end > 0 ? end / block_keys : 0;
    if constexpr (bounded_below) {
      const int32_t begin = keys(last, seq_q, seq_kv).begin;
      const int32_t up = begin / block_keys + (begin % block_keys != 0 ? 1 : 0);
      r.unmasked_end = r.unmasked_end > r.begin ? r.unmasked_end : r.begin;
      r.unmasked_begin = up < r.unmasked_end ? up : r.unmasked_end;
    }
    return r;
  }
};

}  // namespace fa4
