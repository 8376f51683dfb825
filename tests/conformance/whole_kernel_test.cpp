// SPDX-License-Identifier: Apache-2.0
// Whole attention problems against a real GPU: O and LSE as the simulated GPU computes them have the digests that were
// recorded on silicon, from the machine code of the same source. Lengths around every boundary of a tile and a key block,
// head ratios, both types and head dimensions, masks and schedulers, negative scales, rows without keys.
//
//     FA4_TEST_DEVICE=gpu whole_kernel_test                          compares a GPU with the file
//     FA4_TEST_DEVICE=gpu FA4_RECORD=lines.txt whole_kernel_test     writes the lines of the file for it,
//                                                                    each behind "whole" and a tab
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

// For each length of Q, type, mask and head dimension two problems: the other factors go round beside them.
std::vector<test::Case> cases() {
  std::vector<test::Case> all;
  for (size_t i = 0; i < 2 * kLengths.size(); ++i) {
    for (const int64_t head_dim : {64, 128}) {
      for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
        for (const bool causal : {false, true}) {
          const size_t n = all.size();
          test::Case c;
          c.seed = 1000 + n;
          const int64_t kv_heads = 1 + int64_t(n % 2);
          c.problem = {dtype, causal, n % 5 == 0 ? 2 : 1, kLengths[i % kLengths.size()],
                       kLengths[(3 * i + 7 * n) % kLengths.size()], 0,
                       kv_heads, n % 7 == 3 ? -0.2 : n % 7 == 5 ? 0.5 : 0, head_dim};
          if (n % 31 == 30) c.problem.seq_kv = 0;
          for (size_t r = 0; r < kRatios.size() && c.problem.q_heads == 0; ++r) {
            c.problem.q_heads = kRatios[(n + n / 10 + r) % kRatios.size()] * kv_heads;
            if (test::stage_blocks(c.problem) > kMaxStageBlocks) c.problem.q_heads = 0;
          }
          if (c.problem.q_heads == 0) c.problem.batch = c.problem.q_heads = c.problem.kv_heads = 1;
          c.options.scheduler = n % 3 == 1 ? FA4_SCHEDULER_LPT : FA4_SCHEDULER_LINEAR;
          c.options.sm_count = n % 4 == 2 ? 3 : 132;
          all.push_back(c);
        }
      }
    }
  }
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
  for (const test::Case& c : cases()) {
    support::RunResult result;
    const support::Inputs inputs = support::make_inputs(c.problem, c.seed);
    CHECK(test::verify(c, inputs, &result) == "");
    // The inputs' digests are part of the name: another generator is another problem.
    const std::string name = test::describe(c) + ", inputs " + support::digest(inputs.q) + " " + support::digest(inputs.k) +
                             " " + support::digest(inputs.v);
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
