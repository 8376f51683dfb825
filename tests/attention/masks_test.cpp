// SPDX-License-Identifier: Apache-2.0
// Windows on either side of the diagonal, which begins at the first query and key or ends at the last; rows
// that see no key; bounds that hide nothing.
#include <algorithm>
#include <array>
#include <limits>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Layout;
using support::Problem;
using support::RunResult;

constexpr std::array<int64_t, 9> kBounds{-1, 0, 1, 63, 64, 127, 128, 129, 300};
constexpr std::array<std::array<int64_t, 2>, 3> kShapes{
    {{150, 150}, {70, 330}, {330, 130}}};  // Sq =, <, > Skv
constexpr std::array<std::array<int64_t, 2>, 4> kHeads{{{1, 1}, {2, 1}, {3, 1}, {2, 2}}};
constexpr std::array<uint32_t, 3> kSms{1, 2, 148};

Problem windowed(Dtype dtype, int64_t seq_q, int64_t seq_kv, int64_t left, int64_t right) {
  Problem p{dtype, false, 1, seq_q, seq_kv, 1, 1, 0};
  p.window = true;
  p.window_left = left;
  p.window_right = right;
  return p;
}

void set_head_dims(Problem& p, uint64_t turn) {
  const test::HeadDims dims = test::head_dims_at(turn);
  p.head_dim = dims.qk;
  p.head_dim_v = dims.v;
}

// O of the rows that see no key is 0, not -0 or something small, and their LSE -inf. Returns how many rows
// there are, or -1.
int64_t rows_without_keys(const Problem& p, const RunResult& result) {
  int64_t rows = 0;
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t i = 0; i < p.length_q(b); ++i) {
      if (p.visible(b, i).count() > 0) continue;
      for (int64_t h = 0; h < p.q_heads; ++h, ++rows) {
        const auto o = result.o.begin() + ((b * p.seq_q + i) * p.q_heads + h) * p.v_dim();
        if (std::any_of(o, o + p.v_dim(), [](uint16_t bits) { return bits != 0; })) return -1;
        if (result.lse[size_t((b * p.q_heads + h) * p.seq_q + i)] != -std::numeric_limits<float>::infinity())
          return -1;
      }
    }
  return rows;
}

}  // namespace

TEST_CASE("windows of every pair of bounds, along either diagonal", "[masks]") {
  uint64_t seed = 0;
  int64_t without_keys = 0;
  for (const auto& [seq_q, seq_kv] : kShapes)
    for (const bool top_left : {false, true})
      for (const int64_t left : kBounds)
        for (const int64_t right : kBounds) {
          ++seed;
          test::Case c{
              windowed(seed % 2 ? Dtype::fp16 : Dtype::bf16, seq_q, seq_kv, left, right),
              {seed % 3 ? Layout::bshd : Layout::padded, FA4_SCHEDULER_AUTO, true, kSms[seed / 4 % 3]},
              seed};
          c.problem.top_left = top_left;
          set_head_dims(c.problem, seed / 2);
          c.problem.q_heads = kHeads[seed / 5 % 4][0];
          c.problem.kv_heads = kHeads[seed / 5 % 4][1];
          RunResult result;
          CHECK(test::verify(c, support::make_inputs(c.problem, seed), &result) == "");
          if (result.o.empty()) continue;
          const int64_t rows = rows_without_keys(c.problem, result);
          INFO(test::describe(c));
          CHECK(rows >= 0);
          without_keys += rows;
        }
  CHECK(without_keys > 1000);
}

TEST_CASE("causal with a bound on the left, whatever the right one is", "[masks]") {
  uint64_t seed = 1000;
  for (const auto& [seq_q, seq_kv] : kShapes)
    for (const bool top_left : {false, true})
      for (const int64_t left : kBounds) {
        ++seed;
        test::Case c{windowed(seed % 2 ? Dtype::fp16 : Dtype::bf16, seq_q, seq_kv, left,
                              kBounds[seed % kBounds.size()]),
                     {Layout::bhsd, seed % 2 ? FA4_SCHEDULER_LPT : FA4_SCHEDULER_LINEAR, true, 2},
                     seed};
        c.problem.causal = true;
        c.problem.top_left = top_left;
        set_head_dims(c.problem, seed / 2);
        c.problem.q_heads = seed / 3 % 2 ? 4 : 1;
        CHECK(test::verify(c) == "");
      }
}

TEST_CASE("causal from the top left", "[masks]") {
  uint64_t seed = 1100;
  for (const auto& [seq_q, seq_kv] : std::array<std::array<int64_t, 2>, 7>{
           {{1, 300}, {300, 1}, {128, 129}, {129, 128}, {257, 400}, {400, 257}, {256, 256}}})
    for (const test::HeadDims& dims : std::array<test::HeadDims, 5>{{{64, 64}, {128, 128}, {40, 96}, {192, 128}, {256, 256}}}) {
      ++seed;
      test::Case c{
          {seed % 2 ? Dtype::fp16 : Dtype::bf16, true, 2, seq_q, seq_kv, 4, 2, 0, dims.qk, dims.v}, {}, seed};
      c.problem.top_left = true;
      CHECK(test::verify(c) == "");
    }
}

TEST_CASE("a window slides over many blocks", "[masks]") {
  uint64_t seed = 1200;
  for (const auto& [left, right] :
       std::array<std::array<int64_t, 2>, 6>{{{127, 0}, {128, 128}, {0, 0}, {1, 255}, {300, -1}, {-1, 200}}})
    for (const auto& [seq_q, seq_kv] : std::array<std::array<int64_t, 2>, 2>{{{700, 700}, {300, 1100}}}) {
      ++seed;
      test::Case c{windowed(seed % 2 ? Dtype::fp16 : Dtype::bf16, seq_q, seq_kv, left, right),
                   {Layout::bshd, FA4_SCHEDULER_AUTO, true, 2},
                   seed};
      set_head_dims(c.problem, seed / 2);
      c.problem.batch = 2;
      CHECK(test::verify(c) == "");
    }
}

TEST_CASE("entries of different lengths have their own diagonals", "[masks]") {
  uint64_t seed = 1300;
  for (const auto& [left, right] :
       std::array<std::array<int64_t, 2>, 5>{{{0, 0}, {64, 64}, {129, 1}, {-1, 5}, {100, -1}}})
    for (const bool top_left : {false, true})
      for (const test::Ragged kind : {test::Ragged::packed, test::Ragged::used}) {
        ++seed;
        test::Case c{windowed(seed % 2 ? Dtype::fp16 : Dtype::bf16, 0, 0, left, right),
                     {Layout::bshd, FA4_SCHEDULER_AUTO, true, 2},
                     seed};
        c.problem.top_left = top_left;
        c.problem.batch = 6;
        set_head_dims(c.problem, seed / 2);
        test::set_q_rows(c.problem, kind, {130, 1, 300, 0, 128, 40});
        test::set_kv_rows(c.problem, kind, {40, 300, 129, 5, 128, 0});
        RunResult result;
        CHECK(test::verify(c, support::make_inputs(c.problem, seed), &result) == "");
        if (!result.o.empty()) CHECK(rows_without_keys(c.problem, result) > 0);
      }
}

TEST_CASE("bounds as large as there are", "[masks]") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kInt = std::numeric_limits<int32_t>::max();
  uint64_t seed = 1400;
  for (const auto& [seq_q, seq_kv] : kShapes) {
    const Dtype dtype = ++seed % 2 ? Dtype::fp16 : Dtype::bf16;
    Problem full = windowed(dtype, seq_q, seq_kv, -1, -1), causal = full;
    full.window = causal.window = false;
    causal.causal = true;
    const support::Inputs inputs = support::make_inputs(full, seed);
    const RunResult of_full = test::device().run(full, inputs, {}),
                    of_causal = test::device().run(causal, inputs, {});
    for (const int64_t huge : {kInt, kInt + 1, int64_t{1} << 32, int64_t{1} << 40, kMost - 1, kMost}) {
      INFO(huge << " keys, " << support::describe(full));
      for (const auto& [left, right] :
           std::array<std::array<int64_t, 2>, 3>{{{huge, huge}, {huge, -1}, {-1, huge}}}) {
        const RunResult result = test::device().run(windowed(dtype, seq_q, seq_kv, left, right), inputs, {});
        CHECK((result.o == of_full.o && result.lse == of_full.lse));
      }
      const RunResult result = test::device().run(windowed(dtype, seq_q, seq_kv, huge, 0), inputs, {});
      CHECK((result.o == of_causal.o && result.lse == of_causal.lse));
      for (const bool top_left : {false, true}) {  // a bound that hides keys beside one that does not
        test::Case c{windowed(dtype, seq_q, seq_kv, huge, 3), {}, seed};
        c.problem.top_left = top_left;
        CHECK(test::verify(c) == "");
        c.problem = windowed(dtype, seq_q, seq_kv, 3, huge);
        c.problem.top_left = top_left;
        CHECK(test::verify(c) == "");
        c.problem.batch = 2;
        test::set_q_rows(c.problem, test::Ragged::packed, {seq_q, 3});
        test::set_kv_rows(c.problem, test::Ragged::used, {9, seq_kv});
        CHECK(test::verify(c) == "");
      }
    }
  }
}
