// SPDX-License-Identifier: Apache-2.0
// Tensor-map copies between global and shared memory. Words: 0-4 coordinates, 5 bytes of shared memory that are shown or
// stored, 6 offset of the box from a 1024-byte boundary, 7 transaction bytes, 8 words of the input that come before.
#include "common.cuh"

extern __shared__ __align__(1024) unsigned char dynamic[];

#define COORDINATES_1 "{%3}"
#define COORDINATES_2 "{%3, %4}"
#define COORDINATES_3 "{%3, %4, %5}"
#define COORDINATES_4 "{%3, %4, %5, %6}"
#define COORDINATES_5 "{%3, %4, %5, %6, %7}"
#define WORD(i) "r"(words.word[i])

// Shared memory holds a pattern first, so that bytes which nobody writes are seen too.
#define LOAD(name, head, rank, hint, hint_operand)                                                                        \
  ROW(name) {                                                                                                             \
    __shared__ alignas(8) uint64_t bar;                                                                                   \
    const uint32_t b = shared_address(&bar), bytes = words.word[5];                                                       \
    for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x) reinterpret_cast<uint32_t*>(dynamic)[i] = 0xEEEE0000 + i; \
    if (threadIdx.x == 0) mbarrier_init(b, 1);                                                                            \
    proxy_fence();                                                                                                        \
    __syncthreads();                                                                                                      \
    if (threadIdx.x == 0) {                                                                                               \
      asm volatile(head " [%0], [%1, " COORDINATES_##rank "], [%2]" hint_operand ";" ::"r"(shared_address(dynamic) + words.word[6]), \
                   "l"(&map), "r"(b), WORD(0), WORD(1), WORD(2), WORD(3), WORD(4), "l"(0x12F0000000000000ull)             \
                   : "memory");                                                                                           \
      mbarrier_expect_tx(b, words.word[7]);                                                                               \
    }                                                                                                                     \
    const bool landed = mbarrier_wait(b, 0);                                                                              \
    for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x)                                                        \
      out[i] = landed ? reinterpret_cast<uint32_t*>(dynamic)[i] : 0xDEAD0000;                                             \
  }
#define LOADS(rank)                                                                                                       \
  LOAD(load_##rank##d, "cp.async.bulk.tensor." #rank "d.shared::cta.global.tile.mbarrier::complete_tx::bytes", rank, , "") \
  LOAD(load_cluster_##rank##d, "cp.async.bulk.tensor." #rank "d.shared::cluster.global.mbarrier::complete_tx::bytes", rank, , "")
LOADS(1)
LOADS(2)
LOADS(3)
LOADS(4)
LOADS(5)
LOAD(load_hint_2d, "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint", 2, , ", %8")

#define STORE(name, head, rank, hint_operand)                                                                        \
  ROW(name) {                                                                                                        \
    const uint32_t bytes = words.word[5];                                                                            \
    for (uint32_t i = threadIdx.x; i < words.word[8]; i += blockDim.x) out[i] = in[8192 + i];                        \
    for (uint32_t i = threadIdx.x; i < bytes / 4; i += blockDim.x)                                                   \
      reinterpret_cast<uint32_t*>(dynamic + words.word[6])[i] = in[i];                                               \
    asm volatile("fence.proxy.async;" ::: "memory");                                                                 \
    __syncthreads();                                                                                                 \
    if (threadIdx.x == 0) {                                                                                          \
      asm volatile(head " [%1, " COORDINATES_##rank "], [%0]" hint_operand ";" ::"r"(shared_address(dynamic) + words.word[6]), \
                   "l"(&map), "n"(0), WORD(0), WORD(1), WORD(2), WORD(3), WORD(4), "l"(0x12F0000000000000ull)        \
                   : "memory");                                                                                      \
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");                                                      \
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");                                                      \
    }                                                                                                                \
  }
STORE(store_1d, "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group", 1, "")
STORE(store_2d, "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", 2, "")
STORE(store_3d, "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group", 3, "")
STORE(store_4d, "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group", 4, "")
STORE(store_5d, "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group", 5, "")
STORE(store_hint_2d, "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint", 2, ", %8")
#define REDUCE(op) STORE(reduce_##op##_2d, "cp.reduce.async.bulk.tensor.2d.global.shared::cta." #op ".tile.bulk_group", 2, "")
REDUCE(add)
REDUCE(min)
REDUCE(max)
REDUCE(inc)
REDUCE(dec)
REDUCE(and)
REDUCE(or)
REDUCE(xor)
STORE(reduce_add_1d, "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group", 1, "")
STORE(reduce_add_3d, "cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile.bulk_group", 3, "")
STORE(reduce_add_4d, "cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.tile.bulk_group", 4, "")
STORE(reduce_add_5d, "cp.reduce.async.bulk.tensor.5d.global.shared::cta.add.tile.bulk_group", 5, "")

ROW(prefetch_2d) {
  if (threadIdx.x == 0) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(&map), WORD(0), WORD(1) : "memory");
  }
  out[threadIdx.x] = in[threadIdx.x];
}
// Four boxes land on one barrier; two phases.
ROW(load_pipeline) {
  __shared__ alignas(8) uint64_t bar[2];
  if (threadIdx.x == 0) mbarrier_init(shared_address(&bar[0]), 1), mbarrier_init(shared_address(&bar[1]), 1);
  proxy_fence();
  __syncthreads();
  bool ok = true;
  for (uint32_t phase = 0; phase < 2; ++phase) {
    if (threadIdx.x == 0) {
      for (uint32_t s = 0; s < 2; ++s) {
        const uint32_t b = shared_address(&bar[s]);
        mbarrier_expect_tx(b, 2 * words.word[7]);
        for (uint32_t k = 0; k < 2; ++k) {
          asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
                           shared_address(dynamic) + (2 * s + k) * words.word[7]),
                       "l"(&map), "r"(words.word[0] + 16 * k), "r"(words.word[1] + 8 * (2 * phase + s)), "r"(b)
                       : "memory");
        }
      }
    }
    for (uint32_t s = 0; s < 2; ++s) {
      ok &= mbarrier_wait(shared_address(&bar[s]), phase);
      for (uint32_t i = threadIdx.x; i < words.word[7] / 2; i += blockDim.x) {
        out[(phase * 2 + s) * words.word[7] / 2 + i] = ok ? reinterpret_cast<uint32_t*>(dynamic + 2 * s * words.word[7])[i] : 0xDEAD0000;
      }
    }
    __syncthreads();
  }
}
