// SPDX-License-Identifier: Apache-2.0
// A function that calls itself.
#include "common.cuh"

__device__ __noinline__ uint32_t depth(uint32_t n) { return n < 2 ? n + 1 : depth(n - 1) * 3 + depth(n - 2); }

ROW(call_recursive) { out[threadIdx.x] = depth(in[threadIdx.x] % 9); }
