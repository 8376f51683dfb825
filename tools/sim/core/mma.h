// SPDX-License-Identifier: Apache-2.0
// Arithmetic of the tensor core for kind::f16 with fp32 accumulation, bit for bit as measured on hardware:
// one instruction adds 16 exact products and the accumulator as integers, each truncated toward zero to 25
// fractional bits below the largest exponent, and rounds the sum toward zero to fp32. NaN and Inf - Inf give
// 0x7FFFFFFF. The full rules stand in mma_reference.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fa4::sim {

enum class MmaInput : uint8_t { f16, bf16 };

// One tcgen05.mma step: D[m][n] = sum over k < 16 of A[m][k] * B[n][k] + (accumulate ? D[m][n] : 0).
struct MmaStep {
  MmaInput a_type, b_type;
  bool negate_a, negate_b;
  bool accumulate;
  uint32_t m;         // 64 or 128
  uint32_t n;         // 8..256, a multiple of 8
  const uint16_t* a;  // raw 16-bit values, a[k * 128 + m]: one k after the other
  const uint16_t* b;  // raw 16-bit values, b[n * 16 + k]
  float* d;           // d[n * d_pitch + m], bits of fp32
  size_t d_pitch;     // elements
};

// Picks the widest instruction set of this CPU on first use (AVX-512, AVX2 or portable); all give the same
// bits. Needs 40 KiB of stack; allocates nothing. D is not read unless accumulate is set. Throws
// std::invalid_argument for other shapes. Operands whose exponents leave the range of fp32 products
// (infinities, NaN, bf16 extremes) are exact too, but slower.
void mma_step(const MmaStep& step);

// The same by the definition, one element at a time in integer arithmetic: the oracle of the tests.
void mma_step_reference(const MmaStep& step);

}  // namespace fa4::sim
