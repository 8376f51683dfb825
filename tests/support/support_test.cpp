// SPDX-License-Identifier: Apache-2.0
// The kit is what everything else is judged by, so it is judged by something else: conversions by the
// compiler's own _Float16, the references by loops written straight from the formula, inputs by values that
// are written down.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "support/catch.h"
#include "support/compare.h"
#include "support/inputs.h"
#include "support/placement.h"

namespace {

using namespace fa4::support;

// O and LSE of one query, from the definition in fa4.h, in long double.
struct Row {
  std::vector<long double> o;
  long double lse;
};
Row attend_row(const Problem& p, const Inputs& in, int64_t b, int64_t h, int64_t i) {
  const int64_t kv_head = h / p.ratio(), v_dim = p.head_dim_v ? p.head_dim_v : p.head_dim;
  const auto number = [&](const std::vector<uint16_t>& x, int64_t row, int64_t dim, int64_t d) {
    return (long double)to_float(p.dtype, x[size_t(row * dim + d)]);
  };
  const auto length = [&](const Lengths& lengths, int64_t bound) {
    for (const std::vector<int64_t>* rows : {&lengths.packed, &lengths.used})
      if (!rows->empty() && (*rows)[size_t(b)] < bound) bound = (*rows)[size_t(b)];
    return bound;
  };
  const int64_t seq_q = length(p.q_lengths, p.seq_q), seq_kv = length(p.kv_lengths, p.seq_kv);
  const int64_t i_on_keys = p.top_left ? i : i + seq_kv - seq_q;
  Row row{std::vector<long double>(size_t(v_dim), 0), 0};
  long double sum = p.sinks ? std::exp((long double)in.sinks[size_t(h)]) : 0;
  for (int64_t j = 0; j < seq_kv; ++j) {
    const int64_t ahead = j - i_on_keys;
    if (p.causal && ahead > 0) continue;
    if (p.window && p.window_right >= 0 && ahead > p.window_right) continue;
    if (p.window && p.window_left >= 0 && -ahead > p.window_left) continue;
    long double score = 0;
    for (int64_t d = 0; d < p.head_dim; ++d)
      score += number(in.q, (b * p.seq_q + i) * p.q_heads + h, p.head_dim, d) *
               number(in.k, (b * p.seq_kv + j) * p.kv_heads + kv_head, p.head_dim, d);
    score *= (long double)p.effective_scale();
    if (p.softcap != 0) score = p.softcap * std::tanh(score / p.softcap);
    if (p.alibi)
      score -= in.slopes[size_t(p.slopes_by_entry ? b * p.q_heads + h : h)] * (long double)std::abs(ahead);
    const long double weight = std::exp(score);
    sum += weight;
    for (int64_t d = 0; d < v_dim; ++d)
      row.o[size_t(d)] += weight * number(in.v, (b * p.seq_kv + j) * p.kv_heads + kv_head, v_dim, d);
  }
  row.lse = std::log(sum);
  for (long double& o : row.o) o = sum > 0 ? o / sum : 0;
  return row;
}

// One problem of each kind beyond the dense ones, and some of several.
std::vector<Problem> wide_problems() {
  const Problem base{Dtype::fp16, false, 3, 21, 70, 4, 2, 0, 24};
  std::vector<Problem> all;
  const auto add = [&](auto change) {
    Problem p = base;
    change(p);
    all.push_back(p);
  };
  add([](Problem& p) { p.head_dim_v = 40; });
  add([](Problem& p) { p.q_lengths.packed = {21, 0, 7}; });
  add([](Problem& p) {
    p.q_lengths.packed = {3, 30, 21}, p.kv_lengths.packed = {0, 70, 33}, p.causal = true;
  });
  add([](Problem& p) { p.kv_lengths.used = {0, 100, 33}, p.causal = true; });
  add([](Problem& p) { p.kv_lengths = {{40, 20, 70}, {11, 50, 0}}, p.q_lengths.used = {21, 5, 1}; });
  for (const auto& [left, right] :
       {std::pair<int64_t, int64_t>{0, 0}, {5, -1}, {-1, 3}, {20, 33}, {INT64_MAX, 1}, {1, INT64_MAX}})
    for (const bool top_left : {false, true}) {
      add([&, left = left, right = right](Problem& p) {
        p.window = true, p.window_left = left, p.window_right = right, p.top_left = top_left;
      });
      add([&, left = left, right = right](Problem& p) {
        p.window = p.causal = true, p.window_left = left, p.window_right = right, p.top_left = top_left;
        p.seq_q = 90, p.kv_lengths.used = {70, 1, 30};
      });
    }
  add([](Problem& p) { p.softcap = 0.7; });
  add([](Problem& p) { p.softcap = 1e6, p.scale = -0.4; });
  add([](Problem& p) { p.sinks = true; });
  add([](Problem& p) { p.sinks = true, p.causal = true, p.seq_q = 90, p.softcap = 3; });
  add([](Problem& p) { p.alibi = true; });
  add([](Problem& p) { p.alibi = p.slopes_by_entry = p.top_left = p.causal = true, p.seq_q = 90; });
  add([](Problem& p) {
    p.dtype = Dtype::bf16, p.alibi = p.slopes_by_entry = p.sinks = p.window = true, p.window_left = 9,
    p.window_right = 2;
    p.q_lengths.packed = {21, 4, 11}, p.kv_lengths = {{1, 70, 20}, {1, 33, 20}}, p.scale = -0.3;
  });
  return all;
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
  // The self-checks of tests/fixtures/make_sdpa_fixture.py and make_flex_fixture.py hold the same numbers.
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
  std::vector<float> sinks, slopes;
  for (const uint64_t index : {0, 1, 2, 3}) {
    sinks.push_back(sink_value(1, index));
    slopes.push_back(slope_value(1, index));
  }
  CHECK(sinks == std::vector<float>{9, 1.625f, 1.125f, 7.625f});
  CHECK(slopes == std::vector<float>{0.0625f, 0.5f, 0.0625f, 0});
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
  std::vector<Problem> problems{
      Problem{Dtype::fp16, false, 2, 5, 37, 6, 2, 0}, Problem{Dtype::bf16, true, 1, 33, 70, 4, 4, 0.3},
      Problem{Dtype::fp16, true, 1, 40, 9, 3, 1, -0.1}, Problem{Dtype::fp16, false, 1, 2, 0, 2, 1, 0},
      Problem{Dtype::bf16, true, 3, 1, 1, 2, 2, 0}};
  for (const Problem& p : wide_problems()) problems.push_back(p);
  for (const Problem& p : problems) {
    const Inputs inputs = make_inputs(p, 17);
    const Reference reference = reference_double(p, inputs);
    int64_t off = 0, rows = 0;
    const auto compare = [&](long double ours, double theirs) {
      off += !(std::fabs(ours - theirs) < 1e-13L * std::max(1.0L, std::fabs(ours)));
    };
    for (int64_t b = 0; b < p.batch; ++b)
      for (int64_t h = 0; h < p.q_heads; ++h)
        for (int64_t i = 0; i < p.length_q(b); ++i) {
          const Row row = attend_row(p, inputs, b, h, i);
          const double lse = reference.lse[size_t((b * p.q_heads + h) * p.seq_q + i)];
          if (std::isinf(row.lse)) {
            off += lse != -std::numeric_limits<double>::infinity();
          } else {
            compare(row.lse, lse);
          }
          for (size_t d = 0; d < row.o.size(); ++d)
            compare(row.o[d], reference.o[size_t((b * p.seq_q + i) * p.q_heads + h) * row.o.size() + d]);
          ++rows;
        }
    INFO(describe(p));
    CHECK(off == 0);
    CHECK(rows > 0);

    const Reference same_precision = reference_same_precision(p, inputs);
    CHECK(compare_o(p, same_precision, reference).max_error < (p.dtype == Dtype::fp16 ? 4e-3 : 3e-2));
    CHECK(compare_lse(p, same_precision, reference).max_error < 1e-4);
    CHECK_FALSE(tolerance_of(p, reference, same_precision).vacuous);
  }
}

TEST_CASE("a row without keys has the LSE of its sink, one with a weak sink does not notice it") {
  Problem p{Dtype::fp16, true, 1, 9, 4, 5, 1, 0};
  p.sinks = true;
  Inputs inputs = make_inputs(p, 1);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  inputs.sinks = {-4, 0, 500, -kInf, -500};
  const Reference expected = reference_double(p, inputs);
  p.sinks = false;
  const Reference without = reference_double(p, inputs);
  for (int64_t h = 0; h < 5; ++h) {
    CHECK(expected.lse[size_t(h * 9)] == inputs.sinks[size_t(h)]);
    CHECK(expected.o[size_t(h * p.head_dim)] == 0);
    const size_t last = size_t(8 * 5 + h) * 128;
    CHECK((expected.lse[size_t(h * 9 + 8)] == without.lse[size_t(h * 9 + 8)]) == (h > 2));
    CHECK((expected.o[last] == without.o[last]) == (h > 2));
  }
  CHECK(expected.lse[2 * 9 + 8] == 500);
  CHECK(std::fabs(expected.o[size_t(8 * 5 + 2) * 128]) < 1e-200);
}

TEST_CASE("rows that an entry has not are not compared, and V behind its keys may be anything") {
  Problem p{Dtype::fp16, false, 2, 5, 8, 2, 1, 0};
  p.q_lengths.packed = {2, 9};
  p.kv_lengths.used = {3, 8};
  Inputs inputs = make_inputs(p, 1);
  inputs.v[size_t(3 * p.head_dim)] = inputs.k[size_t(4 * p.head_dim)] = 0x7E00;  // keys 3 and 4 of entry 0
  const Reference expected = reference_double(p, inputs);
  CHECK(expected.unspecified == std::vector<uint8_t>{0, 0});
  std::vector<uint16_t> o(expected.o.size());
  std::vector<float> lse(expected.lse.begin(), expected.lse.end());
  for (size_t i = 0; i < o.size(); ++i) o[i] = float_to_fp16(float(expected.o[i]));
  const auto o_row = [&](int64_t b, int64_t i) { return size_t((b * 5 + i) * 2 + 1) * 128 + 7; };
  for (const auto& [b, i, counts] :
       {std::tuple{0, 1, true}, {0, 2, false}, {0, 4, false}, {1, 0, true}, {1, 4, true}}) {
    std::vector<uint16_t> wrong = o;
    wrong[o_row(b, i)] = kPoison16;
    CHECK(std::isinf(compare_o(p, wrong, expected).max_error) == counts);
    std::vector<float> wrong_lse = lse;
    wrong_lse[size_t((b * 2 + 1) * 5 + i)] = std::bit_cast<float>(kPoison32);
    CHECK(std::isinf(compare_lse(p, wrong_lse, expected).max_error) == counts);
  }
}

TEST_CASE("sinks and slopes are seeded and spread, and are made where they count") {
  Problem p{Dtype::fp16, false, 6, 1, 1, 64, 1, 0};
  CHECK(make_inputs(p, 1).sinks.empty());
  CHECK(make_inputs(p, 1).slopes.empty());
  const Inputs plain = make_inputs(p, 1);
  p.sinks = p.alibi = p.slopes_by_entry = true;
  const Inputs inputs = make_inputs(p, 1);
  CHECK(inputs.q == plain.q);
  CHECK(inputs.v == plain.v);
  REQUIRE(inputs.sinks.size() == 64);
  CHECK(*std::min_element(inputs.sinks.begin(), inputs.sinks.end()) < -2);
  CHECK(*std::max_element(inputs.sinks.begin(), inputs.sinks.end()) > 8);
  REQUIRE(inputs.slopes.size() == 6 * 64);
  for (const float slope : {0.0f, 0.5f, 0.25f, 1 / 128.0f, 1 / 256.0f})
    CHECK(std::count(inputs.slopes.begin(), inputs.slopes.end(), slope) > 10);
  CHECK(make_inputs(p, 2).sinks != inputs.sinks);
  CHECK(make_inputs(p, 2).slopes != inputs.slopes);
  p.slopes_by_entry = false;
  CHECK(make_inputs(p, 1).slopes.size() == 64);
}

TEST_CASE("a description names what is set") {
  Problem p{Dtype::bf16, true, 2, 5, 6, 4, 2, 0, 64};
  CHECK(describe(p) == "bf16 causal B=2 Sq=5 Skv=6 Hq=4 Hkv=2 D=64");
  p.q_lengths = {{3, 4}, {1, 2}};
  p.kv_lengths.used = std::vector<int64_t>(20, 6);
  p.window = p.top_left = p.sinks = p.alibi = true;
  p.window_left = 7;
  p.head_dim_v = 32;
  p.softcap = 20;
  CHECK(describe(p) ==
        "bf16 causal B=2 Sq=5 Skv=6 Hq=4 Hkv=2 D=64 Dv=32 packed_q=[3 4] used_q=[1 2] used_kv=[6 6 6 6 6 6 6 "
        "6 ...] window=7,-1 "
        "top-left softcap=20 sinks ALiBi");
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
  Problem dense{Dtype::fp16, false, 3, 5, 5, 4, 2, 0, 128, 64};
  Problem packed = dense;
  packed.q_lengths.packed = packed.kv_lengths.packed = {2, 0, 5};
  for (const Problem& p : {dense, packed}) {
    const bool is_packed = !p.q_lengths.packed.empty();
    for (const Layout layout :
         {Layout::bshd, Layout::bhsd, Layout::fused_qkv, Layout::broadcast, Layout::padded}) {
      const Placement place_ = place(p, layout);
      std::vector<std::vector<int>> uses;
      for (const int64_t elements : place_.buffer_elements) uses.emplace_back(size_t(elements), 0);
      int64_t rows = 0;
      const auto mark = [&](const View& view, const Lengths& lengths, int64_t heads, int64_t dim) {
        for_each_row(p, lengths, 5, [&](int64_t, int64_t, int64_t b, int64_t s) {
          ++rows;
          for (int64_t h = 0; h < heads; ++h)
            for (int64_t d = 0; d < dim; ++d) ++uses[size_t(view.buffer)].at(size_t(view.at(b, s, h) + d));
        });
        for (const int64_t stride : {view.offset, view.seq_stride, view.head_stride}) CHECK(stride % 8 == 0);
        CHECK((is_packed ? view.batch_stride == kNoStride : view.batch_stride % 8 == 0));
      };
      mark(place_.q, p.q_lengths, p.q_heads, 128);
      mark(place_.k, p.kv_lengths, p.kv_heads, 128);
      mark(place_.v, p.kv_lengths, p.kv_heads, 64);
      mark(place_.o, p.q_lengths, p.q_heads, 64);
      CHECK(rows == 4 * (is_packed ? 7 : 15));
      CHECK(place_.lse_head_stride == (is_packed ? 7 : 5) + (layout == Layout::padded ? 3 : 0));
      const int most = layout != Layout::broadcast ? 1 : is_packed ? 2 : 6;
      for (const std::vector<int>& buffer : uses) {
        CHECK(*std::max_element(buffer.begin(), buffer.end()) <= most);
        CHECK(buffer.front() == 0);
        CHECK(buffer.back() == 0);
      }
    }
  }
}

TEST_CASE("rows of packed entries follow each other, and those that do not count are left out") {
  Problem p{Dtype::fp16, false, 4, 5, 5, 1, 1, 0};
  p.q_lengths = {{2, 0, 7, 1}, {1, 3, 9, 1}};
  std::vector<std::array<int64_t, 4>> rows;
  for_each_row(p, p.q_lengths, 5, [&](int64_t b, int64_t i, int64_t batch, int64_t s) {
    rows.push_back({b, i, batch, s});
  });
  CHECK(
      rows ==
      std::vector<std::array<int64_t, 4>>{
          {0, 0, 0, 0}, {2, 0, 0, 2}, {2, 1, 0, 3}, {2, 2, 0, 4}, {2, 3, 0, 5}, {2, 4, 0, 6}, {3, 0, 0, 9}});
}
