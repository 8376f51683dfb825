// SPDX-License-Identifier: Apache-2.0
// mbarrier: the 8-byte barrier object in shared memory. One function per instruction.
// `barrier` is a 32-bit shared::cta address, 8-byte aligned. Section numbers are those of the PTX ISA 9.0.
#pragma once

#include <stdint.h>

namespace fa4::ptx {

// mbarrier.init.shared::cta.b64 [addr], count;                                       PTX ISA 7.0, 9.7.13.15.9
__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// mbarrier.inval.shared::cta.b64 [addr];                                            PTX ISA 7.0, 9.7.13.15.10
__device__ __forceinline__ void mbarrier_inval(uint32_t barrier) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [addr], bytes;                     PTX ISA 8.0, 9.7.13.15.11
__device__ __forceinline__ void mbarrier_expect_tx(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// mbarrier.arrive.shared::cta.b64 _, [addr];                                        PTX ISA 7.0, 9.7.13.15.13
// Release at CTA scope; one arrival per active thread.
__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// @p mbarrier.arrive.shared::cta.b64 _, [addr];                                     PTX ISA 7.0, 9.7.13.15.13
// The same for the threads whose predicate is true. No branch: the warp stays together, as .aligned instructions demand.
__device__ __forceinline__ void mbarrier_arrive_if(uint32_t barrier, bool predicate) {
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "setp.ne.b32 p, %1, 0;\n\t"
      "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n\t"
      "}" ::"r"(barrier),
      "r"(static_cast<uint32_t>(predicate))
      : "memory");
}

// mbarrier.arrive.shared::cta.b64 _, [addr], count;                                 PTX ISA 7.8, 9.7.13.15.13
__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier, uint32_t count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// mbarrier.arrive.expect_tx.shared::cta.b64 _, [addr], bytes;                       PTX ISA 8.0, 9.7.13.15.13
// Raises the expected bytes, then arrives once, indivisibly.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// mbarrier.try_wait.parity.shared::cta.b64 p, [addr], parity;                       PTX ISA 7.8, 9.7.13.15.16
// True when the phase of that parity has completed; may suspend the thread, and may return false at any time:
// the caller loops. Only a true result acquires.
__device__ __forceinline__ bool mbarrier_try_wait_parity(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

// mbarrier.test_wait.parity.shared::cta.b64 p, [addr], parity;                      PTX ISA 7.1, 9.7.13.15.16
// As try_wait, and never suspends.
__device__ __forceinline__ bool mbarrier_test_wait_parity(uint32_t barrier, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
      "selp.b32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

}  // namespace fa4::ptx
