// SPDX-License-Identifier: Apache-2.0
// What the kernels of the conformance rows share: their parameters and bounded waits.
#pragma once

#include <cstdint>

struct Words {
  uint32_t word[24];
};
struct alignas(64) TensorMap {
  unsigned char bytes[128];
};

// Parameters of every kernel here: what it writes, what it reads, the row's numbers, the row's tensor map.
#define ROW_OF(name, threads, blocks)                                                        \
  extern "C" __global__ void __launch_bounds__(threads, blocks)                              \
      name(uint32_t* out, const uint32_t* in, const __grid_constant__ Words words, const __grid_constant__ TensorMap map)
#define ROW(name) ROW_OF(name, 256, 1)

__device__ inline uint32_t shared_address(const void* p) { return uint32_t(__cvta_generic_to_shared(p)); }

__device__ inline void mbarrier_init(uint32_t bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ inline void mbarrier_expect_tx(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}
__device__ inline bool mbarrier_test(uint32_t bar, uint32_t parity) {
  uint32_t done;
  asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
               : "=r"(done)
               : "r"(bar), "r"(parity)
               : "memory");
  return done;
}
// True when the phase completed; false after many tries, so that a wrong belief cannot hang a GPU.
__device__ inline bool mbarrier_wait(uint32_t bar, uint32_t parity) {
  for (int tries = 0; tries < 10000; ++tries) {
    uint32_t done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(bar), "r"(parity)
                 : "memory");
    if (done) return true;
  }
  return false;
}
__device__ inline void proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
