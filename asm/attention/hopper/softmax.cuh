// SPDX-License-Identifier: Apache-2.0
// Online softmax on the accumulator of wgmma, in the exp2 domain: p = 2^((s - max) * scale_log2). A thread
// holds two rows, r and r + 8, and of each the columns 8 g + 2 q and the next, q its place in a quad of
// lanes; element 4 g + 2 i + e is column 8 g + 2 q + e of row i. A row belongs to the four lanes of a quad.
#pragma once

#include <math_constants.h>

#include "../../ptx/math.cuh"
#include "../../ptx/sync.cuh"
#include "../row.cuh"
#include "layout.h"

namespace fa4::hopper {

inline constexpr int kThreadRows = 2;

// Over the four lanes of a quad; every lane gets the same bits.
__device__ __forceinline__ float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
__device__ __forceinline__ float quad_sum(float x) {
  x = __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// Keeps the columns from `begin` to `end` of a row, -inf elsewhere. They count from the first key of the block. Without a lower bound,
// begin is not looked at.
template <bool bounded_below, int count>
__device__ __forceinline__ void mask_row(float (&s)[count], int row, int32_t begin, int32_t end, int quad_lane) {
  // Own columns are two in every eight: how many of them, in their order, are below a limit.
  const auto own_below = [&](int32_t column) {
    const int32_t limit = column - 2 * quad_lane;
    return limit <= 0 ? 0 : limit / 8 * 2 + min(limit % 8, 2);
  };
  const int32_t own = own_below(end), hidden = bounded_below ? own_below(begin) : 0;
#pragma unroll
  for (int first = 0; first < count / 2; first += 32) {
    const int32_t left = own - first;
    uint32_t keep = ptx::shr_u32(0xffffffffu, static_cast<uint32_t>(left < 32 ? 32 - max(left, 0) : 0));
    if constexpr (bounded_below) keep &= ptx::shl_b32(0xffffffffu, static_cast<uint32_t>(max(hidden - first, 0)));
#pragma unroll
    for (int i = first; i < first + 32 && i < count / 2; ++i) {
      if ((keep & (1u << (i - first))) == 0) s[i / 2 * 4 + 2 * row + i % 2] = -CUDART_INF_F;
    }
  }
}

// The running state of the two rows of a thread.
//
// A block is first taken with the maximum as it is. If the probabilities of a row then add up to more than kRescaleSum in
// one of its lanes, its maximum moves and the block is done again. So p may exceed 1, but not kRescaleSum, and in the
// common block nobody looks for a maximum. A row that has seen no key, or whose offset is large (../row.cuh), has an
// offset of NaN, which makes its sums NaN: its blocks are always done again. What becomes of a row depends on its own
// scores alone; the warp that does a block again gives the rows that did not move the same bits as before.
struct RowState {
  float maximum[kThreadRows];  // that exponents refer to, in score units; -inf: no key seen yet
  float offset[kThreadRows];   // what is added to s * scale_log2; NaN: see above
  float sum[kThreadRows];      // of p in fp32 over the columns of this thread

  __device__ __forceinline__ void reset() {
#pragma unroll
    for (int row = 0; row < kThreadRows; ++row) {
      maximum[row] = -CUDART_INF_F;
      offset[row] = CUDART_NAN_F;
      sum[row] = 0.0f;
    }
  }

  // Whether the block must be done again for a row, by the sum `partial` of this lane. True for NaN.
  __device__ __forceinline__ static bool unsettled(float partial) { return !(partial <= kRescaleSum); }

  // Moves the rows that must, by `partial` and `highest` of this lane in the block. `factor`: what O and the sum must be
  // multiplied by; before the first visible key both are exact zeros, and it is 1. Returns in `subtrahend` what the
  // block's scores must lose before they are scaled, and in `block_offset` what is then added.
  __device__ __forceinline__ void move_maximum(const float (&partial)[kThreadRows], const float (&highest)[kThreadRows],
                                               float scale_log2, float (&factor)[kThreadRows],
                                               float (&subtrahend)[kThreadRows], float (&block_offset)[kThreadRows]) {
#pragma unroll
    for (int row = 0; row < kThreadRows; ++row) {
      const float block = quad_max(highest[row]);
      const float sum_of_lane = quad_max(partial[row]);
      const bool moved = isnan(offset[row]) ? block > maximum[row] : sum_of_lane > kRescaleSum;
      const bool first = maximum[row] == -CUDART_INF_F;
      factor[row] = moved && !first ? ptx::ex2_approx_ftz(__fmul_rn(maximum[row] - block, scale_log2)) : 1.0f;
      if (moved) maximum[row] = block;
      block_offset[row] = exponent_offset(maximum[row], scale_log2);
      const bool large = is_large(block_offset[row]);
      subtrahend[row] = large ? maximum[row] : 0.0f;
      if (large) block_offset[row] = 0.0f;
      offset[row] = large || maximum[row] == -CUDART_INF_F ? CUDART_NAN_F : block_offset[row];
    }
  }
};

// Largest score of each row among the columns of this thread.
template <int count>
__device__ __forceinline__ void row_maximum(const float (&s)[count], float (&highest)[kThreadRows]) {
  constexpr int chains = 2;
  float chain[kThreadRows][chains];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    float& c = chain[i / 2 % 2][i % 2];
    c = i < 4 ? s[i] : fmaxf(c, s[i]);
  }
#pragma unroll
  for (int row = 0; row < kThreadRows; ++row) highest[row] = fmaxf(chain[row][0], chain[row][1]);
}

// For a warp in which a row has a large offset: that row's maximum is subtracted from its scores before they are scaled,
// which is exact where it matters. The other rows subtract 0, so that none of their bits change.
template <int count>
__device__ __forceinline__ void subtract(float (&s)[count], const float (&subtrahend)[kThreadRows]) {
#pragma unroll
  for (int i = 0; i < count; ++i) s[i] = __fsub_rn(s[i], subtrahend[i / 2 % 2]);
}

// Scores of a thread to probabilities, packed as the A operand of the value product (16 keys are four
// registers), and their sums.
template <ElementType element, int count>
__device__ __forceinline__ void exponentials(const float (&s)[count], uint32_t (&p)[count / 2],
                                             float scale_log2, const float (&offset)[kThreadRows],
                                             float (&partial)[kThreadRows]) {
#pragma unroll
  for (int i = 0; i < count; i += 2) {
    const int row = i / 2 % 2;
    float e[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      e[k] = ptx::ex2_approx_ftz(__fmaf_rn(s[i + k], scale_log2, offset[row]));
      partial[row] = i < 4 && k == 0 ? e[k] : __fadd_rn(partial[row], e[k]);
    }
    p[i / 2] = pack<element>(e[0], e[1]);
  }
}

}  // namespace fa4::hopper
