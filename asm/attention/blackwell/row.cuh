// SPDX-License-Identifier: Apache-2.0
// The arithmetic of one row of online softmax, a thread's work, in pairs of fp32.
#pragma once

#include "../row.cuh"
#include "../score.cuh"
#include "exp2_polynomial.h"

namespace fa4::blackwell {

// A row of scores is worked on in chunks of 32 columns.
inline constexpr int kChunkColumns = 32;
inline constexpr int kEarlyColumns = 16;  // of the first chunk, whose P does not wait for the block's maximum
template <int chunks>
using ScoreRow = float[chunks][kChunkColumns];

// Largest of the row's scores and `maximum`, in four interleaved chains of 3-input maxima; NaN if one of them is: the
// polynomial would lose it.
template <int chunks>
__device__ __forceinline__ float row_maximum(const ScoreRow<chunks>& s, float maximum) {
  constexpr int chains = 4;
  float chain[chains] = {maximum, s[0][2], s[0][4], s[0][6]};
#pragma unroll
  for (int i = 0; i < chunks * kChunkColumns; i += 2) {
    float& m = chain[i / 2 % chains];
    const int column = i % kChunkColumns;
    m = ptx::max_nan(m, s[i / kChunkColumns][column], s[i / kChunkColumns][column + 1]);
  }
  return ptx::max_nan(ptx::max_nan(chain[0], chain[1], chain[2]), chain[3], chain[3]);
}

// Softcap or ALiBi, of the first `count` chunks of a block. The bias counts keys from the block's first.
template <int count, int chunks>
__device__ __forceinline__ void adjust_scores(ScoreRow<chunks>& s, const AttentionParams& params, const Bias& bias) {
#pragma unroll
  for (int i = 0; i < count * kChunkColumns; ++i) {
    float& score = s[i / kChunkColumns][i % kChunkColumns];
    score = adjusted(score, params, bias, static_cast<float>(i));
  }
}

// The running state of a row.
struct RowState {
  float maximum = -CUDART_INF_F;  // that exponents refer to, in score units; -inf: no key seen yet
  float sum = 0.0f;               // of p in fp32, before it is rounded to 16 bits

  // How far a block whose largest score, the old maximum included, is `block_maximum` moves the maximum: 0 or negative.
  __device__ __forceinline__ float moved_log2(float block_maximum, float scale_log2) const {
    return (maximum - block_maximum) * scale_log2;
  }

  // A maximum that has moved by less than the threshold is kept and costs nothing; p may then exceed 1, up to 2^8, and
  // stays consistent with sum and maximum. A NaN is taken, and stays: the row's sum, O and LSE are NaN from there on.
  __device__ static __forceinline__ bool is_taken(float moved_log2) { return !(moved_log2 >= -kRescaleThreshold); }

  // Takes such a block's maximum if it has moved that far. Returns the factor that O and the sum must be multiplied by:
  // before the first visible key (the maximum is -inf, and -inf - -inf is NaN) they are exact zeros, and it is 1.
  __device__ __forceinline__ float take_maximum(float block_maximum, float moved_log2) {
    if (!is_taken(moved_log2)) return 1.0f;
    const float factor = maximum == -CUDART_INF_F ? 1.0f : ptx::ex2_approx_ftz(moved_log2);
    maximum = block_maximum;
    return factor;
  }

  __device__ __forceinline__ float exponent_offset(float scale_log2) const {
    return fa4::exponent_offset(maximum, scale_log2);
  }

  // Scales the sum and adds the chunks [first, last) of p, in one chain, which hides under exponentials.
  template <int first, int last, int chunks>
  __device__ __forceinline__ void add(const ScoreRow<chunks>& p, float factor) {
    ptx::f32x2 pair = ptx::mov_pack_f32x2(p[first][0], p[first][1]);
#pragma unroll
    for (int i = first * kChunkColumns + 2; i < last * kChunkColumns; i += 2) {
      const float(&chunk)[kChunkColumns] = p[i / kChunkColumns];
      const int column = i % kChunkColumns;
      pair = ptx::add_rn_f32x2(pair, ptx::mov_pack_f32x2(chunk[column], chunk[column + 1]));
    }
    float low, high;
    ptx::mov_unpack_f32x2(low, high, pair);
    sum = sum * factor + (low + high);
  }
};

// The rare path of a warp in which a row has a large offset: that row's maximum is subtracted from its scores before
// they are scaled, which is exact where it matters. The other rows subtract 0, so that none of their bits change. A row with a
// score of +inf is NaN: inf - inf is, and so that the polynomial does not lose it, the offset too.
template <int chunks>
__device__ __forceinline__ void subtract_large_maximum(ScoreRow<chunks>& s, float& offset, float maximum) {
  const bool large = is_large(offset);
  const float addend = large ? -maximum : 0.0f;
  const ptx::f32x2 addend2 = ptx::mov_pack_f32x2(addend, addend);
  if (large) offset = maximum == CUDART_INF_F ? CUDART_NAN_F : 0.0f;
#pragma unroll
  for (int c = 0; c < chunks; ++c) {
#pragma unroll
    for (int i = 0; i < kChunkColumns; i += 2) {
      const ptx::f32x2 pair = ptx::add_rn_f32x2(ptx::mov_pack_f32x2(s[c][i], s[c][i + 1]), addend2);
      ptx::mov_unpack_f32x2(s[c][i], s[c][i + 1], pair);
    }
  }
}

// 2^x of a pair, of numbers up to 128 and -inf; x from kLeastExponent down gives 0.
__device__ __forceinline__ void exp2_polynomial(float& low, float& high, ptx::f32x2 x) {
  const auto both = [](float a) { return ptx::mov_pack_f32x2(a, a); };
  ptx::mov_unpack_f32x2(low, high, x);
  x = ptx::mov_pack_f32x2(fmaxf(low, kLeastExponent), fmaxf(high, kLeastExponent));
  const ptx::f32x2 shifted = ptx::add_rm_f32x2(x, both(kWholeMagic));
  const ptx::f32x2 whole = ptx::add_rn_f32x2(shifted, both(-kWholeMagic));
  const ptx::f32x2 f = ptx::fma_rn_f32x2(whole, both(-1.0f), x);
  ptx::f32x2 power = ptx::fma_rn_f32x2(f, both(kExp2C5), both(kExp2C4));
  power = ptx::fma_rn_f32x2(power, f, both(kExp2C3));
  power = ptx::fma_rn_f32x2(power, f, both(kExp2C2));
  power = ptx::fma_rn_f32x2(power, f, both(kExp2C1));
  power = ptx::fma_rn_f32x2(power, f, both(1.0f));
  // Its low bits are the whole part: added to the exponent.
  float shifted_low, shifted_high;
  ptx::mov_unpack_f32x2(shifted_low, shifted_high, shifted);
  ptx::mov_unpack_f32x2(low, high, power);
  low = __uint_as_float((__float_as_uint(shifted_low) << 23) + __float_as_uint(low));
  high = __uint_as_float((__float_as_uint(shifted_high) << 23) + __float_as_uint(high));
}

// Scores of the columns from `begin` to `end` of chunk number `chunk` to probabilities, in place.
template <Exp2 exp2, int begin, int end>
__device__ __forceinline__ void exponentials(float (&s)[kChunkColumns], int chunk, float scale_log2, float offset) {
  const ptx::f32x2 scale2 = ptx::mov_pack_f32x2(scale_log2, scale_log2);
  const ptx::f32x2 offset2 = ptx::mov_pack_f32x2(offset, offset);
#pragma unroll
  for (int i = begin; i < end; i += 2) {
    const ptx::f32x2 x = ptx::fma_rn_f32x2(ptx::mov_pack_f32x2(s[i], s[i + 1]), scale2, offset2);
    if (exp2 == Exp2::polynomial && by_polynomial(chunk, i)) {
      exp2_polynomial(s[i], s[i + 1], x);
    } else {
      float low, high;
      ptx::mov_unpack_f32x2(low, high, x);
      s[i] = ptx::ex2_approx_ftz(low);
      s[i + 1] = ptx::ex2_approx_ftz(high);
    }
  }
}

// The same, and P of these columns to TMEM: two to a column of `p_tmem`, the even key in the low half.
template <Config config, int begin, int end>
__device__ __forceinline__ void store_p(uint32_t p_tmem, float (&s)[kChunkColumns], int chunk, float scale_log2, float offset) {
  exponentials<config.exp2, begin, end>(s, chunk, scale_log2, offset);
  uint32_t packed[(end - begin) / 2];
#pragma unroll
  for (int i = begin; i < end; i += 2) packed[(i - begin) / 2] = pack<config.element>(s[i], s[i + 1]);
  ptx::tcgen05_st_32x32b(p_tmem + (chunk * kChunkColumns + begin) / 2, packed);
}

}  // namespace fa4::blackwell
