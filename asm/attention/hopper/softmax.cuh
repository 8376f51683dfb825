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

// Keeps the columns below `visible` of a row, -inf elsewhere. `visible` counts from the first key of the
// block.
template <int count>
__device__ __forceinline__ void mask_row(float (&s)[count], int row, int32_t visible, int quad_lane) {
  // Own columns are two in every eight: how many of them, in their order, are below the limit.
  const int32_t limit = visible - 2 * quad_lane;
  const int32_t own = limit <= 0 ? 0 : limit / 8 * 2 + min(limit % 8, 2);
#pragma unroll
  for (int first = 0; first < count / 2; first += 32) {
    const int32_t left = own - first;
    const uint32_t keep = ptx::shr_u32(0xffffffffu, static_cast<uint32_t>(left < 32 ? 32 - max(left, 0) : 0));
#pragma unroll
    for (int i = first; i < first + 32 && i < count / 2; ++i) {
      if ((keep & (1u << (i - first))) == 0) s[i / 2 * 4 + 2 * row + i % 2] = -CUDART_INF_F;
    }
  }
}

// The running state of the two rows of a thread.
//
// A block is first taken with the maximum as it is. If the probabilities of a row then add up to more than
// kRescaleSum in one of its lanes, its maximum moves and the block is done again: a row that has seen no key
// moves at any. So p may exceed 1, but not kRescaleSum, and in the common block nobody looks for a maximum.
// Whether a row moves depends on its own scores alone; the warp that does a block again gives the rows that
// did not move the same bits as before.
struct RowState {
  float maximum[kThreadRows];  // that exponents refer to, in score units; -inf: no key seen yet
  float offset[kThreadRows];   // what is added to s * scale_log2: -maximum * scale_log2, 0 while the maximum
                               // is -inf
  float sum[kThreadRows];      // of p in fp32 over the columns of this thread

  __device__ __forceinline__ void reset() {
#pragma unroll
    for (int row = 0; row < kThreadRows; ++row) maximum[row] = -CUDART_INF_F, offset[row] = sum[row] = 0.0f;
  }

  // Whether a row must move, by the sum `partial` of this lane.
  __device__ __forceinline__ bool moves(int row, float partial) const {
    return partial > kRescaleSum | maximum[row] == -CUDART_INF_F;
  }

  // Moves the rows that must. `partial` and `highest`: of this lane in the block. `factor`: what O and the
  // sum must be multiplied by. Before the first visible key, both are exact zeros, and the factor is 1.
  __device__ __forceinline__ void move_maximum(const float (&partial)[kThreadRows],
                                               const float (&highest)[kThreadRows], float scale_log2,
                                               float (&factor)[kThreadRows]) {
#pragma unroll
    for (int row = 0; row < kThreadRows; ++row) {
      const float block = quad_max(highest[row]);
      const bool moved = moves(row, quad_max(partial[row]));
      const bool first = maximum[row] == -CUDART_INF_F;
      factor[row] = moved && !first ? ptx::ex2_approx_ftz(__fmul_rn(maximum[row] - block, scale_log2)) : 1.0f;
      if (moved) {
        maximum[row] = block;
        offset[row] = block == -CUDART_INF_F ? 0.0f : -__fmul_rn(block, scale_log2);
      }
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
