// SPDX-License-Identifier: Apache-2.0
// Attention of one tile of 64 queries on a Hopper GPU: boxes of K and V land in a ring of two, wgmma makes
// the scores, softmax goes along block by block in the exp2 domain, wgmma with the weights in registers adds
// up the values, the tile is divided exactly and stored as a box. Words: 0 blocks of 64 keys, 1 keys, 2 the
// query's own key or 0x7FFFFFFF for no causal mask, 3 scale x log2 e (bits of an f32). The input is rows of
// 64 elements: queries, then for each block keys and values.
#include "common.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern __shared__ __align__(1024) unsigned char dynamic[];

constexpr uint32_t kTile = 64 * 64 * 2;  // bytes of 64 rows of 64 elements, 128B-swizzled

// Start address and 1024 bytes from eight rows, or eight k, to the next; 128B swizzle.
__device__ inline uint64_t descriptor(uint32_t address) {
  return uint64_t(address >> 4) | uint64_t(1024 >> 4) << 16 | uint64_t(1024 >> 4) << 32 | 1ull << 62;
}
__device__ inline void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

#define ACCUMULATORS                                                                                      \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, "                                                                                       \
  "%25, %26, %27, %28, %29, %30, %31}"
#define EIGHT(i)                                                                              \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define THIRTY_TWO EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24)

// Scores: A and B K-major in shared memory.
#define SCORES(type)                                                                                     \
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32." type \
               "." type " " ACCUMULATORS ", %32, %33, p, 1, 1, 0, 0; }"                                  \
               : THIRTY_TWO                                                                              \
               : "l"(a), "l"(b), "r"(accumulate)                                                         \
               : "memory")
// Values: A in registers, B MN-major.
#define VALUES(type)                                                                        \
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " ACCUMULATORS \
               ", {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"                                   \
               : THIRTY_TWO                                                                 \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)                         \
               : "memory")

template <bool bf16>
__device__ inline void scores(float (&d)[32], uint64_t a, uint64_t b, uint32_t accumulate) {
  if (bf16)
    SCORES("bf16");
  else
    SCORES("f16");
}
template <bool bf16>
__device__ inline void values(float (&d)[32], const uint32_t (&a)[4], uint64_t b) {
  if (bf16)
    VALUES("bf16");
  else
    VALUES("f16");
}
template <bool bf16>
__device__ inline uint32_t packed(float low, float high) {
  uint32_t d;
  if (bf16)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}
__device__ inline float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Over the four lanes that hold a row.
__device__ inline float row_maximum(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFF, x, 2));
}
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(0xFFFFFFFF, x, 1);
  return x + __shfl_xor_sync(0xFFFFFFFF, x, 2);
}

__device__ inline void load_tile(uint32_t to, const TensorMap* map, uint32_t row, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(to),
      "l"(map), "r"(0), "r"(row), "r"(bar)
      : "memory");
}

template <bool bf16>
__device__ void attention(uint32_t* statistics, const Words& words, const TensorMap* input,
                          const TensorMap* output) {
  __shared__ alignas(8) uint64_t bars[3];
  const uint32_t query = shared_address(dynamic), ring = query + kTile, bar = shared_address(bars);
  const uint32_t blocks = words.word[0], keys = words.word[1], own = words.word[2];
  const float scale = __uint_as_float(words.word[3]);
  if (threadIdx.x == 0) {
    for (uint32_t i = 0; i < 3; ++i) mbarrier_init(bar + 8 * i, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  const auto load_block = [&](uint32_t block) {
    const uint32_t stage = block % 2;
    mbarrier_expect_tx(bar + 8 * stage, 2 * kTile);
    load_tile(ring + stage * 2 * kTile, input, 64 + 128 * block, bar + 8 * stage);
    load_tile(ring + stage * 2 * kTile + kTile, input, 128 + 128 * block, bar + 8 * stage);
  };
  if (threadIdx.x == 0) {
    mbarrier_expect_tx(bar + 16, kTile);
    load_tile(query, input, 0, bar + 16);
    load_block(0);
    if (blocks > 1) load_block(1);
  }
  // Lane l holds rows l / 4 and l / 4 + 8 of its warp's 16.
  const uint32_t row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
  float o[32] = {}, maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  bool ok = mbarrier_wait(bar + 16, 0);
  for (uint32_t block = 0; block < blocks; ++block) {
    const uint32_t stage = block % 2, k = ring + stage * 2 * kTile, v = k + kTile;
    ok &= mbarrier_wait(bar + 8 * stage, block / 2 & 1);
    float s[32];
    wgmma_fence();
    for (uint32_t step = 0; step < 4; ++step)
      scores<bf16>(s, descriptor(query + 32 * step), descriptor(k + 32 * step), step);
    wgmma_commit();
    wgmma_wait();
    float highest[2] = {maximum[0], maximum[1]};
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t key = 64 * block + i / 4 * 8 + column + i % 2, r = i / 2 % 2;
      const bool masked = key >= keys || (own != 0x7FFFFFFF && int32_t(key) > int32_t(own + row + 8 * r));
      if (masked) s[i] = -INFINITY;
      highest[r] = fmaxf(highest[r], s[i]);
    }
    float shift[2];
    for (uint32_t r = 0; r < 2; ++r) {
      highest[r] = row_maximum(highest[r]);
      shift[r] = highest[r] == -INFINITY ? 0 : highest[r] * scale;  // a row without keys so far
      const float factor = exp2_approx(fmaf(maximum[r], scale, -shift[r]));
      sum[r] *= factor;
      for (uint32_t i = 0; i < 32; i += 4) o[i + 2 * r] *= factor, o[i + 2 * r + 1] *= factor;
      maximum[r] = highest[r];
    }
    for (uint32_t i = 0; i < 32; ++i) {
      s[i] = exp2_approx(fmaf(s[i], scale, -shift[i / 2 % 2]));
      sum[i / 2 % 2] += s[i];
    }
    uint32_t p[4][4];
    for (uint32_t step = 0; step < 4; ++step) {
      for (uint32_t i = 0; i < 4; ++i)
        p[step][i] = packed<bf16>(s[8 * step + 2 * i], s[8 * step + 2 * i + 1]);
    }
    wgmma_fence();
    for (uint32_t step = 0; step < 4; ++step) values<bf16>(o, p[step], descriptor(v + 2048 * step));
    wgmma_commit();
    wgmma_wait();
    __syncthreads();
    if (threadIdx.x == 0 && block + 2 < blocks) load_block(block + 2);
  }
  for (uint32_t r = 0; r < 2; ++r) sum[r] = row_sum(sum[r]);
  // The output takes the queries' place, swizzled as the box of the store is.
  for (uint32_t i = 0; i < 32; i += 2) {
    const uint32_t r = i / 2 % 2, at = query + (row + 8 * r) * 128 + (i / 4 * 8 + column) * 2;
    const float total = sum[r] == 0 ? 1 : sum[r];
    const uint32_t pair = packed<bf16>(__fdiv_rn(o[i], total), __fdiv_rn(o[i + 1], total));
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at ^ (at >> 7 & 7) << 4), "r"(pair) : "memory");
  }
  proxy_fence();
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(output),
        "r"(0), "r"(0), "r"(query)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;" ::: "memory");
  }
  if (threadIdx.x % 4 == 0) {
    for (uint32_t r = 0; r < 2; ++r) {
      statistics[2 * (row + 8 * r)] = ok ? __float_as_uint(maximum[r]) : 0xDEAD0000;
      statistics[2 * (row + 8 * r) + 1] = __float_as_uint(sum[r]);
    }
  }
}

#define ATTENTION(name, bf16)                                                                   \
  extern "C" __global__ void __launch_bounds__(128, 1)                                          \
      name(uint32_t* out, const uint32_t*, const __grid_constant__ Words words,                 \
           const __grid_constant__ TensorMap input, const __grid_constant__ TensorMap output) { \
    attention<bf16>(out + kTile / 4, words, &input, &output);                                   \
  }
ATTENTION(attention_f16, false)
ATTENTION(attention_bf16, true)
