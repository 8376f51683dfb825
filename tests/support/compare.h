// SPDX-License-Identifier: Apache-2.0
// How far an output is from the reference, where it is worst, and how far it may be. Only rows that the batch
// entries have count.
#pragma once

#include <array>
#include <string>

#include "reference.h"

namespace fa4::support {

struct Comparison {
  // Absolute. A NaN is right only where the reference has one, an infinity only where it has the same:
  // anything else beside the finite, and an element that was never written, is infinitely far off.
  double max_error = 0;
  // Over the elements where both are finite; the largest is a magnitude of the reference.
  double max_finite_error = 0, rms_error = 0, largest_expected = 0;
  int64_t not_finite =
      0;  // elements that are NaN or infinite where the reference is not, or the other way round
  int64_t nan_as_expected = 0;   // elements that are NaN, as the reference is
  int64_t unspecified_rows = 0;  // of O, which Reference::unspecified keeps out of the comparison
  bool empty = true;
  std::array<int64_t, 4> worst{};  // batch, head, position, head-dimension column (0 for lse)
  double worst_value = 0, worst_expected = 0;
  bool close_1e2 = true;  // every element within rtol = atol = 1e-2 of the reference
};

// o: raw values packed (batch, seq_q, q_heads, head dimension of V). lse: packed (batch, q_heads, seq_q).
Comparison compare_o(const Problem& problem, const std::vector<uint16_t>& o, const Reference& expected);
Comparison compare_o(const Problem& problem, const Reference& o, const Reference& expected);
Comparison compare_lse(const Problem& problem, const std::vector<float>& lse, const Reference& expected);
Comparison compare_lse(const Problem& problem, const Reference& lse, const Reference& expected);

// What the kernel may be off by: twice the error of the same-precision reference, where both references are
// finite, plus a small atol, which covers problems so small that the reference is exact by luck. For O half a
// rounding step of the dtype at the largest |O| of those, at most at 1 (2^-11 for fp16, 2^-8 for bf16) and at
// least at the smallest subnormal; for the fp32 lse 2^-20 * max(1, largest |lse|).
struct Tolerance {
  double o = 0, lse = 0;
  // The same-precision reference is so far off that O = 0 would be allowed too: the comparison says nothing.
  bool vacuous = false;
};
Tolerance tolerance_of(const Problem& problem, const Reference& expected, const Reference& same_precision);

// "max error 1.2e-4, rms 1.1e-5, worst at batch 0, head 3, position 17, column 9: 0.1234 where 0.1233 is
// expected"
std::string describe(const Comparison& comparison);

}  // namespace fa4::support
