// SPDX-License-Identifier: Apache-2.0
// What a general kernel does to the scores of a row before it masks them, a cap or a bias by distance, and to its sum at the end: a
// sink. Which of them, is the same for the whole launch.
#pragma once

#include <math_constants.h>

#include "../ptx/math.cuh"
#include "task.h"

namespace fa4 {

inline constexpr float kLog2E = 1.44269504f;

// tanh, relative error below 2^-20; of an infinity 1 with its sign, of a NaN NaN. tanh.approx is off by 2^-11, which moves a score by
// 0.02 under a cap of 50: more than rounding P to 16 bits does.
__device__ __forceinline__ float tanh_accurate(float x) {
  // 1 - 2 / (e^2x + 1) cancels where x is small; there the series does.
  const float large = __fmaf_rn(-2.0f, ptx::rcp_approx_ftz(ptx::ex2_approx_ftz(__fmul_rn(x, 2.0f * kLog2E)) + 1.0f), 1.0f);
  const float square = __fmul_rn(x, x);
  float series = __fmaf_rn(square, -17.0f / 315.0f, 2.0f / 15.0f);
  series = __fmaf_rn(__fmaf_rn(series, square, -1.0f / 3.0f), __fmul_rn(square, x), x);
  return fabsf(x) < 0.25f ? series : large;
}

// What a row's scores are biased by under ALiBi.
struct Bias {
  float slope_log2;  // times log2(e)
  float diagonal;    // the key at which its bias is 0
};

__device__ __forceinline__ Bias bias_of(const AttentionParams& params, const Task& task, int32_t position, int32_t head) {
  if (params.general.score != ScoreKind::alibi) return {0.0f, 0.0f};
  const float slope = params.general.slopes[task.batch * params.general.slopes_entry_stride + head];
  const int32_t off = params.general.top_left != 0 ? 0 : task.seq_kv - task.seq_q;
  return {__fmul_rn(slope, kLog2E), static_cast<float>(off + position)};
}

// A score, `key` being its place as counted from where `bias.diagonal` is.
__device__ __forceinline__ float adjusted(float score, const AttentionParams& params, const Bias& bias, float key) {
  const float scaled = __fmul_rn(score, params.general.score_scale);
  if (params.general.score == ScoreKind::softcap) return tanh_accurate(scaled);
  return __fmaf_rn(-bias.slope_log2, fabsf(bias.diagonal - key), scaled);
}

// A sink is one more term of a row's sum. Where it is larger than all scores the sum refers to it, so that nothing overflows.
struct SinkSum {
  float total;   // with the sink
  float keys;    // what the keys' share, and O, is multiplied by in it
  bool is_base;  // whether the total refers to the sink, else to the row's maximum
};

__device__ __forceinline__ SinkSum add_sink(float sum, float maximum, float sink, float scale_log2) {
  if (sink == -CUDART_INF_F) return {sum, 1.0f, false};
  const float above_log2 = __fmul_rn(sink, kLog2E) - __fmul_rn(maximum, scale_log2);
  const bool is_base = above_log2 > 0.0f;  // also where no key is seen: the maximum is -inf
  const float smaller = ptx::ex2_approx_ftz(-fabsf(above_log2));
  return is_base ? SinkSum{__fmaf_rn(sum, smaller, 1.0f), smaller, true} : SinkSum{sum + smaller, 1.0f, false};
}

}  // namespace fa4
