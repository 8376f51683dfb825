// SPDX-License-Identifier: Apache-2.0
// PTX for the parser's tests: loops, switches, calls, structs by value, shared, local and constant arrays.
#include <cstdint>

__constant__ float weights[4] = {1.0f, 2.0f, -3.0f, 4.5f};
__constant__ uint16_t halves[3] = {1, 2, 0xFFFF};
__device__ int counter = 7;
__device__ double threshold = 0.25;
__device__ unsigned char bytes[5] = {1, 2, 3};
__managed__ int shared_with_host = 3;
extern __shared__ __align__(1024) unsigned char dynamic_bytes[];

struct Pack {
  float a;
  int b[5];
};

__noinline__ __device__ float polynomial(float x, int n) {
  float sum = 0;
  for (int i = 0; i < n; i++) sum = sum * x + weights[i & 3];
  return sum;
}

__noinline__ __device__ Pack bump(Pack pack, int n) {
  pack.b[n] += counter;
  return pack;
}

__forceinline__ __device__ float inlined(float x, float* out) {
  *out = x * 3.0f;  // the innermost position
  return x + 1.0f;
}

template <int Case>
__noinline__ __device__ void store_case(float* out) {
  out[Case] = Case;
}

extern "C" __global__ void __launch_bounds__(128, 1)
    control(const float* __restrict__ in, float* out, int n, const __grid_constant__ Pack pack) {
  __shared__ float buffer[128];
  float local[32];
  for (int i = 0; i < 32; i++) local[(i * n) & 31] = in[i];
  buffer[threadIdx.x] = local[n & 31];
  __syncthreads();
  const Pack bumped = bump(pack, n);
  float v = polynomial(buffer[127 - threadIdx.x], n);
  switch (n) {
    case 0: store_case<0>(out); break;
    case 1: store_case<1>(out); break;
    case 2: store_case<2>(out + 1); break;
    case 3: store_case<3>(out + n); break;
    case 4: store_case<4>(out + 2 * n); break;
    case 5: store_case<5>(out); v = in[4]; break;
    case 6: store_case<6>(out); break;
    case 7: v += halves[n & 1] + bytes[n & 3]; break;
    default: v += shared_with_host;
  }
  if (v > threshold) v = inlined(v, out + 2);
  out[threadIdx.x] = v + dynamic_bytes[n] + bumped.b[n];
}
