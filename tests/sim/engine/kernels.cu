// SPDX-License-Identifier: Apache-2.0
// Ordinary CUDA kernels, compiled by nvcc: control flow, shared memory, warp-wide functions, atomics. The host computes
// the same in cuda_test.cpp.
#include <cstdint>

__device__ uint32_t device_words[8] = {3, 1, 4, 1, 5, 9, 2, 6};
__constant__ int constant_words[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53};
__device__ uint32_t device_counter;

// Steps until x reaches 1: every lane leaves the loop at another time.
extern "C" __global__ void collatz(const uint32_t* in, uint32_t* out, uint32_t n) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;  // lanes of the last warp exit early
  uint32_t x = in[i], steps = 0;
  while (x != 1) {
    x = x & 1 ? 3 * x + 1 : x / 2;
    ++steps;
  }
  out[i] = steps;
}

// Nested divergent loops with break and continue.
extern "C" __global__ void nested(const uint32_t* in, uint32_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t x = in[i], sum = 0;
  for (uint32_t a = 0; a < (x & 15); ++a) {
    if (a == (x >> 4 & 15)) continue;
    for (uint32_t b = a;; b += 1 + (x & 3)) {
      if (b > (x >> 8 & 31)) break;
      if ((a ^ b) % 3 == 0) continue;
      for (uint32_t c = 0; c < b; ++c) {
        sum = sum * 31 + a + b + c;
        if ((sum & 7) == 3) break;
        if (sum % 97 == 5) {
          out[i] = sum;
          return;  // from the innermost loop
        }
      }
    }
    if ((sum & 0xF000) == 0x5000) break;
  }
  out[i] = sum ^ 0x55;
}

extern "C" __global__ void block_sum(const int32_t* in, int32_t* out) {
  __shared__ int32_t part[256];
  part[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (int step = 128; step > 0; step >>= 1) {
    if (threadIdx.x < step) part[threadIdx.x] += part[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}

// Results of shuffles and votes, 16 words a thread.
extern "C" __global__ void warp_wide(const uint32_t* in, uint32_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  const uint32_t x = in[i], all = 0xFFFFFFFFu;
  uint32_t* o = out + 16 * i;
  o[0] = __shfl_sync(all, x, 5);
  o[1] = __shfl_sync(all, x, (lane * 7) % 32);
  o[2] = __shfl_sync(all, x, 3, 8);
  o[3] = __shfl_up_sync(all, x, 1);
  o[4] = __shfl_up_sync(all, x, 3, 16);
  o[5] = __shfl_down_sync(all, x, 2);
  o[6] = __shfl_down_sync(all, x, 5, 8);
  o[7] = __shfl_xor_sync(all, x, 16);
  o[8] = __shfl_xor_sync(all, x, 3, 4);
  o[9] = __ballot_sync(all, x & 1);
  o[10] = uint32_t(__any_sync(all, x % 61 == 0)) * 2 + uint32_t(__all_sync(all, x != 77));
  o[11] = __reduce_add_sync(all, x);
  o[12] = uint32_t(__reduce_min_sync(all, int(x)));
  o[13] = __reduce_max_sync(all, x);
  o[14] = __reduce_xor_sync(all, x);
  uint32_t half = 0;
  if (lane < 16) half = __ballot_sync(0xFFFFu, x & 2) | __shfl_xor_sync(0xFFFFu, x, 1) << 16;
  else half = __ballot_sync(0xFFFF0000u, x & 4);
  o[15] = half;
}

// Local arrays indexed at run time, constant memory, module variables.
extern "C" __global__ void arrays(const uint32_t* in, uint32_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  uint32_t x = in[i];
  uint32_t local[24];
  for (int k = 0; k < 24; ++k) local[k] = x + uint32_t(k * k);
  for (int k = 0; k < 40; ++k) {
    const uint32_t at = x % 24;
    local[at] += uint32_t(constant_words[x % 16]);
    x = x * 1664525u + 1013904223u + local[(at * 5 + 1) % 24];
  }
  uint32_t sum = 0;
  for (int k = 0; k < 24; ++k) sum ^= local[k] * uint32_t(k + 1);
  out[i] = sum + device_words[x % 8];
}

// Order-independent results of atomics from many CTAs.
extern "C" __global__ void atomics(const uint32_t* in, uint32_t* histogram, uint64_t* sums, int32_t* extremes) {
  const uint32_t x = in[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&histogram[x % 64], 1u);
  atomicAdd(reinterpret_cast<unsigned long long*>(&sums[x % 4]), (unsigned long long)(x) << 20);
  atomicMax(&extremes[0], int32_t(x));
  atomicMin(&extremes[1], int32_t(x));
  atomicOr(reinterpret_cast<uint32_t*>(&extremes[2]), x);
  atomicAnd(reinterpret_cast<uint32_t*>(&extremes[3]), x | 0xF0u);
  atomicXor(reinterpret_cast<uint32_t*>(&extremes[4]), x);
  __shared__ uint32_t count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicInc(&count, 0xFFFFFFFFu);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&device_counter, count);
}

// Every lane of every CTA takes the same lock: lanes of a warp must make progress one by one.
extern "C" __global__ void lock(uint32_t* word, volatile uint32_t* value, uint32_t rounds) {
  for (uint32_t k = 0; k < rounds; ++k) {
    bool done = false;
    while (!done) {
      if (atomicCAS(word, 0u, 1u) == 0u) {
        __threadfence();
        *value = *value + 1;
        __threadfence();
        atomicExch(word, 0u);
        done = true;
      }
    }
  }
}

// Lane 0 waits for lane 31 of its own warp.
extern "C" __global__ void lane_flag(uint32_t* out) {
  __shared__ volatile uint32_t flag;
  if (threadIdx.x == 0) flag = 0;
  __syncwarp();
  if (threadIdx.x == 0) {
    while (flag == 0) {
    }
    out[0] = flag;
  } else if (threadIdx.x == 31) {
    flag = 41;
  }
  out[threadIdx.x + 1] = threadIdx.x;
}

// CTA k waits for CTA k + 1, the last one starts: only CTAs that are resident together get through.
extern "C" __global__ void cta_chain(volatile uint32_t* flags, uint32_t* out) {
  if (threadIdx.x == 0) {
    if (blockIdx.x + 1 < gridDim.x) {
      while (flags[blockIdx.x + 1] == 0) {
      }
    }
    __threadfence();
    flags[blockIdx.x] = gridDim.x - blockIdx.x;
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = flags[blockIdx.x];
}

// A ring of two buffers between a producer and a consumer warp: named barriers 1-4, each of 64 threads.
extern "C" __global__ void named_barriers(const uint32_t* in, uint32_t* out, int n) {
  __shared__ uint32_t slot[2][32];
  const uint32_t lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int k = 0; k < n; ++k) {
      if (k >= 2) asm volatile("bar.sync %0, 64;" ::"r"(3 + k % 2) : "memory");
      slot[k % 2][lane] = in[k * 32 + lane] * 3;
      asm volatile("bar.arrive %0, 64;" ::"r"(1 + k % 2) : "memory");
    }
  } else {
    for (int k = 0; k < n; ++k) {
      asm volatile("bar.sync %0, 64;" ::"r"(1 + k % 2) : "memory");
      out[k * 32 + lane] = slot[k % 2][31 - lane];
      if (k + 2 < n) asm volatile("bar.arrive %0, 64;" ::"r"(3 + k % 2) : "memory");
    }
  }
}

// A whole warp leaves before the others meet at __syncthreads.
extern "C" __global__ void early_warp(uint32_t* out) {
  __shared__ uint32_t words[96];
  if (threadIdx.x / 32 == 1) return;
  words[threadIdx.x] = threadIdx.x * 5;
  __syncthreads();
  out[threadIdx.x] = words[95 - threadIdx.x];
}

// One lane works for long while the others wait where the paths meet; then the whole warp is needed at once.
extern "C" __global__ void long_lane(const uint32_t* in, uint32_t* out, uint32_t steps) {
  __shared__ uint32_t result;
  if (threadIdx.x == 0) {
    uint32_t x = in[0];
    for (uint32_t i = 0; i < steps; ++i) x = x * 1664525u + (x >> 13);
    result = x;
  }
  __syncwarp();
  asm volatile("bar.sync 0;" ::: "memory");
  out[threadIdx.x] = __shfl_xor_sync(0xFFFFFFFFu, result + threadIdx.x, 1);
}

// The two halves of a warp meet at bar.warp.sync in different places, and come to a barrier of the CTA one after the other.
extern "C" __global__ void split_warps(uint32_t* out) {
  __shared__ uint32_t words[64];
  const uint32_t t = threadIdx.x;
  if (t % 32 < 16) {
    words[t] = t + 100;
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    out[t] = words[t + 16];
  } else {
    words[t] = t + 200;
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    out[t] = words[t - 16];
  }
  __shared__ volatile uint32_t late;
  if (t == 0) late = 0;
  __syncthreads();
  if (t >= 32) {
    asm volatile("nanosleep.u32 5000;");
    late = 7;
  }
  if (t % 32 < 16) asm volatile("barrier.sync 1, 64;" ::: "memory");
  else asm volatile("barrier.sync 1, 64;" ::: "memory");
  out[64 + t] = late;
}

// 64-bit addresses, vectors and bytes.
extern "C" __global__ void wide_addresses(const uint4* in, uint64_t stride, int32_t negative, uint2* out, int8_t* bytes) {
  const uint64_t i = blockIdx.x * uint64_t(blockDim.x) + threadIdx.x;
  const char* base = reinterpret_cast<const char*>(in) + 64 * stride;
  const uint4 v = *reinterpret_cast<const uint4*>(base + int64_t(negative) * int64_t(stride) + int64_t(i) * 16);
  out[i] = make_uint2(v.x ^ v.w, v.y + v.z);
  bytes[3 * i] = int8_t(v.x);
  bytes[3 * i + 1] = int8_t(bytes[3 * i] / 3);
  bytes[3 * i + 2] = int8_t(v.y >> 8 & 0xFF) < 0 ? 1 : 0;
}

extern "C" __global__ void geometry(uint32_t* out) {
  const uint32_t block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const uint32_t thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const uint32_t size = blockDim.x * blockDim.y * blockDim.z;
  out[block * size + thread] = blockIdx.x | blockIdx.y << 4 | blockIdx.z << 8 | threadIdx.x << 12 | threadIdx.y << 16 | threadIdx.z << 20;
}

// A double-precision polynomial and a float one with the compiler's own choice of instructions.
extern "C" __global__ void polynomial(const float* in, float* out, double* wide) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = in[i];
  out[i] = fmaf(fmaf(fmaf(0.25f, x, -1.5f), x, 3.0f), x, 0.125f) / (1.0f + x * x);
  wide[i] = sqrt(fma(double(x), double(x), 1.0)) / (2.0 + double(x) * double(x));
}

// Groups of 2 to 16 lanes, side by side in a warp, at one instruction that names each lane's own group. Lanes of the group
// `late` (counted from the warp's first; 32: none) come to it in two parts.
extern "C" __global__ void groups_of_lanes(uint32_t* out, uint32_t late) {
  __shared__ uint32_t words[64];
  const uint32_t t = threadIdx.x, lane = t % 32;
  uint32_t sum = 0;
  for (uint32_t size = 2; size <= 16; size *= 2) {
    const uint32_t mask = ((1u << size) - 1) << (lane / size * size);
    if (lane / size == late && lane % 2 == 1) {
      for (uint32_t i = 0; i < 10 + t; ++i) asm volatile("nanosleep.u32 10;");
    }
    sum += __shfl_xor_sync(mask, t * size, 1);
    sum = sum * 31 + __reduce_add_sync(mask, t);
    sum = sum * 31 + __ballot_sync(mask, t % 3 == 0);
    words[t] = sum;
    __syncwarp(mask);
    sum += words[t ^ (size - 1)];
    __syncwarp(mask);
  }
  out[t] = sum;
}

// Threads past the end of the data leave, with a value; the others meet at barriers, of the block and of the warp.
extern "C" __global__ void leave_early(const uint32_t* in, uint32_t* out, uint32_t n) {
  __shared__ uint32_t slot[64];
  const uint32_t i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) {
    out[i] = i;
    return;
  }
  slot[threadIdx.x] = in[i];
  __syncthreads();
  uint32_t v = slot[threadIdx.x ^ 1];
  const uint32_t odd = uint32_t(__syncthreads_count(v & 1)), big = __ballot_sync(0xFFFFFFFFu, v >> 31);
  if (v % 3 == 0) {
    if (v % 2 == 0) {
      out[i] = v;
      return;  // from one side of a branch
    }
    v += __popc(big);
  }
  __syncthreads();
  slot[threadIdx.x] = v + odd;
  __syncwarp();
  __syncthreads();
  out[i] = slot[threadIdx.x] ^ big;
}
