// SPDX-License-Identifier: Apache-2.0
// Instructions that work lane by lane, judged against a function of the host: every case runs on corner
// values and random ones, once on full warps and once under a guard that leaves some lanes as they were.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernel.h"

namespace fa4::sim::test {

// Register widths of a case: h 16 bits, r 32, l 64.
struct LaneCase {
  std::string instructions;  // on %d, %a, %b, %c, each statement ended by ';'; may use %p, %q, %t (a 32-bit
                             // scratch), %h (a 16-bit one)
  char result;               // width of %d
  std::string sources;       // widths of %a, %b, %c
  std::function<uint64_t(uint64_t a, uint64_t b, uint64_t c)> expected;
};

enum class Values { integers, shifts, floats, doubles };

struct Mismatch {
  std::string instructions;
  uint64_t a, b, c, expected, got;
};

// Values of one kind, corners first.
std::vector<uint64_t> corners(Values kind);
// Runs all cases; `second` is the kind of %b where it differs (a shift amount, say). Returns what differs, at
// most 16.
std::vector<Mismatch> run_lane_cases(const std::vector<LaneCase>& cases, Values first, Values second,
                                     Values third, uint64_t seed);
std::string describe(const std::vector<Mismatch>& mismatches);

}  // namespace fa4::sim::test
