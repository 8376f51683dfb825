// SPDX-License-Identifier: Apache-2.0
// Every head dimension that is a multiple of 8, and V and O with one of their own. What lies beside a head, in memory or in the box
// that a copy brings, must not matter, and must not be written.
#include <array>
#include <cmath>
#include <functional>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Inputs;
using support::Layout;
using support::Problem;
using test::HeadDims;
using test::Ragged;

constexpr int64_t kMostDim = 256;
constexpr uint16_t kNan = 0x7fff, kInfinity = 0xff80;  // of bf16; of fp16 both are NaN

// Of Q and K, and of V and O: either the larger, ends inside a piece of 64 columns and at one, and both far from what the kernel has.
constexpr std::array<HeadDims, 20> kUnlike{{{64, 128}, {128, 64}, {8, 128}, {128, 8},  {72, 96},   {96, 40},   {56, 104},
                                            {8, 64},   {64, 8},   {192, 128}, {192, 64}, {136, 8},  {184, 120}, {160, 192},
                                            {256, 128}, {40, 256}, {8, 256}, {256, 8}, {200, 136}, {136, 248}}};

// The layouts of inputs and output, and what lies beside the heads. Heads end to end, so that the columns behind one are the next one's;
// and far apart, with NaN or infinities between.
struct Place {
  Layout layout;
  uint16_t beside;
};
constexpr std::array<Place, 4> kPlaces{
    {{Layout::bshd, kNan}, {Layout::bhsd, kNan}, {Layout::padded, kNan}, {Layout::padded, kInfinity}}};

// Both types, full and causal, each in two of the places; the places turn, so that the dimensions meet all of them. Few CTAs, each with
// several tasks, in problems of several blocks.
void check_places(const HeadDims& dims, uint64_t& seed) {
  size_t turn = size_t(dims.qk + dims.v) / 8;
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    for (const bool causal : {false, true}) {
      ++turn;
      for (const size_t place : {turn % 4, (turn + 2) % 4}) {
        const int64_t seq_q = 1 + int64_t(seed * 37 % 300), seq_kv = 1 + int64_t(seed * 53 % 400);
        test::Case c{{dtype, causal, 2, seq_q, seq_kv, 4, 2, 0, dims.qk, dims.v},
                     {kPlaces[place].layout, FA4_SCHEDULER_AUTO, true, 1 + uint32_t(seed % 3)},
                     ++seed};
        c.options.beside = kPlaces[place].beside;
        CHECK(test::verify(c) == "");
      }
    }
  }
}

}  // namespace

TEST_CASE("every multiple of 8", "[head-dims]") {
  uint64_t seed = 900;
  for (int64_t dim = 8; dim <= kMostDim; dim += 8) check_places({dim, dim}, seed);
}

TEST_CASE("a map without keys ends with the head dimension too", "[head-dims]") {
  // Under the mask, rows and whole tasks see no key either.
  for (const int64_t head_dim : {40, 72, 136, 200, 256})
    for (const int64_t seq_kv : {0, 1, 60}) {
      const test::Case c{{Dtype::fp16, true, 2, 300, seq_kv, 4, 2, 0, head_dim}, {Layout::padded, FA4_SCHEDULER_AUTO, true, 2}, 1600};
      CHECK(test::verify(c) == "");
    }
}

TEST_CASE("columns that a head has not get nothing from its neighbours", "[head-dims]") {
  // Q, K and V interleaved in one tensor; one head that is repeated; ratios that pack rows of several heads into a tile.
  uint64_t seed = 1700;
  for (const int64_t head_dim : {8, 56, 72, 96, 120, 136, 192, 248}) {
    for (const Layout layout : {Layout::fused_qkv, Layout::broadcast}) {
      for (const auto& [q_heads, kv_heads] : std::array<std::array<int64_t, 2>, 3>{{{1, 1}, {6, 2}, {16, 1}}}) {
        const test::Case c{{Dtype::bf16, true, 2, 197, 197, q_heads, kv_heads, 0, head_dim}, {layout, FA4_SCHEDULER_AUTO, true, 2}, ++seed};
        CHECK(test::verify(c) == "");
      }
    }
  }
}

TEST_CASE("V and O of another head dimension than Q and K", "[head-dims-unlike]") {
  uint64_t seed = 2000;
  for (const HeadDims& dims : kUnlike) check_places(dims, seed);
}

TEST_CASE("heads and V of another head dimension interleaved, repeated and packed", "[head-dims-unlike]") {
  uint64_t seed = 2300;
  for (const HeadDims& dims : kUnlike) {
    const Layout layout = ++seed % 2 ? Layout::fused_qkv : Layout::broadcast;
    constexpr std::array<std::array<int64_t, 2>, 3> heads{{{1, 1}, {6, 2}, {16, 1}}};
    const auto& [q_heads, kv_heads] = heads[seed % 3];
    const test::Case c{{seed / 2 % 2 ? Dtype::bf16 : Dtype::fp16, true, 2, 170, 170, q_heads, kv_heads, 0, dims.qk, dims.v},
                       {layout, FA4_SCHEDULER_AUTO, true, 2},
                       seed};
    CHECK(test::verify(c) == "");
  }
}

TEST_CASE("no keys, and tasks that see none, with a head dimension of V", "[head-dims-unlike]") {
  for (const HeadDims& dims : std::array<HeadDims, 5>{{{72, 40}, {24, 120}, {192, 128}, {136, 56}, {72, 200}}})
    for (const int64_t seq_kv : {0, 1, 60}) {
      const test::Case c{
          {Dtype::bf16, true, 2, 300, seq_kv, 4, 2, 0, dims.qk, dims.v}, {Layout::padded, FA4_SCHEDULER_AUTO, true, 2}, 2400};
      CHECK(test::verify(c) == "");
    }
}

TEST_CASE("heads beside one are NaN, of each dimension", "[head-dims-unlike]") {
  // Heads end to end: of three, the outer ones are NaN in Q, K and V. In tensors of one token after the other, and of one head after the
  // other.
  uint64_t seed = 2500;
  std::vector<HeadDims> all(kUnlike.begin(), kUnlike.end());
  for (int64_t dim = 24; dim <= kMostDim; dim += 32) all.push_back({dim, dim});
  for (const HeadDims& dims : all) {
    ++seed;
    const Problem p{seed % 2 ? Dtype::fp16 : Dtype::bf16, seed % 4 < 2, 1, 130, 150, 3, 3, 0, dims.qk, dims.v};
    const test::Case c{p, {seed % 3 ? Layout::bshd : Layout::bhsd, FA4_SCHEDULER_AUTO, true, 2}, seed};
    Inputs inputs = support::make_inputs(p, seed);
    const auto spoil = [](std::vector<uint16_t>& values, int64_t dim) {
      for (size_t i = 0; i < values.size(); ++i)
        if (int64_t(i) / dim % 3 != 1) values[i] = kNan;
    };
    spoil(inputs.q, dims.qk), spoil(inputs.k, dims.qk), spoil(inputs.v, dims.v);
    support::RunResult result;
    CHECK(test::verify(c, inputs, &result) == "");
    int64_t finite = 0;
    for (const float lse : result.lse) finite += std::isfinite(lse);
    INFO(test::describe(c));
    CHECK(finite == p.seq_q);
  }
}

TEST_CASE("lengths, masks and scores of general kernels, for head dimensions at and below theirs", "[head-dims-unlike]") {
  constexpr std::array<HeadDims, 15> pairs{{{64, 64}, {40, 56}, {96, 96}, {72, 40}, {24, 88}, {128, 128}, {104, 64}, {32, 120},
                                            {192, 128}, {136, 128}, {168, 24}, {256, 256}, {200, 64}, {48, 200}, {224, 152}}};
  const auto set_rows = [](Problem& p, Ragged of_q, Ragged of_kv) {
    test::set_q_rows(p, of_q, {130, 0, 70});
    test::set_kv_rows(p, of_kv, {9, 65, 200});
  };
  const auto set_window = [](Problem& p, int64_t left, int64_t right) { p.window = true, p.window_left = left, p.window_right = right; };
  const std::array<std::function<void(Problem&)>, 6> features{
      [&](Problem& p) { set_rows(p, Ragged::packed, Ragged::both), p.causal = true; },
      [&](Problem& p) { set_rows(p, Ragged::used, Ragged::packed), set_window(p, 70, 3), p.top_left = true; },
      [&](Problem& p) { set_rows(p, Ragged::both, Ragged::used), p.softcap = 5; },
      [&](Problem& p) { set_window(p, 70, 3), p.softcap = 5, p.sinks = true; },
      [&](Problem& p) { p.causal = p.top_left = p.sinks = true; },
      [&](Problem& p) { p.alibi = p.slopes_by_entry = true; },
  };
  uint64_t seed = 2600;
  for (const HeadDims& dims : pairs)
    for (const auto& feature : features) {
      ++seed;
      Problem p{seed % 2 ? Dtype::fp16 : Dtype::bf16, false, 3, 140, 170, 4, 2, 0, dims.qk, dims.v};
      feature(p);
      const test::Case c{p, {kPlaces[seed % 3].layout, FA4_SCHEDULER_AUTO, true, 1 + uint32_t(seed % 3)}, seed};
      CHECK(test::verify(c) == "");
    }
}
