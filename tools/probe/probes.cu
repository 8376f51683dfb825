// SPDX-License-Identifier: Apache-2.0
// Small kernels that measure what the model of time rests on: cycles of one SM's clock for a stretch of
// instructions, run three times, the last one kept. probe.cpp says which number of the model comes of each.
#include <cuda.h>

#include <cstdint>

#include "asm/ptx/fence.cuh"
#include "asm/ptx/mbarrier.cuh"
#include "asm/ptx/sync.cuh"
#include "asm/ptx/tma.cuh"

#if __CUDA_ARCH__ >= 1000
#include "asm/ptx/tcgen05.cuh"
#else
#include "asm/ptx/wgmma.cuh"
#endif

namespace {

using namespace fa4;

constexpr int kRuns = 3;

struct Nothing {
  static constexpr bool any = false;
  __device__ void operator()() const {}
};
template <class Body>
struct Something : Body {
  static constexpr bool any = true;
};

__device__ __forceinline__ uint32_t clock_now() {
  uint32_t t;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(t)::"memory");
  return t;
}
__device__ __forceinline__ uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Cycles of `body` to cycles[warp]; `after` ends what it began.
template <class Body, class After = Nothing>
__device__ __forceinline__ void timed(uint32_t* cycles, Body body, After after = {}) {
#pragma unroll 1
  for (int run = 0; run < kRuns; ++run) {
    __syncthreads();
    const uint32_t begin = clock_now();
    body();
    const uint32_t end = clock_now();
    after();
    if (threadIdx.x % 32 == 0) cycles[threadIdx.x / 32] = end - begin;
  }
}

// `count` of them over eight independent results, so that no one waits for its own.
template <int count, class Word = uint32_t, class One>
__device__ __forceinline__ void independent(uint32_t* cycles, One one) {
  Word x[8];
  for (int i = 0; i < 8; ++i) x[i] = static_cast<Word>(0x3f0000003f000000ull) + threadIdx.x * 8 + i;
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < count; ++i) one(x[i % 8]);
  });
  Word sum = 0;
  for (int i = 0; i < 8; ++i) sum += x[i];
  if (sum == 1) cycles[32] = 1;  // so that all of them count
}

// Zeros of which compilers do not know that they are.
template <int count>
__device__ __forceinline__ void unknown_zeros(uint32_t (&x)[count], const uint32_t* cycles) {
  for (uint32_t& word : x)
    asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(word) : "l"(cycles + 63) : "memory");
}

}  // namespace

#define PROBE(name, threads) \
  extern "C" __global__ void __launch_bounds__(threads, 1) probe_##name(uint32_t* cycles)

// ---- pipes: one warp on each scheduler ----
PROBE(ffma, 128) {
  independent<512>(cycles, [](uint32_t& x) { asm volatile("fma.rn.f32 %0, %0, 0f3F7FFFF0, %0;" : "+r"(x)); });
}
PROBE(imad, 128) {
  const uint32_t factor = threadIdx.x | 1, term = threadIdx.x + 77;
  independent<512>(cycles, [&](uint32_t& x) {
    asm volatile("mad.lo.u32 %0, %0, %1, %2;" : "+r"(x) : "r"(factor), "r"(term));
  });
}
PROBE(alu, 128) {
  const uint32_t a = threadIdx.x * 3, b = threadIdx.x + 77;
  independent<512>(cycles, [&](uint32_t& x) {
    asm volatile("lop3.b32 %0, %0, %1, %2, 0x6a;" : "+r"(x) : "r"(a), "r"(b));
  });
}
PROBE(ex2, 128) {
  independent<256>(cycles, [](uint32_t& x) { asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+r"(x)); });
}
PROBE(lg2, 128) {
  independent<256>(cycles, [](uint32_t& x) { asm volatile("lg2.approx.ftz.f32 %0, %0;" : "+r"(x)); });
}
PROBE(ex2_chain, 32) {
  uint32_t x = 0x3f000000 + threadIdx.x;
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < 128; ++i) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+r"(x));
  });
  if (x == 1) cycles[32] = x;
}
PROBE(branch, 32) {  // a loop, each of whose turns is a chain of sixteen additions
  uint32_t x = 0x3f000000 + threadIdx.x, turns[1];
  unknown_zeros(turns, cycles);
  timed(cycles, [&] {
#pragma unroll 1
    for (uint32_t i = turns[0]; i < 512; ++i) {
#pragma unroll
      for (int k = 0; k < 16; ++k) asm volatile("add.rn.f32 %0, %0, 0f30000000;" : "+r"(x));
    }
  });
  if (x == 1) cycles[32] = x;
}
PROBE(special_register, 32) {  // each is read where the one before is not all ones
  uint32_t x = threadIdx.x;
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %0, -1;\n@p mov.u32 %0, %%smid;\n}" : "+r"(x)::"memory");
  });
  if (x == 99999) cycles[32] = x;
}

// ---- memory: chains, each step needs the one before ----
PROBE(global, 32) {
  uint64_t at = reinterpret_cast<uint64_t>(cycles + 62);
  *reinterpret_cast<volatile uint64_t*>(at) = at;
  __threadfence();
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < 16; ++i) asm volatile("ld.global.cg.u64 %0, [%0];" : "+l"(at)::"memory");
  });
  if (at == 1) cycles[32] = 1;
}
__constant__ uint32_t probe_zeros[64];
PROBE(constant, 32) {
  uint32_t at = threadIdx.x / 32;
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < 32; ++i)
      at = *reinterpret_cast<const uint32_t*>(reinterpret_cast<const char*>(probe_zeros) + at);
  });
  if (at == 1) cycles[32] = 1;
}

// ---- shared memory and shuffles: chains, each step needs the one before ----
template <int words>
__device__ __forceinline__ void chase(uint32_t* cycles) {
  __shared__ alignas(16) uint32_t memory[32 * words];
  uint32_t at = shared_address(memory) + threadIdx.x * 4 * words, others = 0;
  for (int i = 0; i < words; ++i) memory[threadIdx.x * words + i] = at;
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      uint32_t a = 0, b = 0, c = 0;
      if constexpr (words == 1) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)::"memory");
      if constexpr (words == 2)
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%0];" : "+r"(at), "=r"(a)::"memory");
      if constexpr (words == 4)
        asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%0];"
                     : "+r"(at), "=r"(a), "=r"(b), "=r"(c)::"memory");
      others ^= a ^ b ^ c;  // all words are wanted, or a narrower load would do
    }
  });
  if (at + others == 1) cycles[32] = at;
}
PROBE(lds_32, 32) {
  chase<1>(cycles);
}
PROBE(lds_64, 32) {
  chase<2>(cycles);
}
PROBE(lds_128, 32) {
  chase<4>(cycles);
}
PROBE(shuffle, 32) {
  uint32_t x = threadIdx.x;
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < 128; ++i)
      asm volatile("shfl.sync.bfly.b32 %0, %0, %1, 31, 0xffffffff;" : "+r"(x) : "r"(1 << i % 5));
  });
  if (x == 99) cycles[32] = x;
}
// Loads of sixteen warps, whose results nobody waits for.
template <int count>
__device__ __forceinline__ void wide_loads(uint32_t* cycles) {
  __shared__ alignas(16) uint32_t memory[128];
  if (threadIdx.x < 128) memory[threadIdx.x] = threadIdx.x;
  const uint32_t at = shared_address(memory) + threadIdx.x % 32 * 16;
  uint32_t x[count][4], sum = 0;
  timed(
      cycles,
      [&] {
#pragma unroll
        for (int i = 0; i < count; ++i)
          asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                       : "=r"(x[i][0]), "=r"(x[i][1]), "=r"(x[i][2]), "=r"(x[i][3])
                       : "r"(at)
                       : "memory");
      },
      [&] {
        for (int i = 0; i < count; ++i)
          for (int k = 0; k < 4; ++k) sum += x[i][k];
      });
  if (sum == 1) cycles[32] = 1;
}
PROBE(wide_loads_8, 512) {
  wide_loads<8>(cycles);
}
PROBE(wide_loads_24, 512) {
  wide_loads<24>(cycles);
}

// ---- fences, each behind a store ----
template <class Fence>
__device__ __forceinline__ void fences(uint32_t* cycles, Fence fence) {
  __shared__ uint32_t memory[32];
  const uint32_t at = shared_address(memory + threadIdx.x);
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      asm volatile("st.volatile.shared.u32 [%0], %0;" ::"r"(at) : "memory");
      fence();
    }
  });
}
PROBE(fence_async, 32) {
  fences(cycles, [] { ptx::fence_proxy_async_shared_cta(); });
}
PROBE(fence_cta, 32) {
  fences(cycles, [] { asm volatile("fence.acq_rel.cta;" ::: "memory"); });
}

// ---- barriers ----
PROBE(wait_complete, 32) {  // a chain of waits for a phase that is complete
  __shared__ uint64_t barrier;
  uint32_t at = shared_address(&barrier);
  if (threadIdx.x == 0) ptx::mbarrier_init(at, 1);
  __syncthreads();
  if (threadIdx.x == 0) ptx::mbarrier_arrive(at);
  __syncthreads();
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      asm volatile(
          "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\nselp.b32 %0, %0, 0, p;\n}"
          : "+r"(at)::"memory");
    }
  });
  if (at == 1) cycles[32] = at;
}
PROBE(hand_over, 64) {  // two warps that wait for each other in turn, 64 times
  __shared__ uint64_t barriers[2];
  const uint32_t warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  const uint32_t mine = shared_address(&barriers[warp]), other = shared_address(&barriers[1 - warp]);
  if (threadIdx.x % 32 == 0) ptx::mbarrier_init(mine, 1);
  const auto wait = [&](int i) {
    while (!ptx::mbarrier_try_wait_parity(mine, i & 1)) {
    }
  };
  timed(cycles, [&] {
    if (threadIdx.x % 32 != 0) return;
    if (warp == 0) {
#pragma unroll
      for (int i = 0; i < 64; ++i) ptx::mbarrier_arrive(other), wait(i);
    } else {
#pragma unroll
      for (int i = 0; i < 64; ++i) wait(i), ptx::mbarrier_arrive(other);
    }
  });
}
// All warps but the first wait for one arrival: cycles from there until each goes on.
__device__ __forceinline__ void wake(uint32_t* cycles) {
  __shared__ uint64_t barrier;
  __shared__ uint32_t arrived;
  const uint32_t at = shared_address(&barrier), warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  if (threadIdx.x == 0) ptx::mbarrier_init(at, 1);
#pragma unroll 1
  for (int run = 0; run < kRuns; ++run) {
    __syncthreads();
    uint32_t now = 0;
    if (warp == 0) {
      const uint32_t begin = clock_now();
      while (clock_now() - begin < 500) {
      }
      now = clock_now();
      if (threadIdx.x == 0) ptx::mbarrier_arrive(at), arrived = now;
    } else {
      while (!ptx::mbarrier_try_wait_parity(at, run & 1)) {
      }
      now = clock_now();
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) cycles[warp] = now - arrived;
  }
}
PROBE(wake_1, 64) {
  wake(cycles);
}
PROBE(wake_11, 384) {
  wake(cycles);
}
// A chain: a load behind the barrier gives the next barrier's number.
template <int threads>
__device__ __forceinline__ void barrier_chain(uint32_t* cycles) {
  __shared__ uint32_t number;
  const uint32_t at = shared_address(&number);
  if (threadIdx.x == 0) number = 1;
  __syncthreads();
  uint32_t next = 1;
  timed(cycles, [&] {
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      asm volatile("bar.sync %0, %1;" ::"r"(next), "n"(threads) : "memory");
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(next) : "r"(at) : "memory");
    }
  });
  if (next == 0) cycles[32] = next;
}
PROBE(bar_sync_4, 128) {
  barrier_chain<128>(cycles);
}
PROBE(bar_sync_12, 384) {
  barrier_chain<384>(cycles);
}

// ---- boxes of 16 KiB, from and to the memory behind the words of the cycles ----
#define PROBE_OF_BOXES(name) \
  extern "C" __global__ void __launch_bounds__(32, 1) \
      probe_##name(uint32_t* cycles, const __grid_constant__ CUtensorMap map)
constexpr uint32_t kBoxBytes = 16384;

__device__ __forceinline__ uint32_t box_slots() {
  extern __shared__ uint8_t slots[];
  return (shared_address(slots) + 1023) & ~1023u;
}

// All at once: their issue, or until the last one has come.
template <int count, bool issue_only>
__device__ __forceinline__ void boxes(uint32_t* cycles, const CUtensorMap& map) {
  __shared__ uint64_t barrier;
  const uint32_t slots = box_slots(), bar = shared_address(&barrier);
  if (threadIdx.x == 0) ptx::mbarrier_init(bar, 1);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  uint32_t parity = 0;
  const auto issue = [&] {
    if (!ptx::elect_sync()) return;
    ptx::mbarrier_arrive_expect_tx(bar, count * kBoxBytes);
#pragma unroll
    for (int i = 0; i < count; ++i)
      ptx::cp_async_bulk_tensor_load(slots + i * kBoxBytes, &map, {0, i * 128, 0, 0, 0}, bar);
  };
  const auto wait = [&] {
    while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
    }
    parity ^= 1;
  };
  if constexpr (issue_only)
    timed(cycles + blockIdx.x * 64, issue, wait);
  else
    timed(cycles + blockIdx.x * 64, [&] { issue(), wait(); });
}
PROBE_OF_BOXES(boxes_issue_1) {
  boxes<1, true>(cycles, map);
}
PROBE_OF_BOXES(boxes_issue_8) {
  boxes<8, true>(cycles, map);
}
PROBE_OF_BOXES(box_for_all) {
  boxes<1, false>(cycles, map);
}
PROBE_OF_BOXES(boxes_4) {
  boxes<4, false>(cycles, map);
}
PROBE_OF_BOXES(boxes_8) {
  boxes<8, false>(cycles, map);
}

// One after the other, two in flight.
template <int count>
__device__ __forceinline__ void ring_of_boxes(uint32_t* cycles, const CUtensorMap& map) {
  __shared__ uint64_t barriers[2];
  const uint32_t slots = box_slots(), bar = shared_address(barriers);
  if (threadIdx.x < 2) ptx::mbarrier_init(bar + 8 * threadIdx.x, 1);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  uint32_t parities = 0;
  const auto load = [&](int i) {
    const uint32_t slot = i % 2, full = bar + 8 * slot;
    ptx::mbarrier_arrive_expect_tx(full, kBoxBytes);
    ptx::cp_async_bulk_tensor_load(slots + slot * kBoxBytes, &map, {0, i % 8 * 128, 0, 0, 0}, full);
  };
  timed(cycles + blockIdx.x * 64, [&] {
    if (!ptx::elect_sync()) return;
    load(0), load(1);
#pragma unroll 1
    for (int i = 0; i < count; ++i) {
      while (!ptx::mbarrier_try_wait_parity(bar + 8 * (i % 2), parities >> i % 2 & 1)) {
      }
      parities ^= 1u << i % 2;
      if (i + 2 < count) load(i + 2);
    }
  });
}
PROBE_OF_BOXES(ring_8) {
  ring_of_boxes<8>(cycles, map);
}
PROBE_OF_BOXES(ring_40) {
  ring_of_boxes<40>(cycles, map);
}

// Out of shared memory, each to a place of its own.
template <int count>
__device__ __forceinline__ void boxes_out(uint32_t* cycles, const CUtensorMap& map) {
  const uint32_t slot = box_slots();
  for (uint32_t i = threadIdx.x; i < kBoxBytes / 4; i += 32)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(slot + 4 * i), "r"(0) : "memory");
  ptx::fence_proxy_async_shared_cta();
  __syncwarp();
  timed(
      cycles,
      [&] {
        if (!ptx::elect_sync()) return;
#pragma unroll
        for (int i = 0; i < count; ++i) ptx::cp_async_bulk_tensor_store(&map, {0, i * 128, 0, 0, 0}, slot);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read<0>();
      },
      [] { ptx::cp_async_bulk_wait_group<0>(); });
}
PROBE_OF_BOXES(boxes_out_1) {
  boxes_out<1>(cycles, map);
}
PROBE_OF_BOXES(boxes_out_8) {
  boxes_out<8>(cycles, map);
}
PROBE_OF_BOXES(boxes_out_24) {
  boxes_out<24>(cycles, map);
}

// ---- the tensor core: `count` products of N = 128, K = 16, and the wait for them ----

// Of a tile without swizzle: 128 bytes from 8 columns of K to the next 8, 256 from 8 rows to the next 8. Made
// before the clock is read.
__device__ __forceinline__ uint64_t descriptor(const void* tile, uint64_t version) {
  const uint64_t bits = static_cast<uint64_t>((shared_address(tile) & 0x3ffff) >> 4) |
                        uint64_t{128 >> 4} << 16 | uint64_t{256 >> 4} << 32 | version;
  uint64_t opaque;
  asm volatile("mov.b64 %0, %1;" : "=l"(opaque) : "l"(bits));
  return opaque;
}

template <bool issue_only, class Issue, class Wait, class Others>
__device__ __forceinline__ void time_products(uint32_t* cycles, Issue issue, Wait wait, Others others) {
  if constexpr (issue_only) {
    timed(cycles, issue, wait);
  } else {
    timed(cycles, [&] {
      if constexpr (Others::any) {
        if (__shfl_sync(0xffffffffu, threadIdx.x / 32, 0) >= 4) {
          others();
          return;
        }
      }
      issue();
      wait();
    });
  }
}

#if __CUDA_ARCH__ >= 1000
constexpr uint32_t kInstruction = 1u << 4 | 128 / 8 << 17 | 128 / 16 << 24;  // f32, f16, N = 128, M = 128

// All tensor memory for `body`, which is given its address, with zeros in 128 columns from kOperand on.
constexpr uint32_t kOperand = 256;
template <class Body>
__device__ __forceinline__ void with_tensor_memory(Body body) {
  __shared__ alignas(16) uint32_t allocated;
  if (threadIdx.x < 32) {
    ptx::tcgen05_alloc<512>(shared_address(&allocated));
    ptx::tcgen05_relinquish_alloc_permit();
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t tmem = *const_cast<volatile uint32_t*>(&allocated), lanes = (threadIdx.x & ~31u) << 16;
  if (threadIdx.x < 128) {
    const uint32_t zeros[16] = {};
    for (int i = 0; i < 8; ++i) ptx::tcgen05_st_32x32b(tmem + kOperand + 16 * i + lanes, zeros);
    ptx::tcgen05_wait_st();
  }
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  body(tmem);
  ptx::tcgen05_fence_before_thread_sync();
  __syncthreads();
  ptx::tcgen05_fence_after_thread_sync();
  if (threadIdx.x < 32) ptx::tcgen05_dealloc<512>(tmem);
}

// `others`: what warps do that issue none, if there are any. Only their issue is timed if so asked.
template <int count, bool a_shared, bool issue_only = false, class Others = Nothing>
__device__ __forceinline__ void products(uint32_t* cycles, Others others = {}) {
  __shared__ alignas(1024) uint8_t tiles[2][4096];
  __shared__ alignas(16) uint64_t barrier;
  const uint32_t bar = shared_address(&barrier);
  for (uint32_t i = threadIdx.x; i < sizeof tiles / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(tiles)[i] = 0;
  if (threadIdx.x == 0) ptx::mbarrier_init(bar, 1);
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  const uint64_t a_tile = descriptor(tiles[0], uint64_t{1} << 46),
                 b_tile = descriptor(tiles[1], uint64_t{1} << 46);
  uint32_t parity = 0;
  const uint32_t warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);
  with_tensor_memory([&](uint32_t tmem) {
    const auto issue = [&] {
      if (warp == 0) {  // one lane of it issues
#pragma unroll
        for (int i = 0; i < count; ++i) {
          if constexpr (a_shared)
            ptx::tcgen05_mma_f16_ss(tmem, a_tile, b_tile, kInstruction, i > 0);
          else
            ptx::tcgen05_mma_f16_ts(tmem, tmem + kOperand, b_tile, kInstruction, i > 0);
        }
        ptx::tcgen05_commit(bar);
      }
    };
    const auto wait = [&] {
      while (!ptx::mbarrier_try_wait_parity(bar, parity)) {
      }
      parity ^= 1;
    };
    time_products<issue_only>(cycles, issue, wait, others);
  });
}

// ---- tensor memory: each of four warps reads or writes 32 or 16 columns of its lanes at a time ----
template <int count>
__device__ __forceinline__ void tensor_loads(uint32_t* cycles) {
  with_tensor_memory([&](uint32_t tmem) {
    float r[count][32];
    timed(cycles, [&] {
#pragma unroll
      for (int i = 0; i < count; ++i)
        ptx::tcgen05_ld_32x32b(r[i], tmem + kOperand + 32 * i + ((threadIdx.x & ~31u) << 16));
      ptx::tcgen05_wait_ld();
#pragma unroll
      for (int i = 0; i < count; ++i) ptx::delivered(r[i]);
    });
    float sum = 0;
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < 32; ++k) sum += r[i][k];
    if (sum == 1.0f) cycles[32] = 1;
  });
}
template <int count>
__device__ __forceinline__ void tensor_stores(uint32_t* cycles) {
  with_tensor_memory([&](uint32_t tmem) {
    uint32_t r[16];
    unknown_zeros(r, cycles);
    timed(cycles, [&] {
#pragma unroll
      for (int i = 0; i < count; ++i) ptx::tcgen05_st_32x32b(tmem + 16 * i + ((threadIdx.x & ~31u) << 16), r);
      ptx::tcgen05_wait_st();
    });
  });
}
PROBE(tensor_load_1, 128) {
  tensor_loads<1>(cycles);
}
PROBE(tensor_load_4, 128) {
  tensor_loads<4>(cycles);
}
PROBE(tensor_store_1, 128) {
  tensor_stores<1>(cycles);
}
PROBE(tensor_store_8, 128) {
  tensor_stores<8>(cycles);
}
PROBE(tensor_store_24, 128) {
  tensor_stores<24>(cycles);
}

PROBE(ffma_pair, 128) {
  const uint64_t factor = 0x3f7ffff03f7ffff0ull + threadIdx.x;
  independent<512, uint64_t>(
      cycles, [&](uint64_t& x) { asm volatile("fma.rn.f32x2 %0, %0, %1, %0;" : "+l"(x) : "l"(factor)); });
}
#else
template <int count, bool a_shared, bool issue_only = false, class Others = Nothing>
__device__ __forceinline__ void products(uint32_t* cycles, Others others = {}) {
  __shared__ alignas(1024) uint8_t tiles[2][4096];
  for (uint32_t i = threadIdx.x; i < sizeof tiles / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(tiles)[i] = 0;
  ptx::fence_proxy_async_shared_cta();
  __syncthreads();
  const uint64_t a_tile = descriptor(tiles[0], 0), b_tile = descriptor(tiles[1], 0);
  float d[64] = {};
  uint32_t a[a_shared ? 1 : 4 * count];  // each product has registers of its own, as the assembler wants them
  unknown_zeros(a, cycles);
  const auto issue = [&] {
    ptx::tied(d);
    ptx::tied(a);
    ptx::wgmma_fence();
#pragma unroll
    for (int i = 0; i < count; ++i) {
      if constexpr (a_shared)
        ptx::wgmma_ss<ptx::MmaType::f16>(d, a_tile, b_tile, true);
      else
        ptx::wgmma_rs<ptx::MmaType::f16>(d, a + 4 * i, b_tile, true);
    }
    ptx::wgmma_commit_group();
  };
  const auto wait = [&] {
    ptx::wgmma_wait_group<0>();
    ptx::tied(d);
  };
  time_products<issue_only>(cycles, issue, wait, others);
  if (d[threadIdx.x % 64] == 1.0f) cycles[32] = 1;
}
#endif
PROBE(products_shared_8, 128) {
  products<8, true>(cycles);
}
PROBE(products_shared_24, 128) {
  products<24, true>(cycles);
}
PROBE(products_issue_2, 128) {
  products<2, true, true>(cycles);
}
PROBE(products_issue_6, 128) {
  products<6, true, true>(cycles);
}
PROBE(products_issue_24, 128) {
  products<24, true, true>(cycles);
}
PROBE(products_other_8, 128) {
  products<8, false>(cycles);
}
PROBE(products_other_24, 128) {
  products<24, false>(cycles);
}

// Two chains of additions in each of four warps, beside products of the others, or alone.
template <bool beside>
__device__ __forceinline__ void chains(uint32_t* cycles) {
  uint32_t x[2] = {0x3f000000 + threadIdx.x, 0x3e000000 + threadIdx.x};
  const uint32_t term = 0x30000000 + threadIdx.x;
  const auto additions = [&] {
#pragma unroll
    for (int i = 0; i < 512; ++i) asm volatile("add.rn.f32 %0, %0, %1;" : "+r"(x[i % 2]) : "r"(term));
  };
  if constexpr (beside)
    products<60, true, false>(cycles, Something<decltype(additions)>{additions});
  else
    timed(cycles, [&] {
      if (threadIdx.x >= 128) additions();
    });
  if (x[0] + x[1] == 1) cycles[32] = 1;
  __syncthreads();
  if (threadIdx.x < 128 && threadIdx.x % 32 == 0) cycles[threadIdx.x / 32] = 0;  // theirs is not asked for
}
PROBE(chains_alone, 256) {
  chains<false>(cycles);
}
PROBE(chains_beside_products, 256) {
  chains<true>(cycles);
}
