// SPDX-License-Identifier: Apache-2.0
// What a caller can get wrong of extents, tensors, scale and launch: refused with the right code and a sentence that names the
// field, its value and what would be accepted. The other fields, and head dimensions, are fields_test.cpp's.
#include "runtime/problem.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "problems.h"
#include "runtime/plan.h"
#include "support/catch.h"

using fa4::Message;
using fa4::Problem;
using fa4::test::small_problem;

namespace {

struct Refusal {
  const char* what;
  std::function<void(Problem&)> spoil;
  fa4_status status;
  std::vector<const char*> says;
};

constexpr fa4_status kInvalid = FA4_ERROR_INVALID_ARGUMENT;
constexpr fa4_status kUnsupported = FA4_ERROR_UNSUPPORTED;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Refusal kRefusals[] = {
    {"dtype", [](Problem& p) { p.dtype = 2; }, kUnsupported, {"dtype is 2", "FA4_FP16 (0)", "FA4_BF16 (1)"}},
    {"dtype negative", [](Problem& p) { p.dtype = -1; }, kUnsupported, {"dtype is -1"}},
    {"causal", [](Problem& p) { p.causal = 2; }, kInvalid, {"causal is 2", "0 and 1"}},
    {"causal negative", [](Problem& p) { p.causal = -1; }, kInvalid, {"causal is -1"}},
    {"scheduler", [](Problem& p) { p.scheduler = 3; }, kInvalid, {"scheduler is 3", "FA4_SCHEDULER_LPT (2)"}},
    {"scheduler negative", [](Problem& p) { p.scheduler = -1; }, kInvalid, {"scheduler is -1"}},
    {"exp2", [](Problem& p) { p.exp2 = 3; }, kInvalid, {"exp2 is 3", "FA4_EXP2_POLYNOMIAL (2)"}},
    {"exp2 negative", [](Problem& p) { p.exp2 = -1; }, kInvalid, {"exp2 is -1"}},
    {"batch", [](Problem& p) { p.batch = -1; }, kInvalid, {"batch is -1", "0 to 2147483391"}},
    {"batch huge",
     [](Problem& p) { p.batch = kMost; },
     kUnsupported,
     {"batch is 9223372036854775807", "2147483391"}},
    {"seq_q",
     [](Problem& p) { p.seq_q = kLeast; },
     kInvalid,
     {"seq_q is -9223372036854775808", "0 to 2147483391"}},
    {"seq_q huge",
     [](Problem& p) { p.seq_q = 2147483392; },
     kUnsupported,
     {"seq_q is 2147483392", "2147483391"}},
    {"seq_kv", [](Problem& p) { p.seq_kv = -7; }, kInvalid, {"seq_kv is -7", "0 to"}},
    {"seq_kv huge", [](Problem& p) { p.seq_kv = int64_t{1} << 32; }, kUnsupported, {"seq_kv is 4294967296"}},
    {"q_heads", [](Problem& p) { p.q_heads = 0; }, kInvalid, {"q_heads is 0", "1 to 2147483647"}},
    {"q_heads negative", [](Problem& p) { p.q_heads = -8; }, kInvalid, {"q_heads is -8"}},
    {"kv_heads", [](Problem& p) { p.kv_heads = 0; }, kInvalid, {"kv_heads is 0", "1 to 2147483647"}},
    {"kv_heads huge",
     [](Problem& p) { p.kv_heads = int64_t{1} << 31; },
     kUnsupported,
     {"kv_heads is 2147483648"}},
    {"ratio", [](Problem& p) { p.kv_heads = 3; }, kInvalid, {"q_heads is 8 and kv_heads 3", "multiple"}},
    {"more KV heads",
     [](Problem& p) { p.kv_heads = 16; },
     kInvalid,
     {"q_heads is 8 and kv_heads 16", "multiple"}},
    {"tasks",
     [](Problem& p) { p.batch = 1 << 30, p.seq_q = 64 * 5; },
     kUnsupported,
     {"2 head groups x 5368709120 query blocks of all batch entries", "at most 2147483647"}},

    {"q null",
     [](Problem& p) { p.q.data = 0; },
     kInvalid,
     {"q.data is null", "device address", "2 x 100 x 8 x 128"}},
    {"k null", [](Problem& p) { p.k.data = 0; }, kInvalid, {"k.data is null", "2 x 200 x 2 x 128"}},
    {"v null", [](Problem& p) { p.v.data = 0; }, kInvalid, {"v.data is null"}},
    {"o null", [](Problem& p) { p.o.data = 0; }, kInvalid, {"o.data is null"}},
    {"q misaligned",
     [](Problem& p) { p.q.data += 8; },
     kInvalid,
     {"q.data is 0x7f0000000008", "multiple of 16"}},
    {"k misaligned",
     [](Problem& p) { p.k.data += 2; },
     kInvalid,
     {"k.data is 0x7f1000000002", "multiple of 16"}},
    {"v misaligned", [](Problem& p) { p.v.data += 1; }, kInvalid, {"v.data is 0x7f2000000001"}},
    {"o misaligned", [](Problem& p) { p.o.data += 4; }, kInvalid, {"o.data is 0x7f3000000004"}},
    {"seq_stride",
     [](Problem& p) { p.q.seq_stride = 1028; },
     kInvalid,
     {"q.seq_stride is 1028", "multiple of 8 (16 bytes)"}},
    {"head_stride",
     [](Problem& p) { p.k.head_stride = 129; },
     kInvalid,
     {"k.head_stride is 129", "multiple of 8"}},
    {"batch_stride",
     [](Problem& p) { p.v.batch_stride = 7; },
     kInvalid,
     {"v.batch_stride is 7", "multiple of 8"}},
    {"negative stride",
     [](Problem& p) { p.v.seq_stride = -256; },
     kInvalid,
     {"v.seq_stride is -256", "from 0 to"}},
    {"least stride",
     [](Problem& p) { p.o.head_stride = kLeast; },
     kInvalid,
     {"o.head_stride is -9223372036854775808"}},
    {"huge stride",
     [](Problem& p) { p.k.batch_stride = int64_t{1} << 39; },
     kInvalid,
     {"k.batch_stride is 549755813888", "to 549755813880"}},
    {"beyond the address space",
     [](Problem& p) { p.q.data = 0xfffffffffffff000; },
     kInvalid,
     {"q.data is 0xfffffffffffff000", "64-bit address space"}},
    {"strides beyond the address space",
     [](Problem& p) { p.seq_kv = 1 << 30, p.k.seq_stride = (int64_t{1} << 39) - 8; },
     kInvalid,
     {"k.data is 0x7f1000000000", "last element of k", "64-bit address space"}},
    {"o broadcast", [](Problem& p) { p.o.batch_stride = 0; }, kInvalid, {"o.batch_stride is 0", "at least"}},
    {"o overlap of rows",
     [](Problem& p) { p.o.head_stride = 64; },
     kInvalid,
     {"o.head_stride is 64", "spans 128", "at least"}},
    {"o overlap of batches",
     [](Problem& p) { p.o.batch_stride -= 8; },
     kInvalid,
     {"o.batch_stride is 102392", "spans 102400"}},

    {"lse misaligned", [](Problem& p) { p.lse += 2; }, kInvalid, {"lse is 0x7f4000000002", "multiple of 4"}},
    {"lse_batch_stride",
     [](Problem& p) { p.lse_batch_stride = -1; },
     kInvalid,
     {"lse_batch_stride is -1", "0 or more"}},
    {"lse_head_stride",
     [](Problem& p) { p.lse_head_stride = kLeast; },
     kInvalid,
     {"lse_head_stride is -922337203685"}},
    {"lse overlap",
     [](Problem& p) { p.lse_head_stride = 99; },
     kInvalid,
     {"lse_head_stride is 99", "spans 100"}},
    {"lse broadcast",
     [](Problem& p) { p.lse_batch_stride = 0; },
     kInvalid,
     {"lse_batch_stride is 0", "at least"}},
    {"lse beyond the address space",
     [](Problem& p) { p.lse_batch_stride = kMost; },
     kInvalid,
     {"lse is 0x7f4000000000", "64-bit address space"}},

    {"scale NaN",
     [](Problem& p) { p.softmax_scale = NAN; },
     kInvalid,
     {"softmax_scale is nan", "magnitude from"}},
    {"scale infinite", [](Problem& p) { p.softmax_scale = -kInfinity; }, kInvalid, {"softmax_scale is -inf"}},
    {"scale subnormal",
     [](Problem& p) { p.softmax_scale = 1e-38; },
     kInvalid,
     {"softmax_scale is 1e-38", "1.17549435e-38"}},
    {"scale huge",
     [](Problem& p) { p.softmax_scale = -3e38; },
     kInvalid,
     {"softmax_scale is -3e+38", "2.35865"}},
    {"max_ctas", [](Problem& p) { p.max_ctas = -1; }, kInvalid, {"max_ctas is -1", "0 (one for each SM"}},
};

fa4_status check(const Problem& problem, std::string& sentence) {
  Message message;
  fa4::CheckedProblem checked;
  const fa4_status status = fa4::check_problem(problem, fa4::blackwell::kKernels, checked, message);
  sentence = message.text();
  return status;
}

bool accepted(const Problem& problem) {
  std::string sentence;
  const bool ok = check(problem, sentence) == FA4_OK;
  INFO(sentence);
  CHECK(ok == sentence.empty());
  return ok;
}

}  // namespace

TEST_CASE("a wrong field is refused by name, value and remedy", "[runtime]") {
  REQUIRE(accepted(small_problem()));
  for (const Refusal& refusal : kRefusals) {
    Problem problem = small_problem();
    refusal.spoil(problem);
    std::string sentence;
    const fa4_status status = check(problem, sentence);
    INFO(refusal.what << ": " << sentence);
    CHECK(status == refusal.status);
    for (const char* part : refusal.says) {
      INFO("expected: " << part);
      CHECK(sentence.find(part) != std::string::npos);
    }
  }
}

TEST_CASE("what is wrong is refused also when there is nothing to compute", "[runtime]") {
  for (const Refusal& refusal : kRefusals) {
    const std::string what = refusal.what;
    for (bool empty_batch : {false, true}) {
      Problem problem = small_problem();
      refusal.spoil(problem);
      if (problem.batch > 0 && empty_batch) problem.batch = 0;
      if (problem.seq_q > 0 && !empty_batch) problem.seq_q = 0;
      const bool about_elements = what.find("null") != std::string::npos ||
                                  what.find("beyond") != std::string::npos ||
                                  what.find("overlap") != std::string::npos ||
                                  what.find("broadcast") != std::string::npos || what == "tasks";
      // Without a batch there is no batch stride; with seq_q = 0, K and V still have theirs.
      const bool about_batch = what.find("batch") != std::string::npos || what == "huge stride" || what == "seq_stride";
      if (about_elements || about_batch || what.find("huge") != std::string::npos) continue;
      INFO(what);
      std::string sentence;
      CHECK(check(problem, sentence) == refusal.status);
    }
  }
}

TEST_CASE("what is unusual but right is accepted", "[runtime]") {
  Problem problem = small_problem();
  SECTION("strides of extent 1 are ignored") {
    problem = fa4::test::dense_problem({.batch = 1, .seq_q = 1, .seq_kv = 1, .q_heads = 1, .kv_heads = 1});
    for (fa4_tensor* tensor : {&problem.q, &problem.k, &problem.v, &problem.o}) {
      tensor->batch_stride = -1, tensor->seq_stride = kMost, tensor->head_stride = 3;
    }
    problem.lse_batch_stride = problem.lse_head_stride = -5;
    CHECK(accepted(problem));
  }
  SECTION("broadcast inputs") {
    problem.q.head_stride = problem.k.batch_stride = problem.v.seq_stride = problem.v.head_stride = 0;
    CHECK(accepted(problem));
  }
  SECTION("no keys: K and V may be null") {
    problem.seq_kv = 0;
    problem.k.data = problem.v.data = 0;
    CHECK(accepted(problem));
  }
  SECTION("an empty batch: everything may be null") {
    problem.batch = 0;
    problem.q.data = problem.k.data = problem.v.data = problem.o.data = problem.lse = 0;
    CHECK(accepted(problem));
  }
  SECTION("no LSE: its strides are ignored") {
    problem.set_lse(0, -1, -1);
    CHECK(accepted(problem));
  }
  SECTION("a slice of fused QKV, and head-major O") {
    problem.q_heads = problem.kv_heads = 4;
    const fa4::Strides fused{100 * 3 * 512, 3 * 512, 128};
    problem.seq_kv = 100;
    problem.set_q(0x1000, fused).set_k(0x1000 + 1024, fused).set_v(0x1000 + 2048, fused);
    problem.set_o(fa4::test::kOAddress, fa4::Strides::bhsd(100, 4));
    CHECK(accepted(problem));
  }
  SECTION("scales at the limits") {
    for (double scale : {1.1754943508222875e-38, -2.3586e38, -0.0, 1e-3, -1.0}) {
      problem.softmax_scale = scale;
      CHECK(accepted(problem));
    }
  }
  SECTION("the last byte of the address space") {
    problem = fa4::test::dense_problem({.batch = 1, .seq_q = 1, .seq_kv = 1, .q_heads = 1, .kv_heads = 1});
    problem.q.data = 0xffffffffffffff00;
    CHECK(accepted(problem));
    problem.q.data = 0xffffffffffffff10;
    CHECK_FALSE(accepted(problem));
  }
}

TEST_CASE("an accepted O or LSE never writes an address twice", "[runtime]") {
  std::mt19937_64 random(1);
  const auto pick = [&](int64_t most) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1));
  };
  int taken = 0, wrong = 0;
  for (int round = 0; round < 4000; ++round) {
    Problem problem = fa4::test::dense_problem(
        {.batch = 1 + pick(2), .seq_q = 1 + pick(3), .seq_kv = 1, .q_heads = 1 + pick(2)});
    problem.o.batch_stride = 8 * pick(160);
    problem.o.seq_stride = 8 * pick(80);
    problem.o.head_stride = 8 * pick(80);
    problem.lse_batch_stride = pick(20);
    problem.lse_head_stride = pick(8);
    const bool ok = accepted(problem);
    std::set<int64_t> o, lse;
    bool twice = false;
    for (int64_t b = 0; b < problem.batch; ++b) {
      for (int64_t h = 0; h < problem.q_heads; ++h) {
        for (int64_t s = 0; s < problem.seq_q; ++s) {
          const int64_t row =
              b * problem.o.batch_stride + s * problem.o.seq_stride + h * problem.o.head_stride;
          for (int64_t d = 0; d < 128; d += 8) twice |= !o.insert(row + d).second;
          twice |= !lse.insert(b * problem.lse_batch_stride + h * problem.lse_head_stride + s).second;
        }
      }
    }
    taken += ok;
    wrong += ok && twice;
  }
  CHECK(taken > 200);
  CHECK(wrong == 0);
}

TEST_CASE("any bits give a plan that the driver takes, or a sentence", "[runtime]") {
  std::mt19937_64 random(2);
  const auto any = [&]() -> int64_t {
    switch (random() % 6) {
      case 0:
        return static_cast<int64_t>(random());
      case 1:
        return static_cast<int64_t>(random() % 5);
      case 2:
        return static_cast<int64_t>(random() % 4096) * 128;
      case 3:
        return int64_t{1} << (random() % 63);
      case 4:
        return kMost - static_cast<int64_t>(random() % 3);
      default:
        return static_cast<int64_t>(random() % 1024);
    }
  };
  int planned = 0, wrong = 0;
  for (int round = 0; round < 200000; ++round) {
    Problem problem = small_problem();
    int64_t* fields[] = {&problem.batch,          &problem.seq_q,         &problem.seq_kv,
                         &problem.q_heads,        &problem.kv_heads,      &problem.q.batch_stride,
                         &problem.q.seq_stride,   &problem.q.head_stride, &problem.k.batch_stride,
                         &problem.k.seq_stride,   &problem.k.head_stride, &problem.o.batch_stride,
                         &problem.o.seq_stride,   &problem.o.head_stride, &problem.lse_batch_stride,
                         &problem.lse_head_stride};
    for (unsigned i = 0, changes = 1 + random() % 4; i < changes; ++i)
      *fields[random() % std::size(fields)] = any();
    if (random() % 8 == 0) problem.q.data = static_cast<uint64_t>(any());
    if (random() % 4 == 0) {
      int32_t* choices[] = {&problem.causal, &problem.diagonal_alignment, &problem.window, &problem.num_splits};
      int64_t* numbers[] = {&problem.total_q,     &problem.total_k,     &problem.head_dim_v,   &problem.block_table_stride,
                            &problem.page_size,   &problem.num_pages,   &problem.window_left,  &problem.window_right,
                            &problem.alibi_batch_stride};
      uint64_t* arrays[] = {&problem.cu_seqlens_q, &problem.cu_seqlens_k, &problem.seqused_q,   &problem.seqused_k,
                            &problem.block_table,  &problem.sinks,        &problem.alibi_slopes};
      for (int32_t* choice : choices) *choice = static_cast<int32_t>(random() % 2);
      for (int64_t* number : numbers)
        if (random() % 8 == 0) *number = any();
      for (uint64_t* array : arrays)
        if (random() % 16 == 0) *array = static_cast<uint64_t>(any());
      if (problem.window) problem.window_left = any(), problem.window_right = any();
    }
    Message message;
    fa4::Plan plan;
    const fa4_status status = fa4::plan_forward(problem, {&fa4::blackwell::kKernels, 148}, plan, message);
    if (status != FA4_OK) {
      wrong += message.text()[0] == '\0';
      continue;
    }
    if (plan.grid == 0) continue;
    ++planned;
    for (const auto& [map, name] :
         {std::pair{&plan.q, "q"}, {&plan.k, "k"}, {&plan.v, "v"}, {&plan.o, "o"}}) {
      wrong += fa4::check_tensor_map(*map, name, message) != FA4_OK;
    }
    wrong += plan.grid > 148 || plan.params.order.task_count < 1 || plan.params.order.section_groups.value < 1;
  }
  CHECK(planned > 1000);
  CHECK(wrong == 0);
}
