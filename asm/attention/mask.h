// SPDX-License-Identifier: Apache-2.0
// Which keys a query sees, and which key blocks a tile of queries visits: skipped, masked, unmasked, masked, skipped (the
// seed's causal edge, on either side). Pure functions of lengths and positions, the same for device, host and tests.
//
// With off = seq_kv - seq_q, which is bottom-right alignment, query i sees the keys from i + off - left to i + off + right. Causal
// is right = 0 with an unbounded left. A band is all of this as values of the launch, off = 0 (top-left) included. Positions are
// clamped to the last valid one first, so that no sum leaves 32 bits; rows past the end of Q compute something that nobody stores.
#pragma once

#include <stdint.h>

#include "host_device.h"

namespace fa4 {

enum class MaskKind : uint32_t { full, causal, band };

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
  // Of a band only: keys that a row sees before and behind its diagonal, >= 0, INT32_MAX for an unbounded side; and whether the
  // diagonal begins at the first key, or ends at the last.
  int32_t left = 0, right = 0;
  bool top_left = false;

  // A mask without a lower bound sees a prefix of the keys: begin is a compile-time 0, and so is its share of the code.
  static constexpr bool bounded_below = kind == MaskKind::band;

  // Keys that the query at `position` sees.
  FA4_HOST_DEVICE KeyRange keys(int32_t position, int32_t seq_q, int32_t seq_kv) const {
    if constexpr (kind == MaskKind::full) return {0, seq_kv};
    const int32_t last = seq_q - 1;
    const int32_t behind = last - (position < last ? position : last);  // positions behind it
    if constexpr (kind == MaskKind::causal) return {0, seq_kv - behind};
    const int32_t diagonal = (top_left ? seq_q : seq_kv) - 1 - behind;  // >= -kMaxSequence
    // Unsigned where a sum may pass 2^31: a compiler takes a signed one for a proof that it does not.
    const uint32_t behind_diagonal = static_cast<uint32_t>(seq_kv) - 1 - static_cast<uint32_t>(diagonal);
    const bool all_behind = diagonal >= seq_kv || static_cast<uint32_t>(right) >= behind_diagonal;
    const uint32_t end = static_cast<uint32_t>(diagonal) + static_cast<uint32_t>(right) + 1;
    const uint32_t begin = static_cast<uint32_t>(diagonal) - static_cast<uint32_t>(left);
    return {diagonal > left ? static_cast<int32_t>(begin) : 0, all_behind ? seq_kv : static_cast<int32_t>(end)};
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
