// SPDX-License-Identifier: Apache-2.0
// Ordinary loads and stores of shared memory by address.
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

// st.shared.v4.b32 [addr], {a..d};                                                    PTX ISA 1.0, 9.7.9.11
__device__ __forceinline__ void st_shared_v4(uint32_t address, int32_t a, int32_t b, int32_t c, int32_t d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(a), "r"(b), "r"(c), "r"(d)
               : "memory");
}

}  // namespace fa4::ptx
