// SPDX-License-Identifier: Apache-2.0
// ex2 on a named instruction set, for tests and benchmarks; ex2_approx() and ex2_approx_ftz() pick one by
// themselves.
#pragma once

#include "ex2.h"
#include "numerics/isa.h"

namespace fa4::sim {

// Throw std::invalid_argument when isa_supported(isa) is false.
void ex2_approx_ftz(Isa isa, const float* x, float* y);
void ex2_approx(Isa isa, const float* x, float* y);

// The kernels, one translation unit each. Call through the functions above: these do not ask what the CPU can
// do.
void ex2_approx_ftz_portable(const float* x, float* y);
void ex2_approx_ftz_avx2(const float* x, float* y);
void ex2_approx_ftz_avx512(const float* x, float* y);

}  // namespace fa4::sim
