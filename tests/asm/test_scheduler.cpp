// SPDX-License-Identifier: Apache-2.0
// The schedulers, as pure functions: every task exactly once, whatever the grid; LPT balances causal work
// better.
#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "asm/attention/blackwell/layout.h"
#include "asm/attention/scheduler.h"
#include "asm/attention/task.h"
#include "support/catch.h"

namespace {

using fa4::SchedulerKind;
using fa4::TaskId;

struct Problem {
  int batch, head_groups, m_blocks, section_groups;
  int task_count() const { return batch * head_groups * m_blocks; }
  fa4::TaskOrder order(SchedulerKind kind) const {
    return fa4::make_task_order(kind, batch, head_groups, m_blocks, section_groups);
  }
};

// What each CTA of a grid does, in order.
std::vector<std::vector<TaskId>> assignment(SchedulerKind kind, const Problem& p, int grid) {
  std::vector<std::vector<TaskId>> ctas(grid);
  const fa4::TaskOrder order = p.order(kind);
  for (int cta = 0; cta < grid; ++cta) {
    for (int wave = 0;; ++wave) {
      const int index = fa4::task_of(order, cta, wave, grid);
      if (index < 0) break;
      ctas[cta].push_back(fa4::decode_task(order, index));
    }
  }
  return ctas;
}

// Key blocks that the busiest CTA works on, for a causal problem.
long longest_cta(SchedulerKind kind, const Problem& p, int grid, int packed_heads_log2, int seq) {
  constexpr fa4::Config config =
      fa4::blackwell::make_config(fa4::ElementType::f16, fa4::MaskKind::causal, 128, 128);
  fa4::AttentionParams params{};
  params.packed_heads_log2 = packed_heads_log2;
  params.groups_per_kv_head = fa4::make_divisor(1);
  params.seq_q = params.seq_kv = seq;
  long longest = 0;
  for (const auto& tasks : assignment(kind, p, grid)) {
    long blocks = 0;
    for (const TaskId& t : tasks) {
      const fa4::BlockRegions visited =
          fa4::visited_blocks<config>(fa4::Mask<config.mask>{}, fa4::make_task<config>(params, t));
      blocks += visited.end;
    }
    longest = std::max(longest, blocks);
  }
  return longest;
}

}  // namespace

TEST_CASE("every task is done exactly once, by any grid", "[scheduler]") {
  int problems = 0;
  for (const SchedulerKind kind : {SchedulerKind::linear, SchedulerKind::lpt}) {
    for (const int batch : {1, 2, 3}) {
      for (const int head_groups : {1, 2, 5, 8}) {
        for (const int m_blocks : {1, 2, 3, 16}) {
          for (const int section_groups : {1, 2, 3, 7, 64}) {
            for (const int grid : {1, 2, 3, 7, 8, 148}) {
              const Problem p{batch, head_groups, m_blocks, section_groups};
              std::set<std::tuple<int, int, int>> seen;
              int done = 0;
              bool in_range = true;
              for (const auto& tasks : assignment(kind, p, grid)) {
                for (const TaskId& t : tasks) {
                  ++done;
                  seen.insert({t.batch, t.head_group, t.m_block});
                  in_range = in_range && t.batch >= 0 && t.batch < batch && t.head_group >= 0 &&
                             t.head_group < head_groups && t.m_block >= 0 && t.m_block < m_blocks;
                }
              }
              ++problems;
              if (!in_range || done != p.task_count() || static_cast<int>(seen.size()) != p.task_count()) {
                FAIL("kind " << static_cast<int>(kind) << " batch " << batch << " head_groups " << head_groups
                             << " m_blocks " << m_blocks << " section " << section_groups << " grid " << grid
                             << ": " << done << " tasks done, " << seen.size() << " distinct, expected "
                             << p.task_count());
              }
            }
          }
        }
      }
    }
  }
  CHECK(problems == 2 * 3 * 4 * 4 * 5 * 6);
}

TEST_CASE("divisions by a known divisor are exact", "[scheduler]") {
  std::mt19937 random(7);
  std::vector<int32_t> values = {1, 2, 3, 5, 7, 641, 65535, 65536, 65537, INT32_MAX / 2, INT32_MAX / 2 + 1, INT32_MAX - 1, INT32_MAX};
  for (int i = 0; i < 2000; ++i) values.push_back(static_cast<int32_t>((random() >> 1 >> random() % 31) | 1u));
  int64_t wrong = 0;
  for (const int32_t value : values) {
    const fa4::Divisor divisor = fa4::make_divisor(value);
    const auto check = [&](int64_t n) {
      if (n >= 0 && n <= INT32_MAX) wrong += divisor.divide(static_cast<int32_t>(n)) != n / value;
    };
    for (int64_t n : {int64_t{0}, int64_t{1}, int64_t{INT32_MAX}, int64_t{INT32_MAX} - 1}) check(n);
    // Beside multiples, where a quotient that is off by little is off by one.
    for (int i = 0; i < 200; ++i) {
      const int64_t multiple = static_cast<int64_t>(random() >> 1) / value * value;
      for (int64_t n = multiple - 1; n <= multiple + 1; ++n) check(n);
    }
    const int64_t last = INT32_MAX / value * int64_t{value};
    for (int64_t n = last - 1; n <= last + 1; ++n) check(n);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a CTA without a task in a wave has none later", "[scheduler]") {
  for (const SchedulerKind kind : {SchedulerKind::linear, SchedulerKind::lpt}) {
    for (int cta = 0; cta < 7; ++cta) {
      bool ended = false;
      for (int wave = 0; wave < 8; ++wave) {
        const bool has = fa4::task_of(fa4::make_task_order(kind, 1, 24, 1, 24), cta, wave, 7) >= 0;
        CHECK_FALSE((ended && has));
        ended = ended || !has;
      }
    }
  }
}

TEST_CASE("the largest task count does not overflow", "[scheduler]") {
  const int count = INT32_MAX, grid = 148, last_wave = count / grid;
  const fa4::TaskOrder linear = fa4::make_task_order(SchedulerKind::linear, 1, 1, count, 1);
  CHECK(fa4::task_of(linear, count % grid - 1, last_wave, grid) == count - 1);
  CHECK(fa4::task_of(linear, count % grid, last_wave, grid) == -1);
  CHECK(fa4::task_of(linear, grid - 1, last_wave, grid) == -1);
  const TaskId t = fa4::decode_task(fa4::make_task_order(SchedulerKind::lpt, 1, 1, count, 1 << 20), count - 1);
  CHECK(t.m_block == 0);
}

TEST_CASE("LPT starts with the heaviest m_blocks and turns at the end of a wave", "[scheduler]") {
  const Problem p{1, 4, 3, 4};
  const auto ctas = assignment(SchedulerKind::lpt, p, 4);
  for (const auto& tasks : ctas) {
    REQUIRE(tasks.size() == 3);
    CHECK(tasks[0].m_block == 2);
    CHECK(tasks[2].m_block == 0);
  }
  CHECK(ctas[0][0].head_group == 0);
  CHECK(ctas[0][1].head_group == 3);
  CHECK(ctas[3][1].head_group == 0);
}

TEST_CASE("LPT works through one section of head groups before the next", "[scheduler]") {
  const Problem p{1, 5, 2, 2};
  std::vector<int> groups;
  for (int i = 0; i < p.task_count(); ++i) {
    groups.push_back(fa4::decode_task(p.order(SchedulerKind::lpt), i).head_group);
  }
  CHECK(groups == std::vector<int>{0, 1, 0, 1, 2, 3, 2, 3, 4, 4});
}

TEST_CASE("on causal work, the longest CTA is shorter with LPT", "[scheduler]") {
  // 32 query heads on 8 KV heads: 4 heads ride in a tile, 64 positions in an m_block.
  const auto problem = [](int seq) { return Problem{1, 8, (seq + 63) / 64, 8}; };
  const auto longest = [&](SchedulerKind kind, int seq, int sms) {
    const Problem p = problem(seq);
    return longest_cta(kind, p, std::min(sms, p.task_count()), 2, seq);
  };
  SECTION("8 SMs, S = 1024: perfectly balanced") {
    CHECK(longest(SchedulerKind::linear, 1024, 8) == 96);
    CHECK(longest(SchedulerKind::lpt, 1024, 8) == 72);
  }
  SECTION("148 SMs") {
    for (const int seq : {2048, 4096, 8192}) {
      INFO("seq " << seq);
      CHECK(longest(SchedulerKind::lpt, seq, 148) < longest(SchedulerKind::linear, seq, 148));
    }
  }
  SECTION("148 SMs, S = 1024: 128 tasks, so no CTA has more than one, and nothing is left to balance") {
    CHECK(longest(SchedulerKind::lpt, 1024, 148) == 8);
    CHECK(longest(SchedulerKind::linear, 1024, 148) == 8);
  }
}
