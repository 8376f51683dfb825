// SPDX-License-Identifier: Apache-2.0
// Comparison of outputs with the reference.
#include "compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "placement.h"

namespace fa4::support {
namespace {

// An element of an output, and whether the kernel can have written it: the poison that lay there before is a
// NaN too, and is right nowhere.
struct Element {
  double value;
  bool written = true;
};

struct Accumulator {
  Comparison result;
  double sum_of_squares = 0;
  int64_t finite = 0;

  // `place` is called only when the element is the worst so far.
  template <typename Place>
  void add(const Element& element, double expected, const Place& place) {
    const double value = element.value;
    double error;
    if (std::isfinite(value) && std::isfinite(expected)) {
      error = std::fabs(value - expected);
      sum_of_squares += error * error;
      ++finite;
      result.max_finite_error = std::max(result.max_finite_error, error);
      result.largest_expected = std::max(result.largest_expected, std::fabs(expected));
      if (error > 1e-2 + 1e-2 * std::fabs(expected)) result.close_1e2 = false;
    } else if (value == expected) {  // the same infinity
      error = 0;
    } else if (std::isnan(value) && std::isnan(expected) && element.written) {
      error = 0;
      ++result.nan_as_expected;
    } else {
      error = std::numeric_limits<double>::infinity();
      ++result.not_finite;
      result.close_1e2 = false;
    }
    if (result.empty || error > result.max_error) {
      result.max_error = error;
      result.worst = place();
      result.worst_value = value;
      result.worst_expected = expected;
    }
    result.empty = false;
  }
  Comparison finish() {
    result.rms_error = finite ? std::sqrt(sum_of_squares / double(finite)) : 0;
    return result;
  }
};

template <typename Value>
Comparison compare_o_with(const Problem& problem, const Reference& expected, const Value& value) {
  Accumulator accumulator;
  for (int64_t b = 0; b < problem.batch; ++b)
    for (int64_t s = 0; s < problem.length_q(b); ++s)
      for (int64_t h = 0; h < problem.q_heads; ++h) {
        if (expected.unspecified[size_t(b * problem.kv_heads + h / problem.ratio())]) {
          ++accumulator.result.unspecified_rows;
          continue;
        }
        const size_t row = size_t(((b * problem.seq_q + s) * problem.q_heads + h) * problem.v_dim());
        for (int64_t d = 0; d < problem.v_dim(); ++d)
          accumulator.add(value(row + size_t(d)), expected.o[row + size_t(d)], [&] {
            return std::array<int64_t, 4>{b, h, s, d};
          });
      }
  return accumulator.finish();
}

template <typename Value>
Comparison compare_lse_with(const Problem& problem, const Reference& expected, const Value& value) {
  Accumulator accumulator;
  for (int64_t b = 0; b < problem.batch; ++b)
    for (int64_t h = 0; h < problem.q_heads; ++h)
      for (int64_t s = 0; s < problem.length_q(b); ++s) {
        const size_t row = size_t((b * problem.q_heads + h) * problem.seq_q + s);
        accumulator.add(value(row), expected.lse[row], [&] { return std::array<int64_t, 4>{b, h, s, 0}; });
      }
  return accumulator.finish();
}

}  // namespace

Comparison compare_o(const Problem& problem, const std::vector<uint16_t>& o, const Reference& expected) {
  return compare_o_with(problem, expected, [&](size_t i) {
    return Element{double(to_float(problem.dtype, o[i])), o[i] != kPoison16};
  });
}
Comparison compare_o(const Problem& problem, const Reference& o, const Reference& expected) {
  return compare_o_with(problem, expected, [&](size_t i) { return Element{o.o[i]}; });
}
Comparison compare_lse(const Problem& problem, const std::vector<float>& lse, const Reference& expected) {
  return compare_lse_with(problem, expected, [&](size_t i) {
    return Element{double(lse[i]), std::bit_cast<uint32_t>(lse[i]) != kPoison32};
  });
}
Comparison compare_lse(const Problem& problem, const Reference& lse, const Reference& expected) {
  return compare_lse_with(problem, expected, [&](size_t i) { return Element{lse.lse[i]}; });
}

Tolerance tolerance_of(const Problem& problem, const Reference& expected, const Reference& same_precision) {
  const Comparison o = compare_o(problem, same_precision, expected);
  const Comparison lse = compare_lse(problem, same_precision, expected);
  const bool fp16 = problem.dtype == Dtype::fp16;
  const double half_step = fp16 ? 0x1p-11 : 0x1p-8, smallest = fp16 ? 0x1p-25 : 0x1p-134;
  const double atol_o = std::max(half_step * std::min(o.largest_expected, 1.0), smallest);
  Tolerance result;
  result.o = 2 * o.max_finite_error + atol_o;
  result.lse = 2 * lse.max_finite_error + 0x1p-20 * std::max(lse.largest_expected, 1.0);
  result.vacuous = o.largest_expected > atol_o && result.o >= o.largest_expected;
  return result;
}

std::string describe(const Comparison& c) {
  if (c.empty) return "nothing to compare";
  char text[256];
  std::snprintf(text, sizeof text,
                "max error %.3g, rms %.3g, worst at batch %lld, head %lld, position %lld, column %lld: %.6g "
                "where %.6g is "
                "expected",
                c.max_error, c.rms_error, static_cast<long long>(c.worst[0]),
                static_cast<long long>(c.worst[1]), static_cast<long long>(c.worst[2]),
                static_cast<long long>(c.worst[3]), c.worst_value, c.worst_expected);
  std::string result = text;
  if (c.not_finite) result += ", " + std::to_string(c.not_finite) + " elements NaN or infinite";
  return result;
}

}  // namespace fa4::support
