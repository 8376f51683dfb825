// SPDX-License-Identifier: Apache-2.0
// The unit's approximate functions for 32 lanes, in loops that the compiler vectorises. Included by one
// translation unit per instruction set; everything is in an unnamed namespace and calls no inline function of
// the standard library (see ex2_kernel.h).
//
// All of them reduce the input to a segment and a 17-bit offset x in it, take
//   sum = c0 * 2^shift + bias + c1 * x + c2 * square(x) * 2^bend_shift
// from the segment's row, and cut the sum: to 24 bits (rcp, rsqrt, sqrt), to a fraction of a fixed-point
// number (lg2, sin, cos) or not at all (tanh); what is then wider than a float's significand is cut again.
#pragma once

#include <cstdint>

#include "approx_dispatch.h"
#include "approx_tables.h"
#include "interpolator.h"

namespace fa4::sim {
namespace {

constexpr uint32_t approx_nan = 0x7FFF'FFFF, approx_infinity = 0x7F80'0000, approx_one = 0x3F80'0000;
constexpr uint32_t smallest_normal = 0x0080'0000, fraction_bits = 0x007F'FFFF, sign_bit = 0x8000'0000;

// A function's rows as the sums need them.
template <int rows>
struct Quadratics {
  int64_t constant[rows];
  int32_t slope[rows], bend[rows];
};
template <int rows>
constexpr Quadratics<rows> quadratics(const Segment (&segments)[rows], const SumFormat& format) {
  Quadratics<rows> q{};
  for (int i = 0; i < rows; ++i) {
    q.constant[i] = (static_cast<int64_t>(segments[i].c0) << format.constant_shift) + format.bias;
    q.slope[i] = segments[i].c1;
    q.bend[i] = segments[i].c2 * (1 << format.bend_shift);
  }
  return q;
}
constexpr auto rcp_quadratics = quadratics(rcp_segments, rcp_format);
constexpr auto rsqrt_quadratics = quadratics(rsqrt_segments, rsqrt_format);
constexpr auto sqrt_quadratics = quadratics(sqrt_segments, sqrt_format);
constexpr auto lg2_quadratics = quadratics(lg2_segments, lg2_format);
constexpr auto sin_quadratics = quadratics(sin_segments, sin_format);
constexpr auto tanh_quadratics = quadratics(tanh_segments, tanh_format);

struct Reduced {
  uint32_t segment[warp_lanes];
  uint32_t offset[warp_lanes];  // 17 bits
};

template <int rows>
inline void interpolate(const Quadratics<rows>& q, const Reduced& at, int64_t* sum) {
  // Fetched one by one in a loop of their own: the arithmetic that follows is vectorised.
  int64_t constant[warp_lanes];
  int32_t slope[warp_lanes], bend[warp_lanes];
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t row = at.segment[i];
    constant[i] = q.constant[row];
    slope[i] = q.slope[row];
    bend[i] = q.bend[row];
  }
  for (int i = 0; i < warp_lanes; ++i) {
    const int32_t x = static_cast<int32_t>(at.offset[i]);
    const int32_t square = static_cast<int32_t>(truncated_square(at.offset[i]));
    sum[i] = constant[i] + static_cast<int64_t>(slope[i]) * x + static_cast<int64_t>(bend[i]) * square;
  }
}

inline uint32_t bits_of(float x) {
  return __builtin_bit_cast(uint32_t, x);
}
inline uint32_t magnitude_of(float x) {
  return bits_of(x) & ~sign_bit;
}

// The bits of the float v / 2^unit, cut to 24 bits, for 0 <= v < 2^52.
template <int unit>
inline uint32_t cut_to_float(int64_t v) {
  // 2^52 + v is exact, its significand is v.
  const double exact = __builtin_bit_cast(double, v | 0x4330'0000'0000'0000) - 0x1p52;
  const uint32_t high = static_cast<uint32_t>(__builtin_bit_cast(uint64_t, exact) >> 29);
  return v == 0 ? 0u : high - (static_cast<uint32_t>(1023 - 127 + unit) << 23);
}

inline void rcp_warp(const float* x, float* y) {
  Reduced at;
  int64_t sum[warp_lanes];
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t fraction = bits_of(x[i]) & fraction_bits;
    at.segment[i] = fraction >> 16;
    at.offset[i] = (fraction & 0xFFFF) << 1;
  }
  interpolate(rcp_quadratics, at, sum);
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t magnitude = magnitude_of(x[i]), sign = bits_of(x[i]) & sign_bit;
    const int32_t exponent = static_cast<int32_t>(magnitude >> 23) - 127;
    // 1 / significand times 2^24, in [2^23, 2^24]: its leading bit adds one to the exponent field.
    const int32_t significand = static_cast<int32_t>(sum[i] >> 16);
    const int32_t scaled = significand + (125 - exponent) * static_cast<int32_t>(smallest_normal);
    uint32_t result = scaled < static_cast<int32_t>(smallest_normal) ? 0u : static_cast<uint32_t>(scaled);
    result = magnitude == approx_infinity ? 0u : result;
    result = magnitude < smallest_normal ? approx_infinity : result;
    result |= sign;
    result = magnitude > approx_infinity ? approx_nan : result;
    y[i] = __builtin_bit_cast(float, result);
  }
}

// The exponent's parity and the significand: 64 segments for [1, 2), 64 for [2, 4).
inline void reduce_by_four(const float* x, Reduced& at) {
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t bits = bits_of(x[i]);
    at.segment[i] = ((bits >> 17) & 127) ^ 64;  // an odd exponent field is an even exponent
    at.offset[i] = bits & 0x1'FFFF;
  }
}

// Half the exponent of x, rounded down.
inline int32_t half_exponent(uint32_t magnitude) {
  return (static_cast<int32_t>(magnitude >> 23) - 127) >> 1;
}

// A result of either root, with what both do to special inputs.
inline float root_or_special(float x, uint32_t result, uint32_t of_infinity, uint32_t of_zero) {
  const uint32_t magnitude = magnitude_of(x), sign = bits_of(x) & sign_bit;
  result = magnitude == approx_infinity ? of_infinity : result;
  result = sign != 0 || magnitude > approx_infinity ? approx_nan : result;
  result = magnitude < smallest_normal ? sign | of_zero : result;
  return __builtin_bit_cast(float, result);
}

inline void rsqrt_warp(const float* x, float* y) {
  Reduced at;
  int64_t sum[warp_lanes];
  reduce_by_four(x, at);
  interpolate(rsqrt_quadratics, at, sum);
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t magnitude = magnitude_of(x[i]);
    const bool power_of_four = (magnitude & 0x00FF'FFFF) == smallest_normal;
    const uint32_t significand = power_of_four ? 1u << 24 : static_cast<uint32_t>(sum[i] >> 16);
    const uint32_t result = significand + (static_cast<uint32_t>(125 - half_exponent(magnitude)) << 23);
    y[i] = root_or_special(x[i], result, 0, approx_infinity);
  }
}

inline void sqrt_warp(const float* x, float* y) {
  Reduced at;
  int64_t sum[warp_lanes];
  reduce_by_four(x, at);
  interpolate(sqrt_quadratics, at, sum);
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t significand = static_cast<uint32_t>(sum[i] >> 17);
    const uint32_t result =
        significand + (static_cast<uint32_t>(126 + half_exponent(magnitude_of(x[i]))) << 23);
    y[i] = root_or_special(x[i], result, approx_infinity, 0);
  }
}

inline void lg2_warp(const float* x, float* y) {
  Reduced at;
  int64_t sum[warp_lanes];
  for (int i = 0; i < warp_lanes; ++i) {
    at.segment[i] = (bits_of(x[i]) & fraction_bits) >> 17;
    at.offset[i] = bits_of(x[i]) & 0x1'FFFF;
  }
  interpolate(lg2_quadratics, at, sum);
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t bits = bits_of(x[i]), magnitude = magnitude_of(x[i]);
    const int64_t exponent = static_cast<int64_t>(magnitude >> 23) - 127;
    const int64_t fixed = exponent * (int64_t{1} << 36) + (sum[i] >> 2);
    // A negative number's magnitude is its ones' complement.
    uint32_t result = cut_to_float<36>(fixed ^ fixed >> 63) | (exponent < 0 ? sign_bit : 0u);
    result = magnitude == approx_one ? 0u : result;
    result = magnitude == approx_infinity ? approx_infinity : result;
    result = bits > sign_bit || magnitude > approx_infinity ? approx_nan : result;
    result = magnitude < smallest_normal ? sign_bit | approx_infinity : result;
    y[i] = __builtin_bit_cast(float, result);
  }
}

// sin of x plus `quarters` quarter turns.
template <uint32_t quarters>
inline void sine_warp(const float* x, float* y) {
  Reduced at;
  int64_t sum[warp_lanes];
  uint32_t negative[warp_lanes];  // sign_bit or 0
  for (int i = 0; i < warp_lanes; ++i) {
    // x / (2 pi), exact in double and cut to 24 bits, as a fixed-point number of turns with 25 fractional
    // bits.
    const double product =
        static_cast<double>(__builtin_bit_cast(float, magnitude_of(x[i]))) * double{0.15915493667125701904f};
    const uint64_t bits = __builtin_bit_cast(uint64_t, product);
    const uint32_t digits = (static_cast<uint32_t>(bits >> 29) & fraction_bits) | smallest_normal;
    const int32_t left = static_cast<int32_t>(bits >> 52) - 1023 + 2;
    const uint32_t up = static_cast<uint32_t>(left > 31 ? 31 : left),
                   down = static_cast<uint32_t>(left < -31 ? 31 : -left);
    const uint32_t turns = (left >= 0 ? digits << (up & 31) : digits >> (down & 31)) + (quarters << 23);
    const uint32_t quarter = turns >> 23, f = (quarter & 1) != 0 ? ~turns : turns;
    negative[i] = quarter << 30 & sign_bit;
    at.segment[i] = (f & fraction_bits) >> 17;
    at.offset[i] = f & 0x1'FFFF;
  }
  interpolate(sin_quadratics, at, sum);
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t sign = quarters == 0 ? bits_of(x[i]) & sign_bit : 0;  // cos is even
    uint32_t result = cut_to_float<37>(sum[i] >> 1) | (negative[i] ^ sign);
    result = magnitude_of(x[i]) >= approx_infinity ? approx_nan : result;
    y[i] = __builtin_bit_cast(float, result);
  }
}

inline void tanh_warp(const float* x, float* y) {
  constexpr int32_t last = tanh_binades - 1;
  Reduced at;
  int64_t sum[warp_lanes];
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t magnitude = magnitude_of(x[i]);
    const int32_t above = static_cast<int32_t>(magnitude >> 23) - 127 - tanh_first_exponent;
    const int32_t binade = above < 0 ? 0 : above > last ? last : above;
    const uint32_t digits = (magnitude & fraction_bits) >> tanh_dropped_bits[binade];
    at.segment[i] = tanh_first_segment[binade] + (digits >> 17);
    at.offset[i] = digits & 0x1'FFFF;
  }
  interpolate(tanh_quadratics, at, sum);
  for (int i = 0; i < warp_lanes; ++i) {
    const uint32_t magnitude = magnitude_of(x[i]), sign = bits_of(x[i]) & sign_bit;
    constexpr uint32_t from = static_cast<uint32_t>(127 + tanh_first_exponent) << 23;
    constexpr uint32_t to = static_cast<uint32_t>(127 + tanh_first_exponent + tanh_binades) << 23;
    uint32_t result = cut_to_float<39>(sum[i]);
    result = magnitude < from ? magnitude : result;
    result = magnitude >= to ? approx_one : result;
    result |= sign;
    result = magnitude > approx_infinity ? approx_nan : result;
    y[i] = __builtin_bit_cast(float, result);
  }
}

constexpr ApproxKernels approx_kernels{rcp_warp,     rsqrt_warp,   sqrt_warp, lg2_warp,
                                       sine_warp<0>, sine_warp<1>, tanh_warp};

}  // namespace
}  // namespace fa4::sim
