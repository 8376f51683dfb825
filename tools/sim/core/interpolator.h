// SPDX-License-Identifier: Apache-2.0
// What the table-driven functions share: the squarer of the unit's quadratic interpolator. Included by one
// translation unit per instruction set (see ex2_kernel.h).
#pragma once

#include <cstdint>

namespace fa4::sim {
namespace {

constexpr int warp_lanes = 32;

// x * x / 2^19 for x < 2^17 as the sum of the partial products x_i x_j of bits i >= j of weight 2^19 and
// more: i + j >= 18 for i > j (each such pair counts twice), i >= 10 on the diagonal. Row i, present when bit
// i is, is bits 18 - i to i - 1 of x, from weight 1 up, and its diagonal.
inline uint32_t truncated_square(uint32_t x) {
  uint32_t sum = 0;
#pragma GCC unroll 7
  for (int i = 10; i <= 16; ++i) {
    const int width = 2 * i - 18;
    const uint32_t row = ((x >> (18 - i)) & ((1u << width) - 1)) + (1u << (width - 1));
    sum += row & (0u - ((x >> i) & 1));
  }
  return sum;
}

}  // namespace
}  // namespace fa4::sim
