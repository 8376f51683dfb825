// SPDX-License-Identifier: Apache-2.0
// Synchronisation of warps and of the CTA, and the register budget of a warpgroup.
#pragma once

#include <stdint.h>

namespace fa4::ptx {

// elect.sync _|p, mask;                                                                PTX ISA 8.0, 9.7.13.14
// True in exactly one lane; all lanes of the warp execute it.
__device__ __forceinline__ bool elect_sync() {
  uint32_t elected;
  asm volatile(
      "{\n\t"
      ".reg .pred p;\n\t"
      "elect.sync _|p, 0xffffffff;\n\t"
      "selp.b32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(elected)
      :
      : "memory");
  return elected != 0;
}

// bar.warp.sync mask;                                                                   PTX ISA 6.0, 9.7.13.2
// Joins the 32 lanes of a warp, and orders their memory accesses.
__device__ __forceinline__ void bar_warp_sync() {
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

// bar.sync id;                                                                          PTX ISA 1.0, 9.7.13.1
// All threads of the CTA.
template <int id>
__device__ __forceinline__ void bar_sync() {
  static_assert(id >= 0 && id < 16);
  asm volatile("bar.sync %0;" ::"n"(id) : "memory");
}

// bar.sync id, threads;                                                                 PTX ISA 1.0, 9.7.13.1
template <int id, int threads>
__device__ __forceinline__ void bar_sync() {
  static_assert(id >= 0 && id < 16 && threads > 0 && threads % 32 == 0);
  asm volatile("bar.sync %0, %1;" ::"n"(id), "n"(threads) : "memory");
}

// bar.arrive id, threads;                                                               PTX ISA 2.0, 9.7.13.1
template <int id, int threads>
__device__ __forceinline__ void bar_arrive() {
  static_assert(id >= 0 && id < 16 && threads > 0 && threads % 32 == 0);
  asm volatile("bar.arrive %0, %1;" ::"n"(id), "n"(threads) : "memory");
}

// bar.sync id, threads;                                                                 PTX ISA 1.0, 9.7.13.1
// The barrier is chosen at run time.
template <int threads>
__device__ __forceinline__ void bar_sync(int id) {
  static_assert(threads > 0 && threads % 32 == 0);
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(threads) : "memory");
}

// bar.arrive id, threads;                                                               PTX ISA 2.0, 9.7.13.1
template <int threads>
__device__ __forceinline__ void bar_arrive(int id) {
  static_assert(threads > 0 && threads % 32 == 0);
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(threads) : "memory");
}

// mov.u32 d, %tid.x;                                                                    PTX ISA 1.0, 9.7.9.4
// threadIdx.x where it is wanted, so that it need not live in a register until then.
__device__ __forceinline__ uint32_t tid_x_again() {
  uint32_t d;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(d));
  return d;
}

// vote.sync.any.pred p, q, mask;                                                        PTX ISA 6.0, 9.7.13.9
__device__ __forceinline__ bool vote_sync_any(bool predicate) {
  uint32_t any;
  asm volatile(
      "{\n\t"
      ".reg .pred p, q;\n\t"
      "setp.ne.b32 q, %1, 0;\n\t"
      "vote.sync.any.pred p, q, 0xffffffff;\n\t"
      "selp.b32 %0, 1, 0, p;\n\t"
      "}"
      : "=r"(any)
      : "r"(static_cast<uint32_t>(predicate))
      : "memory");
  return any != 0;
}

// setmaxnreg.inc.sync.aligned.u32 registers;                                            PTX ISA 8.0, 9.7.19.5
// All warps of the warpgroup execute it; it waits until the registers are free.
template <int registers>
__device__ __forceinline__ void setmaxnreg_inc() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0);
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers) : "memory");
}

// setmaxnreg.dec.sync.aligned.u32 registers;                                            PTX ISA 8.0, 9.7.19.5
template <int registers>
__device__ __forceinline__ void setmaxnreg_dec() {
  static_assert(registers >= 24 && registers <= 256 && registers % 8 == 0);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers) : "memory");
}

}  // namespace fa4::ptx
