// SPDX-License-Identifier: Apache-2.0
// Loops of kinds that the attention kernels do not have, one CTA on each SM of an H200: for held_out.py, which predicts and
// measures them. Each is launched a few times, so that the last launches are warm.
#include <cstdint>
#include <cstdio>

constexpr int kThreads = 256, kCtas = 132, kLaunches = 5;
constexpr uint32_t kTileBytes = 16384, kSlots = 4;

// Conflict-free loads of 16 bytes, products of what was loaded, a store, and a barrier.
extern "C" __global__ void __launch_bounds__(kThreads, 1) shared_products(float* out) {
  __shared__ float4 tile[2][4][kThreads];
  for (auto& half : tile)
    for (auto& row : half) row[threadIdx.x] = make_float4(1.0f, 0.5f, 0.25f, 0.125f);
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
  for (int i = 0; i < 600; ++i) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const float4 x = tile[i % 2][k][threadIdx.x ^ k];
      sum.x = fmaf(x.x, x.y, sum.x);
      sum.y = fmaf(x.y, x.z, sum.y);
      sum.z = fmaf(x.z, x.w, sum.z);
      sum.w = fmaf(x.w, x.x, sum.w);
    }
    tile[1 - i % 2][i % 4][threadIdx.x] = sum;
  }
  out[blockIdx.x * kThreads + threadIdx.x] = sum.x + sum.y + sum.z + sum.w;
}

// Sums over a warp by shuffles, several in flight, with an exponential of each.
extern "C" __global__ void __launch_bounds__(kThreads, 1) warp_sums(float* out) {
  float x[6];
#pragma unroll
  for (int k = 0; k < 6; ++k) x[k] = static_cast<float>(threadIdx.x % 32 + k) * 0.01f;
#pragma unroll 1
  for (int i = 0; i < 250; ++i) {
#pragma unroll
    for (int lanes = 16; lanes != 0; lanes /= 2) {
#pragma unroll
      for (float& v : x) v = __fadd_rn(v, __shfl_xor_sync(0xffffffffu, v, lanes));
    }
#pragma unroll
    for (float& v : x) asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(v * -0.03f));
  }
  float all = 0;
  for (float v : x) all += v;
  out[blockIdx.x * kThreads + threadIdx.x] = all;
}

// A ring of bulk copies: warp 0 fills it, the others read what has come.
extern "C" __global__ void __launch_bounds__(kThreads, 1) ring_of_copies(float* out) {
  extern __shared__ __align__(128) uint8_t slots[];
  __shared__ uint64_t full[kSlots], empty[kSlots];
  const auto address = [](const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); };
  if (threadIdx.x == 0) {
    for (uint32_t s = 0; s < kSlots; ++s) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[s])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 7;" ::"r"(address(&empty[s])) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const auto wait = [](uint32_t barrier, uint32_t parity) {
    asm volatile(
        "{\n\t.reg .pred done;\nAGAIN%=:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra AGAIN%=;\n\t}" ::"r"(
            barrier),
        "r"(parity)
        : "memory");
  };
  constexpr uint32_t kTiles = 300;
  float sum = 0;
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) {
      for (uint32_t i = 0; i < kTiles; ++i) {
        const uint32_t s = i % kSlots, round = i / kSlots;
        wait(address(&empty[s]), ~round & 1);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full[s])), "r"(kTileBytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         address(slots) + s * kTileBytes),
                     "l"(out + (i % 8) * (kTileBytes / 4)), "r"(kTileBytes), "r"(address(&full[s]))
                     : "memory");
      }
    }
  } else {
    for (uint32_t i = 0; i < kTiles; ++i) {
      const uint32_t s = i % kSlots;
      wait(address(&full[s]), i / kSlots & 1);
      const float4* const tile = reinterpret_cast<const float4*>(slots + s * kTileBytes);
#pragma unroll
      for (uint32_t k = 0; k < 4; ++k) {
        const float4 x = tile[(threadIdx.x - 32) + k * (kThreads - 32)];
        sum += x.x + x.y + x.z + x.w;
      }
      __syncwarp();
      if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&empty[s])) : "memory");
    }
  }
  out[kTileBytes * 2 + blockIdx.x * kThreads + threadIdx.x] = sum;
}

// Exponentials and logarithms with products between them.
extern "C" __global__ void __launch_bounds__(kThreads, 1) logarithms(float* out) {
  float x[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) x[k] = 0.1f + static_cast<float>(threadIdx.x % 32 + k) * 0.01f;
#pragma unroll 1
  for (int i = 0; i < 500; ++i) {
#pragma unroll
    for (float& v : x) {
      float y;
      asm volatile("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(v));
      y = __fmaf_rn(y, 0.25f, -0.5f);
      asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(y));
      v = __fadd_rn(__fmul_rn(v, 0.75f), 0.125f);
    }
  }
  out[blockIdx.x * kThreads + threadIdx.x] = x[0] + x[1] + x[2] + x[3];
}

// Integer mixing.
extern "C" __global__ void __launch_bounds__(kThreads, 1) integers(float* out) {
  uint32_t x[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) x[k] = threadIdx.x * 4 + k + 1;
#pragma unroll 1
  for (int i = 0; i < 700; ++i) {
#pragma unroll
    for (uint32_t& v : x) {
      v = v * 0x9e3779b1u + 0x7f4a7c15u;
      v ^= __funnelshift_l(v, v, 13);
      v = (v & 0x5bd1e995u) + __byte_perm(v, v, 0x1032);
    }
  }
  out[blockIdx.x * kThreads + threadIdx.x] = static_cast<float>(x[0] ^ x[1] ^ x[2] ^ x[3]);
}

// Pairs of warps that hand 32 x 32 words over, transposed, with a named barrier of their own.
extern "C" __global__ void __launch_bounds__(kThreads, 1) transposes(float* out) {
  __shared__ float tile[kThreads / 64][2][32][33];
  const uint32_t pair = threadIdx.x / 64, half = threadIdx.x / 32 % 2, lane = threadIdx.x % 32;
  float x[32];
#pragma unroll
  for (int k = 0; k < 32; ++k) x[k] = static_cast<float>(threadIdx.x + k);
#pragma unroll 1
  for (int i = 0; i < 150; ++i) {
#pragma unroll
    for (int k = 0; k < 32; ++k) tile[pair][half][k][lane] = x[k];
    asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");
#pragma unroll
    for (int k = 0; k < 32; ++k) x[k] = __fadd_rn(x[k], tile[pair][1 - half][lane][k]);
    asm volatile("bar.sync %0, 64;" ::"r"(pair + 1) : "memory");
  }
  float sum = 0;
#pragma unroll
  for (float v : x) sum += v;
  out[blockIdx.x * kThreads + threadIdx.x] = sum;
}

int main() {
  float* out = nullptr;
  cudaMalloc(&out, kTileBytes * 8 + kCtas * kThreads * sizeof(float));
  cudaMemset(out, 0, kTileBytes * 8 + kCtas * kThreads * sizeof(float));
  cudaFuncSetAttribute(ring_of_copies, cudaFuncAttributeMaxDynamicSharedMemorySize, kSlots * kTileBytes);
  for (int i = 0; i < kLaunches; ++i) shared_products<<<kCtas, kThreads>>>(out);
  for (int i = 0; i < kLaunches; ++i) warp_sums<<<kCtas, kThreads>>>(out);
  for (int i = 0; i < kLaunches; ++i) ring_of_copies<<<kCtas, kThreads, kSlots * kTileBytes>>>(out);
  for (int i = 0; i < kLaunches; ++i) logarithms<<<kCtas, kThreads>>>(out);
  for (int i = 0; i < kLaunches; ++i) integers<<<kCtas, kThreads>>>(out);
  for (int i = 0; i < kLaunches; ++i) transposes<<<kCtas, kThreads>>>(out);
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
