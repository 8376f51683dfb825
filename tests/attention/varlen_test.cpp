// SPDX-License-Identifier: Apache-2.0
// Batch entries of different lengths, packed one behind the other, used in part, or both. What lies behind an
// entry, its neighbours among them, must not matter, and must not be written: rows that do not count hold
// NaN, of O the poison (attention_device.h).
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Inputs;
using support::Layout;
using support::Problem;
using support::RunOptions;
using support::RunResult;
using test::Ragged;
using Rows = std::vector<int64_t>;

constexpr size_t kEdges = 16;
constexpr std::array<int64_t, kEdges> kQEdges{0,   1,   63,  64,  65,  127, 128, 129,
                                              191, 192, 193, 255, 256, 257, 300, 417};
constexpr std::array<Layout, 4> kLayouts{Layout::bshd, Layout::bhsd, Layout::padded, Layout::broadcast};
constexpr std::array<std::array<int64_t, 2>, 5> kHeads{{{1, 1}, {2, 2}, {4, 1}, {6, 2}, {3, 1}}};
constexpr std::array<uint32_t, 4> kSms{1, 2, 3, 148};
constexpr std::array<test::HeadDims, 6> kDims{{{64, 64}, {128, 128}, {192, 128}, {96, 96}, {256, 256}, {40, 72}}};

// Around halves of blocks of keys.
std::array<int64_t, kEdges> kv_edges(const test::HeadDims& dims) {
  const int64_t half = test::config_of(Dtype::fp16, MaskKind::band, dims).block_keys / 2;
  return {0,
          1,
          half - 1,
          half,
          half + 1,
          2 * half - 1,
          2 * half,
          2 * half + 1,
          3 * half - 1,
          3 * half,
          3 * half + 1,
          4 * half - 1,
          4 * half,
          4 * half + 1,
          300,
          417};
}

// Puts a problem of one entry at a place in a batch whose bounds are no smaller.
template <typename T>
void copy_rows(const std::vector<T>& from, std::vector<T>& to, int64_t entry, int64_t bound, int64_t rows,
               int64_t row_elements) {
  std::copy_n(from.begin(), rows * row_elements, to.begin() + entry * bound * row_elements);
}
void embed(const Problem& one, const Inputs& from, const Problem& batch, Inputs& to, int64_t entry) {
  copy_rows(from.q, to.q, entry, batch.seq_q, one.seq_q, one.q_heads * one.head_dim);
  copy_rows(from.k, to.k, entry, batch.seq_kv, one.seq_kv, one.kv_heads * one.head_dim);
  copy_rows(from.v, to.v, entry, batch.seq_kv, one.seq_kv, one.kv_heads * one.v_dim());
}

// Also of rows that there are not, which are poison.
bool same_bits(const RunResult& a, const RunResult& b) {
  return a.o == b.o && a.lse.size() == b.lse.size() &&
         std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * sizeof(float)) == 0;
}

// Whether entry `entry` of a batch has the bits of the only entry of `one`: "" or what differs.
std::string other_bits(const Problem& one, const RunResult& alone, const Problem& batch,
                       const RunResult& result, int64_t entry) {
  const int64_t row = one.q_heads * one.v_dim();
  std::string different;
  if (!std::equal(alone.o.begin(), alone.o.end(), result.o.begin() + entry * batch.seq_q * row))
    different = "O";
  int64_t lse = 0;
  for (int64_t h = 0; h < one.q_heads; ++h)
    for (int64_t i = 0; i < one.seq_q; ++i)
      lse += alone.lse[size_t(h * one.seq_q + i)] !=
             result.lse[size_t((entry * one.q_heads + h) * batch.seq_q + i)];
  if (lse != 0) different += " LSE of " + std::to_string(lse) + " rows";
  return different;
}

}  // namespace

TEST_CASE("pairs of boundary lengths, packed, used in part, and both", "[varlen]") {
  // Round r pairs each length of Q with the r-th next of K and V; how each side says it and the other factors
  // turn with the rounds.
  for (const bool causal : {false, true}) {
    for (size_t round = 0; round < kEdges; ++round) {
      const size_t turn = round + (causal ? 7 : 0);
      const test::HeadDims& dims = kDims[turn % kDims.size()];
      const auto kv_lengths = kv_edges(dims);
      Rows q, kv;
      for (size_t i = 0; i < kEdges; ++i) {
        q.push_back(kQEdges[i]);
        kv.push_back(kv_lengths[(i + round) % kEdges]);
      }
      const auto& [q_heads, kv_heads] = kHeads[turn % kHeads.size()];
      test::Case c{{turn / 2 % 2 ? Dtype::bf16 : Dtype::fp16, causal, int64_t(q.size()), 0, 0, q_heads,
                    kv_heads, 0, dims.qk, dims.v},
                   {kLayouts[turn / 3 % 4], turn % 3 ? FA4_SCHEDULER_AUTO : FA4_SCHEDULER_LINEAR,
                    turn % 5 != 0, kSms[turn / 2 % 4]},
                   100 + turn};
      // All 15 ways but the one without lengths, and the one with both packed once more. A side that is not
      // ragged has few entries of any length, so that its bound is cheap.
      const size_t way = round == 0 ? 5 : round;
      const Ragged of_q = test::kRagged[way % 4], of_kv = test::kRagged[way / 4];
      test::set_q_rows(c.problem, of_q, of_q == Ragged::none ? Rows(q.size(), kQEdges[round]) : q);
      test::set_kv_rows(c.problem, of_kv, of_kv == Ragged::none ? Rows(q.size(), kv_lengths[round]) : kv);
      CHECK(test::verify(c) == "");
    }
  }
}

TEST_CASE("entries without queries or keys, anywhere", "[varlen]") {
  uint64_t seed = 300;
  for (const Rows& q :
       {Rows{0, 5, 70}, Rows{5, 0, 70}, Rows{70, 5, 0}, Rows{0, 0, 0}, Rows{0, 130, 0}, Rows{9, 200, 1}})
    for (const Rows& kv : {Rows{5, 0, 130}, Rows{0, 140, 5}, Rows{140, 5, 0}, Rows{0, 0, 0}})
      for (const Ragged kind : {Ragged::packed, Ragged::used, Ragged::both}) {
        const test::HeadDims dims = test::head_dims_at(++seed / 2);
        test::Case c{
            {seed % 2 ? Dtype::bf16 : Dtype::fp16, seed % 4 < 2, 3, 0, 0, 2, 1, 0, dims.qk, dims.v},
            {seed % 5 ? Layout::padded : Layout::bhsd, FA4_SCHEDULER_AUTO, true, kSms[seed % 4]},
            seed};
        test::set_q_rows(c.problem, kind, q);
        test::set_kv_rows(c.problem, kind, kv);
        // Where all are empty, the bound says nothing of it.
        c.problem.seq_q = std::max<int64_t>(c.problem.seq_q, 10);
        c.problem.seq_kv = std::max<int64_t>(c.problem.seq_kv, 10);
        CHECK(test::verify(c) == "");
      }
}

TEST_CASE("bounds that are larger than all entries, and entries that are larger than the bound", "[varlen]") {
  struct Side {
    int64_t bound;
    support::Lengths lengths;
  };
  constexpr int64_t kAny = std::numeric_limits<int32_t>::max();
  const std::array<Side, 7> sides{{{1500, {{3, 130, 0}, {}}},
                                   {1500, {{}, {3, 130, 0}}},
                                   {129, {{300, 20, 257}, {}}},
                                   {129, {{}, {130, 20, kAny}}},
                                   {129, {{300, 20, 257}, {kAny, 130, 100}}},
                                   {129, {{150, 128, 10}, {149, kAny, 0}}},
                                   {70, {}}}};
  uint64_t seed = 400;
  for (const Side& q : sides)
    for (const Side& kv : sides) {
      if (!q.lengths.given() && !kv.lengths.given()) continue;
      const test::HeadDims dims = test::head_dims_at(++seed / 2);
      test::Case c{{seed % 2 ? Dtype::fp16 : Dtype::bf16, seed % 3 == 0, 3, q.bound, kv.bound, 2, 1, 0, dims.qk, dims.v},
                   {kLayouts[seed % 3], FA4_SCHEDULER_AUTO, true, kSms[seed / 3 % 4]},
                   seed};
      c.problem.q_lengths = q.lengths;
      c.problem.kv_lengths = kv.lengths;
      CHECK(test::verify(c) == "");
    }
}

TEST_CASE("self attention of one fused tensor", "[varlen]") {
  uint64_t seed = 500;
  for (const test::HeadDims& dims : kDims)
    for (const bool causal : {false, true})
      for (const bool used : {false, true}) {
        test::Case c{{seed % 2 ? Dtype::fp16 : Dtype::bf16, causal, 5, 0, 0, 4, 2, 0, dims.qk, dims.v},
                     {Layout::fused_qkv, FA4_SCHEDULER_AUTO, true, 2},
                     ++seed};
        const Rows rows{65, 0, 257, 1, 128};
        test::set_q_rows(c.problem, used ? Ragged::both : Ragged::packed, rows);
        test::set_kv_rows(c.problem, used ? Ragged::both : Ragged::packed, rows);
        CHECK(test::verify(c) == "");
      }
}

TEST_CASE("NaN and infinities of the neighbours and behind the rows that count change no bit", "[varlen]") {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16})
    for (const bool causal : {false, true})
      for (const Ragged kind : {Ragged::packed, Ragged::both}) {
        Problem p{dtype, causal, 3, 0, 0, 4, 2, 0, dtype == Dtype::fp16 ? 128 : 64};
        test::set_q_rows(p, kind, {70, 129, 30});
        test::set_kv_rows(p, kind, {60, 200, 140});
        const Inputs clean = support::make_inputs(p, 41);
        const int64_t q_row = p.q_heads * p.head_dim, kv_row = p.kv_heads * p.head_dim;
        RunOptions options{Layout::bshd, FA4_SCHEDULER_AUTO, true, 1, 0};
        const RunResult expected = test::device().run(p, clean, options);
        const auto middle_equal = [&](const RunResult& result) {
          const auto equal = [&](const auto& a, const auto& b, int64_t elements) {
            return std::equal(a.begin() + elements, a.begin() + 2 * elements, b.begin() + elements);
          };
          for (int64_t h = 0; h < p.q_heads; ++h)  // all of entry 1's rows count: it has the bound
            for (int64_t i = 0; i < p.seq_q; ++i) {
              const size_t at = size_t((p.q_heads + h) * p.seq_q + i);
              if (result.lse[at] != expected.lse[at]) return false;
            }
          return equal(result.o, expected.o, p.seq_q * q_row);
        };
        for (const float special : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF, -HUGE_VALF}) {
          const uint16_t bits = support::from_float(dtype, special);
          Inputs changed = clean;
          for (const int64_t entry : {0, 2}) {
            std::fill_n(changed.q.begin() + entry * p.seq_q * q_row, p.seq_q * q_row, bits);
            std::fill_n(changed.k.begin() + entry * p.seq_kv * kv_row, p.seq_kv * kv_row, bits);
            std::fill_n(changed.v.begin() + entry * p.seq_kv * kv_row, p.seq_kv * kv_row, bits);
          }
          options.beside = bits;
          INFO(support::describe(p) << ", " << special);
          RunResult result = test::device().run(p, clean, options);
          CHECK(result.damage == "");
          CHECK(same_bits(result, expected));
          CHECK(test::verify({p, options, 41}, changed, &result) == "");
          CHECK(middle_equal(result));
        }
      }
}

TEST_CASE("an entry has the same bits alone and in any company", "[varlen]") {
  uint64_t seed = 600;
  for (const auto& [seq_q, seq_kv] :
       std::array<std::array<int64_t, 2>, 5>{{{1, 300}, {129, 257}, {300, 129}, {64, 64}, {260, 260}}})
    for (const bool causal : {false, true}) {
      const test::HeadDims dims = test::head_dims_at(++seed / 2);
      const int64_t ratio = seed % 3 == 0 ? 4 : 1;
      const Problem one{seed % 2 ? Dtype::fp16 : Dtype::bf16,
                        causal,
                        1,
                        seq_q,
                        seq_kv,
                        2 * ratio,
                        2,
                        0,
                        dims.qk,
                        dims.v};
      const Inputs inputs = support::make_inputs(one, seed);
      const RunResult dense = test::device().run(one, inputs, {});
      CHECK(dense.damage == "");
      const auto check = [&](int64_t place, int64_t entries, Ragged of_q, Ragged of_kv, RunOptions options) {
        Problem batch = one;
        batch.batch = entries;
        Rows q, kv;
        for (int64_t b = 0; b < entries; ++b) {
          q.push_back(b == place || of_q == Ragged::none ? seq_q : (b * 61 + 5) % 140);
          kv.push_back(b == place || of_kv == Ragged::none ? seq_kv : (b * 83 + 9) % 290);
        }
        test::set_q_rows(batch, of_q, q);
        test::set_kv_rows(batch, of_kv, kv);
        Inputs all = support::make_inputs(batch, seed + 50);
        embed(one, inputs, batch, all, place);
        const RunResult result = test::device().run(batch, all, options);
        INFO(support::describe(batch) << ", place " << place);
        CHECK(result.damage == "");
        CHECK(other_bits(one, dense, batch, result, place) == "");
      };
      check(0, 1, Ragged::packed, Ragged::packed, {});
      check(0, 1, Ragged::used, Ragged::none, {Layout::bhsd});
      check(0, 3, Ragged::packed, Ragged::packed, {Layout::bshd, FA4_SCHEDULER_LINEAR, true, 1});
      check(2, 3, Ragged::both, Ragged::used, {Layout::padded, FA4_SCHEDULER_LPT, true, 2});
      check(1, 4, Ragged::none, Ragged::packed, {Layout::bhsd, FA4_SCHEDULER_AUTO, true, 3});
      check(3, 5, Ragged::used, Ragged::both, {Layout::bshd, FA4_SCHEDULER_AUTO, true, 148});
    }
}

TEST_CASE("more entries than a warp has lanes, and than a block has threads", "[varlen]") {
  struct Batch {
    int64_t entries, q_heads;
    int every;  // one entry of so many is not empty
    Ragged q, kv;
    uint32_t sms;
  };
  uint64_t seed = 700;
  for (const Batch& b :
       {Batch{31, 2, 1, Ragged::packed, Ragged::packed, 2}, Batch{32, 1, 1, Ragged::used, Ragged::packed, 1},
        Batch{33, 2, 1, Ragged::packed, Ragged::used, 3}, Batch{65, 1, 1, Ragged::both, Ragged::both, 148},
        Batch{1100, 1, 3, Ragged::packed, Ragged::packed, 3},
        Batch{1025, 1, 4, Ragged::used, Ragged::used, 148},
        Batch{1024, 2, 16, Ragged::packed, Ragged::none, 2},
        Batch{2500, 1, 25, Ragged::packed, Ragged::packed, 5}}) {
    test::Picker pick{seed};
    Rows q, kv;
    for (int64_t i = 0; i < b.entries; ++i) {
      q.push_back(i % b.every == 0 ? int64_t(1 + pick(4)) : 0);
      kv.push_back(int64_t(pick(9)));
    }
    test::Case c{{seed % 2 ? Dtype::fp16 : Dtype::bf16, seed % 4 < 2, b.entries, 0, 0, b.q_heads, 1, 0, 64},
                 {Layout::bshd, FA4_SCHEDULER_AUTO, true, b.sms},
                 ++seed};
    test::set_q_rows(c.problem, b.q, q);
    test::set_kv_rows(c.problem, b.kv, kv);
    CHECK(test::verify(c) == "");
  }
}

TEST_CASE("long and short entries in any order, on few and on many SMs", "[varlen]") {
  constexpr size_t kEntries = 18;
  Rows rows;
  for (size_t i = 1; i <= kEntries; ++i) rows.push_back(int64_t(700 / i));  // Zipf's law
  uint64_t seed = 800;
  for (const bool causal : {false, true})
    for (const int order : {0, 1, 2}) {
      test::Picker pick{seed};
      Rows q = rows;
      if (order == 1) std::reverse(q.begin(), q.end());
      if (order == 2)
        for (size_t i = q.size(); i > 1; --i) std::swap(q[i - 1], q[pick(i)]);
      Rows kv = q;
      if (order == 2) std::reverse(kv.begin(), kv.end());
      Problem p{causal ? Dtype::fp16 : Dtype::bf16,
                causal,
                int64_t(kEntries),
                0,
                0,
                2,
                2,
                0,
                order == 1 ? 128 : 64};
      test::set_q_rows(p, order == 1 ? Ragged::used : Ragged::packed, q);
      test::set_kv_rows(p, Ragged::packed, kv);
      const Inputs inputs = support::make_inputs(p, ++seed);
      RunResult first;
      CHECK(test::verify({p, {Layout::bshd, FA4_SCHEDULER_LINEAR, true, 1}, seed}, inputs, &first) == "");
      for (const uint32_t sms : {2u, 3u, 500u}) {
        const RunResult result = test::device().run(
            p, inputs, {Layout::bshd, sms == 2 ? FA4_SCHEDULER_LINEAR : FA4_SCHEDULER_LPT, true, sms});
        INFO(support::describe(p) << " on " << sms << " SMs");
        CHECK(result.damage == "");
        CHECK(same_bits(result, first));
      }
    }
}
