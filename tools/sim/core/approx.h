// SPDX-License-Identifier: Apache-2.0
// The approximate functions besides ex2: rcp, rsqrt, sqrt, lg2, sin, cos, tanh and the divisions made of rcp,
// bit for bit as an H200 computes them: the f32 functions in all 2^32 inputs, the divisions in 2^22 pairs of
// each kind of tests/sim/numerics/approx_cases.h. Whether a B200 gives the same bits has not been measured.
#pragma once

#include <cstdint>

namespace fa4::sim {

// name.approx.f32; _ftz: name.approx.ftz.f32. sin and cos are the same instructions with and without
// .ftz, and tanh has no .ftz form.
//
// NaN gives 0x7FFFFFFF. What else is not the value of a table:
// rcp: +-0 gives +-Inf, +-Inf gives +-0. ftz: subnormal inputs and results are zeros of their sign.
//   Otherwise an input below 2^-126 is multiplied by 2^24 and one above 2^126 by 2^-2, and the result
//   likewise, rounded to nearest.
// rsqrt: +-0 gives +-Inf, +Inf gives +0, a negative input NaN. Powers of four are exact.
// sqrt: +-0 gives +-0, +Inf gives +Inf, a negative input NaN.
// lg2: +-0 gives -Inf, +Inf gives +Inf, a negative input NaN, 1 gives +0. The result is cut from a
//   fixed-point number of 36 fractional bits, whose error near 1 is what it is elsewhere, about 2^-23;
//   2^-n is not exact.
// rsqrt, sqrt and lg2, ftz: subnormal inputs are zeros of their sign. Otherwise they are multiplied by
//   2^24 and the result is corrected in f32.
// sin and cos: x / (2 pi), an f32 rounded toward zero, is cut to 25 fractional bits. So sin is +-0 and
//   cos 1 below 2 pi 2^-25 in magnitude and from 2^23 turns on. +-Inf gives NaN.
// tanh: |x| < 2^-8 gives x, subnormal or not, |x| >= 8 gives +-1.
// clang-format off
enum class ApproxFunction : uint8_t { rcp_ftz, rcp, rsqrt_ftz, rsqrt, sqrt_ftz, sqrt, lg2_ftz, lg2, sin, cos, tanh };
// clang-format on
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
