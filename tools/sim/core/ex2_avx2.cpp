// SPDX-License-Identifier: Apache-2.0
// ex2 for AVX2.
#include "ex2_dispatch.h"
#include "ex2_kernel.h"

namespace fa4::sim {

void ex2_approx_ftz_avx2(const float* x, float* y) {
  ex2_ftz_warp<ScalarFetch>(x, y);
}

}  // namespace fa4::sim
