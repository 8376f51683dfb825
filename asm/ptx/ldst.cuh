// SPDX-License-Identifier: Apache-2.0
// Loads and stores of shared memory by address, and what CTAs count together in global memory.
#pragma once

#include <stdint.h>

namespace fa4::ptx {

// ld.shared.v4.b32 {d0..d3}, [addr];                                                    PTX ISA 1.0, 9.7.9.8
__device__ __forceinline__ void ld_shared_v4(int32_t& a, int32_t& b, int32_t& c, int32_t& d,
                                             uint32_t address) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
               : "r"(address)
               : "memory");
}

// ld.shared.b32 d, [addr];                                                              PTX ISA 1.0, 9.7.9.8
__device__ __forceinline__ int32_t ld_shared_b32(uint32_t address) {
  int32_t d;
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(d) : "r"(address) : "memory");
  return d;
}

// st.shared.v4.b32 [addr], {a..d};                                                    PTX ISA 1.0, 9.7.9.11
__device__ __forceinline__ void st_shared_v4(uint32_t address, int32_t a, int32_t b, int32_t c, int32_t d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

// st.shared.b32 [addr], a;                                                            PTX ISA 1.0, 9.7.9.11
__device__ __forceinline__ void st_shared_b32(uint32_t address, int32_t a) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(a) : "memory");
}

// atom.relaxed.gpu.global.add.u32 d, [a], b;                                           PTX ISA 6.0, 9.7.13.6
// The value before.
__device__ __forceinline__ uint32_t atom_add_relaxed_gpu(uint32_t* address, uint32_t addend) {
  uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(address), "r"(addend) : "memory");
  return before;
}

// st.relaxed.gpu.global.u32 [a], b;                                                    PTX ISA 6.0, 9.7.9.11
__device__ __forceinline__ void st_relaxed_gpu(uint32_t* address, uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

}  // namespace fa4::ptx
