// SPDX-License-Identifier: Apache-2.0
// Seeded inputs that any language regenerates with 64-bit integer arithmetic alone;
// tests/fixtures/make_sdpa_fixture.py holds the same function in Python, make_flex_fixture.py
// beside it those of sinks and slopes.
//
//   key     = mix(4 * seed + tensor)                      tensor: Q 0, K 1, V 2
//   z       = mix(key + (index + 1) * 0x9E3779B97F4A7C15) index: of the element in packed (b, s, h, d) order
//   integer = sum of the four 16-bit fields of z, each cut to its low `bits` bits, minus 2 * (2^bits - 1)
//   value   = integer * 2^-(bits - 1)
//
// with mix() the finaliser of SplitMix64 and bits = 10 for fp16, 7 for bf16. The values are symmetric and
// bell-shaped, lie in (-4, 4) with standard deviation 1.15, and every one is exact in its format.
#pragma once

#include <functional>

#include "problem.h"

namespace fa4::support {

enum class TensorId : uint64_t { q = 0, k = 1, v = 2 };

uint16_t input_value(Dtype dtype, uint64_t seed, TensorId tensor, uint64_t index);
std::vector<uint16_t> make_tensor(Dtype dtype, uint64_t seed, TensorId tensor, int64_t elements);

// A sink is a multiple of 1/8 from -4 to 10: some weigh nothing in the sum of a row, some more than all keys.
// A slope is 0 or a power of two from 2^-8 to 2^-1.
float sink_value(uint64_t seed, uint64_t head);
float slope_value(uint64_t seed, uint64_t index);

Inputs make_inputs(const Problem& problem, uint64_t seed);

// Inputs whose scores are exact float32 of any size: integers from -2 to 2 in all columns of Q and K but the first,
// where every head has query(position) and key(position), which shift the scores by their product. Exact as long as
// that product is a multiple of 1 below 2^23.
Inputs make_exact_inputs(const Problem& problem, uint64_t seed, const std::function<float(int64_t)>& query,
                         const std::function<float(int64_t)>& key);

}  // namespace fa4::support
