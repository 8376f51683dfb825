// SPDX-License-Identifier: Apache-2.0
// Arithmetic of the tensor core with floating-point inputs of 16 and 19 bits, bit for bit as measured on
// hardware: one instruction adds 16 (f16, bf16) or 8 (tf32) exact products and the accumulator as integers,
// each truncated toward zero to 25 fractional bits below the largest exponent, and rounds the sum toward zero
// to f32, or to nearest even to f16. NaN and Inf - Inf give 0x7FFFFFFF. The full rules stand in
// mma_reference.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fa4::sim {

enum class MmaInput : uint8_t { f16, bf16, tf32 };
enum class MmaAccumulator : uint8_t { f32, f16 };

// One step: D[m][n] = sum over k of A[m][k] * B[n][k] + (accumulate ? D[m][n] : 0). An instruction with fewer
// k gives the same with zeros for the others.
struct MmaStep {
  MmaInput a_type, b_type;  // tf32 goes with tf32
  bool negate_a, negate_b;
  bool accumulate;
  uint32_t m;      // 64 or 128
  uint32_t n;      // 8..256, a multiple of 8
  const void* a;   // raw values of 16 bits, for tf32 of 32 bits (the lower 13 do not count): a[k * 128 + m]
  const void* b;   // b[n * depth + k]
  float* d;        // d[n * d_pitch + m], bits of f32; an f16 in the lower half
  size_t d_pitch;  // elements
  MmaAccumulator accumulator = MmaAccumulator::f32;

  uint32_t depth() const { return a_type == MmaInput::tf32 ? 8 : 16; }
};

// Picks the widest instruction set of this CPU on first use (AVX-512, AVX2 or portable); all give the same
// bits. Needs 40 KiB of stack; allocates nothing. D is not read unless accumulate is set. Throws
// std::invalid_argument for other shapes. Operands whose exponents leave the range of fp32 products
// (infinities, NaN, bf16 and tf32 extremes) are exact too, but slower; so are f16 accumulators.
void mma_step(const MmaStep& step);

// The same by the definition, one element at a time in integer arithmetic: the oracle of the tests.
void mma_step_reference(const MmaStep& step);

}  // namespace fa4::sim
