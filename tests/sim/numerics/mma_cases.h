// SPDX-License-Identifier: Apache-2.0
// Seeded tensor-core inputs by kind of trouble, one step of m = 64, n = 8 each. Integer generation only, so
// that the program that ran on a GPU (h200_fixture.cu) and the tests make the same bits.
#pragma once

#include <cstdint>

#include "tools/sim/core/mma.h"

namespace fa4::sim::cases {

// splitmix64
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15;
    z = (z ^ z >> 30) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ z >> 27) * 0x94D0'49BB'1331'11EB;
    return z ^ z >> 31;
  }
  uint32_t bits() { return static_cast<uint32_t>(next() >> 32); }
  int range(int low, int high) {
    return low + static_cast<int>(bits() % static_cast<uint32_t>(high - low + 1));
  }
  bool one_in(uint32_t n) { return bits() % n == 0; }

 private:
  uint64_t state_;
};

enum class Kind : uint8_t {
  wide,  // 24 binades of inputs, 48 of c
  subnormal_inputs,
  tiny,  // sums around and below the smallest normal fp32 (bf16)
  tiny_without_c,
  zeros,            // every term zero, all signs
  below_subnormal,  // bf16: sums that leave fp32's range at the bottom
  overflow,         // bf16: sums around 2^128
  specials,         // NaN, infinities and zeros among ordinary values
  large_c,
  near_four,  // every product close to 4: the largest integer sums
  tiny_and_zeros,
  dominant_c,
  subnormal_c,
  cancelling,  // pairs of opposite products, c of the size of what is left
};
inline constexpr int kind_count = 14;

inline const char* kind_name(Kind kind) {
  static constexpr const char* names[kind_count] = {
      "wide",        "subnormal inputs", "tiny",    "tiny without c", "zeros",          "below subnormal",
      "overflow",    "specials",         "large c", "near four",      "tiny and zeros", "dominant c",
      "subnormal c", "cancelling"};
  return names[static_cast<int>(kind)];
}

struct Case {
  static constexpr uint32_t m = 64, n = 8;
  MmaInput type;
  uint16_t a[16 * 128];  // only the first 64 of each 128 are used
  uint16_t b[n * 16];
  uint32_t c[n * m];  // bits of fp32, c[n * 64 + m]
};

// Exponent fields below are biased ones; `one` is the field of 1.0.
inline uint16_t input_of(Kind kind, MmaInput type, Random& random) {
  const bool bf16 = type == MmaInput::bf16;
  const int fraction_bits = bf16 ? 7 : 10, top = bf16 ? 255 : 31, one = bf16 ? 127 : 15;
  auto make = [&](int field, uint32_t fraction) {
    const uint32_t mask = (1u << fraction_bits) - 1;
    return static_cast<uint16_t>((random.bits() & 1) << 15 | static_cast<uint32_t>(field) << fraction_bits |
                                 (fraction & mask));
  };
  auto between = [&](int low, int high) {
    int field = random.range(low, high);
    if (field < 0) field = 0;
    if (field > top - 1) field = top - 1;
    return make(field, random.bits());
  };
  switch (kind) {
    case Kind::wide:
      return between(one - 12, one + 12);
    case Kind::subnormal_inputs:
      return random.one_in(3) ? between(0, 3) : make(0, random.bits());
    case Kind::tiny:
    case Kind::tiny_without_c:
      return bf16 ? between(50, 72) : between(0, 2);
    case Kind::zeros:
      return make(0, 0);
    case Kind::below_subnormal:
      return bf16 ? between(30, 60) : between(0, 1);
    case Kind::overflow:
      return bf16 ? between(187, 191) : between(28, 30);
    case Kind::specials: {
      const int pick = random.range(0, 79);
      if (pick == 0) return make(top, 0);
      if (pick == 1) return make(top, random.bits());
      return pick < 12 ? make(0, 0) : between(one - 12, one + 12);
    }
    case Kind::large_c:
    case Kind::dominant_c:
      return between(one - 6, one + 6);
    case Kind::near_four: {
      const uint32_t fraction = ~0u << random.range(0, 2);
      const uint16_t bits = make(one, fraction);
      return random.one_in(9) ? bits : bits & 0x7FFF;
    }
    case Kind::tiny_and_zeros:
      return random.one_in(3) ? (bf16 ? between(50, 66) : between(0, 2)) : make(0, 0);
    case Kind::subnormal_c:
      return bf16 ? between(40, 66) : between(0, 2);
    case Kind::cancelling:
      return between(one - 3, one + 3);
  }
  return 0;
}

inline uint32_t c_of(Kind kind, MmaInput type, Random& random) {
  const bool bf16 = type == MmaInput::bf16;
  auto between = [&](int low, int high) {
    return (random.bits() & 0x807F'FFFF) | static_cast<uint32_t>(random.range(low, high)) << 23;
  };
  auto signed_zero = [&] { return random.bits() & 0x8000'0000; };
  switch (kind) {
    case Kind::wide:
      return between(127 - 24, 127 + 24);
    case Kind::subnormal_inputs:
      return bf16 ? between(0, 5) : between(60, 110);
    case Kind::tiny:
      return between(0, 4);
    case Kind::tiny_without_c:
    case Kind::zeros:
    case Kind::below_subnormal:
      return signed_zero();
    case Kind::overflow:
      return bf16 ? between(240, 254) : between(127, 160);
    case Kind::specials: {
      const int pick = random.range(0, 39);
      if (pick == 0) return 0x7F80'0000 | signed_zero();
      if (pick == 1) return 0x7F80'0000 | random.bits();
      return between(100, 150);
    }
    case Kind::large_c:
      return between(130, 150);
    case Kind::near_four:
      return between(126, 128);
    case Kind::tiny_and_zeros:
      return random.one_in(2) ? between(0, 3) : 0;
    case Kind::dominant_c:
      return between(135, 165);
    case Kind::subnormal_c:
      return random.bits() & 0x8000'00FF;
    case Kind::cancelling:
      return between(95, 127);
  }
  return 0;
}

inline void generate(Kind kind, MmaInput type, uint32_t index, Case* out) {
  Random random(static_cast<uint64_t>(kind) << 40 | static_cast<uint64_t>(type) << 36 | index);
  out->type = type;
  for (uint32_t k = 0; k < 16; ++k) {
    for (uint32_t m = 0; m < 128; ++m)
      out->a[k * 128 + m] = m < Case::m ? input_of(kind, type, random) : 0xFFFF;
    for (uint32_t n = 0; n < Case::n; ++n) out->b[n * 16 + k] = input_of(kind, type, random);
  }
  if (kind == Kind::cancelling) {
    for (uint32_t k = 1; k < 16; k += 2) {
      for (uint32_t m = 0; m < Case::m; ++m) out->a[k * 128 + m] = out->a[(k - 1) * 128 + m] ^ 0x8000;
      for (uint32_t n = 0; n < Case::n; ++n) out->b[n * 16 + k] = out->b[n * 16 + k - 1];
    }
    // One pair in eight differs in its last place.
    for (uint32_t m = 0; m < Case::m; ++m) out->a[128 * (2 * (m % 8) + 1) + m] ^= 1;
  }
  for (uint32_t i = 0; i < Case::m * Case::n; ++i) out->c[i] = c_of(kind, type, random);
}

// Order-dependent hash of result bits.
inline uint64_t hash(uint64_t h, uint32_t bits) {
  return (h ^ bits) * 0x0000'0100'0000'01B3;
}
inline constexpr uint64_t hash_start = 0xCBF2'9CE4'8422'2325;

}  // namespace fa4::sim::cases
