// SPDX-License-Identifier: Apache-2.0
// ex2 for AVX-512 (F, BW, DQ, VL).
#include "ex2_dispatch.h"
#include "ex2_kernel.h"

namespace fa4::sim {

void ex2_approx_ftz_avx512(const float* x, float* y) {
  ex2_ftz_warp(x, y);
}

}  // namespace fa4::sim
