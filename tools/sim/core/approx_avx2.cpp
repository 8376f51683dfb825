// SPDX-License-Identifier: Apache-2.0
// The approximate functions for AVX2.
#include "approx_dispatch.h"
#include "approx_kernel.h"

namespace fa4::sim {

const ApproxKernels approx_avx2 = approx_kernels;

}  // namespace fa4::sim
