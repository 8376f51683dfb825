// SPDX-License-Identifier: Apache-2.0
// What the recorded hashes of the approximate functions are taken over: shared by the program that ran on a
// GPU (approx_fixture.cu) and the tests. Integers only.
#pragma once

#include <cstdint>

namespace fa4::sim::cases {

// splitmix64's output function
constexpr uint64_t scrambled(uint64_t z) {
  z += 0x9E37'79B9'7F4A'7C15;
  z = (z ^ z >> 30) * 0xBF58'476D'1CE4'E5B9;
  z = (z ^ z >> 27) * 0x94D0'49BB'1331'11EB;
  return z ^ z >> 31;
}

// The hash of a set of (input, result) pairs is the sum of their terms, folded: no order, so that a GPU and
// any number of threads may add them up.
constexpr uint64_t hash_term(uint32_t input, uint32_t result) {
  return scrambled(static_cast<uint64_t>(input) << 32 | result);
}
constexpr uint32_t folded(uint64_t sum) {
  return static_cast<uint32_t>(sum ^ sum >> 32);
}

// Operands of divisions: 2^22 pairs of each kind.
enum class Pairs : uint8_t {
  any,        // all bit patterns, NaN and infinities among them
  near_one,   // both in [2^-8, 2^8)
  huge,       // divisors of 2^124 and more
  tiny,       // divisors below 2^-123, most of them subnormal
  quotients,  // quotients around the smallest normal number
};
inline constexpr int pairs_count = 5;
inline constexpr uint32_t pairs_per_kind = 1u << 22;

struct Pair {
  uint32_t a, b;
};
constexpr Pair pair(Pairs kind, uint32_t i) {
  const uint64_t random = scrambled(static_cast<uint64_t>(kind) << 32 | i);
  const uint32_t a = static_cast<uint32_t>(random), b = static_cast<uint32_t>(random >> 32);
  const uint32_t extra = static_cast<uint32_t>(scrambled(random));
  const auto with_exponent = [](uint32_t bits, uint32_t exponent) {
    return (bits & 0x807F'FFFF) | exponent << 23;
  };
  switch (kind) {
    case Pairs::any:
      return {a, b};
    case Pairs::near_one:
      return {with_exponent(a, 119 + extra % 16), with_exponent(b, 119 + extra / 16 % 16)};
    case Pairs::huge:
      return {a, with_exponent(b, 251 + extra % 4)};
    case Pairs::tiny:
      return {a, extra % 4 == 0 ? with_exponent(b, extra / 4 % 4) : with_exponent(b >> extra / 4 % 24, 0)};
    case Pairs::quotients:
      return {with_exponent(a, extra % 32), with_exponent(b, 120 + extra / 32 % 16)};
  }
  return {0, 0};
}

// A pair of 16-bit inputs, the lower one counting up: 2^16 of them.
constexpr uint32_t half_pair(uint32_t i) {
  return (static_cast<uint32_t>(scrambled(i)) & 0xFFFF'0000) | i;
}

}  // namespace fa4::sim::cases
