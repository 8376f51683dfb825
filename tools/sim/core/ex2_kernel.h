// SPDX-License-Identifier: Apache-2.0
// ex2.approx.ftz.f32 for 32 lanes, in loops that the compiler vectorises. Included by one translation unit
// per instruction set; everything is in an unnamed namespace and calls no inline function of the standard
// library: code compiled for one instruction set must never be linked into another's.
//
// The rule of the unit: |x| is cut to 23 fractional bits and split into integer n and fraction f; for a
// negative x that is not an integer, -n - 1 and the ones' complement of f take their place. The result is 2^n
// times 2^f by table.
#pragma once

#include <cstdint>

#include "ex2_coefficients.h"
#include "interpolator.h"

namespace fa4::sim {
namespace {

// ex2_segments as two 32-bit words each.
struct Ex2Words {
  uint32_t constant[64];        // c0
  uint32_t slope_and_bend[64];  // c1 << 16 | c2
};

constexpr Ex2Words ex2_words() {
  Ex2Words words{};
  for (int i = 0; i < 64; ++i) {
    words.constant[i] = ex2_segments[i].c0;
    words.slope_and_bend[i] = ex2_segments[i].c1 << 16 | ex2_segments[i].c2;
  }
  return words;
}

alignas(64) constexpr Ex2Words segment_words = ex2_words();

// out[i] = table[index[i]]: the fetch of an instruction set that has nothing better.
struct ScalarFetch {
  static void fetch(const uint32_t (&table)[64], const uint32_t* index, uint32_t* out) {
    for (int i = 0; i < warp_lanes; ++i) out[i] = table[index[i]];
  }
};

template <class Table>
inline void ex2_ftz_warp(const float* x, float* y) {
  constexpr uint32_t fraction_mask = (1u << 23) - 1, infinity = 0x7F80'0000;
  int32_t exponent[warp_lanes];  // n
  uint32_t segment[warp_lanes];  // the six leading bits of f
  uint32_t offset[warp_lanes];   // the 17 others
  uint32_t square[warp_lanes];
  uint32_t significand[warp_lanes];  // 2^f * 2^23

  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, x[i]);
    const uint32_t magnitude = bits & 0x7FFF'FFFF;
    const uint32_t clamped =
        magnitude < 0x4340'0000 ? magnitude : 0x4340'0000;  // 192: beyond any finite result
    const int32_t e = static_cast<int32_t>(clamped >> 23) - 127;
    const uint32_t digits = (clamped & fraction_mask) | 1u << 23;
    const int32_t right = -e > 31 ? 31 : -e;
    const uint32_t fixed = e >= 0 ? digits << (e & 31) : digits >> (right & 31);
    const bool negative = (bits >> 31) != 0;
    const bool complement = negative && (fixed & fraction_mask) != 0;
    const int32_t integer = static_cast<int32_t>(fixed >> 23);
    const int32_t negated = complement ? -integer - 1 : -integer;
    exponent[i] = negative ? negated : integer;
    const uint32_t fraction = (complement ? ~fixed : fixed) & fraction_mask;
    segment[i] = fraction >> 17;
    offset[i] = fraction & 0x1'FFFF;
    square[i] = truncated_square(offset[i]);
  }

  uint32_t constant[warp_lanes], slope_and_bend[warp_lanes];
  Table::fetch(segment_words.constant, segment, constant);
  Table::fetch(segment_words.slope_and_bend, segment, slope_and_bend);

  for (int i = 0; i < warp_lanes; ++i) {
    // c0 * 2^13 + c1 * x + c2 * square + 6114, shifted right by 15, in 32 bits: the bits of c0 above the
    // point come last, and c1 * x, the one product that is too wide, is 2 * (c1 * (x / 2)) and the rest.
    const uint32_t c0 = constant[i], c1 = slope_and_bend[i] >> 16, c2 = slope_and_bend[i] & 0xFFFF;
    const uint32_t odd = c1 & (0u - (offset[i] & 1));
    const uint32_t small = odd + c2 * square[i] + ((c0 & 3) << 13) + ex2_rounding;
    significand[i] = (c0 >> 2) + ((c1 * (offset[i] >> 1) + (small >> 1)) >> 14);
  }

  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t magnitude = __builtin_bit_cast(uint32_t, x[i]) & 0x7FFF'FFFF;
    // The hidden bit of the significand adds one to the exponent field.
    const uint32_t scaled = significand[i] + (static_cast<uint32_t>(exponent[i] + 126) << 23);
    uint32_t result = exponent[i] < -126 ? 0u : scaled;
    result = exponent[i] > 127 ? infinity : result;
    result = magnitude > infinity ? 0x7FFF'FFFFu : result;
    y[i] = __builtin_bit_cast(float, result);
  }
}

}  // namespace
}  // namespace fa4::sim
