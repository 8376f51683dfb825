// SPDX-License-Identifier: Apache-2.0
// The vector kernel of a tensor-core step, for one instruction set given as the struct V (see
// mma_avx512.cpp). Included by one translation unit per instruction set. Everything here is in an unnamed
// namespace and calls no inline function of the standard library: code compiled for one instruction set must
// never be linked into another's.
//
// The products of f16, bf16 and tf32 numbers are exact in fp32, so a term cut to 2^(E - 25) is trunc(a * b *
// 2^(25
// - E)) as int32, and the sum is an integer sum. That holds while -101 <= E <= 120:
//   at E = -101 a product below 2^-126, which fp32 may round, is below one unit and is cut to 0 in any case,
//   and the smallest non-zero sum is the smallest normal number; at E = 120 neither products nor sum reach
//   2^128.
// Lanes with any other E, or with a sum beyond int32, are computed by mma_element_reference. Infinities and
// NaN carry an exponent that puts their lanes there; a zero carries one that keeps its products from being
// the largest.
#pragma once

#include <cstdint>
#include <cstring>

#include "mma.h"
#include "mma_reference.h"

namespace fa4::sim {
namespace {

constexpr int16_t zero_exponent = -4000, special_exponent = 16000;
constexpr int all_zero_below = -2000;  // the sum of a zero's exponent and any other is below this
constexpr int smallest_fast_exponent = -101, largest_fast_exponent = 120;
constexpr int kept_bits = 25;
constexpr uint32_t max_m = 128, max_n = 256, max_depth = 16;

// fp32 values and exponents of 16-bit numbers.
template <MmaInput type>
void decode_16(const uint16_t* raw, uint32_t count, bool negate, float* values, int16_t* exponents) {
  constexpr int fraction_bits = type == MmaInput::f16 ? 10 : 7;
  constexpr int top = type == MmaInput::f16 ? 31 : 255, bias = top >> 1;
  const uint32_t flip = negate ? 0x8000'0000u : 0u;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t bits = raw[i], magnitude = bits & 0x7FFF;
    if constexpr (type == MmaInput::bf16) {
      values[i] = __builtin_bit_cast(float, bits << 16 ^ flip);
    } else {
      // A subnormal is read as 2^-14 + itself, and 2^-14 taken off: no branch and no subnormal fp32 on the
      // way.
      const bool subnormal = magnitude < 0x400;
      const uint32_t rebased = (magnitude << 13) + ((127u - 15u) << 23) + (subnormal ? 1u << 23 : 0u);
      const float value = __builtin_bit_cast(float, rebased) - (subnormal ? 0x1p-14f : 0.0f);
      values[i] =
          __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, value) | ((bits & 0x8000) << 16 ^ flip));
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    const int16_t magnitude = static_cast<int16_t>(raw[i] & 0x7FFF);
    const int16_t field = static_cast<int16_t>(magnitude >> fraction_bits);
    int16_t exponent = static_cast<int16_t>((field > 1 ? field : 1) - bias);
    exponent = magnitude == 0 ? zero_exponent : exponent;
    exponents[i] = field == top ? special_exponent : exponent;
  }
}

void decode_tf32(const uint32_t* raw, uint32_t count, bool negate, float* values, int16_t* exponents) {
  const uint32_t flip = negate ? 0x8000'0000u : 0u;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t bits = raw[i] & 0xFFFF'E000, magnitude = bits & 0x7FFF'FFFF;
    const int field = static_cast<int>(magnitude >> 23);
    values[i] = __builtin_bit_cast(float, bits ^ flip);
    int exponent = (field > 1 ? field : 1) - 127;
    exponent = magnitude == 0 ? zero_exponent : exponent;
    exponents[i] = static_cast<int16_t>(field == 255 ? special_exponent : exponent);
  }
}

// `first` counts in values of the type.
void decode(MmaInput type, const void* raw, uint32_t first, uint32_t count, bool negate, float* values,
            int16_t* exponents) {
  if (type == MmaInput::tf32) {
    decode_tf32(static_cast<const uint32_t*>(raw) + first, count, negate, values, exponents);
  } else if (type == MmaInput::f16) {
    decode_16<MmaInput::f16>(static_cast<const uint16_t*>(raw) + first, count, negate, values, exponents);
  } else {
    decode_16<MmaInput::bf16>(static_cast<const uint16_t*>(raw) + first, count, negate, values, exponents);
  }
}

struct Operands {
  alignas(64) float a[max_depth * max_m];  // as MmaStep::a
  alignas(64) int16_t a_exponent[max_depth * max_m];
  alignas(64) float b[max_n * max_depth];  // as MmaStep::b
  alignas(64) int16_t b_exponent[max_n * max_depth];
};

// Rows m .. m + vectors * V::lanes of column n.
template <class V, int vectors, bool accumulate, uint32_t depth>
inline void compute_block(const MmaStep& step, const Operands& operands, uint32_t m, uint32_t n) {
  using F = typename V::F;  // V::lanes fp32
  using I = typename V::I;  // V::lanes int32
  using H = typename V::H;  // 2 * V::lanes int16
  constexpr int lanes = V::lanes, pairs = vectors / 2;
  float* const d = step.d + n * step.d_pitch + m;
  const float* const b = operands.b + n * depth;
  const int16_t* const b_exponent = operands.b_exponent + n * depth;

  H product_exponent[pairs];
  for (int v = 0; v < pairs; ++v) product_exponent[v] = V::set16(2 * zero_exponent);
  for (uint32_t k = 0; k < depth; ++k) {
    const H e = V::set16(b_exponent[k]);
    const int16_t* const a = operands.a_exponent + k * max_m + m;
    for (int v = 0; v < pairs; ++v) {
      product_exponent[v] = V::max16(product_exponent[v], V::add16(e, V::load16(a + v * 2 * lanes)));
    }
  }

  I exponent[vectors];
  F scale[vectors];
  typename V::Mask unsafe[vectors];
  for (int v = 0; v < vectors; ++v) {
    exponent[v] = v % 2 == 0 ? V::widen_low(product_exponent[v / 2]) : V::widen_high(product_exponent[v / 2]);
    if constexpr (accumulate) {
      const I magnitude = V::and32(V::load_bits(d + v * lanes), V::set32(0x7FFF'FFFF));
      const I c_exponent =
          V::sub32(V::max32(V::template shift_right<23>(magnitude), V::set32(1)), V::set32(127));
      exponent[v] = V::max32(
          exponent[v], V::select(V::equal32(magnitude, V::set32(0)), V::set32(zero_exponent), c_exponent));
    }
    unsafe[v] = V::mask_or(V::greater32(exponent[v], V::set32(largest_fast_exponent)),
                           V::mask_and(V::greater32(V::set32(smallest_fast_exponent), exponent[v]),
                                       V::greater32(exponent[v], V::set32(all_zero_below))));
    exponent[v] = V::max32(exponent[v], V::set32(smallest_fast_exponent));
    scale[v] = V::as_float(V::template shift_left<23>(V::sub32(V::set32(127 + kept_bits), exponent[v])));
  }

  I sum[vectors];
  for (int v = 0; v < vectors; ++v) sum[v] = V::set32(0);
  for (uint32_t k = 0; k < depth; ++k) {
    const F factor = V::set(b[k]);
    const float* const a = operands.a + k * max_m + m;
    for (int v = 0; v < vectors; ++v) {
      const F product = V::mul(factor, V::load(a + v * lanes));
      sum[v] = V::add32(sum[v], V::truncate(V::mul(product, scale[v])));
    }
  }

  for (int v = 0; v < vectors; ++v) {
    if constexpr (accumulate) {
      const I c = V::truncate(V::mul(V::load(d + v * lanes), scale[v]));
      const I total = V::add32(sum[v], c);
      unsafe[v] = V::mask_or(unsafe[v], V::add_overflowed(sum[v], c, total));
      sum[v] = total;
    }
    const I unit = V::template shift_left<23>(V::add32(exponent[v], V::set32(127 - kept_bits)));
    const F result = V::mul(V::to_float_toward_zero(sum[v]), V::as_float(unit));
    const uint32_t unsafe_lanes = V::bits(unsafe[v]);
    if (__builtin_expect(unsafe_lanes == 0, 1)) {
      V::store(d + v * lanes, result);
    } else {
      alignas(64) float results[lanes];
      V::store(results, result);
      for (uint32_t left = unsafe_lanes; left != 0; left &= left - 1) {
        const uint32_t lane = static_cast<uint32_t>(__builtin_ctz(left));
        results[lane] = __builtin_bit_cast(float, mma_element_reference(step, m + v * lanes + lane, n));
      }
      std::memcpy(d + v * lanes, results, sizeof results);
    }
  }
}

template <class V, int vectors, bool accumulate, uint32_t depth>
void compute(const MmaStep& step, const Operands& operands) {
  for (uint32_t n = 0; n < step.n; ++n) {
    for (uint32_t m = 0; m < step.m; m += vectors * V::lanes) {
      compute_block<V, vectors, accumulate, depth>(step, operands, m, n);
    }
  }
}

// `vectors` registers of sums are in flight; 64 rows must be a multiple of vectors * V::lanes.
template <class V, int vectors>
void run_step(const MmaStep& step) {
  static_assert(64 % (vectors * V::lanes) == 0 || (vectors * V::lanes) % 64 == 0);
  Operands operands;
  const uint32_t depth = step.depth();
  if (step.m == max_m) {
    decode(step.a_type, step.a, 0, depth * max_m, step.negate_a, operands.a, operands.a_exponent);
  } else {
    for (uint32_t k = 0; k < depth; ++k) {
      decode(step.a_type, step.a, k * max_m, step.m, step.negate_a, operands.a + k * max_m,
             operands.a_exponent + k * max_m);
    }
  }
  decode(step.b_type, step.b, 0, step.n * depth, step.negate_b, operands.b, operands.b_exponent);
  if (depth == 16) {
    step.accumulate ? compute<V, vectors, true, 16>(step, operands)
                    : compute<V, vectors, false, 16>(step, operands);
  } else {
    step.accumulate ? compute<V, vectors, true, 8>(step, operands)
                    : compute<V, vectors, false, 8>(step, operands);
  }
}

}  // namespace
}  // namespace fa4::sim
