// SPDX-License-Identifier: Apache-2.0
// Numbers of any format as exact values, and one rounding into any format: for conversions and half-precision
// arithmetic.
#pragma once

#include <bit>
#include <cstdint>

#include "lane_handlers.h"

namespace fa4::sim {

// A binary floating-point format. The exponent's highest value means infinity and NaN, except in e4m3, where
// only an all-ones significand is a NaN and there is no infinity.
struct Format {
  int exponent_bits, fraction_bits;
  bool has_infinity = true;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t sign_bit() const { return 1ull << (exponent_bits + fraction_bits); }
  uint64_t infinity() const { return ((1ull << exponent_bits) - 1) << fraction_bits; }
  uint64_t largest() const { return has_infinity ? infinity() - 1 : (sign_bit() - 1) - 1; }
};
inline constexpr Format kF64{11, 52}, kF32{8, 23}, kF16{5, 10}, kBf16{8, 7}, kTf32{8, 10}, kE5m2{5, 2},
    kE4m3{4, 3, false};

// (-1)^sign * significand * 2^exponent; a zero significand is a zero.
struct Number {
  enum class Kind : uint8_t { finite, infinity, nan } kind = Kind::finite;
  bool sign = false;
  unsigned __int128 significand = 0;
  int exponent = 0;
  uint64_t payload = 0;  // of a NaN: its fraction, moved up to 52 bits
};

inline Number decode(uint64_t bits, const Format& f) {
  Number n;
  n.sign = bits & f.sign_bit();
  const uint64_t fraction = bits & ((1ull << f.fraction_bits) - 1);
  const int exponent = int(bits >> f.fraction_bits & ((1ull << f.exponent_bits) - 1));
  const bool top = exponent == (1 << f.exponent_bits) - 1;
  if (f.has_infinity ? top : top && fraction == (1ull << f.fraction_bits) - 1) {
    n.kind = f.has_infinity && fraction == 0 ? Number::Kind::infinity : Number::Kind::nan;
    n.payload = fraction << (52 - f.fraction_bits);
    return n;
  }
  n.significand = exponent == 0 ? fraction : fraction | 1ull << f.fraction_bits;
  n.exponent = (exponent == 0 ? 1 : exponent) - f.bias() - f.fraction_bits;
  return n;
}

inline int top_bit(unsigned __int128 v) {  // of a number that is not zero
  const uint64_t high = uint64_t(v >> 64);
  return high ? 127 - std::countl_zero(high) : 63 - std::countl_zero(uint64_t(v));
}

// v / 2^shift, rounded; `away` rounds ties away from zero instead of to even.
inline unsigned __int128 shifted(unsigned __int128 v, int shift, Rounding rounding, bool sign,
                                 bool away = false) {
  if (shift <= 0) return v << -shift;
  if (shift > 127) {
    const bool up = v != 0 && ((rounding == Rounding::up && !sign) || (rounding == Rounding::down && sign));
    return up ? 1 : 0;
  }
  const unsigned __int128 kept = v >> shift, rest = v - (kept << shift),
                          half = (unsigned __int128)1 << (shift - 1);
  bool up = false;
  switch (rounding) {
    case Rounding::nearest_even:
      up = rest > half || (rest == half && (away || (kept & 1)));
      break;
    case Rounding::toward_zero:
      break;
    case Rounding::down:
      up = sign && rest != 0;
      break;
    case Rounding::up:
      up = !sign && rest != 0;
      break;
  }
  return kept + (up ? 1 : 0);
}

struct Encoding {
  Rounding rounding = Rounding::nearest_even;
  bool ties_away = false;
  bool flush =
      false;  // results below the smallest normal number become zero; it is the exact value that counts
  bool to_largest = false;  // .satfinite: what is too large becomes the largest finite number
};

// A finite number or an infinity in a format, without its NaN rules.
inline uint64_t encode(const Number& n, const Format& f, const Encoding& e) {
  const uint64_t sign = n.sign ? f.sign_bit() : 0;
  const bool towards_zero = e.rounding == Rounding::toward_zero ||
                            (e.rounding == Rounding::down && !n.sign) ||
                            (e.rounding == Rounding::up && n.sign);
  const uint64_t overflow =
      sign | (e.to_largest || towards_zero || !f.has_infinity ? f.largest() : f.infinity());
  if (n.kind == Number::Kind::infinity)
    return sign | (e.to_largest || !f.has_infinity ? f.largest() : f.infinity());
  if (n.significand == 0) return sign;
  const int smallest = 1 - f.bias();                         // exponent of the smallest normal number
  const int exponent = top_bit(n.significand) + n.exponent;  // of the leading bit
  if (e.flush && exponent < smallest) return sign;
  const int unit = (exponent < smallest ? smallest : exponent) - f.fraction_bits;  // of the last place
  const unsigned __int128 rounded =
      shifted(n.significand, unit - n.exponent, e.rounding, n.sign, e.ties_away);
  if (rounded == 0) return sign;
  const int now = top_bit(rounded) + unit;
  const uint64_t fraction =
      uint64_t(now < smallest ? rounded : rounded >> (top_bit(rounded) - f.fraction_bits)) &
      ((1ull << f.fraction_bits) - 1);
  const uint64_t biased = now < smallest ? 0 : uint64_t(now + f.bias());
  const uint64_t magnitude = biased << f.fraction_bits | fraction;
  return now > 1 << f.exponent_bits || magnitude > f.largest() ? overflow : sign | magnitude;
}

inline Number number_of(unsigned __int128 magnitude, bool sign) {
  Number n;
  n.sign = sign;
  n.significand = magnitude;
  return n;
}

}  // namespace fa4::sim
