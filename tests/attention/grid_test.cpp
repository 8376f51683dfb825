// SPDX-License-Identifier: Apache-2.0
// Every pair of boundary lengths, the other factors spread over the pairs: head ratios, batch, layouts,
// schedulers and numbers of SMs. Ends by checking that each value of each factor was met.
#include <array>
#include <map>
#include <set>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Layout;

constexpr std::array<int64_t, 10> kRatios{1, 2, 3, 4, 6, 8, 16, 32, 64, 128};
constexpr std::array<Layout, 5> kLayouts{Layout::bshd, Layout::bhsd, Layout::broadcast, Layout::padded,
                                         Layout::fused_qkv};
constexpr std::array<uint32_t, 4> kSmCounts{1, 2, 3, 148};
constexpr int64_t kMaxStageBlocks = 128;  // bounds what one case costs to simulate

// Around the ends of tiles and of blocks of the query side, and of blocks of keys.
using Lengths = std::array<int64_t, 10>;
Lengths q_lengths(const Config& config) {
  const int64_t tile = config.tile_rows, block = std::max<int64_t>(config.block_rows(), 2 * tile);
  return {1, 2, tile - 1, tile, tile + 1, block - 1, block, block + 1, block + tile - 1, 1000};
}
Lengths kv_lengths(const Config& config) {
  const int64_t block = config.block_keys;
  return {1, 2, block - 1, block, block + 1, 2 * block - 1, 2 * block, 2 * block + 1, 3 * block - 1, 1000};
}

void run_grid(Dtype dtype, bool causal, const test::HeadDims& dims) {
  const Config& config = test::config_of(dtype, causal ? MaskKind::causal : MaskKind::full, dims);
  // More of those that the kernels were first written for, whose problems are cheap.
  const bool most = dims.qk == 64 || dims.qk == 128;
  const int rounds = most ? 3 : 1;
  const int64_t max_stage_blocks = most ? kMaxStageBlocks : kMaxStageBlocks * 256 / (dims.qk + dims.v);
  int equal_lengths = 0;
  test::Picker pick{uint64_t(dtype == Dtype::bf16) * 2 + causal + 11};
  std::map<int64_t, int> ratios, batches, layouts, schedulers, sms;
  uint64_t seed = 1;
  for (int round = 0; round < rounds; ++round) {
    size_t first = 3 * size_t(round);
    for (const int64_t seq_q : q_lengths(config)) {
      size_t turn = first++;
      for (const int64_t seq_kv : kv_lengths(config)) {
        test::Case c;
        c.seed = seed++;
        c.problem = {dtype, causal, pick(2) ? 3 : 1, seq_q, seq_kv, 0, int64_t(1 + pick(3)), 0, dims.qk, dims.v};
        // The first affordable ratio from the one whose turn it is; one head of one batch entry when none is.
        const size_t start = turn++;
        for (size_t i = 0; i < kRatios.size() && c.problem.q_heads == 0; ++i) {
          c.problem.q_heads = kRatios[(start + i) % kRatios.size()] * c.problem.kv_heads;
          if (test::stage_blocks(c.problem) > max_stage_blocks) c.problem.q_heads = 0;
        }
        if (c.problem.q_heads == 0) c.problem.batch = c.problem.q_heads = c.problem.kv_heads = 1;
        // A fused QKV tensor has one length, so it gets half of the pairs of equal lengths.
        c.options.layout = kLayouts[pick(kLayouts.size() - 1)];
        if (seq_q == seq_kv && ++equal_lengths % 2) c.options.layout = Layout::fused_qkv;
        c.options.scheduler = pick(2) ? FA4_SCHEDULER_LPT : FA4_SCHEDULER_LINEAR;
        c.options.sm_count = kSmCounts[pick(kSmCounts.size())];
        c.options.lse = pick(4) != 0;
        CHECK(test::verify(c) == "");
        ++ratios[c.problem.ratio()];
        ++batches[c.problem.batch];
        ++layouts[int64_t(c.options.layout)];
        ++schedulers[c.options.scheduler];
        ++sms[c.options.sm_count];
      }
    }
  }
  CHECK(ratios.size() == kRatios.size());
  CHECK(batches.size() == 2);
  CHECK(layouts.size() == kLayouts.size());
  CHECK(schedulers.size() == 2);
  CHECK(sms.size() == kSmCounts.size());
}

}  // namespace

TEST_CASE("boundary lengths, fp16, full", "[fp16-full]") {
  for (const test::HeadDims& dims : test::head_dims()) run_grid(Dtype::fp16, false, dims);
}
TEST_CASE("boundary lengths, fp16, causal", "[fp16-causal]") {
  for (const test::HeadDims& dims : test::head_dims()) run_grid(Dtype::fp16, true, dims);
}
TEST_CASE("boundary lengths, bf16, full", "[bf16-full]") {
  for (const test::HeadDims& dims : test::head_dims()) run_grid(Dtype::bf16, false, dims);
}
TEST_CASE("boundary lengths, bf16, causal", "[bf16-causal]") {
  for (const test::HeadDims& dims : test::head_dims()) run_grid(Dtype::bf16, true, dims);
}

TEST_CASE("head ratios", "[ratios]") {
  // Sq <, =, > Skv; queries that fill a tile in part, and a second m_block. A ratio meets all four, two without a mask and two with.
  constexpr std::array<std::array<int64_t, 2>, 4> lengths{{{1, 130}, {5, 5}, {9, 2}, {3, 257}}};
  for (const test::HeadDims& dims : test::head_dims()) {
    uint64_t seed = 500;
    size_t turn = 0;
    for (const int64_t ratio : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 127, 128}) {
      ++turn;
      for (const bool causal : {false, true}) {
        for (const size_t i : {size_t{0}, size_t{2}}) {
          const auto& [seq_q, seq_kv] = lengths[(turn + causal + i) % 4];
          test::Case c;
          c.seed = seed++;
          c.problem = {(turn + i / 2) % 2 ? Dtype::fp16 : Dtype::bf16, causal, 1, seq_q, seq_kv, 2 * ratio, 2, 0, dims.qk, dims.v};
          c.options.layout = seed % 3 ? Layout::bshd : Layout::padded;
          c.options.sm_count = kSmCounts[turn / 2 % 4];
          CHECK(test::verify(c) == "");
        }
      }
    }
  }
}
