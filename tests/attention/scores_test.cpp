// SPDX-License-Identifier: Apache-2.0
// What happens to a score behind the dot product, and what joins the sum of a row without being a key:
// softcap, ALiBi, sinks, scales.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Inputs;
using support::Layout;
using support::Problem;
using support::RunResult;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::array<std::array<int64_t, 2>, 3> kShapes{{{140, 200}, {300, 130}, {1, 270}}};

// A dense problem that turns with the seed.
Problem problem(uint64_t seed, bool causal, int64_t seq_q, int64_t seq_kv, int64_t heads) {
  const test::HeadDims dims = test::head_dims_at(seed / 2);
  return {seed % 2 ? Dtype::fp16 : Dtype::bf16,
          causal,
          1,
          seq_q,
          seq_kv,
          heads,
          seed % 3 ? 1 : heads,
          0,
          dims.qk,
          dims.v};
}

// Each way to compute exponentials that the device has.
std::vector<fa4_exp2> exp2_ways() {
  std::vector<fa4_exp2> ways{FA4_EXP2_AUTO};
  if (test::kernels().other_exp2)
    ways.push_back(test::kernels().exp2 == Exp2::mufu ? FA4_EXP2_POLYNOMIAL : FA4_EXP2_MUFU);
  return ways;
}

}  // namespace

TEST_CASE("softcaps from far below the scores to far above them", "[scores]") {
  uint64_t seed = 0;
  for (const double softcap : {1e-3, 0.1, 1.0, 5.0, 30.0, 50.0, 1e3, 1e6})
    for (const double scale : {0.0, 0.01, 1.0, -1.0})  // scores of the order of 1, 0.1 and 15
      for (const fa4_exp2 exp2 : exp2_ways()) {
        const auto& [seq_q, seq_kv] = kShapes[++seed % 3];
        test::Case c{
            problem(seed, seed / 3 % 2, seq_q, seq_kv, 2), {Layout::bshd, FA4_SCHEDULER_AUTO, true, 2}, seed};
        c.problem.softcap = softcap;
        c.problem.scale = scale;
        c.options.exp2 = exp2;
        CHECK(test::verify(c) == "");
      }
}

TEST_CASE("scores of any size reach the softcap and no further", "[scores]") {
  // Scores of tens of thousands: rows of nothing but scores at either end, and rows of both.
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16})
    for (const bool causal : {false, true}) {
      Problem p{dtype, causal, 1, 150, 260, 1, 1, 1.0, dtype == Dtype::fp16 ? 64 : 128};
      p.softcap = 20;
      const Inputs inputs = support::make_exact_inputs(
          p, 3, [](int64_t i) { return float(i % 3 - 1) * 256.0f; },
          [](int64_t j) { return j % 5 ? 128.0f : -128.0f; });
      CHECK(test::verify({p, {}, 3}, inputs) == "");
    }
}

TEST_CASE("sinks that rule, that do not count, and that are alone", "[scores]") {
  // Extreme ones on their own: what the LSE of a problem may be off by grows with the largest.
  const std::vector<float> moderate{-kInf, -100, -30, -4, 0, 3, 10, 60, -0.0f, 1e-20f, 5, 7},
      extreme{1e4f, -1e4f, -kInf, -3e4f};
  uint64_t seed = 100;
  for (const bool causal : {false, true})
    for (const auto& [seq_q, seq_kv] :
         std::array<std::array<int64_t, 2>, 5>{{{140, 200}, {300, 130}, {1, 270}, {129, 0}, {200, 1}}})
      for (const double softcap : {0.0, 8.0}) {
        const std::vector<float>& sinks = ++seed % 5 ? moderate : extreme;
        test::Case c{problem(seed, causal, seq_q, seq_kv, int64_t(sinks.size())),
                     {Layout::bshd, FA4_SCHEDULER_AUTO, seed % 4 != 0, 2},
                     seed};
        c.problem.kv_heads = seed % 3 ? 1 : 4;
        c.problem.sinks = true;
        c.problem.softcap = softcap;
        c.problem.scale = 0.05;  // no key alone rules a row: an |O| above 2, alone in its binade, would be
                                 // judged by the others
        Inputs inputs = support::make_inputs(c.problem, seed);
        inputs.sinks = sinks;
        RunResult result;
        CHECK(test::verify(c, inputs, &result) == "");
        if (result.o.empty() || !c.options.lse) continue;
        // A row without keys: O is 0 and the LSE the sink, rounded through a unit of log2 at most.
        int64_t wrong = 0, rows = 0;
        for (int64_t i = 0; i < seq_q; ++i)
          for (int64_t h = 0; h < c.problem.q_heads && c.problem.visible(0, i).count() == 0; ++h, ++rows) {
            const float lse = result.lse[size_t(h * seq_q + i)], sink = sinks[size_t(h)];
            wrong += std::isinf(sink) ? lse != sink : !(std::fabs(lse - sink) <= 0x1p-22f * std::fabs(sink));
            for (int64_t d = 0; d < c.problem.v_dim(); ++d)
              wrong += result.o[size_t((i * c.problem.q_heads + h) * c.problem.v_dim() + d)] != 0;
          }
        INFO(test::describe(c));
        CHECK(wrong == 0);
        CHECK((rows > 0) == (seq_kv == 0 || (causal && seq_q > seq_kv)));
      }
}

TEST_CASE("sinks of minus infinity are none", "[scores]") {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    Problem p{dtype, true, 1, 300, 200, 4, 2, 0, dtype == Dtype::fp16 ? 128 : 64};
    Inputs inputs = support::make_inputs(p, 7);
    const RunResult expected = test::device().run(p, inputs, {});
    p.sinks = true;
    inputs.sinks.assign(4, -kInf);
    RunResult result;
    CHECK(test::verify({p, {}, 7}, inputs, &result) == "");
    CHECK((result.o == expected.o));
  }
}

TEST_CASE("ALiBi slopes of either sign and none, shared and by entry, along either diagonal", "[scores]") {
  uint64_t seed = 200;
  for (const bool by_entry : {false, true})
    for (const bool top_left : {false, true})
      for (const bool causal : {false, true})
        for (const auto& [seq_q, seq_kv] : kShapes)
          for (const int sign : {1, -1}) {
            ++seed;
            test::Case c{
                problem(seed, causal, seq_q, seq_kv, 4), {Layout::bshd, FA4_SCHEDULER_AUTO, true, 2}, seed};
            c.problem.batch = 2;
            c.problem.alibi = true;
            c.problem.slopes_by_entry = by_entry;
            c.problem.top_left = top_left;
            Inputs inputs = support::make_inputs(c.problem, seed);
            inputs.slopes[1] = 0;
            for (float& slope : inputs.slopes)
              slope *= float(sign);  // negative: the farthest key has the most weight
            CHECK(test::verify(c, inputs) == "");
          }
}

TEST_CASE("slopes of zero are none, and large ones leave the key on the diagonal", "[scores]") {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16})
    for (const int64_t head_dim : {64, 128}) {
      Problem p{dtype, false, 2, 130, 270, 3, 1, 0, head_dim};
      p.alibi = true;
      Inputs inputs = support::make_inputs(p, 11);
      inputs.slopes.assign(3, 0);
      CHECK(test::verify({p, {}, 11}, inputs) == "");
      inputs.slopes = {1000, 64, -1000};
      RunResult result;
      CHECK(test::verify({p, {}, 11}, inputs, &result) == "");
      if (result.o.empty()) continue;
      int64_t wrong = 0;  // head 0: O is V of key i + 140, head 2: V of the first or the last key
      for (int64_t b = 0; b < 2; ++b)
        for (int64_t i = 0; i < 130; ++i)
          for (const auto& [h, key] :
               std::array<std::array<int64_t, 2>, 2>{{{0, i + 140}, {2, i + 140 > 269 - i - 140 ? 0 : 269}}})
            wrong += !std::equal(&result.o[size_t(((b * 130 + i) * 3 + h) * head_dim)],
                                 &result.o[size_t(((b * 130 + i) * 3 + h) * head_dim)] + head_dim,
                                 &inputs.v[size_t((b * 270 + key) * head_dim)]);
      CHECK(wrong == 0);
    }
}

TEST_CASE("ALiBi and sinks in windows and in entries of different lengths", "[scores]") {
  uint64_t seed = 300;
  for (const auto& [left, right] : std::array<std::array<int64_t, 2>, 3>{{{40, 3}, {-1, -1}, {130, -1}}})
    for (const bool top_left : {false, true})
      for (const bool by_entry : {false, true}) {
        ++seed;
        test::Case c{problem(seed, false, 0, 0, 4), {Layout::bshd, FA4_SCHEDULER_AUTO, true, 2}, seed};
        Problem& p = c.problem;
        p.batch = 5;
        p.window = true, p.window_left = left, p.window_right = right, p.top_left = top_left;
        p.alibi = p.sinks = true, p.slopes_by_entry = by_entry;
        test::set_q_rows(p, seed % 2 ? test::Ragged::packed : test::Ragged::both, {130, 1, 257, 0, 64});
        test::set_kv_rows(p, seed % 3 ? test::Ragged::packed : test::Ragged::used, {200, 129, 60, 9, 0});
        CHECK(test::verify(c) == "");
      }
}

TEST_CASE("a negative scale turns scores over before softcap, ALiBi and sinks", "[scores]") {
  uint64_t seed = 400;
  for (const double scale : {-0.0883883, -0.5})
    for (const bool causal : {false, true})
      for (const int kind : {0, 1, 2, 3}) {
        ++seed;
        test::Case c{problem(seed, causal, 140, 200, 4), {Layout::bhsd, FA4_SCHEDULER_AUTO, true, 2}, seed};
        c.problem.scale = scale;
        c.problem.softcap = kind == 0 || kind == 3 ? 6 : 0;
        c.problem.alibi = kind == 1;
        c.problem.sinks = kind >= 2;
        c.problem.window = !causal;
        c.problem.window_left = causal ? -1 : 70;
        CHECK(test::verify(c) == "");
      }
}

TEST_CASE("ALiBi with softcap is refused", "[scores]") {
  Problem p{Dtype::fp16, false, 1, 5, 7, 2, 1, 0};
  p.alibi = true;
  p.softcap = 10;
  try {
    test::device().run(p, support::make_inputs(p, 1), {});
    FAIL("was taken");
  } catch (const support::AttentionError& error) {
    CHECK(error.status == FA4_ERROR_UNSUPPORTED);
    CHECK(std::string(error.what()).find("softcap") != std::string::npos);
    CHECK(std::string(error.what()).find("alibi_slopes") != std::string::npos);
  }
}
