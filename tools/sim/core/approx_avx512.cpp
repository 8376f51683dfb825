// SPDX-License-Identifier: Apache-2.0
// The approximate functions for AVX-512 (F, BW, DQ, VL).
#include "approx_dispatch.h"
#include "approx_kernel.h"

namespace fa4::sim {

const ApproxKernels approx_avx512 = approx_kernels;

}  // namespace fa4::sim
