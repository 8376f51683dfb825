// SPDX-License-Identifier: Apache-2.0
// The tensor-core step on a named instruction set, for tests and benchmarks; mma_step() picks one by itself.
#pragma once

#include "mma.h"
#include "numerics/isa.h"

namespace fa4::sim {

// As mma_step(), with the kernels of `isa`. Throws std::invalid_argument when isa_supported(isa) is false.
void mma_step(Isa isa, const MmaStep& step);

// The kernels, one translation unit each. Call through the functions above: these do not ask what the CPU can
// do.
void mma_step_portable(const MmaStep& step);
void mma_step_avx2(const MmaStep& step);
void mma_step_avx512(const MmaStep& step);

}  // namespace fa4::sim
