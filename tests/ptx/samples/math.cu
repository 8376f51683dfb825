// SPDX-License-Identifier: Apache-2.0
// PTX for the parser's tests: arithmetic of f32, f64, half, bfloat16 and 64-bit integers, compiled for a debugger.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

__device__ float total;

extern "C" __global__ void math(const float* in, const double* wide, const __half2* halves, float* out, int n) {
  float sum = 0;
  double product = 1.5;
#pragma unroll 4
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const float x = in[i];
    sum += sinf(x) + exp2f(x) * __fdividef(x, 3.0f) + rsqrtf(x) + __logf(x) + fmaxf(x, -1e-3f);
    product = product * wide[i] + sqrt(wide[i]) / (product + 1.0);
    const __half2 h = __hfma2(halves[i], halves[i], halves[0]);
    sum += __low2float(h) + __bfloat162float(__float2bfloat16(x));
    const float2 pair = __fmul2_rn(make_float2(x, sum), make_float2(2.0f, 0.5f));
    sum += pair.x - pair.y;
  }
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, offset);
  if (__any_sync(0xFFFFFFFFu, sum > 2.0f)) atomicAdd(&total, sum);
  const int64_t large = static_cast<int64_t>(n) * 0x123456789LL - (int64_t{1} << 40);
  out[threadIdx.x] = sum + static_cast<float>(product) + static_cast<float>(large % (n + 3)) +
                     __popc(n) + __clz(n) + __byte_perm(n, 3, 0x1234);
}
