// SPDX-License-Identifier: Apache-2.0
// Masking before exp2: a key that the row may not see gets the score -inf, so that it inflates neither the
// maximum nor the sum. Only blocks that need it run this code; nothing else lives in this file, so counting
// the instructions of the file counts the mask.
#pragma once

#include <math_constants.h>

#include "../ptx/math.cuh"
#include "tile.h"

namespace fa4 {

// Keeps the first `visible` columns of 32 scores (none when it is <= 0, all when it is >= 32). The mask is
// built once, then each column tests a literal bit of it.
__device__ __forceinline__ void mask_columns(float (&s)[32], int32_t visible) {
  const uint32_t keep = ptx::shr_u32(0xffffffffu, static_cast<uint32_t>(visible < 32 ? 32 - visible : 0));
#pragma unroll
  for (int i = 0; i < 32; ++i) {
    if ((keep & (1u << i)) == 0) s[i] = -CUDART_INF_F;
  }
}

// A row of the block that starts at key `first_key`; the row sees the keys below `visible_keys`.
__device__ __forceinline__ void mask_row(float (&s)[kBlockKeys / 32][32], int32_t visible_keys,
                                         int32_t first_key) {
#pragma unroll
  for (int chunk = 0; chunk < kBlockKeys / 32; ++chunk) {
    mask_columns(s[chunk], visible_keys - first_key - 32 * chunk);
  }
}

}  // namespace fa4
