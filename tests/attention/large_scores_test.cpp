// SPDX-License-Identifier: Apache-2.0
// Scores of any size that float32 can hold, from inputs whose scores are exact.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::make_exact_inputs;

constexpr std::array kDtypes{Dtype::fp16, Dtype::bf16};
constexpr auto k64 = [](int64_t) { return 64.0f; };

}  // namespace

TEST_CASE("one large row in each place of a warp, and not a bit of the others changes", "[large]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    for (const Dtype dtype : kDtypes) {
      for (const bool causal : {false, true}) {
        const support::Problem problem{dtype, causal, 1, 128, 200, 1, 1, 0.05, dims.qk, dims.v};
        test::Case c{problem, {}, 21};
        support::RunResult ordinary;
        REQUIRE(test::verify(c,
                             make_exact_inputs(
                                 problem, c.seed, [](int64_t) { return 0.0f; }, k64),
                             &ordinary) == "");
        for (int64_t lane = 0; lane < 32; ++lane) {
          const int64_t large = lane % 4 * 32 + lane;  // in one warp after the other
          const float query = (lane & 1 ? -1.0f : 1.0f) * (lane & 2 ? 65536.0f / 2 : 16384.0f);
          const auto inputs = make_exact_inputs(
              problem, c.seed, [&](int64_t i) { return i == large ? query : 0; }, k64);
          support::RunResult result;
          CHECK(test::verify(c, inputs, &result) == "");
          const auto unchanged = [&](int64_t i) {
            const size_t row = size_t(i * dims.v);
            return i == large || (std::equal(&result.o[row], &result.o[row] + dims.v, &ordinary.o[row]) &&
                                  result.lse[size_t(i)] == ordinary.lse[size_t(i)]);
          };
          int64_t changed = 0;
          for (int64_t i = 0; i < problem.seq_q; ++i) changed += !unchanged(i);
          INFO(test::describe(c) << ", large row " << large << ", query " << query);
          CHECK(changed == 0);
        }
      }
    }
  }
}

TEST_CASE("maxima of every magnitude, from ordinary to the largest", "[large]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    // The shift alone is varied: 2^8 to 2^21 on top of integers, times scales that reach past 2^28 in log2.
    uint64_t seed = 60;
    for (const Dtype dtype : kDtypes) {
      for (const double scale : {0.01, 0.3, -0.3, 20.0, 1e3, 1e7, -1e8, 1e30, 2.3e38}) {
        for (const bool causal : {false, true}) {
          const support::Problem problem{dtype, causal, 1, 150, 300, 1, 1, scale, dims.qk, dims.v};
          test::Case c{problem, {}, ++seed};
          const auto inputs = make_exact_inputs(
              problem, c.seed,
              [](int64_t i) { return (i & 1 ? -1.0f : 1.0f) * std::ldexp(1.0f, int(2 + i % 14)); }, k64);
          CHECK(test::verify(c, inputs) == "");
        }
      }
    }
  }
}

TEST_CASE("a maximum that grows from block to block, beyond every limit", "[large]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    // Blocks run from the last key to the first: each has scores 16 times those of the one before.
    for (const Dtype dtype : kDtypes) {
      for (const double scale : {1.0, -1.0, 64.0}) {
        const int64_t block = test::config_of(dtype, MaskKind::full, dims).block_keys;
        const support::Problem problem{dtype, false, 1, 130, block * 5, 1, 1, scale, dims.qk, dims.v};
        test::Case c{problem, {}, 5};
        const auto inputs = make_exact_inputs(
            problem, c.seed, [](int64_t i) { return (i & 1 ? -1.0f : 1.0f) * 16.0f; },
            [&](int64_t j) { return std::ldexp(1.0f, int(15 - 4 * (j / block))); });
        CHECK(test::verify(c, inputs) == "");
      }
    }
  }
}

TEST_CASE("the largest finite scores: one key wins, and LSE is the double rounded", "[large]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    // bf16 reaches 2^126: everything but the first column is 0, so that scores are exact.
    for (const double scale : {1.0, -1.0, 1e7, 2.3e38}) {
      const support::Problem problem{Dtype::bf16, false, 1, 140, 300, 1, 1, scale, dims.qk, dims.v};
      support::Inputs inputs = support::make_inputs(problem, 9);
      std::fill(inputs.q.begin(), inputs.q.end(), uint16_t(0));
      std::fill(inputs.k.begin(), inputs.k.end(), uint16_t(0));
      for (int64_t i = 0; i < problem.seq_q; ++i)
        inputs.q[size_t(i * problem.head_dim)] =
            support::float_to_bf16((i & 1 ? -1.0f : 1.0f) * std::ldexp(1.0f, int(i % 64)));
      for (int64_t j = 0; j < problem.seq_kv; ++j)
        inputs.k[size_t(j * problem.head_dim)] = support::float_to_bf16(float(j % 7 - 3) * 0x1p60f);
      test::Case c{problem, {}, 9};
      support::RunResult result;
      CHECK(test::verify(c, inputs, &result) == "");
      if (std::fabs(scale) > 1e4)
        CHECK(result.lse[63] == std::numeric_limits<float>::infinity());  // 3 * 2^123 * 1e7
    }
  }
}
