// SPDX-License-Identifier: Apache-2.0
// The kit is what everything else is judged by, so it is judged by something else: conversions by the
// compiler's own _Float16, the references by loops written straight from the formula, inputs by values that
// are written down.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "support/catch.h"
#include "support/compare.h"
#include "support/inputs.h"
#include "support/placement.h"

namespace {

using namespace fa4::support;

// O and LSE of one query, from the definition, in long double.
struct Row {
  std::vector<long double> o;
  long double lse;
};
Row attend_row(const Problem& p, const Inputs& in, int64_t b, int64_t h, int64_t i) {
  const int64_t kv_head = h / p.ratio();
  const auto q = [&](int64_t d) {
    return (long double)to_float(p.dtype, in.q[size_t(((b * p.seq_q + i) * p.q_heads + h) * p.head_dim + d)]);
  };
  const auto kv = [&](const std::vector<uint16_t>& x, int64_t j, int64_t d) {
    return (long double)to_float(p.dtype,
                                 x[size_t(((b * p.seq_kv + j) * p.kv_heads + kv_head) * p.head_dim + d)]);
  };
  Row row{std::vector<long double>(size_t(p.head_dim), 0), 0};
  std::vector<long double> p_of(size_t(p.seq_kv), 0);
  long double sum = 0;
  for (int64_t j = 0; j < p.seq_kv; ++j) {
    if (p.causal && j > i + p.seq_kv - p.seq_q) continue;
    long double score = 0;
    for (int64_t d = 0; d < p.head_dim; ++d) score += q(d) * kv(in.k, j, d);
    p_of[size_t(j)] = std::exp(score * (long double)p.effective_scale());
    sum += p_of[size_t(j)];
  }
  row.lse = std::log(sum);
  for (int64_t d = 0; d < p.head_dim && sum > 0; ++d) {
    for (int64_t j = 0; j < p.seq_kv; ++j) row.o[size_t(d)] += p_of[size_t(j)] * kv(in.v, j, d);
    row.o[size_t(d)] /= sum;
  }
  return row;
}

}  // namespace

TEST_CASE("fp16 to float and back: all values, by the compiler's _Float16") {
  int wrong = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float ours = fp16_to_float(uint16_t(bits));
    const float theirs = float(std::bit_cast<_Float16>(uint16_t(bits)));
    if (std::isnan(theirs)) {
      wrong += !std::isnan(ours) || float_to_fp16(ours) != 0x7FFF;
    } else {
      wrong +=
          std::bit_cast<uint32_t>(ours) != std::bit_cast<uint32_t>(theirs) || float_to_fp16(ours) != bits;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("float to fp16 rounds to nearest even, by the compiler's _Float16") {
  int wrong = 0;
  for (uint64_t bits = 0; bits < 0x100000000;
       bits += 4093) {  // a prime: all mantissa patterns near each exponent
    const float value = std::bit_cast<float>(uint32_t(bits));
    if (std::isnan(value)) continue;
    wrong += float_to_fp16(value) != std::bit_cast<uint16_t>(_Float16(value));
  }
  for (uint32_t half = 0; half < 0x7BFF; ++half) {  // exactly between two neighbours, and just beside
    const float low = fp16_to_float(uint16_t(half)), high = fp16_to_float(uint16_t(half + 1));
    const float middle = (low + high) / 2;
    for (const float value : {std::nextafterf(middle, 0), middle, std::nextafterf(middle, INFINITY)})
      wrong += float_to_fp16(value) != std::bit_cast<uint16_t>(_Float16(value));
  }
  CHECK(wrong == 0);
}

TEST_CASE("bf16 rounds to nearest even") {
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) {
    REQUIRE(float_to_bf16(bf16_to_float(uint16_t(bits))) == bits);
    const uint32_t middle = (bits << 16) | 0x8000u;
    REQUIRE(float_to_bf16(std::bit_cast<float>(middle - 1)) == bits);
    REQUIRE(float_to_bf16(std::bit_cast<float>(middle)) == bits + (bits & 1));
    REQUIRE(float_to_bf16(std::bit_cast<float>(middle + 1)) == bits + 1);
  }
  CHECK(float_to_bf16(NAN) == 0x7FFF);
  CHECK(float_to_bf16(-INFINITY) == 0xFF80);
}

TEST_CASE("inputs are these, wherever they are made") {
  // tests/fixtures/make_sdpa_fixture.py --self-check holds the same numbers.
  const auto values = [](Dtype dtype, TensorId tensor) {
    std::vector<float> result;
    for (const uint64_t index : {0, 1, 2, 1000000})
      result.push_back(to_float(dtype, input_value(dtype, 1, tensor, index)));
    return result;
  };
  CHECK(values(Dtype::fp16, TensorId::q) ==
        std::vector<float>{1.482421875f, 1.408203125f, 0.0078125f, -0.41015625f});
  CHECK(values(Dtype::fp16, TensorId::k) ==
        std::vector<float>{0.09765625f, -0.857421875f, 0.15234375f, 0.005859375f});
  CHECK(values(Dtype::fp16, TensorId::v) ==
        std::vector<float>{0.369140625f, 0.203125f, 1.654296875f, 0.27734375f});
  CHECK(values(Dtype::bf16, TensorId::q) == std::vector<float>{-2.140625f, -0.734375f, 0.0625f, 0.71875f});
}

TEST_CASE("inputs are bell-shaped and exact") {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    double sum = 0, squares = 0;
    const int64_t count = 100000;
    for (const uint16_t bits : make_tensor(dtype, 3, TensorId::v, count)) {
      const float value = to_float(dtype, bits);
      const float grid = std::ldexp(value, dtype == Dtype::fp16 ? 9 : 6);
      REQUIRE(grid == std::nearbyint(grid));
      REQUIRE(std::fabs(value) < 4);
      sum += value;
      squares += double(value) * value;
    }
    CHECK(std::fabs(sum / count) < 0.02);
    CHECK(std::fabs(std::sqrt(squares / count) - 1.155) < 0.02);
  }
}

TEST_CASE("the double reference is the formula") {
  for (const Problem& p :
       {Problem{Dtype::fp16, false, 2, 5, 37, 6, 2, 0}, Problem{Dtype::bf16, true, 1, 33, 70, 4, 4, 0.3},
        Problem{Dtype::fp16, true, 1, 40, 9, 3, 1, -0.1}, Problem{Dtype::fp16, false, 1, 2, 0, 2, 1, 0},
        Problem{Dtype::bf16, true, 3, 1, 1, 2, 2, 0}}) {
    const Inputs inputs = make_inputs(p, 17);
    const Reference reference = reference_double(p, inputs);
    int64_t off = 0;
    const auto compare = [&](long double ours, double theirs) {
      off += !(std::fabs(ours - theirs) < 1e-13L);
    };
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t h = 0; h < p.q_heads; ++h)
        for (int64_t i = 0; i < p.seq_q; ++i) {
          const Row row = attend_row(p, inputs, b, h, i);
          const double lse = reference.lse[size_t((b * p.q_heads + h) * p.seq_q + i)];
          if (std::isinf(row.lse)) {
            CHECK(lse == -std::numeric_limits<double>::infinity());
          } else {
            compare(row.lse, lse);
          }
          for (int64_t d = 0; d < p.head_dim; ++d)
            compare(row.o[size_t(d)],
                    reference.o[size_t(((b * p.seq_q + i) * p.q_heads + h) * p.head_dim + d)]);
        }
    INFO(describe(p));
    CHECK(off == 0);

    const Comparison near = compare_o(p, reference_same_precision(p, inputs), reference);
    CHECK(near.max_error < (p.dtype == Dtype::fp16 ? 4e-3 : 3e-2));
  }
}

TEST_CASE("a comparison finds the worst element and every kind of NaN") {
  const Problem p{Dtype::fp16, false, 2, 3, 4, 2, 1, 0};
  const Reference expected = reference_double(p, make_inputs(p, 1));
  std::vector<uint16_t> o(expected.o.size());
  for (size_t i = 0; i < o.size(); ++i) o[i] = float_to_fp16(float(expected.o[i]));
  CHECK(compare_o(p, o, expected).max_error < 1e-3);
  const size_t at = size_t(((1 * 3 + 2) * 2 + 1) * p.head_dim + 77);  // batch 1, position 2, head 1, column 77
  o[at] = float_to_fp16(float(expected.o[at]) + 0.5f);
  Comparison c = compare_o(p, o, expected);
  CHECK(std::fabs(c.max_error - 0.5) < 2e-3);
  CHECK(c.worst == std::array<int64_t, 4>{1, 1, 2, 77});
  CHECK_FALSE(c.close_1e2);
  o[at] = kPoison16;
  c = compare_o(p, o, expected);
  CHECK(std::isinf(c.max_error));
  CHECK(c.not_finite == 1);
  CHECK(c.worst == std::array<int64_t, 4>{1, 1, 2, 77});

  std::vector<float> lse(expected.lse.begin(), expected.lse.end());
  lse[size_t((1 * 2 + 0) * 3 + 2)] = -std::numeric_limits<float>::infinity();
  const Comparison l = compare_lse(p, lse, expected);
  CHECK(std::isinf(l.max_error));
  CHECK(l.worst == std::array<int64_t, 4>{1, 0, 2, 0});
}

TEST_CASE("a NaN or an infinity is right only where the reference has the same, and widens nothing") {
  constexpr double kInf = std::numeric_limits<double>::infinity(),
                   kNan = std::numeric_limits<double>::quiet_NaN();
  const Problem p{Dtype::fp16, false, 1, 6, 40, 2, 1, 0};
  Inputs inputs = make_inputs(p, 1);
  const Reference clean = reference_double(p, inputs);
  const Tolerance clean_tolerance = tolerance_of(p, clean, reference_same_precision(p, inputs));
  inputs.q[size_t((5 * 2 + 1) * p.head_dim + 3)] = 0x7E00;  // head 1, position 5: its row is NaN
  const Reference expected = reference_double(p, inputs);
  Reference same_precision = reference_same_precision(p, inputs);
  const size_t row = size_t((5 * 2 + 1) * p.head_dim), lse_row = size_t(1 * 6 + 5);
  REQUIRE(std::isnan(expected.o[row]));
  REQUIRE(std::isnan(expected.lse[lse_row]));
  Tolerance tolerance = tolerance_of(p, expected, same_precision);
  CHECK(tolerance.o <= clean_tolerance.o);
  CHECK(tolerance.lse <= clean_tolerance.lse);

  std::vector<uint16_t> o(expected.o.size());
  for (size_t i = 0; i < o.size(); ++i) o[i] = float_to_fp16(float(expected.o[i]));
  std::vector<float> lse(expected.lse.begin(), expected.lse.end());
  CHECK(compare_o(p, o, expected).max_error <= tolerance.o);
  CHECK(compare_o(p, o, expected).nan_as_expected == p.head_dim);
  CHECK(compare_lse(p, lse, expected).max_error <= tolerance.lse);

  // Each of these for one element is wrong whatever the row of NaN is.
  for (const uint16_t bits : {uint16_t(0x7E00), uint16_t(0x7C00), uint16_t(0xFC00)}) {
    std::vector<uint16_t> wrong = o;
    wrong[7] = bits;
    CHECK_FALSE(compare_o(p, wrong, expected).max_error <= tolerance.o);
  }
  for (const uint16_t bits : {uint16_t(0), uint16_t(0x7C00), kPoison16}) {
    std::vector<uint16_t> wrong = o;
    wrong[row + 7] = bits;  // where NaN is expected: a number, an infinity, never written
    CHECK_FALSE(compare_o(p, wrong, expected).max_error <= tolerance.o);
  }
  for (const float value : {0.0f, INFINITY, -INFINITY, std::bit_cast<float>(kPoison32)}) {
    std::vector<float> wrong = lse;
    wrong[lse_row] = value;
    CHECK_FALSE(compare_lse(p, wrong, expected).max_error <= tolerance.lse);
  }
  Reference infinite = clean;
  infinite.lse[2] = -kInf;
  std::vector<float> signs(clean.lse.begin(), clean.lse.end());
  signs[2] = -INFINITY;
  CHECK(compare_lse(p, signs, infinite).max_error <= clean_tolerance.lse);
  signs[2] = INFINITY;
  CHECK_FALSE(compare_lse(p, signs, infinite).max_error <= clean_tolerance.lse);

  // Where the same-precision reference overflows and the truth is finite, the others are judged as before.
  for (const double overflow : {kInf, -kInf, kNan}) {
    same_precision.o[11] = overflow;
    same_precision.lse[1] = overflow;
    tolerance = tolerance_of(p, expected, same_precision);
    CHECK(tolerance.o <= clean_tolerance.o);
    CHECK(tolerance.lse <= clean_tolerance.lse);
  }
}

TEST_CASE("scores of minus infinity have no weight, and V that is not finite is told") {
  const Problem p{Dtype::fp16, false, 2, 2, 40, 4, 2, 0};
  Inputs inputs = make_inputs(p, 3);
  const Reference clean = reference_double(p, inputs);
  CHECK(clean.unspecified == std::vector<uint8_t>(4, 0));
  const uint16_t minus_inf = 0xFC00;
  for (int64_t j = 0; j < p.seq_kv; ++j)  // batch 0, KV head 1: all keys; batch 1, KV head 0: all but key 7
    for (const int64_t b : {0, 1})
      if (b == 0 || j != 7) inputs.k[size_t(((b * p.seq_kv + j) * 2 + 1 - b) * p.head_dim)] = minus_inf;
  for (int64_t i = 0; i < p.batch * p.seq_q * p.q_heads; ++i) inputs.q[size_t(i * p.head_dim)] = 0x3C00;
  inputs.v[size_t(((1 * p.seq_kv + 39) * 2 + 1) * p.head_dim + 5)] = 0x7C00;
  for (const Reference& reference : {reference_double(p, inputs), reference_same_precision(p, inputs)}) {
    CHECK(reference.unspecified == std::vector<uint8_t>{0, 0, 0, 1});
    for (int64_t h = 2; h < 4; ++h) {  // they see keys, all at minus infinity
      CHECK(reference.o[size_t(h * p.head_dim)] == 0);
      CHECK(reference.lse[size_t(h * p.seq_q)] == -std::numeric_limits<double>::infinity());
    }
    for (int64_t h = 0; h < 2; ++h) {  // one key is left
      const size_t row = size_t((1 * p.seq_q * p.q_heads + h) * p.head_dim);
      CHECK(reference.o[row] ==
            double(to_float(p.dtype, inputs.v[size_t(((1 * p.seq_kv + 7) * 2 + 0) * p.head_dim)])));
    }
  }
  // A wrong row of the head that is unspecified is not compared, any other is.
  const Reference expected = reference_double(p, inputs);
  std::vector<uint16_t> o(expected.o.size());
  for (size_t i = 0; i < o.size(); ++i) o[i] = float_to_fp16(float(expected.o[i]));
  o[size_t((1 * p.seq_q * p.q_heads + 3) * p.head_dim)] = 0x7C00;
  CHECK(compare_o(p, o, expected).max_error < 1e-3);
  CHECK(compare_o(p, o, expected).unspecified_rows == 4);
  o[size_t((1 * p.seq_q * p.q_heads + 1) * p.head_dim)] = 0x7C00;
  CHECK(std::isinf(compare_o(p, o, expected).max_error));
}

TEST_CASE("the tolerance follows small outputs, and says when it would let anything pass") {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
    Problem p{dtype, false, 1, 3, 50, 1, 1, 0};
    Inputs inputs = make_inputs(p, 1);
    for (uint16_t& v : inputs.v) v = from_float(dtype, to_float(dtype, v) * 0x1p-10f);
    const Reference expected = reference_double(p, inputs);
    const Reference same_precision = reference_same_precision(p, inputs);
    Tolerance tolerance = tolerance_of(p, expected, same_precision);
    CHECK_FALSE(tolerance.vacuous);
    CHECK(compare_o(p, same_precision, expected).max_error <= tolerance.o);
    const std::vector<uint16_t> zeros(expected.o.size(), 0);
    CHECK_FALSE(compare_o(p, zeros, expected).max_error <= tolerance.o);

    Reference far = expected;  // one row of the same-precision reference is another key's
    for (size_t d = 0; d < size_t(p.head_dim); ++d) far.o[d] = -far.o[d];
    CHECK(tolerance_of(p, expected, far).vacuous);

    std::fill(inputs.v.begin(), inputs.v.end(), uint16_t(0));
    CHECK_FALSE(tolerance_of(p, reference_double(p, inputs), reference_same_precision(p, inputs)).vacuous);
  }
}

TEST_CASE("placements keep views apart and inside their buffers") {
  const Problem p{Dtype::fp16, false, 3, 5, 5, 4, 2, 0};
  for (const Layout layout :
       {Layout::bshd, Layout::bhsd, Layout::fused_qkv, Layout::broadcast, Layout::padded}) {
    const Placement place_ = place(p, layout);
    std::vector<std::vector<int>> uses;
    for (const int64_t elements : place_.buffer_elements) uses.emplace_back(size_t(elements), 0);
    const auto mark = [&](const View& view, int64_t heads) {
      for (int64_t b = 0; b < p.batch; ++b)
        for (int64_t s = 0; s < 5; ++s)
          for (int64_t h = 0; h < heads; ++h)
            for (int64_t d = 0; d < p.head_dim; ++d)
              ++uses[size_t(view.buffer)].at(size_t(view.at(b, s, h) + d));
      for (const int64_t stride : {view.offset, view.batch_stride, view.seq_stride, view.head_stride})
        CHECK(stride % 8 == 0);
    };
    mark(place_.q, p.q_heads);
    mark(place_.k, p.kv_heads);
    mark(place_.v, p.kv_heads);
    mark(place_.o, p.q_heads);
    const int most = layout == Layout::broadcast ? 6 : 1;
    for (const std::vector<int>& buffer : uses) {
      CHECK(*std::max_element(buffer.begin(), buffer.end()) <= most);
      CHECK(buffer.front() == 0);
      CHECK(buffer.back() == 0);
    }
  }
}
