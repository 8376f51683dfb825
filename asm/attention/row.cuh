// SPDX-License-Identifier: Apache-2.0
// What the kernels' online softmax has in common, in the exp2 domain: p = 2^((s - max) * scale_log2).
#pragma once

#include <math_constants.h>

#include "../ptx/math.cuh"
#include "config.h"

namespace fa4 {

// How a pair of fp32 is packed into two 16-bit elements.
template <ElementType element>
__device__ __forceinline__ uint32_t pack(float low, float high) {
  return element == ElementType::f16 ? ptx::cvt_rn_f16x2(low, high) : ptx::cvt_rn_bf16x2(low, high);
}

// What is added to s * scale_log2. While the maximum is -inf all scores are -inf: subtract 0, not -inf, so
// that p is 0 and not NaN.
__device__ __forceinline__ float exponent_offset(float maximum, float scale_log2) {
  return maximum == -CUDART_INF_F ? 0.0f : -__fmul_rn(maximum, scale_log2);
}

// The exponent of a score is computed as s * scale_log2 - round(max * scale_log2): the rounding is the same for all
// scores of the row, so P and sum are off by one common factor, which cancels. Below this limit that factor differs
// from 1 by less than 2^-11; far above it would leave the range of P.
inline constexpr float kLargestOffset = 0x1p14f;
__device__ __forceinline__ bool is_large(float offset) {
  return fabsf(offset) >= kLargestOffset;
}

}  // namespace fa4
