// SPDX-License-Identifier: Apache-2.0
// The approximate functions besides ex2: rcp, rsqrt, sqrt, lg2, sin, cos, tanh and the divisions made of rcp,
// bit for bit as an H200 computes them: the f32 functions in all 2^32 inputs, the divisions in 2^22 pairs of
// each kind of tests/sim/numerics/approx_cases.h. Whether a B200 gives the same bits has not been measured.
#pragma once

#include <cstdint>

namespace fa4::sim {

// name.approx.f32; _ftz: name.approx.ftz.f32. sin and cos are the same instructions with and without .ftz,
// and tanh has no .ftz form.
//
// NaN gives 0x7FFFFFFF everywhere; where a subnormal input is taken for a zero, it is one of its sign.
//   rcp    +-0 -> +-Inf, +-Inf -> +-0. ftz: subnormal inputs and results are zeros. Otherwise inputs below
//   2^-126
//          are multiplied by 2^24 and inputs above 2^126 by 2^-2, and the result likewise, rounded to
//          nearest.
//   rsqrt  +-0 -> +-Inf, +Inf -> +0, below zero -> NaN. Powers of four are exact.
//   sqrt   +-0 -> +-0, +Inf -> +Inf, below zero -> NaN.
//   lg2    +-0 -> -Inf, +Inf -> +Inf, below zero -> NaN, 1 -> +0. A fixed-point number of 36 fractional bits,
//   so
//          that near 1 the absolute error stays what it is elsewhere, about 2^-23. 2^-n is not exact.
//          ftz of these three: subnormal inputs are zeros. Otherwise they are multiplied by 2^24 and the
//          result is corrected in f32.
//   sin    x / (2 pi) in f32, rounded toward zero, is cut to 25 fractional bits: below |x| of 2 pi 2^-25 the
//   cos    result is +-0 (sin) or 1 (cos), and beyond 2^24 whole turns it has no digits of x. +-Inf -> NaN.
//   tanh   |x| < 2^-8 -> x, subnormal or not; |x| >= 8 -> +-1.
enum class ApproxFunction : uint8_t {
  rcp_ftz,
  rcp,
  rsqrt_ftz,
  rsqrt,
  sqrt_ftz,
  sqrt,
  lg2_ftz,
  lg2,
  sin,
  cos,
  tanh
};
inline constexpr int approx_count = 11;

// y[i] = function(x[i]) for 32 lanes. x and y may be the same array. Picks the CPU's instruction set on first
// use.
void approx(ApproxFunction function, const float* x, float* y);

// div.approx{.ftz}.f32 and div.full{.ftz}.f32, which multiply a by rcp of b.
//   approx      b below 2^-126 in magnitude (unless ftz): both are multiplied by 2^24 first.
//   full        so too, and |b| above 2^126: both are multiplied by 2^-2 first.
// ftz: every operand and result of these products is flushed.
enum class Division : uint8_t { approx_ftz, approx, full_ftz, full };

// y[i] = a[i] / b[i] for 32 lanes. The arrays may be the same.
void divide_approx(Division division, const float* a, const float* b, float* y);

}  // namespace fa4::sim
