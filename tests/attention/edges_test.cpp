// SPDX-License-Identifier: Apache-2.0
// The edges: many tasks of mixed length in one CTA, zero-block tasks, queries that see nothing, empty
// problems, strided views, scales, and scores large enough that every block rescales.
#include <array>
#include <cmath>
#include <limits>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Layout;

constexpr std::array kDtypes{Dtype::fp16, Dtype::bf16};
constexpr std::array kSchedulers{FA4_SCHEDULER_LINEAR, FA4_SCHEDULER_LPT};

}  // namespace

TEST_CASE("one CTA carries its phases over tasks of mixed length", "[edges]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    size_t turn = 0;  // of the types, so that each problem meets both
    for (const uint32_t sms : {1u, 2u, 3u, 148u}) {
      for (const fa4_scheduler scheduler : kSchedulers) {
        const auto dtype = [&] { return kDtypes[++turn % 2]; };
        // Causal with Sq > Skv: the early m_blocks see nothing, so zero-block tasks stand between long ones.
        test::Case c{{dtype(), true, 3, 700, 300, 2, 2, 0, dims.qk, dims.v}, {Layout::bshd, scheduler, true, sms}, sms};
        CHECK(test::verify(c) == "");
        c.problem = {dtype(), true, 1, 600, 600, 6, 2, 0, dims.qk, dims.v};
        CHECK(test::verify(c) == "");
        c.problem = {dtype(), false, 3, 257, 129, 4, 4, 0, dims.qk, dims.v};
        CHECK(test::verify(c) == "");
      }
    }
  }
}

TEST_CASE("queries that see no key give zero and minus infinity", "[edges]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    for (const Dtype dtype : kDtypes) {
      for (const auto& [causal, seq_q, seq_kv] : std::array<std::array<int64_t, 3>, 5>{
               {{0, 130, 0}, {1, 130, 0}, {1, 300, 1}, {1, 129, 128}, {1, 1000, 130}}}) {
        test::Case c{
            {dtype, causal != 0, 2, seq_q, seq_kv, 4, 2, 0, dims.qk, dims.v}, {Layout::padded, FA4_SCHEDULER_AUTO, true, 2}, 7};
        support::RunResult result;
        REQUIRE(test::verify(c, support::make_inputs(c.problem, c.seed), &result) == "");
        int64_t wrong = 0;
        for (int64_t b = 0; b < 2; ++b)
          for (int64_t i = 0; i < seq_q; ++i) {
            if (c.problem.visible(b, i).count() > 0) continue;
            for (int64_t h = 0; h < 4; ++h) {
              wrong += result.lse[size_t((b * 4 + h) * seq_q + i)] != -std::numeric_limits<float>::infinity();
              for (int64_t d = 0; d < dims.v; ++d) wrong += result.o[size_t(((b * seq_q + i) * 4 + h) * dims.v + d)] != 0;
            }
          }
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE("empty problems succeed and write nothing", "[edges]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    for (const auto& [batch, seq_q] : std::array<std::array<int64_t, 2>, 2>{{{0, 5}, {2, 0}}}) {
      test::Case c{{Dtype::fp16, true, batch, seq_q, 7, 2, 1, 0, dims.qk, dims.v}, {}, 1};
      CHECK(test::verify(c) == "");
    }
  }
}

TEST_CASE("strided views", "[edges]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    uint64_t seed = 40;
    for (const Layout layout :
         {Layout::bshd, Layout::bhsd, Layout::fused_qkv, Layout::broadcast, Layout::padded}) {
      for (const bool causal : {false, true}) {
        for (const int64_t seq : {130, 383}) {
          const Dtype dtype = kDtypes[++seed / 2 % 2];
          test::Case c{{dtype, causal, 3, seq, layout == Layout::fused_qkv ? seq : seq - 60, 6, 3, 0, dims.qk, dims.v},
                       {layout, FA4_SCHEDULER_AUTO, true, 3},
                       seed};
          CHECK(test::verify(c) == "");
        }
      }
    }
  }
}

TEST_CASE("softmax scales, negative and large", "[edges]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    for (const Dtype dtype : kDtypes) {
      // 1 makes scores of the order of 15: the maximum moves by more than 8 again and again.
      for (const double scale : {0.01, -0.0883883, 0.5, 1.0, -1.0}) {
        test::Case c{{dtype, true, 1, 200, 700, 4, 2, scale, dims.qk, dims.v}, {Layout::bshd, FA4_SCHEDULER_LPT, true, 2}, 77};
        CHECK(test::verify(c) == "");
      }
    }
  }
}

TEST_CASE("the same bits whatever runs beside", "[edges]") {
  for (const test::HeadDims& dims : test::head_dims()) {
    const support::Problem problem{Dtype::fp16, true, 2, 520, 650, 8, 2, 0, dims.qk, dims.v};
    const support::Inputs inputs = support::make_inputs(problem, 3);
    support::RunOptions options{Layout::bshd, FA4_SCHEDULER_LINEAR, true, 148};
    const support::RunResult expected = test::device().run(problem, inputs, options);
    for (const uint32_t sms : {1u, 3u, 8u}) {
      for (const fa4_scheduler scheduler : kSchedulers) {
        options.sm_count = sms;
        options.scheduler = scheduler;
        const support::RunResult result = test::device().run(problem, inputs, options);
        CHECK((result.o == expected.o));
        CHECK((result.lse == expected.lse));
      }
    }
  }
}
