// SPDX-License-Identifier: Apache-2.0
// The older asynchronous copies of single threads.
#include "common.cuh"

extern __shared__ __align__(1024) unsigned char dynamic[];

// cp.async of single threads: sizes, partial sources filled with zeros, groups, and arrival on an mbarrier.
#define THREAD_COPY(name, how, bytes, size_operand)                                                                         \
  ROW(name) {                                                                                                               \
    const uint32_t to = shared_address(dynamic) + threadIdx.x * 16;                                                         \
    for (uint32_t i = 0; i < 4; ++i) reinterpret_cast<uint32_t*>(dynamic)[threadIdx.x * 4 + i] = 0xEEEE0000 + i;            \
    asm volatile("cp.async." how ".shared.global [%0], [%1], " #bytes size_operand ";" ::"r"(to), "l"(in + threadIdx.x * 4), \
                 "r"(threadIdx.x % (bytes + 1)), "l"(0x12F0000000000000ull)                                                 \
                 : "memory");                                                                                               \
    asm volatile("cp.async.commit_group;" ::: "memory");                                                                    \
    asm volatile("cp.async.wait_group 0;" ::: "memory");                                                                    \
    for (uint32_t i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = reinterpret_cast<uint32_t*>(dynamic)[threadIdx.x * 4 + i];   \
  }
THREAD_COPY(thread_copy_4, "ca", 4, "")
THREAD_COPY(thread_copy_8, "ca", 8, "")
THREAD_COPY(thread_copy_16, "ca", 16, "")
THREAD_COPY(thread_copy_cg, "cg", 16, "")
THREAD_COPY(thread_copy_partial_4, "ca", 4, ", %2")
THREAD_COPY(thread_copy_partial_16, "cg", 16, ", %2")
// Half of the threads ignore their source; a hint and a prefetch change no value.
ROW(thread_copy_ignored) {
  const uint32_t to = shared_address(dynamic) + threadIdx.x * 16;
  for (uint32_t i = 0; i < 4; ++i) reinterpret_cast<uint32_t*>(dynamic)[threadIdx.x * 4 + i] = 0xEEEE0000 + i;
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; cp.async.ca.shared.global.L2::cache_hint.L2::128B [%0], [%1], 8, p, %3; }" ::"r"(to), "l"(in + threadIdx.x * 4), "r"(threadIdx.x & 1), "l"(0x12F0000000000000ull)
               : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  for (uint32_t i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = reinterpret_cast<uint32_t*>(dynamic)[threadIdx.x * 4 + i];
}
ROW(thread_copy_groups) {
  for (uint32_t k = 0; k < 4; ++k) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(dynamic) + (k * 128 + threadIdx.x) * 4), "l"(in + (k * 128 + threadIdx.x)) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  }
  asm volatile("cp.async.wait_group 2;" ::: "memory");
  __syncthreads();
  uint32_t v = reinterpret_cast<uint32_t*>(dynamic)[127 - threadIdx.x] + reinterpret_cast<uint32_t*>(dynamic)[128 + (threadIdx.x ^ 1)];
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
  out[threadIdx.x] = v * 3 + reinterpret_cast<uint32_t*>(dynamic)[384 + (threadIdx.x ^ 9)];
}
ROW(thread_copy_barrier) {
  __shared__ alignas(8) uint64_t bar[2];
  const uint32_t b = shared_address(bar);
  if (threadIdx.x == 0) mbarrier_init(b, 256), mbarrier_init(b + 8, 128);
  __syncthreads();
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(dynamic) + threadIdx.x * 4), "l"(in + threadIdx.x) : "memory");
  // The plain form adds an arrival of its own and makes it when the copies are there; .noinc counts against the init.
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(b) : "memory");
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(b + 8) : "memory");
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b) : "memory");
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(b + 8) : "memory");
  const bool ok = mbarrier_wait(b, 0) && mbarrier_wait(b + 8, 0);
  out[threadIdx.x] = ok ? reinterpret_cast<uint32_t*>(dynamic)[127 - threadIdx.x] : 0xDEAD0000;
}
