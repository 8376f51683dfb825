// SPDX-License-Identifier: Apache-2.0
// Masks, packed lengths, pages, splits, softcap, sinks and ALiBi as fields: a wrong value is refused by name, a right one of what is
// not built too and with another code, and a mask gets the plan of the simplest kernel that shows each query its keys.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "plans.h"
#include "problems.h"
#include "runtime/problem.h"
#include "support/catch.h"

using fa4::KernelList;
using fa4::MaskKind;
using fa4::Message;
using fa4::Plan;
using fa4::Problem;
using fa4::test::dense_problem;
using fa4::test::kArrayAddress;
using fa4::test::small_problem;

namespace {

constexpr fa4_status kInvalid = FA4_ERROR_INVALID_ARGUMENT, kUnsupported = FA4_ERROR_UNSUPPORTED;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Refusal {
  std::function<void(Problem&)> spoil;
  fa4_status status;
  std::string sentence;
};

// Of small_problem(): batch 2, seq_q 100, seq_kv 200, 8 query heads, 2 KV heads, head dimension 128.
const Refusal kRefusals[] = {
    {[](Problem& p) { p.diagonal_alignment = 2; }, kInvalid,
     "diagonal_alignment is 2; FA4_DIAGONAL_BOTTOM_RIGHT (0) and FA4_DIAGONAL_TOP_LEFT (1) are accepted"},
    {[](Problem& p) { p.diagonal_alignment = -1; }, kInvalid,
     "diagonal_alignment is -1; FA4_DIAGONAL_BOTTOM_RIGHT (0) and FA4_DIAGONAL_TOP_LEFT (1) are accepted"},

    {[](Problem& p) { p.window = 2; }, kInvalid, "window is 2; 0 (none) and 1 (of window_left and window_right) are accepted"},
    {[](Problem& p) { p.window = -1; }, kInvalid, "window is -1; 0 (none) and 1 (of window_left and window_right) are accepted"},
    {[](Problem& p) { p.window_left = 16; }, kInvalid, "window_left is 16 and window is 0; without window it must be 0"},
    {[](Problem& p) { p.window_left = -1; }, kInvalid, "window_left is -1 and window is 0; without window it must be 0"},
    {[](Problem& p) { p.window_right = kMost; }, kInvalid,
     "window_right is 9223372036854775807 and window is 0; without window it must be 0"},
    {[](Problem& p) { p.set_window(-2, -1); }, kInvalid, "window_left is -2; -1 (no bound) or more is accepted"},
    {[](Problem& p) { p.set_window(0, kLeast); }, kInvalid,
     "window_right is -9223372036854775808; -1 (no bound) or more is accepted"},

    {[](Problem& p) { p.set_num_splits(-2); }, kInvalid, "num_splits is -2; -1 (the library chooses), 0 and 1 (one) are supported"},
    {[](Problem& p) { p.set_num_splits(2); }, kUnsupported, "num_splits is 2; -1 (the library chooses), 0 and 1 (one) are supported"},

    {[](Problem& p) { p.head_dim = 0; }, kInvalid, "head_dim is 0; multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim = -64; }, kInvalid, "head_dim is -64; multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim = kLeast; }, kInvalid, "head_dim is -9223372036854775808; multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim = 4; }, kUnsupported, "head_dim is 4; multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim = 100; }, kUnsupported, "head_dim is 100; multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim = 264; }, kUnsupported, "head_dim is 264; multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim = kMost; }, kUnsupported,
     "head_dim is 9223372036854775807; multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim = 264, p.head_dim_v = 64; }, kUnsupported,
     "head_dim is 264; multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim_v = -8; }, kInvalid,
     "head_dim_v is -8; 0 (that of Q and K) and multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim_v = kLeast; }, kInvalid,
     "head_dim_v is -9223372036854775808; 0 (that of Q and K) and multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim_v = 4; }, kUnsupported,
     "head_dim_v is 4; 0 (that of Q and K) and multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim_v = 100; }, kUnsupported,
     "head_dim_v is 100; 0 (that of Q and K) and multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim_v = 264; }, kUnsupported,
     "head_dim_v is 264; 0 (that of Q and K) and multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim_v = kMost; }, kUnsupported,
     "head_dim_v is 9223372036854775807; 0 (that of Q and K) and multiples of 8 from 8 to 256 are supported"},
    {[](Problem& p) { p.head_dim = 192, p.head_dim_v = 264; }, kUnsupported,
     "head_dim_v is 264; 0 (that of Q and K) and multiples of 8 from 8 to 256 are supported"},

    {[](Problem& p) { p.set_packed_q(kArrayAddress + 2, 150); }, kInvalid,
     "cu_seqlens_q is 0x7f5000000002; a multiple of 4 bytes is needed"},
    {[](Problem& p) { p.set_packed_q(0xfffffffffffffff8, 150); }, kInvalid,
     "cu_seqlens_q is 0xfffffffffffffff8, and the strides put the last element of cu_seqlens_q beyond the 64-bit address space; every "
     "element must lie within it"},
    {[](Problem& p) { p.set_packed_q(kArrayAddress, -1); }, kInvalid, "total_q is -1; 0 to 2147483391 are accepted"},
    {[](Problem& p) { p.set_packed_q(kArrayAddress, 2147483392); }, kUnsupported, "total_q is 2147483392; 0 to 2147483391 are accepted"},
    {[](Problem& p) { p.set_packed_q(0, 150); }, kInvalid, "total_q is 150 and cu_seqlens_q is 0; without cu_seqlens_q it must be 0"},
    {[](Problem& p) { p.set_packed_k(kArrayAddress + 1, 150); }, kInvalid,
     "cu_seqlens_k is 0x7f5000000001; a multiple of 4 bytes is needed"},
    {[](Problem& p) { p.set_packed_k(kArrayAddress, kLeast); }, kInvalid,
     "total_k is -9223372036854775808; 0 to 2147483391 are accepted"},
    {[](Problem& p) { p.set_packed_k(kArrayAddress, kMost); }, kUnsupported,
     "total_k is 9223372036854775807; 0 to 2147483391 are accepted"},
    {[](Problem& p) { p.set_packed_k(0, 7); }, kInvalid, "total_k is 7 and cu_seqlens_k is 0; without cu_seqlens_k it must be 0"},
    {[](Problem& p) { p.set_seqused_q(3); }, kInvalid, "seqused_q is 0x3; a multiple of 4 bytes is needed"},
    {[](Problem& p) { p.set_seqused_k(kArrayAddress + 6); }, kInvalid, "seqused_k is 0x7f5000000006; a multiple of 4 bytes is needed"},

    {[](Problem& p) { p.set_pages(kArrayAddress, 13, 16, 30); }, kUnsupported, "block_table is 0x7f5000000000; 0 (none) is supported"},
    {[](Problem& p) { p.set_pages(kArrayAddress + 2, 13, 16, 30); }, kInvalid,
     "block_table is 0x7f5000000002; a multiple of 4 bytes is needed"},
    {[](Problem& p) { p.set_pages(kArrayAddress, kMost, 16, 30); }, kInvalid,
     "block_table is 0x7f5000000000, and the strides put the last element of block_table beyond the 64-bit address space; every "
     "element must lie within it"},
    {[](Problem& p) { p.set_pages(kArrayAddress, -13, 16, 30); }, kInvalid, "block_table_stride is -13; 0 or more is accepted"},
    {[](Problem& p) { p.set_pages(kArrayAddress, 13, 0, 30); }, kInvalid, "page_size is 0; 1 to 2147483391 are accepted"},
    {[](Problem& p) { p.set_pages(kArrayAddress, 13, kMost, 30); }, kUnsupported,
     "page_size is 9223372036854775807; 1 to 2147483391 are accepted"},
    {[](Problem& p) { p.set_pages(kArrayAddress, 13, 16, 0); }, kInvalid, "num_pages is 0; 1 to 2147483647 are accepted"},
    {[](Problem& p) { p.set_pages(kArrayAddress, 13, 16, int64_t{1} << 31); }, kUnsupported,
     "num_pages is 2147483648; 1 to 2147483647 are accepted"},
    {[](Problem& p) { p.set_pages(0, 13, 0, 0); }, kInvalid,
     "block_table_stride is 13 and block_table is 0; without block_table it must be 0"},
    {[](Problem& p) { p.set_pages(0, 0, 16, 0); }, kInvalid, "page_size is 16 and block_table is 0; without block_table it must be 0"},
    {[](Problem& p) { p.set_pages(0, 0, 0, 30); }, kInvalid, "num_pages is 30 and block_table is 0; without block_table it must be 0"},
    {[](Problem& p) { p.set_pages(kArrayAddress, 13, 16, 30).set_packed_k(kArrayAddress + 1024, 150); }, kInvalid,
     "cu_seqlens_k is 0x7f5000000400 and block_table 0x7f5000000000; keys lie behind each other or in pages: one of them must be 0, and "
     "seqused_k says how many keys of its pages an entry has"},

    {[](Problem& p) { p.set_softcap(-30); }, kInvalid, "softcap is -30; 0 (none) or 1.17549435e-38 to 2.35865749e+38 are accepted"},
    {[](Problem& p) { p.set_softcap(NAN); }, kInvalid, "softcap is nan; 0 (none) or 1.17549435e-38 to 2.35865749e+38 are accepted"},
    {[](Problem& p) { p.set_softcap(kInfinity); }, kInvalid, "softcap is inf; 0 (none) or 1.17549435e-38 to 2.35865749e+38 are accepted"},
    {[](Problem& p) { p.set_softcap(3e38); }, kInvalid, "softcap is 3e+38; 0 (none) or 1.17549435e-38 to 2.35865749e+38 are accepted"},
    {[](Problem& p) { p.set_softcap(1e-40); }, kInvalid, "softcap is 1e-40; 0 (none) or 1.17549435e-38 to 2.35865749e+38 are accepted"},
    {[](Problem& p) { p.set_softcap(1e8).set_softmax_scale(1e-30); }, kInvalid,
     "softcap is 1e+08 with a softmax scale of 1e-30; 0 (none) or 1.17549435e-38 to 85070591.7 are accepted"},
    {[](Problem& p) { p.set_softcap(1e-9).set_softmax_scale(-1e30); }, kInvalid,
     "softcap is 1e-09 with a softmax scale of -1e+30; 0 (none) or 2.93873605e-09 to 2.35865749e+38 are accepted"},
    {[](Problem& p) { p.set_softcap(30).set_alibi_slopes(kArrayAddress); }, kUnsupported,
     "softcap is 30 and alibi_slopes 0x7f5000000000; one of them must be 0"},
    {[](Problem& p) { p.set_sinks(kArrayAddress + 1); }, kInvalid, "sinks is 0x7f5000000001; a multiple of 4 bytes is needed"},
    {[](Problem& p) { p.set_alibi_slopes(kArrayAddress + 2); }, kInvalid, "alibi_slopes is 0x7f5000000002; a multiple of 4 bytes is needed"},
    {[](Problem& p) { p.set_alibi_slopes(kArrayAddress, -8); }, kInvalid, "alibi_batch_stride is -8; 0 or more is accepted"},
    {[](Problem& p) { p.set_alibi_slopes(kArrayAddress, kMost); }, kInvalid,
     "alibi_slopes is 0x7f5000000000, and the strides put the last element of alibi_slopes beyond the 64-bit address space; every "
     "element must lie within it"},
    {[](Problem& p) { p.set_alibi_slopes(0, 8); }, kInvalid,
     "alibi_batch_stride is 8 and alibi_slopes is 0; without alibi_slopes it must be 0"},

    // Strides that have little in common.
    {[](Problem& p) { p.set_window(16, -1), p.k.seq_stride = 264, p.k.batch_stride = int64_t{1} << 38; }, kUnsupported,
     "k.batch_stride is 274877906944 elements and k.seq_stride 264; their greatest common divisor, 8, lies 34359744969 times in all that "
     "they span, and 2147483647 are supported"},
    {[](Problem& p) { p.set_seqused_k(kArrayAddress), p.o.seq_stride = 1032, p.o.batch_stride = (int64_t{1} << 34) - 8; }, kUnsupported,
     "o.batch_stride is 17179869176 elements and o.seq_stride 1032; their greatest common divisor, 8, lies 2147496548 times in all that "
     "they span, and 2147483647 are supported"},
};

fa4_status check(const Problem& problem, const KernelList& kernels, std::string& sentence) {
  Message message;
  fa4::CheckedProblem checked;
  const fa4_status status = fa4::check_problem(problem, kernels, checked, message);
  sentence = message.text();
  return status;
}

Plan plan_of(const Problem& problem, const KernelList& kernels = fa4::hopper::kKernels) {
  Plan plan;
  Message message;
  const fa4_status status = fa4::plan_forward(problem, {&kernels, 132}, plan, message);
  INFO(message.text());
  REQUIRE(status == FA4_OK);
  return plan;
}

bool same_plan(const Problem& a, const Problem& b) {
  return std::all_of(std::begin(fa4::kArchitectures), std::end(fa4::kArchitectures),
                     [&](const KernelList* kernels) { return fa4::test::same_plan(plan_of(a, *kernels), plan_of(b, *kernels)); });
}

// By the definition in fa4.h.
bool sees(const Problem& p, int64_t i, int64_t j) {
  const int64_t off = p.diagonal_alignment == FA4_DIAGONAL_TOP_LEFT ? 0 : p.seq_kv - p.seq_q;
  if (p.causal && j > i + off) return false;
  if (!p.window) return true;
  return (p.window_left < 0 || i + off - p.window_left <= j) && (p.window_right < 0 || j <= i + off + p.window_right);
}

// Whether each query sees the keys that a kernel with this mask shows it.
bool seen_by(const Problem& p, MaskKind kind) {
  for (int64_t i = 0; i < p.seq_q; ++i)
    for (int64_t j = 0; j < p.seq_kv; ++j)
      if (sees(p, i, j) != (kind == MaskKind::full || j <= i + p.seq_kv - p.seq_q)) return false;
  return true;
}

}  // namespace

TEST_CASE("a field that is wrong, or not built, is refused by name on every architecture", "[runtime]") {
  for (const Refusal& refusal : kRefusals) {
    for (const KernelList* kernels : fa4::kArchitectures) {
      Problem problem = small_problem();
      refusal.spoil(problem);
      std::string sentence;
      const fa4_status status = check(problem, *kernels, sentence);
      CHECK(sentence == refusal.sentence);
      CHECK(status == refusal.status);
    }
  }
}

TEST_CASE("pages are refused before tensors are looked at", "[runtime]") {
  Problem problem = small_problem();
  problem.set_pages(kArrayAddress, 13, 16, 30);
  problem.k.batch_stride = problem.v.batch_stride = 3;
  std::string sentence;
  CHECK(check(problem, fa4::blackwell::kKernels, sentence) == kUnsupported);
  CHECK(sentence == "block_table is 0x7f5000000000; 0 (none) is supported");
}

TEST_CASE("packed tensors have no batch stride, and the rows that are said", "[runtime]") {
  // As a caller leaves them who packs.
  Problem problem = small_problem();
  problem.set_packed_q(kArrayAddress, 150).set_packed_k(kArrayAddress, 350).set_lse(fa4::test::kLseAddress);
  problem.q.batch_stride = problem.o.batch_stride = problem.lse_batch_stride = -1;
  problem.k.batch_stride = problem.v.batch_stride = 3;
  std::string sentence;
  CHECK(check(problem, fa4::blackwell::kKernels, sentence) == FA4_OK);
  CHECK(sentence == "");
  CHECK(check(Problem(problem).set_lse(fa4::test::kLseAddress, 0, 149), fa4::blackwell::kKernels, sentence) == kInvalid);
  CHECK(sentence == "lse_head_stride is 149 elements, but what is nested inside spans 150; lse is written, so it must be at least that, "
                    "for elements that do not overlap");
  problem.k.data = 0;
  CHECK(check(problem, fa4::blackwell::kKernels, sentence) == kInvalid);
  CHECK(sentence == "k.data is null; a device address is needed for 1 x 350 x 2 x 128 elements");
  problem.total_k = 0;
  CHECK(check(problem, fa4::blackwell::kKernels, sentence) == FA4_OK);
  problem.q.data = 0;
  CHECK(check(problem, fa4::blackwell::kKernels, sentence) == kInvalid);
  problem.total_q = 0;
  CHECK(check(problem, fa4::blackwell::kKernels, sentence) == FA4_OK);
}

TEST_CASE("strides that have little in common are no matter to a kernel that is not general", "[runtime]") {
  Problem problem = small_problem();
  problem.k.seq_stride = 264, problem.k.batch_stride = int64_t{1} << 38;
  std::string sentence;
  CHECK(check(problem, fa4::hopper::kKernels, sentence) == FA4_OK);
  // Nor to a general one, of a dimension that has one element.
  problem.set_window(16, -1);
  CHECK(check(problem, fa4::hopper::kKernels, sentence) == kUnsupported);
  Problem single = problem;
  single.batch = 1;
  CHECK(check(single, fa4::hopper::kKernels, sentence) == FA4_OK);
  single = problem;
  single.set_packed_k(kArrayAddress, 300);
  CHECK(check(single, fa4::hopper::kKernels, sentence) == FA4_OK);
  // The last place there may be: 8 elements apart, 37 * 200 of rows and as many as are left of entries.
  problem.k.seq_stride = 8 * 37;
  problem.k.batch_stride = 8 * (fa4::kMaxPlaces - 1 - 37 * 200);
  CHECK(check(problem, fa4::hopper::kKernels, sentence) == FA4_OK);
  problem.k.batch_stride += 8;
  CHECK(check(problem, fa4::hopper::kKernels, sentence) == kUnsupported);
}

TEST_CASE("what amounts to a full or a causal mask gets its plan", "[runtime]") {
  const Problem full = small_problem(), causal = Problem(full).set_causal();
  REQUIRE_FALSE(same_plan(full, causal));
  CHECK(same_plan(Problem(full).set_window(-1, -1), full));
  CHECK(same_plan(Problem(full).set_window(199, 99), full));
  CHECK(same_plan(Problem(full).set_window(kMost, kMost), full));
  CHECK(same_plan(Problem(full).set_window(-1, 0), causal));
  CHECK(same_plan(Problem(full).set_window(199, 0), causal));
  CHECK(same_plan(Problem(causal).set_window(-1, -1), causal));
  CHECK(same_plan(Problem(causal).set_window(-1, 50), causal));
  CHECK(same_plan(Problem(full).set_diagonal_alignment(FA4_DIAGONAL_TOP_LEFT), full));
  CHECK(same_plan(Problem(full).set_diagonal_alignment(FA4_DIAGONAL_TOP_LEFT).set_window(99, 199), full));
  CHECK(same_plan(Problem(full).set_diagonal_alignment(FA4_DIAGONAL_TOP_LEFT).set_window(99, 100), causal));
  const Problem square = dense_problem({.batch = 2, .seq_q = 100, .seq_kv = 100, .q_heads = 8, .kv_heads = 2});
  const Problem square_causal = Problem(square).set_causal();
  CHECK(same_plan(Problem(square_causal).set_diagonal_alignment(FA4_DIAGONAL_TOP_LEFT), square_causal));
  // A causal problem of one query keeps its kernel, though its mask hides nothing.
  const Problem one = dense_problem({.batch = 2, .seq_q = 1, .seq_kv = 100}).set_causal();
  CHECK(plan_of(one).kernel->config.mask == MaskKind::causal);
}

TEST_CASE("a mask gets the full or the causal kernel exactly when that shows each query its keys", "[runtime]") {
  int simple = 0, bands = 0, wrong = 0;
  for (int64_t seq_q = 1; seq_q <= 4; ++seq_q)
    for (int64_t seq_kv = 0; seq_kv <= 4; ++seq_kv)
      for (int64_t left = -1; left <= 6; ++left)
        for (int64_t right = -1; right <= 6; ++right)
          for (const bool causal : {false, true})
            for (const auto alignment : {FA4_DIAGONAL_BOTTOM_RIGHT, FA4_DIAGONAL_TOP_LEFT}) {
              Problem problem = dense_problem({.batch = 2, .seq_q = seq_q, .seq_kv = seq_kv});
              problem.set_causal(causal).set_diagonal_alignment(alignment).set_window(left, right);
              const bool possible = seen_by(problem, MaskKind::full) || seen_by(problem, MaskKind::causal);
              const Plan plan = plan_of(problem);
              const MaskKind mask = plan.kernel->config.mask;
              wrong += (mask != MaskKind::band) != possible;
              if (mask != MaskKind::band) {
                ++simple;
                wrong += !seen_by(problem, mask);
                continue;
              }
              ++bands;
              const fa4::GeneralParams& general = plan.params.general;
              const fa4::Mask<MaskKind::band> band{general.left, general.right, general.top_left != 0};
              for (int64_t i = 0; i < seq_q; ++i)
                for (int64_t j = 0; j < seq_kv; ++j) {
                  const fa4::KeyRange keys = band.keys(int32_t(i), int32_t(seq_q), int32_t(seq_kv));
                  wrong += sees(problem, i, j) != (keys.begin <= j && j < keys.end);
                }
            }
  CHECK(wrong == 0);
  CHECK(simple > 1000);
  CHECK(bands > 1000);
}

TEST_CASE("lengths of entries, a cap, sinks and slopes ask for the general kernel, whatever the mask", "[runtime]") {
  void (*const options[])(Problem&) = {
      [](Problem& p) { p.set_packed_q(kArrayAddress, 150).set_lse(fa4::test::kLseAddress); },
      [](Problem& p) { p.set_packed_k(kArrayAddress, 350); },
      [](Problem& p) { p.set_seqused_q(kArrayAddress); },
      [](Problem& p) { p.set_seqused_k(kArrayAddress); },
      [](Problem& p) { p.set_softcap(30); },
      [](Problem& p) { p.set_sinks(kArrayAddress); },
      [](Problem& p) { p.set_alibi_slopes(kArrayAddress); },
  };
  for (const KernelList* kernels : fa4::kArchitectures)
    for (const bool causal : {false, true})
      for (const auto& [dim, v_dim] : std::array<std::array<int64_t, 2>, 5>{{{64, 64}, {96, 96}, {128, 128}, {192, 128}, {256, 256}}})
        for (const auto& option : options) {
          Problem problem = small_problem(dim, v_dim);
          CHECK_FALSE(plan_of(problem.set_causal(causal), *kernels).kernel->config.general());
          option(problem);
          const fa4::Config& config = plan_of(problem, *kernels).kernel->config;
          CHECK(config.general());
          CHECK(config.qk_dim == dim);
          CHECK(config.v_dim == v_dim);
          CHECK(config.exp2 == kernels->exp2);
        }
}

TEST_CASE("one split, and a head dimension of V that is that of Q, are what there is without them", "[runtime]") {
  const Problem plain = small_problem();
  for (const int32_t splits : {-1, 0, 1}) CHECK(same_plan(Problem(plain).set_num_splits(splits), plain));
  Problem same = plain;
  same.head_dim_v = 128;
  CHECK(same_plan(same, plain));
  CHECK(same_plan(Problem(plain).set_softcap(-0.0), plain));
}

TEST_CASE("V and O may have a head dimension of their own", "[runtime]") {
  const Problem problem = small_problem(192, 128);
  CHECK(problem.q.head_stride == 192);
  CHECK(problem.k.head_stride == 192);
  CHECK(problem.v.head_stride == 128);
  CHECK(problem.o.head_stride == 128);
  for (const KernelList* kernels : fa4::kArchitectures) {
    const Plan plan = plan_of(problem, *kernels);
    CHECK(plan.kernel->config.qk_dim == 192);
    CHECK(plan.kernel->config.v_dim == 128);
    CHECK(plan.q.extents[3] == 3);
    CHECK(plan.k.extents[3] == 3);
    CHECK(plan.v.extents[3] == 2);
    CHECK(plan.o.extents[3] == 2);
    CHECK(plan.params.scale == float(1 / std::sqrt(192.0)));

    // Either side has the strides and the addresses that its own head dimension needs.
    std::string sentence;
    Problem spoiled = problem;
    spoiled.o.head_stride = 120;
    CHECK(check(spoiled, *kernels, sentence) == kInvalid);
    CHECK(sentence == "o.head_stride is 120 elements, but what is nested inside spans 128; o is written, so it must be at least that, for "
                      "elements that do not overlap");
    spoiled.head_dim_v = 120;
    CHECK(check(spoiled, *kernels, sentence) == FA4_OK);
    spoiled.head_dim_v = 0;
    CHECK(check(spoiled, *kernels, sentence) == kInvalid);
    CHECK(sentence == "o.head_stride is 120 elements, but what is nested inside spans 192; o is written, so it must be at least that, for "
                      "elements that do not overlap");
    // The last element of V is the last that there is room for: 128 columns, not 192.
    Problem last = problem;
    last.v.data = ~uint64_t{0} - 2 * 2 * 200 * 2 * 128 + 1;
    CHECK(check(last, *kernels, sentence) == FA4_OK);
    last.v.data += 16;
    CHECK(check(last, *kernels, sentence) == kInvalid);
    CHECK(sentence.find("the strides put the last element of v beyond") != std::string::npos);
    last = problem;
    last.v.data = 0;
    CHECK(check(last, *kernels, sentence) == kInvalid);
    CHECK(sentence == "v.data is null; a device address is needed for 2 x 200 x 2 x 128 elements");
  }
}

TEST_CASE("setters of the C++ header describe packed entries and pages", "[runtime]") {
  Problem packed(FA4_BF16, {.batch = 3, .seq_q = 50, .seq_kv = 70, .q_heads = 4, .kv_heads = 2, .head_dim = 64});
  packed.set_packed_q(kArrayAddress, 90).set_packed_k(kArrayAddress + 64, 150).set_seqused_q(kArrayAddress + 128).set_seqused_k(kArrayAddress + 256);
  packed.set_lse(fa4::test::kLseAddress);
  CHECK(packed.cu_seqlens_q == kArrayAddress);
  CHECK(packed.total_q == 90);
  CHECK(packed.cu_seqlens_k == kArrayAddress + 64);
  CHECK(packed.total_k == 150);
  CHECK(packed.seqused_q == kArrayAddress + 128);
  CHECK(packed.seqused_k == kArrayAddress + 256);
  CHECK(packed.lse_head_stride == 90);
  CHECK(packed.lse_batch_stride == 0);

  Problem paged(FA4_FP16, {.batch = 3, .seq_q = 1, .seq_kv = 70, .q_heads = 4, .kv_heads = 2});
  paged.set_pages(kArrayAddress, 5, 16, 20).set_k(fa4::test::kKAddress).set_v(fa4::test::kVAddress);
  CHECK(paged.block_table == kArrayAddress);
  CHECK(paged.block_table_stride == 5);
  CHECK(paged.page_size == 16);
  CHECK(paged.num_pages == 20);
  for (const fa4_tensor* tensor : {&paged.k, &paged.v}) {
    CHECK(tensor->batch_stride == 16 * 2 * 128);  // from page to page
    CHECK(tensor->seq_stride == 2 * 128);
    CHECK(tensor->head_stride == 128);
  }
}
