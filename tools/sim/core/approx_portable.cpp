// SPDX-License-Identifier: Apache-2.0
// The approximate functions for any processor.
#include "approx_dispatch.h"
#include "approx_kernel.h"

namespace fa4::sim {

const ApproxKernels approx_portable = approx_kernels;

}  // namespace fa4::sim
