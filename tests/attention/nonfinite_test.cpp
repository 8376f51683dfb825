// SPDX-License-Identifier: Apache-2.0
// NaN and infinities in the inputs: which rows of O and LSE they reach, and that no other changes by a bit.
// The rules stand in fa4.h.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Problem;
using support::RunResult;

struct Special {
  const char* name;
  float value;
};
constexpr std::array kSpecials{Special{"NaN", std::numeric_limits<float>::quiet_NaN()},
                               Special{"+inf", std::numeric_limits<float>::infinity()},
                               Special{"-inf", -std::numeric_limits<float>::infinity()}};

// Two batch entries, two KV heads with four query heads each (packed into the rows of a tile), and lengths
// that leave tails; all on one SM, which keeps its tensor memory and its ring from task to task, and on many.
struct Base {
  Problem problem;
  support::RunOptions options;
  support::Inputs inputs;
  RunResult clean;

  Base(Dtype dtype, bool causal, const test::HeadDims& dims, uint32_t sms)
      : problem{dtype, causal, 2, 150, 300, 8, 2, 0, dims.qk, dims.v},
        options{support::Layout::padded, FA4_SCHEDULER_AUTO, true, sms},
        inputs(support::make_inputs(problem, 21)),
        clean(test::device().run(problem, inputs, options)) {}

  uint16_t bits(const Special& special) const { return support::from_float(problem.dtype, special.value); }
  size_t q_at(int64_t b, int64_t head, int64_t i, int64_t d) const {
    return size_t(((b * problem.seq_q + i) * problem.q_heads + head) * problem.head_dim + d);
  }
  size_t k_at(int64_t b, int64_t kv_head, int64_t j, int64_t d) const {
    return size_t(((b * problem.seq_kv + j) * problem.kv_heads + kv_head) * problem.head_dim + d);
  }
  size_t v_at(int64_t b, int64_t kv_head, int64_t j, int64_t d) const {
    return size_t(((b * problem.seq_kv + j) * problem.kv_heads + kv_head) * problem.v_dim() + d);
  }

  // Runs the changed inputs and compares with the clean run: "" or which row that `reaches_o` (`reaches_lse`)
  // does not let change has other bits. What the reference says is judged by verify().
  template <typename ReachesO, typename ReachesLse>
  std::string compare(const support::Inputs& changed, const ReachesO& reaches_o,
                      const ReachesLse& reaches_lse) const {
    RunResult result;
    const std::string wrong = test::verify({problem, options, 21}, changed, &result);
    if (!wrong.empty()) return wrong;
    for (int64_t b = 0; b < problem.batch; ++b)
      for (int64_t h = 0; h < problem.q_heads; ++h)
        for (int64_t i = 0; i < problem.seq_q; ++i) {
          const auto row = [&](const char* what) {
            return std::string(what) + " of batch entry " + std::to_string(b) + ", head " +
                   std::to_string(h) + ", query " + std::to_string(i) + " changed";
          };
          const size_t o = size_t(((b * problem.seq_q + i) * problem.q_heads + h) * problem.v_dim()),
                       lse = size_t((b * problem.q_heads + h) * problem.seq_q + i);
          if (!reaches_o(b, h, i) && !std::equal(&clean.o[o], &clean.o[o] + problem.v_dim(), &result.o[o]))
            return row("O");
          if (!reaches_lse(b, h, i) && std::memcmp(&clean.lse[lse], &result.lse[lse], sizeof(float)) != 0)
            return row("LSE");
        }
    return "";
  }
};

// Each head dimension with both types and masks, half of them on one SM.
template <typename Body>
void for_each_base(const Body& body) {
  for (const test::HeadDims& dims : test::head_dims())
    for (const Dtype dtype : {Dtype::fp16, Dtype::bf16})
      for (const bool causal : {false, true}) body(Base(dtype, causal, dims, (dtype == Dtype::fp16) == causal ? 1 : 148));
}

constexpr auto nobody = [](int64_t, int64_t, int64_t) { return false; };

}  // namespace

TEST_CASE("V that is not finite reaches O of its batch entry and KV head alone", "[nonfinite]") {
  for_each_base([](const Base& base) {
    for (const Special& special : kSpecials) {
      // The last key, which all queries but one may not see under the mask, and the first, which all see.
      for (const int64_t key : {base.problem.seq_kv - 1, int64_t(0)}) {
        for (const int64_t entry : {0, 1}) {
          const int64_t kv_head = 1 - entry;
          support::Inputs changed = base.inputs;
          for (const int64_t d : {0, 57}) changed.v[base.v_at(entry, kv_head, key, d)] = base.bits(special);
          INFO(special.name << " in V at key " << key << " of batch entry " << entry);
          CHECK(base.compare(
                    changed,
                    [&](int64_t b, int64_t h, int64_t) {
                      return b == entry && h / base.problem.ratio() == kv_head;
                    },
                    nobody) == "");
        }
      }
    }
  });
}

TEST_CASE("V of whole heads that is NaN leaves the other heads alone", "[nonfinite]") {
  for_each_base([](const Base& base) {
    support::Inputs changed = base.inputs;
    for (int64_t j = 0; j < base.problem.seq_kv; ++j)
      for (int64_t d = 0; d < base.problem.v_dim(); ++d)
        changed.v[base.v_at(0, 1, j, d)] = changed.v[base.v_at(1, 0, j, d)] = 0x7FFF;
    CHECK(base.compare(
              changed, [&](int64_t b, int64_t h, int64_t) { return h / base.problem.ratio() == 1 - b; },
              nobody) == "");
  });
}

TEST_CASE("Q that is not finite reaches its own row", "[nonfinite]") {
  for_each_base([](const Base& base) {
    for (const Special& special : kSpecials) {
      support::Inputs changed = base.inputs;
      changed.q[base.q_at(1, 6, 70, 5)] = base.bits(special);
      const auto own_row = [](int64_t b, int64_t h, int64_t i) { return b == 1 && h == 6 && i == 70; };
      INFO(special.name << " in Q");
      CHECK(base.compare(changed, own_row, own_row) == "");
    }
  });
}

TEST_CASE("K that is not finite reaches the rows that see its key", "[nonfinite]") {
  for_each_base([](const Base& base) {
    const Problem& p = base.problem;
    for (const Special& special : kSpecials) {
      for (const int64_t key : {int64_t(0), p.seq_kv - p.seq_q + 60, p.seq_kv - 1}) {
        support::Inputs changed = base.inputs;
        changed.k[base.k_at(0, 1, key, p.head_dim - 1)] = base.bits(special);
        const auto seeing = [&](int64_t b, int64_t h, int64_t i) {
          return b == 0 && h / p.ratio() == 1 && key < p.visible(b, i).end;
        };
        INFO(special.name << " in K at key " << key);
        CHECK(base.compare(changed, seeing, seeing) == "");
      }
    }
  });
}

TEST_CASE("scores of minus infinity are masked keys", "[nonfinite]") {
  // Column 0 of K is infinite at some keys or at all, the queries have 1, -1 or 0 there: scores of +inf make
  // NaN, of -inf weight 0, and 0 times infinity is NaN.
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16})
    for (const double scale : {0.0, -0.1})
      for (const int64_t period : {1, 3}) {
        const Problem p{dtype, true, 1, 200, 200, 2, 1, scale};
        support::Inputs inputs = support::make_inputs(p, 5);
        for (int64_t i = 0; i < p.seq_q * p.q_heads; ++i)
          inputs.q[size_t(i * p.head_dim)] = support::from_float(dtype, float(i % 7 == 0  ? 0
                                                                            : i % 7 < 4 ? -1
                                                                                        : 1));
        for (int64_t j = 0; j < p.seq_kv; j += period)
          inputs.k[size_t(j * p.head_dim)] = support::from_float(dtype, std::numeric_limits<float>::infinity());
        RunResult result;
        CHECK(test::verify({p, {}, 5}, inputs, &result) == "");
        const auto count = [&](auto is) { return std::count_if(result.lse.begin(), result.lse.end(), is); };
        CHECK(count([](float x) { return std::isnan(x); }) > 0);
        if (period == 1)
          CHECK(count([](float x) { return x == -std::numeric_limits<float>::infinity(); }) > 0);
        if (period == 3) CHECK(count([](float x) { return std::isfinite(x); }) > 0);
      }
}

TEST_CASE("what lies beside the views changes no bit", "[nonfinite]") {
  for (const Dtype dtype : {Dtype::fp16, Dtype::bf16})
    for (const support::Layout layout : {support::Layout::padded, support::Layout::fused_qkv})
      for (const bool causal : {false, true}) {
        const Problem p{dtype, causal, 2, 200, 200, 4, 2, 0};
        const support::Inputs inputs = support::make_inputs(p, 31);
        support::RunOptions options{layout, FA4_SCHEDULER_AUTO, true, 2, 0};
        const RunResult expected = test::device().run(p, inputs, options);
        for (const uint16_t beside : {uint16_t(0x7FFF), support::from_float(dtype, HUGE_VALF),
                                      support::from_float(dtype, -HUGE_VALF), uint16_t(0x3C00)}) {
          options.beside = beside;
          const RunResult result = test::device().run(p, inputs, options);
          CHECK(result.damage == "");
          CHECK((result.o == expected.o));
          CHECK((result.lse == expected.lse));
        }
      }
}
