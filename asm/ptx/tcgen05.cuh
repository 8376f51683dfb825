// SPDX-License-Identifier: Apache-2.0
// The fifth-generation tensor core and its memory (TMEM): allocation, MMA, loads, stores, completion and
// fences. A TMEM address is lane << 16 | column. One function per instruction; an array reference carries the
// register count. Everything is for one CTA (cta_group::1).
#pragma once

#include <stdint.h>

namespace fa4::ptx {

// tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [dst], columns;             PTX ISA 8.6, 9.7.16.7.1
// A whole warp; writes the base address to shared memory and waits until the columns are free.
template <int columns>
__device__ __forceinline__ void tcgen05_alloc(uint32_t destination) {
  static_assert(columns >= 32 && columns <= 512 && (columns & (columns - 1)) == 0);
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(destination),
               "n"(columns)
               : "memory");
}

// tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, columns;                       PTX ISA 8.6, 9.7.16.7.1
template <int columns>
__device__ __forceinline__ void tcgen05_dealloc(uint32_t taddr) {
  static_assert(columns >= 32 && columns <= 512 && (columns & (columns - 1)) == 0);
  asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(taddr), "n"(columns) : "memory");
}

// tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;                          PTX ISA 8.6, 9.7.16.7.1
__device__ __forceinline__ void tcgen05_relinquish_alloc_permit() {
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

// tcgen05.mma.cta_group::1.kind::f16 [d], a-desc, b-desc, idesc, enable-input-d;   PTX ISA 8.6, 9.7.16.10.9.1
// D = A B, plus D when `accumulate`. A and B in shared memory, K = 16. All lanes of a warp call it with the same arguments, and
// one issues, the one that elect.sync names: so ptxas keeps the arguments in uniform registers, and writes no election.
// Completion by commit only.
__device__ __forceinline__ void tcgen05_mma_f16_ss(uint32_t d, uint64_t a_desc, uint64_t b_desc,
                                                   uint32_t idesc, bool accumulate) {
  asm volatile(
      "{\n\t"
      ".reg .pred p, leader;\n\t"
      "elect.sync _|leader, 0xffffffff;\n\t"
      "setp.ne.b32 p, %4, 0;\n\t"
      "@leader tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;\n\t"
      "}" ::"r"(d),
      "l"(a_desc), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}

// tcgen05.mma.cta_group::1.kind::f16 [d], [a], b-desc, idesc, enable-input-d;      PTX ISA 8.6, 9.7.16.10.9.1
// A in TMEM: two 16-bit elements a column, 8 columns for K = 16. Called as the one above.
__device__ __forceinline__ void tcgen05_mma_f16_ts(uint32_t d, uint32_t a, uint64_t b_desc, uint32_t idesc,
                                                   bool accumulate) {
  asm volatile(
      "{\n\t"
      ".reg .pred p, leader;\n\t"
      "elect.sync _|leader, 0xffffffff;\n\t"
      "setp.ne.b32 p, %4, 0;\n\t"
      "@leader tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, p;\n\t"
      "}" ::"r"(d),
      "r"(a), "l"(b_desc), "r"(idesc), "r"(static_cast<uint32_t>(accumulate))
      : "memory");
}

// tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [barrier];   PTX ISA 8.6, 9.7.16.12.1
// One arrival once every MMA that the elected lane issued before has completed: called as the MMA is. A CTA's own shared::cta
// address names its own shared memory in shared::cluster as well.
__device__ __forceinline__ void tcgen05_commit(uint32_t barrier) {
  asm volatile(
      "{\n\t"
      ".reg .pred leader;\n\t"
      "elect.sync _|leader, 0xffffffff;\n\t"
      "@leader tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];\n\t"
      "}" ::"r"(barrier)
      : "memory");
}

// tcgen05.fence::before_thread_sync;                                                 PTX ISA 8.6, 9.7.16.11.1
// The releasing side: earlier tcgen05 operations before a later arrive.
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

// tcgen05.fence::after_thread_sync;                                                  PTX ISA 8.6, 9.7.16.11.1
// The acquiring side: later tcgen05 operations after an earlier wait.
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// tcgen05.wait::st.sync.aligned;                                                      PTX ISA 8.6, 9.7.16.8.5
__device__ __forceinline__ void tcgen05_wait_st() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

// tcgen05.wait::ld.sync.aligned;                                                      PTX ISA 8.6, 9.7.16.8.5
// All earlier tcgen05.ld of this thread have delivered. To the compiler a loaded register looks ready at
// once: pass the arrays through delivered() after the wait, so that no use of them moves above it.
__device__ __forceinline__ void tcgen05_wait_ld() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

// No instruction: ties the values of `r` to this point of the program, behind the volatile wait before it.
template <int count>
__device__ __forceinline__ void delivered(float (&r)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(r[i]));
}

// Loads and stores of a warp: lane l of warp w touches TMEM lane 32 (w mod 4) + l; register i is column
// taddr + i.

// tcgen05.ld.sync.aligned.32x32b.x16.b32 {r0..r15}, [taddr];                          PTX ISA 8.6, 9.7.16.8.3
__device__ __forceinline__ void tcgen05_ld_32x32b(float (&r)[16], uint32_t taddr) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x16.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
      "}, [%16];"
      : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7]),
        "=f"(r[8]), "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]), "=f"(r[14]), "=f"(r[15])
      : "r"(taddr)
      : "memory");
}

// tcgen05.ld.sync.aligned.32x32b.x32.b32 {r0..r31}, [taddr];                          PTX ISA 8.6, 9.7.16.8.3
__device__ __forceinline__ void tcgen05_ld_32x32b(float (&r)[32], uint32_t taddr) {
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
      "}, [%32];"
      : "=f"(r[0]), "=f"(r[1]), "=f"(r[2]), "=f"(r[3]), "=f"(r[4]), "=f"(r[5]), "=f"(r[6]), "=f"(r[7]),
        "=f"(r[8]), "=f"(r[9]), "=f"(r[10]), "=f"(r[11]), "=f"(r[12]), "=f"(r[13]), "=f"(r[14]), "=f"(r[15]),
        "=f"(r[16]), "=f"(r[17]), "=f"(r[18]), "=f"(r[19]), "=f"(r[20]), "=f"(r[21]), "=f"(r[22]),
        "=f"(r[23]), "=f"(r[24]), "=f"(r[25]), "=f"(r[26]), "=f"(r[27]), "=f"(r[28]), "=f"(r[29]),
        "=f"(r[30]), "=f"(r[31])
      : "r"(taddr)
      : "memory");
}

// tcgen05.st.sync.aligned.32x32b.x16.b32 [taddr], {r0..r15};                          PTX ISA 8.6, 9.7.16.8.4
__device__ __forceinline__ void tcgen05_st_32x32b(uint32_t taddr, const float (&r)[16]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], {"
      "%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16"
      "};"
      :
      : "r"(taddr), "f"(r[0]), "f"(r[1]), "f"(r[2]), "f"(r[3]), "f"(r[4]), "f"(r[5]), "f"(r[6]), "f"(r[7]),
        "f"(r[8]), "f"(r[9]), "f"(r[10]), "f"(r[11]), "f"(r[12]), "f"(r[13]), "f"(r[14]), "f"(r[15])
      : "memory");
}

// tcgen05.st.sync.aligned.32x32b.x8.b32 [taddr], {r0..r7};                            PTX ISA 8.6, 9.7.16.8.4
__device__ __forceinline__ void tcgen05_st_32x32b(uint32_t taddr, const uint32_t (&r)[8]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {"
      "%1, %2, %3, %4, %5, %6, %7, %8"
      "};"
      :
      : "r"(taddr), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7])
      : "memory");
}

// tcgen05.st.sync.aligned.32x32b.x16.b32 [taddr], {r0..r15};                          PTX ISA 8.6, 9.7.16.8.4
__device__ __forceinline__ void tcgen05_st_32x32b(uint32_t taddr, const uint32_t (&r)[16]) {
  asm volatile(
      "tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], {"
      "%1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16"
      "};"
      :
      : "r"(taddr), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "r"(r[4]), "r"(r[5]), "r"(r[6]), "r"(r[7]),
        "r"(r[8]), "r"(r[9]), "r"(r[10]), "r"(r[11]), "r"(r[12]), "r"(r[13]), "r"(r[14]), "r"(r[15])
      : "memory");
}

}  // namespace fa4::ptx
