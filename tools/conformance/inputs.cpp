// SPDX-License-Identifier: Apache-2.0
// The inputs of a row: every combination of corner values first, as far as they go, then seeded random values
// whose exponents are close enough that sums, products and roundings meet.
#include <array>
#include <cstdio>
#include <cstring>

#include "row.h"

namespace fa4::conformance {
namespace {

// SplitMix64.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

uint64_t seed_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

std::vector<uint64_t> with_signs(std::vector<uint64_t> magnitudes, int sign_bit) {
  const size_t n = magnitudes.size();
  for (size_t i = 0; i < n; ++i) magnitudes.push_back(magnitudes[i] | 1ull << sign_bit);
  return magnitudes;
}

const std::vector<uint64_t>& corners(Values values) {
  static const std::vector<uint64_t> integers = [] {
    std::vector<uint64_t> v;
    for (uint64_t x : {0ull,
                       1ull,
                       2ull,
                       3ull,
                       7ull,
                       10ull,
                       31ull,
                       32ull,
                       127ull,
                       128ull,
                       255ull,
                       256ull,
                       32767ull,
                       32768ull,
                       65535ull,
                       65536ull,
                       0x7FFFFFFFull,
                       0x80000000ull,
                       0xFFFFFFFFull,
                       0x100000000ull,
                       0x7FFFFFFFFFFFFFFFull,
                       0x8000000000000000ull}) {
      v.push_back(x);
      v.push_back(0 - x);
    }
    return v;
  }();
  static const std::vector<uint64_t> shifts{0,   1,   7,   8,   15,         16,         17,
                                            31,  32,  33,  63,  64,         65,         127,
                                            128, 255, 256, 257, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF};
  static const std::vector<uint64_t> bits{0,
                                          1,
                                          0x80,
                                          0x8000,
                                          0xFFFF,
                                          0x80000000,
                                          0xFFFFFFFF,
                                          ~0ull,
                                          0x0123456789ABCDEFull,
                                          0xA5A5A5A55A5A5A5Aull};
  static const std::vector<uint64_t> f32 = with_signs(
      {0,          1,          2,          0x3FFFFF,   0x7FFFFF,   0x800000,   0x800001,   0x33000000,
       0x33000001, 0x33800000, 0x387FE000, 0x387FFFFF, 0x38800000, 0x38801000, 0x38803000, 0x3F000000,
       0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3F808000, 0x3F818000, 0x3FC00000, 0x40000000, 0x40200000,
       0x477FE000, 0x477FEFFF, 0x477FF000, 0x4B000000, 0x4B7FFFFF, 0x4EFFFFFF, 0x4F000000, 0x4F7FFFFF,
       0x4F800000, 0x5F000000, 0x5F7FFFFF, 0x5F800000, 0x7F7F7FFF, 0x7F7F8000, 0x7F7FFFFF, 0x7F800000,
       0x7FC00000, 0x7F800001, 0x7FFFFFFF},
      31);
  static const std::vector<uint64_t> f64 = with_signs({0,
                                                       1,
                                                       2,
                                                       0x000FFFFFFFFFFFFF,
                                                       0x0010000000000000,
                                                       0x3690000000000000,
                                                       0x36A0000000000000,
                                                       0x36A8000000000000,
                                                       0x3800000000000000,
                                                       0x3810000000000000,
                                                       0x3E70000000000000,
                                                       0x3E70000000000001,
                                                       0x3FE0000000000000,
                                                       0x3FEFFFFFFFFFFFFF,
                                                       0x3FF0000000000000,
                                                       0x3FF0000000000001,
                                                       0x3FF0000010000000,
                                                       0x3FF0000030000000,
                                                       0x3FF8000000000000,
                                                       0x4000000000000000,
                                                       0x4004000000000000,
                                                       0x41DFFFFFFFC00000,
                                                       0x41DFFFFFFFE00000,
                                                       0x41E0000000000000,
                                                       0x41EFFFFFFFE00000,
                                                       0x41EFFFFFFFF00000,
                                                       0x41F0000000000000,
                                                       0x43DFFFFFFFFFFFFF,
                                                       0x43E0000000000000,
                                                       0x43EFFFFFFFFFFFFF,
                                                       0x43F0000000000000,
                                                       0x47EFFFFFE0000000,
                                                       0x47EFFFFFF0000000,
                                                       0x47F0000000000000,
                                                       0x7FEFFFFFFFFFFFFF,
                                                       0x7FF0000000000000,
                                                       0x7FF0000000000001,
                                                       0x7FF8000000000000,
                                                       0x7FFFFFFFFFFFFFFF},
                                                      63);
  static const std::vector<uint64_t> f16 =
      with_signs({0,      1,      2,      0x1FF,  0x3FF,  0x400,  0x401,  0x1000, 0x1400, 0x3800,
                  0x3BFF, 0x3C00, 0x3C01, 0x3E00, 0x4000, 0x4100, 0x5BFF, 0x5C00, 0x6000, 0x63FF,
                  0x6400, 0x7800, 0x7BFE, 0x7BFF, 0x7C00, 0x7C01, 0x7E00, 0x7FFF},
                 15);
  static const std::vector<uint64_t> bf16 =
      with_signs({0,      1,      2,      0x3F,   0x7F,   0x80,   0x81,   0x3300, 0x3380, 0x3F00,
                  0x3F7F, 0x3F80, 0x3F81, 0x3FC0, 0x4000, 0x4020, 0x4300, 0x4380, 0x4EFF, 0x4F00,
                  0x4F80, 0x5F00, 0x7F00, 0x7F7E, 0x7F7F, 0x7F80, 0x7F81, 0x7FC0, 0x7FFF},
                 15);
  switch (values) {
    case Values::integers:
      return integers;
    case Values::shifts:
      return shifts;
    case Values::bits:
      return bits;
    case Values::f32:
    case Values::f32x2:
      return f32;
    case Values::f64:
      return f64;
    case Values::f16:
    case Values::f16x2:
      return f16;
    case Values::bf16:
    case Values::bf16x2:
      return bf16;
    case Values::small_f16x2:
    case Values::small_bf16x2:
    case Values::small_f32:
      break;  // pairs of +0
  }
  static const std::vector<uint64_t> zero{0};
  return zero;
}

// A format's random value: any bits now and then, else an exponent within `span` around `middle`.
uint64_t random_float(Random& random, int mantissa, int exponent_bits, int middle, int span) {
  const uint64_t bits = random.next(), choice = random.next();
  const uint64_t all = (1ull << mantissa << exponent_bits << 1) - 1;  // 64-bit formats wrap to all ones
  if (choice % 5 == 0) return bits & all;
  const uint64_t exponent = uint64_t(middle - span / 2) + (choice >> 8) % uint64_t(span);
  const uint64_t sign = 1ull << (mantissa + exponent_bits);
  return (bits & (sign | ((1ull << mantissa) - 1))) | exponent << mantissa;
}

uint64_t random_value(Values values, Random& random) {
  switch (values) {
    case Values::integers: {
      const uint64_t bits = random.next(), choice = random.next();
      return choice % 4 == 0 ? bits >> (choice >> 8) % 64 : bits;
    }
    case Values::shifts: {
      const uint64_t bits = random.next(), choice = random.next();
      return choice % 8 == 0 ? bits & 0xFFFFFFFF : bits % 70;
    }
    case Values::bits:
      return random.next();
    case Values::f32:
      return random_float(random, 23, 8, 127, 40);
    case Values::f64:
      return random_float(random, 52, 11, 1023, 90);
    case Values::f16:
      return random_float(random, 10, 5, 15, 16);
    case Values::bf16:
      return random_float(random, 7, 8, 127, 24);
    default:
      return 0;  // pairs are made of single values
  }
}

// One value of an operand; a pair takes a corner for each half.
uint64_t value_of(Values values, bool corner, uint64_t index, Random& random) {
  const auto& list = corners(values);
  const auto single = [&](Values kind, bool take_corner, uint64_t i) {
    return take_corner ? list[i % list.size()] : random_value(kind, random);
  };
  switch (values) {
    case Values::f16x2:
    case Values::bf16x2: {
      const Values half = values == Values::f16x2 ? Values::f16 : Values::bf16;
      const uint64_t low = single(half, corner, index),
                     high = single(half, corner, index / list.size() + index * 7);
      return low | high << 16;
    }
    case Values::small_f16x2: {
      const auto half = [&] {
        const uint64_t v = random.next();
        return (v & 0x83FF) | (12 + (v >> 20) % 6) << 10;
      };
      const uint64_t low = half();
      return low | half() << 16;
    }
    case Values::small_bf16x2: {
      const auto half = [&] {
        const uint64_t v = random.next();
        return (v & 0x807F) | (120 + (v >> 20) % 12) << 7;
      };
      const uint64_t low = half();
      return low | half() << 16;
    }
    case Values::small_f32: {
      const uint64_t v = random.next();
      return (v & 0x807FFFFF) | (120 + (v >> 32) % 12) << 23;
    }
    case Values::f32x2: {
      const uint64_t low = single(Values::f32, corner, index),
                     high = single(Values::f32, corner, index / list.size() + index * 7);
      return low | high << 32;
    }
    default:
      return single(values, corner, index);
  }
}

}  // namespace

size_t Row::input_bytes() const {
  size_t bytes = 0;
  for (const Input& input : inputs) bytes += size_t(input.bytes) * elements;
  return bytes;
}

std::vector<std::byte> input_of(const Row& row) {
  std::vector<std::byte> bytes(row.input_bytes());
  Random random(seed_of(row.name));
  std::vector<std::byte*> start;
  size_t offset = 0;
  uint64_t combinations = 1;
  for (const Input& input : row.inputs) {
    start.push_back(bytes.data() + offset);
    offset += size_t(input.bytes) * row.elements;
    combinations *= corners(input.values).size();
  }
  // Where the combinations of corners do not fit, half of the elements samples them.
  const uint64_t corner_elements = combinations <= row.elements * 3 / 4 ? combinations : row.elements / 2;
  for (uint32_t e = 0; e < row.elements; ++e) {
    const bool corner = e < corner_elements;
    uint64_t rest = combinations <= corner_elements ? e : random.next();
    for (size_t k = 0; k < row.inputs.size(); ++k) {
      const Input& input = row.inputs[k];
      const uint64_t count = corners(input.values).size();
      // Among random values a corner turns up now and then too.
      const bool one_corner = corner || random.next() % 16 == 0;
      uint64_t value =
          value_of(input.values, one_corner, corner ? rest % count : random.next() >> 20, random);
      rest /= count;
      std::memcpy(start[k] + size_t(e) * input.bytes, &value, input.bytes);
    }
  }
  return bytes;
}

std::string describe_inputs(const Row& row, const std::vector<std::byte>& input, uint32_t element) {
  std::string text;
  size_t offset = 0;
  if (row.output_elements != row.elements) return "inputs: see the kernel";
  for (size_t k = 0; k < row.inputs.size(); ++k) {
    uint64_t value = 0;
    std::memcpy(&value, input.data() + offset + size_t(element) * row.inputs[k].bytes, row.inputs[k].bytes);
    char one[48];
    std::snprintf(one, sizeof one, "%s%c 0x%0*llx", k ? ", " : "", "abce"[k], int(2 * row.inputs[k].bytes),
                  static_cast<unsigned long long>(value));
    text += one;
    offset += size_t(row.inputs[k].bytes) * row.elements;
  }
  return text;
}

}  // namespace fa4::conformance
