// SPDX-License-Identifier: Apache-2.0
// Divergence and reconvergence, calls, local and constant memory, module variables, as nvcc writes them.
#include "common.cuh"

__constant__ uint32_t table[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
__constant__ uint8_t bytes[8] = {255, 1, 128, 7, 9, 200, 3, 77};
__device__ uint32_t counters[4] = {7, 8, 9, 10};
__device__ int32_t negative = -5;
__device__ uint32_t arrivals;

ROW(nested_branches) {
  const uint32_t v = in[threadIdx.x];
  uint32_t r = 1;
  if (v & 1) {
    if (v & 2) r += 10; else if (v & 4) r *= 3; else r ^= 0xFF;
  } else {
    for (uint32_t i = 0; i < (v >> 8) % 5; ++i) r = r * 7 + i;
  }
  __syncwarp();
  out[threadIdx.x] = r + __shfl_xor_sync(~0u, r, 1);
}

ROW(uneven_loops) {
  uint32_t v = in[threadIdx.x] >> 16, steps = 0;
  while (v != 1 && steps < 200) {
    v = v & 1 ? 3 * v + 1 : v >> 1;
    ++steps;
    if (v == 0) break;
  }
  out[threadIdx.x] = steps * 65536 + (v & 0xFFFF);
}

ROW(early_return) {
  const uint32_t v = in[threadIdx.x];
  out[threadIdx.x] = 5;
  if (v % 3 == 0) return;
  out[threadIdx.x] = v;
  if (v % 3 == 1) return;
  out[threadIdx.x] = v ^ out[threadIdx.x] * 3;
}

ROW(switch_table) {
  const uint32_t v = in[threadIdx.x];
  uint32_t r;
  switch (v % 11) {
    case 0: r = v + 1; break;
    case 1: r = v * 3; break;
    case 2: r = v ^ 0x1234; break;
    case 3: r = v >> 3; break;
    case 4: r = v - 77; break;
    case 5: r = __brev(v); break;
    case 6: r = v * v; break;
    case 7: r = ~v; break;
    case 8: r = v << 5; break;
    default: r = 42; break;
  }
  out[threadIdx.x] = r;
}

// A lane waits for what a lower lane of its warp does: only independent program counters let this end.
ROW(lanes_in_turn) {
  __shared__ volatile uint32_t turn[32];
  const uint32_t warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) turn[warp] = 0;
  __syncthreads();
  uint32_t tries = 0;
  while (turn[warp] != lane && tries < 100000000) ++tries;
  out[threadIdx.x] = turn[warp];
  __threadfence_block();
  turn[warp] = lane + 1;
}

// A spin lock within a warp: every lane gets its turn.
ROW(spin_lock) {
  __shared__ uint32_t lock, sum;
  if (threadIdx.x == 0) lock = sum = 0;
  __syncthreads();
  bool done = false;
  for (uint32_t tries = 0; !done && tries < 1000000; ++tries) {
    if (atomicCAS(&lock, 0, 1) == 0) {
      volatile uint32_t* s = &sum;
      *s = *s + in[threadIdx.x];
      __threadfence_block();
      atomicExch(&lock, 0);
      done = true;
    }
  }
  __syncthreads();
  out[threadIdx.x] = sum;
}

__device__ __noinline__ uint32_t mix(uint32_t a, uint32_t b) { return a * 31 + (b ^ a >> 7); }
__device__ __noinline__ float4 spread(float a, const float4& b, double c) { return {a + b.w, a - b.z, a * b.y, float(c)}; }
struct Pair { uint64_t x; uint16_t y; uint8_t z[3]; };
__device__ __noinline__ Pair twist(Pair p, uint8_t k) { p.x = p.x * 3 + k; p.y ^= k; p.z[1] += k; return p; }

ROW(call_scalar) { out[threadIdx.x] = mix(in[threadIdx.x], in[threadIdx.x + 128]) + mix(threadIdx.x, 5); }
ROW(call_divergent) {
  const uint32_t v = in[threadIdx.x];
  uint32_t r = v;
  if (v & 1) r = mix(v, 3);
  else if (v & 2) r = mix(r, mix(v, 9));
  out[threadIdx.x] = r + mix(r, 1);
}
ROW(call_vector) {
  const float a = float(in[threadIdx.x] >> 8);
  const float4 r = spread(a, float4{a, a * 2, a + 1, 3}, a * 0.1);
  reinterpret_cast<float4*>(out)[threadIdx.x] = r;
}
ROW(call_struct) {
  Pair p{in[threadIdx.x], uint16_t(threadIdx.x), {1, 2, 3}};
  p = twist(p, uint8_t(in[threadIdx.x + 128]));
  p = twist(p, p.z[1]);
  out[threadIdx.x] = uint32_t(p.x) + uint32_t(p.x >> 32) + p.y * 3 + p.z[0] + p.z[1] * 5 + p.z[2] * 7;
}

ROW(local_array) {
  uint32_t a[32];
  for (int i = 0; i < 32; ++i) a[i] = in[(threadIdx.x + i) % 128];
  for (int i = 0; i < 64; ++i) {
    const uint32_t x = a[i % 32] % 32, y = (a[(i + 7) % 32] >> 9) % 32;
    const uint32_t t = a[x];
    a[x] = a[y] + i;
    a[y] = t;
  }
  uint32_t r = 0;
  for (int i = 0; i < 32; ++i) r = r * 33 + a[(i + threadIdx.x) % 32];
  out[threadIdx.x] = r;
}
ROW(local_bytes) {
  uint8_t a[64];
  for (int i = 0; i < 64; ++i) a[i] = uint8_t(in[threadIdx.x] >> (i % 25));
  uint32_t at = threadIdx.x % 64, r = 0;
  for (int i = 0; i < 40; ++i) {
    r = r * 5 + a[at];
    a[(at + 1) % 64] ^= uint8_t(r);
    at = (at + a[at]) % 64;
  }
  out[threadIdx.x] = r;
}
ROW(constant_memory) {
  const uint32_t v = in[threadIdx.x];
  out[threadIdx.x] = table[v % 16] * 1000 + table[threadIdx.x % 16] + bytes[v % 8] * 7 + words.word[v % 24 % 4];
}
ROW(module_variables) {
  if (threadIdx.x < 4) out[threadIdx.x] = counters[threadIdx.x] + negative;
  else out[threadIdx.x] = threadIdx.x;
}
ROW(contended_atomics) {
  __shared__ uint32_t s[4];
  if (threadIdx.x < 4) s[threadIdx.x] = threadIdx.x == 1 ? ~0u : 0;
  if (threadIdx.x < 8) out[threadIdx.x] = threadIdx.x == 1 ? ~0u : 0;
  __syncthreads();
  const uint32_t v = in[threadIdx.x];
  atomicAdd(&s[0], v); atomicMin(&s[1], v); atomicMax(&s[2], v); atomicXor(&s[3], v);
  atomicAdd(&out[0], v); atomicMin(&out[1], v); atomicMax(&out[2], v); atomicXor(&out[3], v);
  __syncthreads();
  if (threadIdx.x < 4) out[4 + threadIdx.x] = s[threadIdx.x];
}
// Blocks add their parts to one sum; the last one to come reads all of it.
ROW(last_block) {
  __shared__ uint32_t last;
  __shared__ uint32_t sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[blockIdx.x * 128 + threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) {
    out[16 + blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(&arrivals, gridDim.x - 1) == gridDim.x - 1;  // back at 0 for the next launch
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    uint32_t total = 0;
    for (uint32_t b = 0; b < gridDim.x; ++b) total += reinterpret_cast<volatile uint32_t*>(out)[16 + b];
    out[0] = total;
  }
}
ROW(dynamic_shared) {
  extern __shared__ uint32_t dynamic[];
  __shared__ uint16_t fixed[130];
  dynamic[threadIdx.x] = in[threadIdx.x];
  fixed[threadIdx.x] = uint16_t(in[threadIdx.x + 128]);
  __syncthreads();
  out[threadIdx.x] = dynamic[(threadIdx.x * 7 + 3) % 128] + fixed[127 - threadIdx.x];
}
ROW(block_reduction) {
  __shared__ float parts[32];
  float v = float(int(in[threadIdx.x]) >> 12);
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
    for (int d = 16; d; d /= 2) v += __shfl_xor_sync(~0u, v, d);
  }
  out[threadIdx.x] = threadIdx.x < 32 ? __float_as_uint(v) : 0;
}
ROW(grid_dependency) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
  out[threadIdx.x] = in[threadIdx.x];
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
ROW(three_dimensions) {
  const uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const uint32_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = threadIdx.x | threadIdx.y << 4 | threadIdx.z << 8 | lane << 16 | block << 24;
}
