// SPDX-License-Identifier: Apache-2.0
// Whole attention problems against a real GPU: O and LSE as the simulated GPU computes them have the digests that were
// recorded on silicon, from the machine code of the same source. Lengths around every boundary of a tile and a key block,
// head ratios, both types and head dimensions, masks and schedulers, negative scales, rows without keys; and of general kernels
// combinations of lengths, windows, alignments, softcap, ALiBi and sinks.
//
//     FA4_TEST_DEVICE=gpu whole_kernel_test                          compares a GPU with the file
//     FA4_TEST_DEVICE=gpu FA4_RECORD=lines.txt whole_kernel_test     writes the lines of the file for it,
//                                                                    each behind "whole" and a tab
#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <set>

#include "attention/harness.h"
#include "support/record.h"

namespace {

using namespace fa4;
using support::Dtype;

constexpr std::array<int64_t, 20> kLengths{1,   2,   63,  64,  65,  127, 128, 129, 191, 192,
                                           193, 255, 256, 257, 383, 384, 385, 511, 513, 640};
constexpr std::array<int64_t, 10> kRatios{1, 2, 3, 4, 5, 6, 8, 16, 64, 128};
constexpr int64_t kMaxStageBlocks = 96;  // bounds what one problem costs to simulate

// Head dimensions of Q and K, and of V; and how many problems each gets. Further ones go behind: the problems of those before stay
// what they are.
struct Dims {
  int64_t qk, v;
  size_t plain, general;
};
constexpr Dims kDims[] = {{64, 64, 0, 64},  {128, 128, 0, 64}, {96, 96, 16, 24},   {72, 88, 16, 0},
                          {192, 128, 16, 24}, {160, 64, 16, 0},  {256, 256, 16, 24}, {200, 136, 16, 0}};

// Number n of all: length i of Q, the other factors go round beside it.
test::Case plain_case(const Dims& dims, Dtype dtype, bool causal, size_t i, size_t n) {
  test::Case c;
  c.seed = 1000 + n;
  const int64_t kv_heads = 1 + int64_t(n % 2);
  c.problem = {dtype, causal, n % 5 == 0 ? 2 : 1, kLengths[i % kLengths.size()],
               kLengths[(3 * i + 7 * n) % kLengths.size()], 0,
               kv_heads, n % 7 == 3 ? -0.2 : n % 7 == 5 ? 0.5 : 0, dims.qk, dims.v == dims.qk ? 0 : dims.v};
  if (n % 31 == 30) c.problem.seq_kv = 0;
  for (size_t r = 0; r < kRatios.size() && c.problem.q_heads == 0; ++r) {
    c.problem.q_heads = kRatios[(n + n / 10 + r) % kRatios.size()] * kv_heads;
    if (test::stage_blocks(c.problem) > kMaxStageBlocks) c.problem.q_heads = 0;
  }
  if (c.problem.q_heads == 0) c.problem.batch = c.problem.q_heads = c.problem.kv_heads = 1;
  c.options.scheduler = n % 3 == 1 ? FA4_SCHEDULER_LPT : FA4_SCHEDULER_LINEAR;
  c.options.sm_count = n % 4 == 2 ? 3 : 132;
  return c;
}

// For each length of Q, type, mask and head dimension 64 and 128 two problems; and those of the table.
std::vector<test::Case> plain_cases() {
  std::vector<test::Case> all;
  for (size_t i = 0; i < 2 * kLengths.size(); ++i)
    for (const Dims& dims : {kDims[0], kDims[1]})
      for (const Dtype dtype : {Dtype::fp16, Dtype::bf16})
        for (const bool causal : {false, true}) all.push_back(plain_case(dims, dtype, causal, i, all.size()));
  for (const Dims& dims : kDims)
    for (size_t n = 0; n < dims.plain; ++n) {
      const size_t number = all.size();
      all.push_back(plain_case(dims, n / 2 % 2 ? Dtype::bf16 : Dtype::fp16, n % 2 != 0, number * 7 / 4, number));
    }
  return all;
}

constexpr int64_t kMaxGeneralStageBlocks = 48;

// Entry lengths from around the boundaries, some 0.
std::vector<int64_t> general_rows(size_t batch, test::Picker& pick) {
  std::vector<int64_t> rows;
  for (size_t b = 0; b < batch; ++b)
    rows.push_back(pick(7) == 0 ? 0 : pick(2) ? kLengths[pick(kLengths.size() - 5)] : int64_t(1 + pick(300)));
  if (*std::max_element(rows.begin(), rows.end()) == 0) rows.front() = 1;
  return rows;
}

test::Case general_case(const Dims& dims, size_t n, uint64_t seed) {
  test::Picker pick{seed};
  test::Case c;
  c.seed = seed;
  support::Problem& p = c.problem;
  p.dtype = n % 2 ? Dtype::bf16 : Dtype::fp16;
  p.head_dim = dims.qk;
  p.head_dim_v = dims.v == dims.qk ? 0 : dims.v;
  p.kv_heads = int64_t(1 + pick(2));
  constexpr std::array<int64_t, 5> ratios{1, 2, 4, 6, 8};
  p.q_heads = p.kv_heads * ratios[pick(ratios.size())];
  p.scale = pick(6) == 0 ? -0.2 : 0;
  constexpr std::array layouts{support::Layout::bshd, support::Layout::bhsd, support::Layout::padded};
  c.options.layout = layouts[pick(layouts.size())];
  c.options.scheduler = pick(2) ? FA4_SCHEDULER_LPT : FA4_SCHEDULER_LINEAR;
  c.options.sm_count = pick(3) == 0 ? 3 : 132;

  const test::Ragged q_kind = test::kRagged[n / 2 % 4], kv_kind = test::kRagged[n / 8 % 4];
  std::vector<int64_t> q = general_rows(2 + pick(4), pick), kv = general_rows(q.size(), pick);
  const auto set_rows = [&] {
    p.batch = int64_t(q.size());
    test::set_q_rows(p, q_kind, q);
    test::set_kv_rows(p, kv_kind, kv);
  };
  set_rows();
  // Cheaper, if it must be: one KV head, then fewer entries, then one query head.
  if (test::stage_blocks(p) > kMaxGeneralStageBlocks) p.q_heads /= p.kv_heads, p.kv_heads = 1;
  for (; test::stage_blocks(p) > kMaxGeneralStageBlocks && q.size() > 2; set_rows()) q.pop_back(), kv.pop_back();
  if (test::stage_blocks(p) > kMaxGeneralStageBlocks) p.q_heads = 1;

  constexpr std::array<int64_t, 8> bounds{-1, 0, 1, 5, 64, 127, 129, 200};
  switch (pick(4)) {
    case 0:
      p.causal = true;
      break;
    case 1:
    case 2:
      p.window = true;
      p.window_left = bounds[pick(bounds.size())];
      p.window_right = bounds[p.window_left < 0 ? 1 + pick(bounds.size() - 1) : pick(bounds.size())];
      break;
    default:
      break;
  }
  p.top_left = pick(3) == 0;
  const size_t score = pick(3);
  if (score == 1) p.softcap = pick(2) ? 2 : 30;
  p.alibi = score == 2;
  p.slopes_by_entry = p.alibi && pick(2);
  // Without lengths and without a score of its own, sinks make it a general kernel's.
  p.sinks = pick(2) || (!p.q_lengths.given() && !p.kv_lengths.given() && score == 0);
  return c;
}

std::vector<test::Case> general_cases() {
  std::vector<test::Case> all;
  for (const Dims& dims : kDims)
    for (size_t n = 0; n < dims.general; ++n) all.push_back(general_case(dims, n, 20000 + all.size()));
  return all;
}

std::map<std::string, std::string> recorded() {
  std::ifstream file(FA4_WHOLE_KERNEL_DIGESTS);
  REQUIRE(file.good());
  std::map<std::string, std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    const size_t tab = line.find('\t');
    REQUIRE(tab != std::string::npos);
    lines[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return lines;
}

}  // namespace

TEST_CASE("whole kernels have the bits of an H200", "[whole]") {
  if (test::device().gpu().properties().major != 9) {
    std::printf("skipped: %s is no Hopper\n", test::device().gpu().properties().name.c_str());
    return;
  }
  const std::map<std::string, std::string> expected = recorded();
  std::set<std::string> met;
  size_t different = 0;
  std::vector<test::Case> all = plain_cases();
  for (const test::Case& c : general_cases()) all.push_back(c);
  for (const test::Case& c : all) {
    support::RunResult result;
    const support::Inputs inputs = support::make_inputs(c.problem, c.seed);
    CHECK(test::verify(c, inputs, &result) == "");
    // The inputs' digests are part of the name: another generator is another problem.
    std::string name = test::describe(c) + ", inputs " + support::digest(inputs.q) + " " + support::digest(inputs.k) + " " +
                       support::digest(inputs.v);
    if (c.problem.sinks) name += " sinks " + support::digest(inputs.sinks);
    if (c.problem.alibi) name += " slopes " + support::digest(inputs.slopes);
    const std::string bits = "O " + support::digest(result.o) + " LSE " + support::digest(result.lse);
    support::record("whole\t" + name + "\t" + bits);
    INFO(name);
    CHECK(met.insert(name).second);
    const auto line = expected.find(name);
    CHECK(line != expected.end());
    if (line != expected.end()) CHECK(line->second == bits);
    different += line == expected.end() || line->second != bits;
  }
  CHECK(met.size() == expected.size());
  std::printf("%zu whole problems, %zu with other bits than recorded on an H200\n", met.size(), different);
}
