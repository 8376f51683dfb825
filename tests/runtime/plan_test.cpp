// SPDX-License-Identifier: Apache-2.0
// Plans against their meaning: the tensor maps reach the very bytes that the strides name, the tasks cover
// every output row once, and the numbers of known shapes.
#include "runtime/plan.h"

#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "asm/attention/task.h"
#include "problems.h"
#include "support/catch.h"

using fa4::Message;
using fa4::Plan;
using fa4::Problem;
using fa4::Shape;
using fa4::Strides;
using fa4::TensorMapDescription;

namespace {

Plan plan_of(const Problem& problem, uint32_t sm_count = 148, const fa4::KernelList& kernels = fa4::blackwell::kKernels) {
  Plan plan;
  Message message;
  const fa4_status status = fa4::plan_forward(problem, {&kernels, sm_count}, plan, message);
  INFO(message.text());
  REQUIRE(status == FA4_OK);
  return plan;
}

uint64_t address_of(const TensorMapDescription& map, const uint64_t (&coordinates)[5]) {
  uint64_t address = map.address + 2 * coordinates[0];
  for (int i = 1; i < 5; ++i) address += coordinates[i] * map.strides[i - 1];
  return address;
}

// Elements whose address by the map differs from their address by the strides.
int misplaced(const TensorMapDescription& map, const fa4_tensor& tensor, int64_t batch, int64_t seq,
              int64_t heads) {
  int wrong = 0;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t s = 0; s < seq; ++s) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t d = 0; d < 128; d += 8) {
          const uint64_t c[5] = {uint64_t(d % 64), uint64_t(h), uint64_t(s), uint64_t(d / 64), uint64_t(b)};
          const int64_t element = (batch > 1 ? b * tensor.batch_stride : 0) +
                                  (seq > 1 ? s * tensor.seq_stride : 0) +
                                  (heads > 1 ? h * tensor.head_stride : 0) + d;
          wrong += address_of(map, c) != tensor.data + 2 * static_cast<uint64_t>(element);
        }
      }
    }
  }
  const uint64_t extents[5] = {64, uint64_t(heads), uint64_t(seq), 2, uint64_t(batch)};
  return wrong + (std::memcmp(map.extents, extents, sizeof extents) != 0);
}

// Runs the schedule of the plan with boxes clipped at the extents, and counts rows (batch, head, position) of
// O that are not written exactly once or that meet the wrong KV head.
template <fa4::Config config>
int uncovered(const Problem& problem, const Plan& plan) {
  const fa4::AttentionParams& p = plan.params;
  std::vector<int> written(static_cast<size_t>(problem.batch * problem.q_heads * problem.seq_q));
  int wrong = 0;
  for (int32_t cta = 0; cta < static_cast<int32_t>(plan.grid); ++cta) {
    for (int32_t wave = 0;; ++wave) {
      const int32_t index = fa4::task_of(p.order, cta, wave, static_cast<int32_t>(plan.grid));
      if (index < 0) break;
      const fa4::Task task = fa4::make_task<config>(p, fa4::decode_task(p.order, index));
      int64_t rows = 0;
      for (int32_t row = 0; row < config.block_rows(); ++row) {
        const int32_t stage = row / config.tile_rows, tile_row = row % config.tile_rows;
        const int64_t head = task.row_head(tile_row), position = task.row_position(stage, tile_row);
        wrong += head >= problem.q_heads || task.kv_head != head / (problem.q_heads / problem.kv_heads);
        if (position >= problem.seq_q) continue;
        ++rows;
        ++written[size_t((task.batch * problem.q_heads + head) * problem.seq_q + position)];
      }
      wrong += rows != task.rows || task.seq_q != problem.seq_q || task.seq_kv != problem.seq_kv;
    }
  }
  for (int count : written) wrong += count != 1;
  return wrong;
}

// The same for the plans of an architecture whose kernels for this shape have these tiles.
template <fa4::Config config>
void check_ratios_and_lengths(const fa4::KernelList& kernels) {
  for (int64_t ratio : {1, 2, 3, 4, 5, 6, 8, 12, 16, 64, 96, 128, 192, 256}) {
    for (int64_t kv_heads : {1, 3}) {
      for (int64_t seq_q : {1, 2, 127, 129, 383}) {
        for (int64_t batch : {1, 3}) {
          if (ratio * kv_heads * seq_q * batch > 60000) continue;
          for (bool causal : {false, true}) {
            Problem problem = fa4::test::dense_problem({.batch = batch,
                                                        .seq_q = seq_q,
                                                        .seq_kv = 130,
                                                        .q_heads = ratio * kv_heads,
                                                        .kv_heads = kv_heads});
            problem.set_causal(causal);
            const Plan plan = plan_of(problem, 7, kernels);
            const int64_t packed = std::gcd(ratio, int64_t{config.tile_rows});
            INFO("ratio " << ratio << " kv_heads " << kv_heads << " seq_q " << seq_q << " batch " << batch);
            CHECK(plan.params.groups_per_kv_head.value * packed == ratio);
            CHECK(plan.params.order.head_groups.value * packed == problem.q_heads);
            CHECK(int64_t{1} << plan.params.packed_heads_log2 == packed);
            CHECK(plan.q.box[1] * plan.q.box[2] == config.tile_rows);
            CHECK(plan.q.box[1] == packed);
            CHECK(std::memcmp(plan.q.box, plan.o.box, sizeof plan.q.box) == 0);
            CHECK(misplaced(plan.q, problem.q, batch, seq_q, problem.q_heads) == 0);
            CHECK(misplaced(plan.o, problem.o, batch, seq_q, problem.q_heads) == 0);
            CHECK(misplaced(plan.k, problem.k, batch, 130, kv_heads) == 0);
            CHECK(misplaced(plan.v, problem.v, batch, 130, kv_heads) == 0);
            CHECK(uncovered<config>(problem, plan) == 0);
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("maps, packing and tasks for every head ratio and length", "[runtime]") {
  using fa4::ElementType, fa4::MaskKind;
  check_ratios_and_lengths<fa4::blackwell::make_config(ElementType::f16, MaskKind::full, 128, 128)>(
      fa4::blackwell::kKernels);
  check_ratios_and_lengths<fa4::hopper::make_config(ElementType::f16, MaskKind::full, 128, 128)>(
      fa4::hopper::kKernels);
}

TEST_CASE("every pair of head dimensions has the smallest kernel that covers it", "[runtime]") {
  // From which to which head dimension of Q and K, and of V and O; and those of the kernel.
  struct Range {
    int64_t qk_from, qk_to, v_from, v_to;
    int qk_dim, v_dim;
  };
  constexpr Range ranges[] = {
      {8, 64, 8, 64, 64, 64},       {72, 96, 8, 96, 96, 96},      {8, 64, 72, 96, 96, 96},
      {104, 128, 8, 128, 128, 128}, {8, 96, 104, 128, 128, 128},  {136, 192, 8, 128, 192, 128},
      {200, 256, 8, 128, 256, 256}, {8, 256, 136, 256, 256, 256},
  };
  struct Kind {
    fa4_dtype dtype;
    fa4::ElementType element;
    fa4::MaskKind mask;
  };
  constexpr Kind kinds[] = {
      {FA4_FP16, fa4::ElementType::f16, fa4::MaskKind::full},   {FA4_FP16, fa4::ElementType::f16, fa4::MaskKind::causal},
      {FA4_FP16, fa4::ElementType::f16, fa4::MaskKind::band},   {FA4_BF16, fa4::ElementType::bf16, fa4::MaskKind::full},
      {FA4_BF16, fa4::ElementType::bf16, fa4::MaskKind::causal}, {FA4_BF16, fa4::ElementType::bf16, fa4::MaskKind::band},
  };
  for (const fa4::KernelList* kernels : fa4::kArchitectures) {
    for (const Kind& kind : kinds) {
      int wrong = 0, pairs = 0;
      for (const Range& range : ranges) {
        for (int64_t dim = range.qk_from; dim <= range.qk_to; dim += 8) {
          for (int64_t v_dim = range.v_from; v_dim <= range.v_to; v_dim += 8, ++pairs) {
            Problem problem = fa4::test::small_problem(dim, v_dim);
            problem.dtype = kind.dtype;
            problem.set_causal(kind.mask == fa4::MaskKind::causal);
            if (kind.mask == fa4::MaskKind::band) problem.set_softcap(30);
            const fa4::Config& config = plan_of(problem, 7, *kernels).kernel->config;
            wrong += config.qk_dim != range.qk_dim || config.v_dim != range.v_dim || config.element != kind.element ||
                     config.mask != kind.mask || config.exp2 != kernels->exp2;
          }
        }
      }
      INFO(kernels->name << ", element type " << int(kind.element) << ", mask " << int(kind.mask));
      CHECK(pairs == 32 * 32);  // each once
      CHECK(wrong == 0);
    }
  }
}

namespace {

// Of a map that is not general: extents and places of the tensor's own head dimension, and a box of all the pieces of 64 columns that the
// kernel's tile has, or of one where the head dimension ends inside a piece.
void check_head_dim(const TensorMapDescription& map, const fa4_tensor& tensor, int64_t dim, int64_t seq, int64_t heads,
                    uint32_t tile_pieces) {
  const bool apart = dim % 64 != 0;
  const uint64_t extents[] = {uint64_t(apart ? dim : 64), uint64_t(heads), uint64_t(seq), uint64_t(apart ? 1 : dim / 64), 2};
  CHECK(std::memcmp(map.extents, extents, sizeof extents) == 0);
  CHECK(map.box[0] == 64);
  CHECK(map.box[3] == (apart ? 1 : tile_pieces));
  CHECK(map.box[4] == 1);
  CHECK(map.strides[0] == uint64_t(2 * tensor.head_stride));
  CHECK(map.strides[1] == uint64_t(2 * tensor.seq_stride));
  CHECK(map.strides[2] == 128);
  CHECK(map.strides[3] == uint64_t(2 * tensor.batch_stride));
  Message message;
  CHECK(fa4::check_tensor_map(map, "", message) == FA4_OK);
}

}  // namespace

TEST_CASE("maps end with the head dimension", "[runtime]") {
  for (const fa4::KernelList* kernels : fa4::kArchitectures) {
    for (int64_t dim = 8; dim <= 256; dim += 8) {
      for (int64_t v_dim = 8; v_dim <= 256; v_dim += 8) {
        INFO(kernels->name << ", head dimension " << dim << ", V " << v_dim);
        const Problem problem = fa4::test::small_problem(dim, v_dim);
        const Plan plan = plan_of(problem, 7, *kernels);
        CHECK(plan.params.qk_pieces_apart == uint32_t(dim % 64 != 0));
        CHECK(plan.params.v_pieces_apart == uint32_t(v_dim % 64 != 0));
        CHECK(plan.params.scale == float(1 / std::sqrt(double(dim))));
        const uint32_t qk_pieces = uint32_t(plan.kernel->config.qk_dim + 63) / 64, v_pieces = uint32_t(plan.kernel->config.v_dim + 63) / 64;
        check_head_dim(plan.q, problem.q, dim, 100, 8, qk_pieces);
        check_head_dim(plan.k, problem.k, dim, 200, 2, qk_pieces);
        check_head_dim(plan.v, problem.v, v_dim, 200, 2, v_pieces);
        check_head_dim(plan.o, problem.o, v_dim, 100, 8, v_pieces);
        CHECK(plan.q.box[1] * plan.q.box[2] == uint32_t(plan.kernel->config.tile_rows));
        CHECK(plan.o.box[1] * plan.o.box[2] == uint32_t(plan.kernel->config.tile_rows));
        CHECK(plan.k.box[2] == uint32_t(plan.kernel->config.block_keys));
        CHECK(plan.v.box[2] == uint32_t(plan.kernel->config.block_keys));
      }
    }
  }
}

TEST_CASE("on Hopper, short causal problems of head dimension 64 have tiles of their own", "[runtime]") {
  const auto entry = [](int64_t seq_q, int64_t q_heads, bool causal) {
    Problem problem = fa4::test::dense_problem(
        {.batch = 2, .seq_q = seq_q, .seq_kv = 5000, .q_heads = q_heads, .kv_heads = 2, .head_dim = 64});
    const Plan plan = plan_of(problem.set_causal(causal), 132, fa4::hopper::kKernels);
    CHECK(plan.params.order.m_blocks.value == (seq_q * q_heads / 2 + plan.kernel->config.block_rows() - 1) / plan.kernel->config.block_rows());
    return std::string(plan.kernel->entry);
  };
  CHECK(entry(1024, 2, true) == "fa4_forward_f16_d64_causal_short");
  CHECK(entry(256, 8, true) == "fa4_forward_f16_d64_causal_short");  // four heads ride in a tile
  CHECK(entry(1025, 2, true) == "fa4_forward_f16_d64_causal");
  CHECK(entry(257, 8, true) == "fa4_forward_f16_d64_causal");
  CHECK(entry(1024, 2, false) == "fa4_forward_f16_d64_full");
}

TEST_CASE("strided views reach the right bytes", "[runtime]") {
  Problem problem =
      fa4::test::dense_problem({.batch = 2, .seq_q = 40, .seq_kv = 40, .q_heads = 4, .kv_heads = 4});
  const Strides fused{40 * 3 * 512, 3 * 512, 128};
  problem.set_q(0x10000, fused).set_k(0x10000 + 1024, fused).set_v(0x10000 + 2048, {0, 0, 128});
  problem.set_o(fa4::test::kOAddress, Strides::bhsd(40, 4));
  const Plan plan = plan_of(problem);
  CHECK(misplaced(plan.q, problem.q, 2, 40, 4) == 0);
  CHECK(misplaced(plan.k, problem.k, 2, 40, 4) == 0);
  CHECK(misplaced(plan.v, problem.v, 2, 40, 4) == 0);
  CHECK(misplaced(plan.o, problem.o, 2, 40, 4) == 0);

  problem = fa4::test::dense_problem({.batch = 1, .seq_q = 1, .seq_kv = 1, .q_heads = 1, .kv_heads = 1});
  for (fa4_tensor* tensor : {&problem.q, &problem.k, &problem.v, &problem.o}) {
    tensor->batch_stride = -1, tensor->seq_stride = 3, tensor->head_stride = INT64_MAX;
  }
  const Plan single = plan_of(problem);
  for (const TensorMapDescription* map : {&single.q, &single.k, &single.v, &single.o}) {
    CHECK(map->strides[0] == 16);
    CHECK(map->strides[1] == 16);
    CHECK(map->strides[2] == 128);
    CHECK(map->strides[3] == 16);
  }
}

TEST_CASE("the seed's configuration", "[runtime]") {
  Problem problem =
      fa4::test::dense_problem({.batch = 1, .seq_q = 1024, .seq_kv = 1024, .q_heads = 32, .kv_heads = 8});
  Plan plan = plan_of(problem);
  CHECK(std::string(plan.kernel->entry) == "fa4_forward_f16_d128_full");
  CHECK(plan.grid == 128);
  CHECK(plan.params.packed_heads_log2 == 2);
  CHECK(plan.params.order.head_groups.value == 8);
  CHECK(plan.params.groups_per_kv_head.value == 1);
  CHECK(plan.params.order.m_blocks.value == 16);
  CHECK(plan.params.order.task_count == 128);
  CHECK(plan.params.order.kind == fa4::SchedulerKind::linear);
  CHECK(plan.params.seq_q == 1024);
  CHECK(plan.params.seq_kv == 1024);
  CHECK(plan.params.lse == reinterpret_cast<float*>(fa4::test::kLseAddress));
  CHECK(plan.params.lse_batch_stride == 32 * 1024);
  CHECK(plan.params.lse_head_stride == 1024);
  CHECK(plan.params.scale == static_cast<float>(0.08838834764831845));
  CHECK(plan.params.scale_log2 == static_cast<float>(0.08838834764831845 * 1.4426950408889634));
  CHECK(plan.params.negate_scores == 0);
  CHECK(plan.q.type == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  const uint32_t q_box[5] = {64, 4, 32, 2, 1}, k_box[5] = {64, 1, 128, 2, 1};
  CHECK(std::memcmp(plan.q.box, q_box, sizeof q_box) == 0);
  CHECK(std::memcmp(plan.k.box, k_box, sizeof k_box) == 0);
  CHECK(std::memcmp(plan.v.box, k_box, sizeof k_box) == 0);

  problem.dtype = FA4_BF16;
  problem.set_causal().set_max_ctas(8).set_softmax_scale(-0.5);
  plan = plan_of(problem);
  CHECK(std::string(plan.kernel->entry) == "fa4_forward_bf16_d128_causal");
  CHECK(plan.grid == 8);
  CHECK(plan.params.order.kind == fa4::SchedulerKind::lpt);
  CHECK(plan.params.scale == 0.5f);
  CHECK(plan.params.scale_log2 == static_cast<float>(0.5 * 1.4426950408889634));
  CHECK(plan.params.negate_scores == 1);
  CHECK(plan.o.type == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);

  problem.set_scheduler(FA4_SCHEDULER_LINEAR);
  CHECK(plan_of(problem).params.order.kind == fa4::SchedulerKind::linear);
  problem.set_causal(false).set_scheduler(FA4_SCHEDULER_LPT);
  CHECK(plan_of(problem).params.order.kind == fa4::SchedulerKind::lpt);
  problem.set_max_ctas(1000);
  CHECK(plan_of(problem, 3).grid == 3);
}

TEST_CASE("the caller or the device chooses what computes exponentials", "[runtime]") {
  Problem problem =
      fa4::test::dense_problem({.batch = 1, .seq_q = 300, .seq_kv = 300, .q_heads = 4, .kv_heads = 2});
  const fa4::KernelList &polynomial = fa4::blackwell::kPolynomialKernels, &mufu = fa4::blackwell::kKernels;
  const auto entry = [&](int32_t exp2, const fa4::KernelList& device) {
    problem.exp2 = exp2;
    return std::string(plan_of(problem, 148, device).kernel->entry);
  };
  CHECK(entry(FA4_EXP2_AUTO, polynomial) == "fa4_forward_f16_d128_full_polynomial");
  CHECK(entry(FA4_EXP2_AUTO, mufu) == "fa4_forward_f16_d128_full");
  CHECK(entry(FA4_EXP2_AUTO, fa4::hopper::kKernels) == "fa4_forward_f16_d128_full");
  for (const fa4::KernelList* device : {&polynomial, &mufu}) {
    CHECK(entry(FA4_EXP2_MUFU, *device) == "fa4_forward_f16_d128_full");
    CHECK(entry(FA4_EXP2_POLYNOMIAL, *device) == "fa4_forward_f16_d128_full_polynomial");
  }
  CHECK(entry(FA4_EXP2_MUFU, fa4::hopper::kKernels) == "fa4_forward_f16_d128_full");
  problem.exp2 = FA4_EXP2_POLYNOMIAL;
  Plan plan;
  Message message;
  CHECK(fa4::plan_forward(problem, {&fa4::hopper::kKernels, 132}, plan, message) == FA4_ERROR_UNSUPPORTED);
  CHECK(std::string(message.text()).find("exp2 is FA4_EXP2_POLYNOMIAL (2); the Hopper kernels accept") == 0);
}

TEST_CASE("LPT sections fit into the L2 cache, hold whole KV heads and begin with waves", "[runtime]") {
  // At 512 bytes a key (K and V), 50 MiB hold 100 KV heads of 1024 keys. 384 groups, three to a KV head, on 148 SMs.
  const std::map<int64_t, int32_t> groups_in_section = {
      {1024, 192},   // 300 groups fit; two waves are 296, of whole KV heads 294, and leave a section of 90: 64 KV heads
      {2048, 147},   // 150 fit: one wave; the last section has 90
      {4096, 48},    // 75 fit; half a wave is 74, of whole KV heads 72, and leaves 24: 16 KV heads
      {8192, 27},    // 36 fit: a fifth of a wave is 29; with 14 sections the short one does not matter
      {16384, 15},   // 18 fit: a ninth is 16
      {32768, 6},    // 9 fit: a 17th is 8
      {65536, 3},    // 3 fit
      {1 << 20, 3},  // a KV head alone does not
  };
  for (const auto& [seq, groups] : groups_in_section) {
    Problem problem =
        fa4::test::dense_problem({.batch = 4, .seq_q = 256, .seq_kv = seq, .q_heads = 96, .kv_heads = 32});
    INFO("seq_kv " << seq);
    CHECK(plan_of(problem.set_causal()).params.order.section_groups.value == groups);
  }
  // A CTA for each of 132 SMs: half and a third of a wave.
  for (const auto& [seq, groups] : std::map<int64_t, int32_t>{{1024, 66}, {2048, 44}}) {
    Problem problem =
        fa4::test::dense_problem({.batch = 32768 / seq, .seq_q = seq, .seq_kv = seq, .q_heads = 16, .kv_heads = 16});
    CHECK(plan_of(problem.set_causal(), 132, fa4::hopper::kKernels).params.order.section_groups.value == groups);
  }
  Problem few =
      fa4::test::dense_problem({.batch = 2, .seq_q = 256, .seq_kv = 1024, .q_heads = 8, .kv_heads = 4});
  CHECK(plan_of(few.set_causal()).params.order.section_groups.value == 8);  // all there are
  few.seq_kv = 0;
  CHECK(plan_of(few).params.order.section_groups.value == 8);
}

TEST_CASE("nothing to compute is nothing to launch", "[runtime]") {
  const Shape full{.batch = 2, .seq_q = 5, .seq_kv = 5, .q_heads = 4, .kv_heads = 2};
  Problem problem = fa4::test::dense_problem(full);
  problem.batch = 0;
  CHECK(plan_of(problem).grid == 0);
  problem = fa4::test::dense_problem(full);
  problem.seq_q = 0;
  CHECK(plan_of(problem).grid == 0);

  problem = fa4::test::dense_problem(full);
  problem.seq_kv = 0;
  problem.k.data = 0;
  problem.v.data = 0x7f5000000000;
  const Plan plan = plan_of(problem);
  CHECK(plan.grid == 4);
  CHECK(plan.params.seq_kv == 0);
  Message message;
  for (const TensorMapDescription* map : {&plan.k, &plan.v}) {
    CHECK(map->address == plan.q.address);  // any that is some tensor's
    CHECK(map->extents[2] == 1);
    CHECK(fa4::check_tensor_map(*map, "k", message) == FA4_OK);
  }
}

TEST_CASE("the longest problems fit", "[runtime]") {
  Problem problem =
      fa4::test::dense_problem({.seq_q = 1, .seq_kv = fa4::kMaxSequence, .q_heads = 128, .kv_heads = 1});
  CHECK(plan_of(problem).params.seq_kv == fa4::kMaxSequence);
  problem = fa4::test::dense_problem({.seq_q = fa4::kMaxSequence, .seq_kv = 1});
  CHECK(plan_of(problem).params.order.m_blocks.value == (int64_t{fa4::kMaxSequence} + 255) / 256);
}

TEST_CASE("a broken tensor map is refused by name", "[runtime]") {
  const Plan plan = plan_of(fa4::test::small_problem());
  struct Rule {
    void (*spoil)(TensorMapDescription&);
    const char* says;
  };
  const Rule rules[] = {
      {[](TensorMapDescription& m) { m.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32; }, "has type 7"},
      {[](TensorMapDescription& m) { m.address += 8; }, "has address 0x7f0000000008; a multiple of 16"},
      {[](TensorMapDescription& m) { m.extents[2] = 0; }, "has extent 0 in dimension 2; 1 to 4294967296"},
      {[](TensorMapDescription& m) { m.extents[4] = (uint64_t{1} << 32) + 1; },
       "has extent 4294967297 in dimension 4"},
      {[](TensorMapDescription& m) { m.box[1] = 257; }, "has a box of 257 elements in dimension 1; 1 to 256"},
      {[](TensorMapDescription& m) { m.box[4] = 0; }, "has a box of 0 elements in dimension 4"},
      {[](TensorMapDescription& m) { m.strides[0] = 24; },
       "has a stride of 24 bytes in dimension 1; a multiple of 16"},
      {[](TensorMapDescription& m) { m.strides[3] = uint64_t{1} << 40; },
       "has a stride of 1099511627776 bytes in dimension 4"},
      {[](TensorMapDescription& m) { m.box[0] = 128; }, "has an inner box of 256 bytes"},
      {[](TensorMapDescription& m) { m.box[0] = 4; }, "has an inner box of 8 bytes"},
  };
  for (const Rule& rule : rules) {
    TensorMapDescription map = plan.q;
    rule.spoil(map);
    Message message;
    CHECK(fa4::check_tensor_map(map, "q", message) == FA4_ERROR_INVALID_ARGUMENT);
    INFO(message.text());
    CHECK(std::string(message.text()).find("the tensor map of q " + std::string(rule.says)) !=
          std::string::npos);
  }
}
