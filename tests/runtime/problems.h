// SPDX-License-Identifier: Apache-2.0
// Problems for the tests of the runtime: dense tensors at made-up device addresses.
#pragma once

#include "fa4/fa4.hpp"

namespace fa4::test {

inline constexpr uint64_t kQAddress = 0x7f0000000000, kKAddress = 0x7f1000000000, kVAddress = 0x7f2000000000,
                          kOAddress = 0x7f3000000000, kLseAddress = 0x7f4000000000;

inline Problem dense_problem(const Shape& shape, fa4_dtype dtype = FA4_FP16) {
  Problem problem(dtype, shape);
  problem.set_q(kQAddress).set_k(kKAddress).set_v(kVAddress).set_o(kOAddress).set_lse(kLseAddress);
  return problem;
}

inline constexpr uint64_t kArrayAddress = 0x7f5000000000;  // of an array on the device that nobody reads

// Every extent exceeds 1, so that every stride counts.
inline Problem small_problem(int64_t head_dim = 128, int64_t head_dim_v = 0) {
  return dense_problem(
      {.batch = 2, .seq_q = 100, .seq_kv = 200, .q_heads = 8, .kv_heads = 2, .head_dim = head_dim, .head_dim_v = head_dim_v});
}

}  // namespace fa4::test
