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

constexpr std::array<int64_t, 10> kLengths{1, 2, 127, 128, 129, 255, 256, 257, 383, 1000};
constexpr std::array<int64_t, 10> kRatios{1, 2, 3, 4, 6, 8, 16, 32, 64, 128};
constexpr std::array<Layout, 5> kLayouts{Layout::bshd, Layout::bhsd, Layout::broadcast, Layout::padded,
                                         Layout::fused_qkv};
constexpr std::array<uint32_t, 4> kSmCounts{1, 2, 3, 148};
constexpr int kRounds = 3;
constexpr int64_t kMaxStageBlocks = 128;  // bounds what one case costs to simulate

void run_grid(Dtype dtype, bool causal, int64_t head_dim) {
  test::Picker pick{uint64_t(dtype == Dtype::bf16) * 2 + causal + 11};
  std::map<int64_t, int> ratios, batches, layouts, schedulers, sms;
  uint64_t seed = 1;
  for (int round = 0; round < kRounds; ++round) {
    for (const int64_t seq_q : kLengths) {
      for (const int64_t seq_kv : kLengths) {
        test::Case c;
        c.seed = seed++;
        c.problem = {dtype, causal, pick(2) ? 3 : 1, seq_q, seq_kv, 0, int64_t(1 + pick(3)), 0, head_dim};
        // The first affordable ratio from a random start; one head of one batch entry when none is.
        const size_t start = pick(kRatios.size());
        for (size_t i = 0; i < kRatios.size() && c.problem.q_heads == 0; ++i) {
          c.problem.q_heads = kRatios[(start + i) % kRatios.size()] * c.problem.kv_heads;
          if (test::stage_blocks(c.problem) > kMaxStageBlocks) c.problem.q_heads = 0;
        }
        if (c.problem.q_heads == 0) c.problem.batch = c.problem.q_heads = c.problem.kv_heads = 1;
        // A fused QKV tensor has one length, so it gets half of the pairs of equal lengths.
        c.options.layout = kLayouts[pick(kLayouts.size() - 1)];
        if (seq_q == seq_kv && pick(2)) c.options.layout = Layout::fused_qkv;
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
  for (const int64_t head_dim : test::head_dims()) run_grid(Dtype::fp16, false, head_dim);
}
TEST_CASE("boundary lengths, fp16, causal", "[fp16-causal]") {
  for (const int64_t head_dim : test::head_dims()) run_grid(Dtype::fp16, true, head_dim);
}
TEST_CASE("boundary lengths, bf16, full", "[bf16-full]") {
  for (const int64_t head_dim : test::head_dims()) run_grid(Dtype::bf16, false, head_dim);
}
TEST_CASE("boundary lengths, bf16, causal", "[bf16-causal]") {
  for (const int64_t head_dim : test::head_dims()) run_grid(Dtype::bf16, true, head_dim);
}

TEST_CASE("head ratios", "[ratios]") {
  for (const int64_t head_dim : test::head_dims()) {
    uint64_t seed = 500;
    for (const int64_t ratio : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, 127, 128}) {
      for (const bool causal : {false, true}) {
        // Sq <, =, > Skv; queries that fill a tile in part, and a second m_block.
        const std::array<std::array<int64_t, 2>, 4> lengths{{{1, 130}, {5, 5}, {9, 2}, {3, 257}}};
        for (const auto& [seq_q, seq_kv] : lengths) {
          test::Case c;
          c.seed = seed++;
          c.problem = {
              seed % 2 ? Dtype::fp16 : Dtype::bf16, causal, 1, seq_q, seq_kv, 2 * ratio, 2, 0, head_dim};
          c.options.layout = seed % 3 ? Layout::bshd : Layout::padded;
          c.options.sm_count = kSmCounts[seed % 4];
          CHECK(test::verify(c) == "");
        }
      }
    }
  }
}
