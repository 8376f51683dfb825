// SPDX-License-Identifier: Apache-2.0
// Matrix fragments of a warp to shared memory.
#pragma once

#include <stdint.h>

namespace fa4::ptx {

// stmatrix.sync.aligned.m8n8.x4.shared.b16 [addr], {r0..r3};                    PTX ISA 7.8, 9.7.14.5.16
// Four 8 x 8 matrices of 16-bit elements; lanes 8 i .. 8 i + 7 give the addresses of the rows of matrix i,
// lane l holds elements 2 (l % 4) and the next of row l / 4 of each.
__device__ __forceinline__ void stmatrix_x4(uint32_t address, const uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

}  // namespace fa4::ptx
