// SPDX-License-Identifier: Apache-2.0
// Seeded tensor-core inputs by kind of trouble, one step of m = 64, n = 8 each, and the instructions that a
// GPU ran on them. Integer generation only, so that the program that ran there (mma_fixture.cu) and the tests
// make the same bits.
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
  small_sums,  // sums around the smallest normal f16
};
inline constexpr int kind_count = 15;

inline const char* kind_name(Kind kind) {
  static constexpr const char* names[kind_count] = {
      "wide",        "subnormal inputs", "tiny",      "tiny without c", "zeros",          "below subnormal",
      "overflow",    "specials",         "large c",   "near four",      "tiny and zeros", "dominant c",
      "subnormal c", "cancelling",       "small sums"};
  return names[static_cast<int>(kind)];
}

enum class Form : uint8_t { mma_sync, wgmma };

struct Instruction {
  const char* name;
  Form form;
  MmaInput input;
  MmaAccumulator accumulator;
  uint32_t k;
};
inline constexpr Instruction instructions[] = {
    {"mma.m16n8k16 f16", Form::mma_sync, MmaInput::f16, MmaAccumulator::f32, 16},
    {"mma.m16n8k16 bf16", Form::mma_sync, MmaInput::bf16, MmaAccumulator::f32, 16},
    {"mma.m16n8k8 f16", Form::mma_sync, MmaInput::f16, MmaAccumulator::f32, 8},
    {"mma.m16n8k8 bf16", Form::mma_sync, MmaInput::bf16, MmaAccumulator::f32, 8},
    {"mma.m16n8k4 tf32", Form::mma_sync, MmaInput::tf32, MmaAccumulator::f32, 4},
    {"mma.m16n8k8 tf32", Form::mma_sync, MmaInput::tf32, MmaAccumulator::f32, 8},
    {"mma.m16n8k16 f16, f16 accumulators", Form::mma_sync, MmaInput::f16, MmaAccumulator::f16, 16},
    {"mma.m16n8k8 f16, f16 accumulators", Form::mma_sync, MmaInput::f16, MmaAccumulator::f16, 8},
    {"wgmma.m64n8k16 f16", Form::wgmma, MmaInput::f16, MmaAccumulator::f32, 16},
    {"wgmma.m64n8k16 bf16", Form::wgmma, MmaInput::bf16, MmaAccumulator::f32, 16},
    {"wgmma.m64n8k8 tf32", Form::wgmma, MmaInput::tf32, MmaAccumulator::f32, 8},
    {"wgmma.m64n8k16 f16, f16 accumulators", Form::wgmma, MmaInput::f16, MmaAccumulator::f16, 16},
};
inline constexpr int instruction_count = sizeof instructions / sizeof instructions[0];

struct Case {
  static constexpr uint32_t m = 64, n = 8;
  uint32_t
      a[16 * m];  // a[k * 64 + m], raw values of the input type; only the first k of an instruction count
  uint32_t b[n * 16];  // b[n * 16 + k]
  uint32_t c[n * m];   // c[n * 64 + m], bits of the accumulator's type
};

// Exponent fields below are biased ones; `one` is the field of 1.0.
inline uint32_t input_of(Kind kind, MmaInput type, Random& random) {
  const bool bf16 =
      type != MmaInput::f16;  // or tf32, which has its exponents, and 13 bits that are not looked at
  const int fraction_bits = type == MmaInput::tf32 ? 23
                            : bf16                 ? 7
                                                   : 10,
            top = bf16 ? 255 : 31, one = bf16 ? 127 : 15;
  const uint32_t sign = type == MmaInput::tf32 ? 0x8000'0000 : 0x8000;
  auto make = [&](int field, uint32_t fraction) {
    const uint32_t mask = (1u << fraction_bits) - 1;
    return (random.bits() & 1) * sign | static_cast<uint32_t>(field) << fraction_bits | (fraction & mask);
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
      if (pick == 2 && type == MmaInput::tf32)
        return make(random.one_in(2) ? top : 0, random.bits() & 0x1FFF);
      return pick < 12 ? make(0, 0) : between(one - 12, one + 12);
    }
    case Kind::large_c:
    case Kind::dominant_c:
      return between(one - 6, one + 6);
    case Kind::near_four: {
      const uint32_t fraction = ~0u << (random.range(0, 2) + (type == MmaInput::tf32 ? 13 : 0));
      const uint32_t bits = make(one, fraction);
      return random.one_in(9) ? bits : bits & ~sign;
    }
    case Kind::tiny_and_zeros:
      return random.one_in(3) ? (bf16 ? between(50, 66) : between(0, 2)) : make(0, 0);
    case Kind::subnormal_c:
      return bf16 ? between(40, 66) : between(0, 2);
    case Kind::cancelling:
      return between(one - 3, one + 3);
    case Kind::small_sums:
      return between(one - 10, one - 5);
  }
  return 0;
}

inline uint32_t c_of(Kind kind, MmaInput type, Random& random) {
  const bool bf16 = type != MmaInput::f16;
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
    case Kind::small_sums:
      return between(100, 118);
  }
  return 0;
}

// The same for f16 accumulators.
inline uint32_t half_c_of(Kind kind, Random& random) {
  auto between = [&](int low, int high) {
    return (random.bits() & 0x83FF) | static_cast<uint32_t>(random.range(low, high)) << 10;
  };
  auto signed_zero = [&] { return random.bits() & 0x8000; };
  switch (kind) {
    case Kind::wide:
      return between(1, 30);
    case Kind::subnormal_inputs:
    case Kind::tiny:
    case Kind::small_sums:
      return between(0, 5);
    case Kind::tiny_without_c:
    case Kind::zeros:
    case Kind::below_subnormal:
      return signed_zero();
    case Kind::overflow:
      return between(27, 30);
    case Kind::specials: {
      const int pick = random.range(0, 39);
      if (pick == 0) return 0x7C00 | signed_zero();
      if (pick == 1) return 0x7C00 | (random.bits() & 0x83FF);
      return between(8, 22);
    }
    case Kind::large_c:
    case Kind::dominant_c:
      return between(20, 30);
    case Kind::near_four:
      return between(14, 21);
    case Kind::tiny_and_zeros:
      return random.one_in(2) ? between(0, 3) : 0;
    case Kind::subnormal_c:
      return random.bits() & 0x83FF;
    case Kind::cancelling:
      return between(0, 15);
  }
  return 0;
}

inline void generate(Kind kind, const Instruction& instruction, uint32_t index, Case* out) {
  const MmaInput type = instruction.input;
  const bool half = instruction.accumulator == MmaAccumulator::f16;
  Random random(static_cast<uint64_t>(kind) << 40 | static_cast<uint64_t>(type) << 36 |
                static_cast<uint64_t>(half) << 35 | index);
  for (uint32_t k = 0; k < 16; ++k) {
    for (uint32_t m = 0; m < Case::m; ++m) out->a[k * Case::m + m] = input_of(kind, type, random);
    for (uint32_t n = 0; n < Case::n; ++n) out->b[n * 16 + k] = input_of(kind, type, random);
  }
  if (kind == Kind::cancelling) {
    const uint32_t sign = type == MmaInput::tf32 ? 0x8000'0000 : 0x8000,
                   last_place = type == MmaInput::tf32 ? 0x2000 : 1;
    for (uint32_t k = 1; k < 16; k += 2) {
      for (uint32_t m = 0; m < Case::m; ++m) out->a[k * Case::m + m] = out->a[(k - 1) * Case::m + m] ^ sign;
      for (uint32_t n = 0; n < Case::n; ++n) out->b[n * 16 + k] = out->b[n * 16 + k - 1];
    }
    // One pair in eight differs in its last place.
    for (uint32_t m = 0; m < Case::m; ++m) out->a[Case::m * (2 * (m % 8) + 1) + m] ^= last_place;
  }
  for (uint32_t i = 0; i < Case::m * Case::n; ++i)
    out->c[i] = half ? half_c_of(kind, random) : c_of(kind, type, random);
}

// Order-dependent hash of result bits.
inline uint64_t hash(uint64_t h, uint32_t bits) {
  return (h ^ bits) * 0x0000'0100'0000'01B3;
}
inline constexpr uint64_t hash_start = 0xCBF2'9CE4'8422'2325;

}  // namespace fa4::sim::cases
