// SPDX-License-Identifier: Apache-2.0
// Masking before exp2: a key that the row may not see gets the score -inf, so that it inflates neither the
// maximum nor the sum. Only blocks that need it run this code; nothing else lives in this file, so counting
// the instructions of the file counts the mask.
#pragma once

#include <math_constants.h>

#include "../ptx/math.cuh"
#include "mask.h"

namespace fa4 {

// Keeps of 32 scores those from `begin` to `end`, which may lie outside. The mask is built once, then each column tests a
// literal bit of it. Without a lower bound, begin is not looked at.
template <bool bounded_below>
__device__ __forceinline__ void mask_columns(float (&s)[32], int32_t begin, int32_t end) {
  uint32_t keep = ptx::shr_u32(0xffffffffu, static_cast<uint32_t>(end < 32 ? 32 - end : 0));
  if constexpr (bounded_below) keep &= ptx::shl_b32(0xffffffffu, static_cast<uint32_t>(begin > 0 ? begin : 0));
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if ((keep & (1u << i)) == 0) s[i] = -CUDART_INF_F;
  }
}

// A row of the block that starts at key `first_key`; the row sees the keys of `visible`.
template <bool bounded_below, int chunks>
__device__ __forceinline__ void mask_row(float (&s)[chunks][32], KeyRange visible, int32_t first_key) {
#pragma unroll
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const int32_t first_column = first_key + 32 * chunk;
    mask_columns<bounded_below>(s[chunk], visible.begin - first_column, visible.end - first_column);
  }
}

}  // namespace fa4
