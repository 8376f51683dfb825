// SPDX-License-Identifier: Apache-2.0
// ex2.approx.f32 and ex2.approx.ftz.f32, bit for bit as an H200 computes them in all 2^32 inputs. Whether a
// B200 gives the same bits has not been measured.
#pragma once

#include <cstdint>

namespace fa4::sim {

// y[i] = 2^x[i] for 32 lanes. x and y may be the same array. Picks the CPU's instruction set on first use.
// NaN gives 0x7FFFFFFF, +Inf and x >= 128 give +Inf, -Inf gives +0.
// ftz: a result below 2^-126 is +0. Otherwise it is (2^(x/2))^2, the inner power as with ftz and the square
// rounded to nearest: what the assembler makes of the instruction for x < -126.
void ex2_approx_ftz(const float* x, float* y);
void ex2_approx(const float* x, float* y);

}  // namespace fa4::sim
