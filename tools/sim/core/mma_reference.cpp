// SPDX-License-Identifier: Apache-2.0
// The definition of a tensor-core step: see mma_reference.h.
#include "mma_reference.h"

#include <bit>
#include <cstring>

namespace fa4::sim {
namespace {

constexpr uint32_t canonical_nan = 0x7FFF'FFFF, canonical_half_nan = 0x7FFF;
constexpr int kept_bits = 25;            // below the largest exponent
constexpr int smallest_exponent = -133;  // floor of the largest exponent

enum class Class : uint8_t { finite, infinite, nan };

// (-1)^negative * significand * 2^(exponent - fraction_bits)
struct Number {
  Class kind;
  bool negative;
  uint32_t significand;  // with the hidden bit
  int exponent;
};

// An IEEE binary format: sign, exponent and fraction of a number given by its bits.
struct Format {
  int exponent_bits, fraction_bits;

  Number decode(uint32_t bits) const {
    const int top = (1 << exponent_bits) - 1, bias = top >> 1;
    const uint32_t fraction = bits & ((1u << fraction_bits) - 1);
    const int field = static_cast<int>(bits >> fraction_bits) & top;
    const bool negative = (bits >> (fraction_bits + exponent_bits)) & 1;
    if (field == top) return {fraction != 0 ? Class::nan : Class::infinite, negative, 1, 0};
    if (field == 0) return {Class::finite, negative, fraction, 1 - bias};
    return {Class::finite, negative, fraction | (1u << fraction_bits), field - bias};
  }
};

constexpr Format f16{5, 10}, bf16{8, 7}, tf32{8, 10}, f32{8, 23};

Number input(MmaInput type, const void* raw, size_t index) {
  if (type == MmaInput::tf32) {
    uint32_t bits;
    std::memcpy(&bits, static_cast<const uint32_t*>(raw) + index, sizeof bits);
    return tf32.decode(bits >> 13);
  }
  uint16_t bits;
  std::memcpy(&bits, static_cast<const uint16_t*>(raw) + index, sizeof bits);
  return (type == MmaInput::f16 ? f16 : bf16).decode(bits);
}
int fraction_bits(MmaInput type) {
  return type == MmaInput::bf16 ? 7 : 10;
}

struct Term {
  bool negative;
  uint32_t significand;
  int exponent, fraction_bits;
};

uint32_t infinity(MmaAccumulator type, bool negative) {
  if (type == MmaAccumulator::f16) return negative ? 0xFC00 : 0x7C00;
  return negative ? 0xFF80'0000 : 0x7F80'0000;
}

// sum * 2^scale, rounded toward zero.
uint32_t round_toward_zero(int64_t sum, int scale) {
  if (sum == 0) return 0;
  const bool negative = sum < 0;
  const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  const int exponent = std::bit_width(magnitude) - 1 + scale;
  if (exponent > 127) return infinity(MmaAccumulator::f32, negative);
  const int unit = exponent < -126 ? -149 : exponent - 23;  // exponent of the last place kept
  const int drop = unit - scale;
  const uint64_t kept = drop <= 0 ? magnitude << -drop : drop < 64 ? magnitude >> drop : 0;
  if (kept == 0) return 0;
  const uint32_t fraction = static_cast<uint32_t>(kept) & 0x7F'FFFF;
  const uint32_t field = kept >> 23 != 0 ? static_cast<uint32_t>(exponent + 127) : 0;
  return (negative ? 0x8000'0000u : 0u) | field << 23 | fraction;
}

// sum * 2^scale, rounded to the nearest f16, ties to even.
uint32_t round_to_half(int64_t sum, int scale) {
  if (sum == 0) return 0;
  const bool negative = sum < 0;
  const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(sum) : static_cast<uint64_t>(sum);
  const int exponent = std::bit_width(magnitude) - 1 + scale;
  const int unit = exponent < -14 ? -24 : exponent - 10;
  const int drop = unit - scale;
  uint64_t kept = 0;  // in units of 2^unit
  if (drop <= 0) {
    kept = magnitude << -drop;
  } else if (drop < 63) {
    const uint64_t half = 1ull << (drop - 1), rest = magnitude & ((1ull << drop) - 1);
    kept = magnitude >> drop;
    kept += rest > half || (rest == half && (kept & 1)) ? 1 : 0;
  }
  if (kept == 0) return 0;
  // A carry out of the significand moves into the exponent, and from the largest one to infinity.
  const int field = exponent < -14 ? 0 : exponent + 14;
  const uint64_t bits = (static_cast<uint64_t>(field) << 10) + kept;
  if (exponent > 15 || bits >= 0x7C00) return infinity(MmaAccumulator::f16, negative);
  return (negative ? 0x8000u : 0u) | static_cast<uint32_t>(bits);
}

}  // namespace

uint32_t mma_element_reference(const MmaStep& step, uint32_t m, uint32_t n) {
  Term terms[17];
  int count = 0;
  bool nan = false, plus_infinity = false, minus_infinity = false;

  const uint32_t depth = step.depth();
  const int product_bits = fraction_bits(step.a_type) + fraction_bits(step.b_type);
  for (uint32_t k = 0; k < depth; ++k) {
    const Number a = input(step.a_type, step.a, k * 128 + m);
    const Number b = input(step.b_type, step.b, n * depth + k);
    const bool negative = a.negative ^ b.negative ^ step.negate_a ^ step.negate_b;
    const bool infinite = a.kind == Class::infinite || b.kind == Class::infinite;
    if (a.kind == Class::nan || b.kind == Class::nan) {
      nan = true;
    } else if (infinite) {
      if (a.significand == 0 || b.significand == 0) nan = true;
      (negative ? minus_infinity : plus_infinity) = true;
    } else if (a.significand != 0 && b.significand != 0) {
      terms[count++] = {negative, a.significand * b.significand, a.exponent + b.exponent, product_bits};
    }
  }
  const bool half = step.accumulator == MmaAccumulator::f16;
  if (step.accumulate) {
    uint32_t bits;
    std::memcpy(&bits, step.d + n * step.d_pitch + m, sizeof bits);
    const Format& format = half ? f16 : f32;
    const Number c = format.decode(bits);
    if (c.kind == Class::nan) {
      nan = true;
    } else if (c.kind == Class::infinite) {
      (c.negative ? minus_infinity : plus_infinity) = true;
    } else if (c.significand != 0) {
      terms[count++] = {c.negative, c.significand, c.exponent, format.fraction_bits};
    }
  }
  if (nan || (plus_infinity && minus_infinity)) return half ? canonical_half_nan : canonical_nan;
  if (plus_infinity || minus_infinity) return infinity(step.accumulator, minus_infinity);
  if (count == 0) return 0;

  int largest = smallest_exponent;
  for (int i = 0; i < count; ++i) largest = terms[i].exponent > largest ? terms[i].exponent : largest;
  int64_t sum = 0;  // in units of 2^(largest - kept_bits); every term is below 2^27
  for (int i = 0; i < count; ++i) {
    const Term& t = terms[i];
    const int shift = kept_bits - t.fraction_bits - (largest - t.exponent);
    const int64_t cut = shift >= 0    ? static_cast<int64_t>(t.significand) << shift
                        : shift > -32 ? t.significand >> -shift
                                      : 0;
    sum += t.negative ? -cut : cut;
  }
  return half ? round_to_half(sum, largest - kept_bits) : round_toward_zero(sum, largest - kept_bits);
}

void mma_step_reference(const MmaStep& step) {
  for (uint32_t n = 0; n < step.n; ++n) {
    for (uint32_t m = 0; m < step.m; ++m) {
      const uint32_t bits = mma_element_reference(step, m, n);
      std::memcpy(step.d + n * step.d_pitch + m, &bits, sizeof bits);
    }
  }
}

}  // namespace fa4::sim
