// SPDX-License-Identifier: Apache-2.0
// Bulk copies without a tensor map, and their groups.
// Words: 0 bytes, 1 offset in shared memory.
#include "common.cuh"

extern __shared__ __align__(1024) unsigned char dynamic[];

__device__ inline void fill(const uint32_t* in, uint32_t bytes) {
  for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(dynamic)[i] = in[i];
}
__device__ inline void finish_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

#define LOAD(name, head, extra)                                                                                    \
  ROW(name) {                                                                                                      \
    __shared__ alignas(8) uint64_t bar;                                                                            \
    const uint32_t b = shared_address(&bar), bytes = words.word[0];                                                \
    for (uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) reinterpret_cast<uint32_t*>(dynamic)[i] = 0xEEEE0000 + i; \
    if (threadIdx.x == 0) mbarrier_init(b, 1);                                                                     \
    proxy_fence();                                                                                                 \
    __syncthreads();                                                                                               \
    if (threadIdx.x == 0) {                                                                                        \
      mbarrier_expect_tx(b, bytes);                                                                                \
      asm volatile(head " [%0], [%1], %2, [%3]" extra ";" ::"r"(shared_address(dynamic) + words.word[1]), "l"(in), "r"(bytes), "r"(b), \
                   "l"(0x12F0000000000000ull)                                                                      \
                   : "memory");                                                                                    \
    }                                                                                                              \
    const bool landed = mbarrier_wait(b, 0);                                                                       \
    for (uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) out[i] = landed ? reinterpret_cast<uint32_t*>(dynamic)[i] : 0xDEAD0000; \
  }
LOAD(bulk_load, "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes", "")
LOAD(bulk_load_cluster, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "")
LOAD(bulk_load_hint, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint", ", %4")

#define STORE(name, head)                                                                                           \
  ROW(name) {                                                                                                       \
    for (uint32_t i = threadIdx.x; i < 1024; i += blockDim.x) out[i] = in[1024 + i];                                \
    fill(in, 4096);                                                                                                 \
    asm volatile("fence.proxy.async;" ::: "memory");                                                                \
    __syncthreads();                                                                                                \
    if (threadIdx.x == 0) {                                                                                         \
      asm volatile(head " [%0], [%1], %2;" ::"l"(out + words.word[2]), "r"(shared_address(dynamic) + words.word[1]), "r"(words.word[0]) : "memory"); \
      finish_group();                                                                                               \
    }                                                                                                               \
  }
STORE(bulk_store, "cp.async.bulk.global.shared::cta.bulk_group")
#define REDUCE(op, type) STORE(bulk_reduce_##op##_##type, "cp.reduce.async.bulk.global.shared::cta.bulk_group." #op "." #type)
REDUCE(add, u32)
REDUCE(add, s32)
REDUCE(add, u64)
REDUCE(add, f32)
REDUCE(add, f64)
REDUCE(min, u32)
REDUCE(min, s32)
REDUCE(min, s64)
REDUCE(max, u32)
REDUCE(max, s32)
REDUCE(max, u64)
REDUCE(min, f16)
REDUCE(max, f16)
REDUCE(min, bf16)
REDUCE(max, bf16)
REDUCE(inc, u32)
REDUCE(dec, u32)
REDUCE(and, b32)
REDUCE(or, b32)
REDUCE(xor, b32)
REDUCE(and, b64)
REDUCE(or, b64)
REDUCE(xor, b64)
STORE(bulk_reduce_add_noftz_f16, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16")
STORE(bulk_reduce_add_noftz_bf16, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16")

// Groups complete in order: waiting for all but the newest makes the older ones visible.
ROW(bulk_groups) {
  fill(in, 4096);
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  if (threadIdx.x < 4) {
    // Groups belong to the thread that issued them.
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t at = (threadIdx.x * 4 + k) * 256;
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out + at / 4), "r"(shared_address(dynamic) + at) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    asm volatile("cp.async.bulk.wait_group.read 2;" ::: "memory");
    // The first two sources may be overwritten now.
    for (uint32_t k = 0; k < 2; ++k) reinterpret_cast<uint32_t*>(dynamic)[(threadIdx.x * 4 + k) * 64] = 77;
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");  // an empty group
    asm volatile("cp.async.bulk.wait_group 1;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}
ROW(bulk_prefetch) {
  if (threadIdx.x == 0) asm volatile("cp.async.bulk.prefetch.L2.global [%0], 4096;" ::"l"(in) : "memory");
  out[threadIdx.x] = in[threadIdx.x];
}
