// SPDX-License-Identifier: Apache-2.0
// The approximate functions on a named instruction set, for tests and benchmarks; approx() picks one by
// itself.
#pragma once

#include "approx.h"
#include "numerics/isa.h"

namespace fa4::sim {

// Throws std::invalid_argument when isa_supported(isa) is false.
void approx(Isa isa, ApproxFunction function, const float* x, float* y);

// The unit's own operations, 32 lanes each, one translation unit for each instruction set: subnormal inputs
// and results are zeros (but for tanh). These do not ask what the CPU can do.
using ApproxKernel = void (*)(const float* x, float* y);
struct ApproxKernels {
  ApproxKernel rcp, rsqrt, sqrt, lg2, sin, cos, tanh;
};
extern const ApproxKernels approx_portable, approx_avx2, approx_avx512;

}  // namespace fa4::sim
