// SPDX-License-Identifier: Apache-2.0
// What the kernel promises about its work, counted in the simulated GPU: when correction touches O, which
// blocks are loaded and masked, in which order the MMAs issue, what overlaps, and that LPT shortens the
// longest CTA.
#include <algorithm>
#include <array>

#include "asm/attention/blackwell/kernels.h"
#include "harness.h"

namespace {

using namespace fa4;
using namespace fa4::blackwell;
using support::Dtype;
using support::Inputs;
using support::Problem;

constexpr int kWarpsPerRole = kWarpgroupThreads / 32;

// Every promise is held by the kernels of every head dimension.
#define PROMISE(name) TEMPLATE_TEST_CASE_SIG(name, "[promises]", ((int dim), dim), 64, 128)

template <int dim>
inline constexpr Config kConfig = make_config(ElementType::f16, MaskKind::full, dim, dim);
template <int dim>
using Sizes = Layout<kConfig<dim>>;
constexpr int kBlockKeys = kConfig<128>.block_keys;

fa4sim_counters counters() {
  fa4sim_counters result{};
  REQUIRE(test::device().gpu().simulator().get_counters(&result) == 0);
  return result;
}

// Runs the problem on `sms` SMs, checks the answer and returns the launch's counters.
fa4sim_counters run(const Problem& problem, const Inputs& inputs, uint32_t sms,
                    fa4_scheduler scheduler = FA4_SCHEDULER_AUTO) {
  const test::Case c{problem, {support::Layout::bshd, scheduler, true, sms}, 0};
  CHECK(test::verify(c, inputs) == "");
  return counters();
}

// Inputs whose score of query row i and key j is height(i, j / 128) * log2-units / 1.0201 with the scale
// kStairsScale: Q = 8 and K = height in column 0, zero elsewhere. Rows with q = 0 score 0 everywhere. One
// head, one batch entry.
constexpr double kStairsScale = 0.08838834764831845;  // 1 / sqrt(128), whatever the head dimension
template <typename RowMoves>
Inputs stairs(const Problem& problem, const std::vector<float>& height_of_block, const RowMoves& row_moves) {
  Inputs inputs = support::make_inputs(problem, 5);
  std::fill(inputs.q.begin(), inputs.q.end(), uint16_t(0));
  std::fill(inputs.k.begin(), inputs.k.end(), uint16_t(0));
  for (int64_t i = 0; i < problem.seq_q; ++i)
    if (row_moves(i)) inputs.q[size_t(i * problem.head_dim)] = support::from_float(problem.dtype, 8.0f);
  for (int64_t j = 0; j < problem.seq_kv; ++j)
    inputs.k[size_t(j * problem.head_dim)] =
        support::from_float(problem.dtype, height_of_block[size_t(j / kBlockKeys)]);
  return inputs;
}

std::array<uint64_t, kWarpsPerRole> correction_stores(const fa4sim_counters& c) {
  std::array<uint64_t, kWarpsPerRole> result{};
  for (int w = 0; w < kWarpsPerRole; ++w)
    result[size_t(w)] = c.warp[Sizes<128>::correction_warp + w].tmem_stores;
  return result;
}

std::vector<fa4sim_event> traced(const Problem& problem, fa4_scheduler scheduler = FA4_SCHEDULER_AUTO) {
  const support::SimulatorApi& sim = test::device().gpu().simulator();
  REQUIRE(sim.trace_cta(0) == 0);
  run(problem, support::make_inputs(problem, 9), 1, scheduler);
  std::vector<fa4sim_event> events(sim.get_trace(nullptr, 0));
  sim.get_trace(events.data(), events.size());
  REQUIRE(sim.trace_cta(-1) == 0);
  std::stable_sort(events.begin(), events.end(),
                   [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return events;
}

template <typename L>
bool is_value_mma_of(const fa4sim_event& e, uint32_t stage) {
  return e.kind == FA4SIM_EVENT_MMA && e.address == L::o_column + stage * L::o_stage_columns;
}

constexpr std::array<uint64_t, 4> kNoStores{0, 0, 0, 0};
template <int dim>
constexpr uint64_t kRescale = dim / kRescaleTile;  // tcgen05.st of one warp that rescales one O tile

}  // namespace

PROMISE("no O store when no row's maximum moves") {
  const Problem problem{Dtype::fp16, false, 1, 256, 512, 1, 1, kStairsScale, dim};
  const Inputs inputs = stairs(problem, {0, 0, 0, 0}, [](int64_t) { return true; });
  CHECK(correction_stores(run(problem, inputs, 1)) == kNoStores);
}

PROMISE("no O store when every maximum moves by less than 8") {
  // Blocks run from the last to the first: the maximum climbs by 3.1, 3.1 and 1.5 in log2, 7.7 in all.
  const Problem problem{Dtype::fp16, false, 1, 256, 512, 1, 1, kStairsScale, dim};
  const Inputs inputs = stairs(problem, {7.5, 6, 3, 0}, [](int64_t) { return true; });
  CHECK(correction_stores(run(problem, inputs, 1)) == kNoStores);
}

PROMISE("O is rescaled once when the maximum has moved by more than 8") {
  // 5.1 + 5.1: the second step passes 8 against the maximum that was kept; then nothing moves.
  const Problem problem{Dtype::fp16, false, 1, 256, 512, 1, 1, kStairsScale, dim};
  const Inputs inputs = stairs(problem, {10, 10, 5, 0}, [](int64_t) { return true; });
  const uint64_t both_stages = 2 * kRescale<dim>;
  CHECK(correction_stores(run(problem, inputs, 1)) ==
        std::array<uint64_t, 4>{both_stages, both_stages, both_stages, both_stages});
}

PROMISE("only the warp whose rows moved rescales") {
  const Problem problem{Dtype::bf16, false, 1, 256, 256, 1, 1, kStairsScale, dim};
  const Inputs inputs = stairs(problem, {16, 0}, [](int64_t i) { return i == 37 || i == 128 + 101; });
  CHECK(correction_stores(run(problem, inputs, 1)) ==
        std::array<uint64_t, 4>{0, kRescale<dim>, 0, kRescale<dim>});
}

PROMISE("skipped blocks load nothing") {
  constexpr const Config& config = kConfig<dim>;
  using L = Sizes<dim>;
  // Per task: two Q tiles, and a K and a V box for every block that some row of the task sees.
  for (const auto& [seq_q, seq_kv] :
       std::array<std::array<int64_t, 2>, 4>{{{1024, 1024}, {512, 200}, {300, 700}, {256, 0}}}) {
    for (const bool causal : {false, true}) {
      const Problem problem{Dtype::fp16, causal, 1, seq_q, seq_kv, 2, 1, 0, dim};
      const int64_t positions = 2 * kTileRows / 2;  // of an m_block: two heads are packed
      uint64_t boxes = 0, mmas = 0, flop = 0;
      for (int64_t first = 0; first < seq_q; first += positions) {
        const int64_t last = std::min(first + positions, seq_q) - 1;
        const uint64_t blocks = uint64_t(problem.visible(0, last).count() + kBlockKeys - 1) / kBlockKeys;
        boxes += blocks ? 2 + 2 * blocks : 0;
        mmas += blocks * 2 * (L::score_steps + L::value_steps);
        flop += blocks * 2 * 4 * kTileRows * kBlockKeys * dim;
      }
      const fa4sim_counters c = run(problem, support::make_inputs(problem, 1), 3);
      CHECK(c.warp[L::load_warp].box_loads == boxes);
      CHECK(c.warp[L::load_warp].box_load_bytes == boxes * uint64_t(config.q_tile_bytes()));
      CHECK(c.warp[L::mma_warp].mma == mmas);
      CHECK(c.mma_flop == flop);
    }
  }
}

PROMISE("unmasked blocks run no mask code") {
  const auto mask_instructions = [](const Problem& problem) {
    run(problem, support::make_inputs(problem, 2), 2);
    return test::device().gpu().simulator().get_source_instructions("asm/attention/mask_columns.cuh");
  };
  CHECK(mask_instructions({Dtype::fp16, false, 1, 256, 512, 1, 1, 0, dim}) == 0);
  CHECK(mask_instructions({Dtype::bf16, false, 1, 77, 128, 3, 1, 0, dim}) ==
        0);  // a tail of queries needs no mask
  const uint64_t tail = mask_instructions({Dtype::fp16, false, 1, 256, 200, 1, 1, 0, dim});
  CHECK(tail > 0);
  CHECK(mask_instructions({Dtype::fp16, false, 1, 256, 712, 1, 1, 0, dim}) ==
        tail);  // one masked block, however many others
  // Causal: the diagonal grows with the length, the area below it with its square.
  const uint64_t causal_512 = mask_instructions({Dtype::fp16, true, 1, 512, 512, 1, 1, 0, dim});
  CHECK(causal_512 > 0);
  CHECK(mask_instructions({Dtype::fp16, true, 1, 1024, 1024, 1, 1, 0, dim}) == 2 * causal_512);
}

// Blocks of all tasks are one stream: the first scores of a task come before the last values of the task before.
PROMISE("the MMA warp issues in the order of the choreography") {
  using L = Sizes<dim>;
  for (const auto& [tasks, blocks_of_task] : std::array<std::array<int, 2>, 3>{{{1, 5}, {3, 2}, {4, 1}}}) {
    INFO(tasks << " tasks of " << blocks_of_task << " blocks");
    const Problem problem{Dtype::fp16, false, 1, 256, blocks_of_task * kBlockKeys, tasks, tasks, 0, dim};
    const int blocks = tasks * blocks_of_task;
    // Scores are two S ahead of the values, or three. The n-th of either is of stage n % 2, and S lies in buffer n % 2 or n % 3.
    std::vector<std::string> expected;
    for (int n = 0; n < L::s_buffers; ++n) expected.push_back("S" + std::to_string(n % 2));
    for (int n = 0; n < 2 * blocks; ++n) {
      expected.push_back("O" + std::to_string(n % 2));
      if (n + L::s_buffers < 2 * blocks) expected.push_back("S" + std::to_string((n + L::s_buffers) % 2));
    }

    std::vector<std::string> issued;
    int step = 0, scores = 0, values = 0;
    for (const fa4sim_event& e : traced(problem)) {
      if (e.kind != FA4SIM_EVENT_MMA) continue;
      CHECK(e.warp == uint32_t(L::mma_warp));
      const bool value = e.address >= L::o_column;
      CHECK(bool(e.a_in_tmem) == value);
      const uint32_t buffer = uint32_t((value ? values : scores) % L::s_buffers);
      const uint32_t stage = value ? (e.address - L::o_column) / L::o_stage_columns : uint32_t(scores % 2);
      if (!value) CHECK(e.address == L::s_column + buffer * L::s_columns);
      if (step == 0) {
        issued.push_back((value ? "O" : "S") + std::to_string(stage));
      } else {
        CHECK(issued.back() == (value ? "O" : "S") + std::to_string(stage));
      }
      if (value) CHECK(e.source == L::p_column + buffer * L::s_columns + uint32_t(step) * kMmaK / 2);
      if (++step < (value ? L::value_steps : L::score_steps)) continue;
      step = 0;
      ++(value ? values : scores);
    }
    CHECK(issued == expected);
  }
}

PROMISE("the load warp brings Q0, K, Q1, then V and K in descending order, as the MMA warp wants them") {
  constexpr const Config& config = kConfig<dim>;
  using L = Sizes<dim>;
  const Problem problem{Dtype::fp16, false, 1, 256, 640, 1, 1, 0, dim};
  std::vector<int32_t> rows;  // coordinate of the sequence
  std::vector<uint32_t> destinations;
  for (const fa4sim_event& e : traced(problem)) {
    if (e.kind != FA4SIM_EVENT_BOX_LOAD) continue;
    rows.push_back(e.coordinates[2]);
    destinations.push_back(e.address);
  }
  CHECK(rows == (L::scores_ahead ? std::vector<int32_t>{0, 512, 128, 384, 512, 256, 384, 128, 256, 0, 128, 0}
                                 : std::vector<int32_t>{0, 512, 128, 512, 384, 384, 256, 256, 128, 128, 0, 0}));
  REQUIRE(destinations.size() == 12);
  const uint32_t base = destinations[0];  // Q stage 0 is the first tile of shared memory
  const auto kv = [&](uint32_t slot) {
    return base + uint32_t(L::kv_offset + L::k_slot_offset(int(slot) % config.kv_slots));
  };
  CHECK(destinations == std::vector<uint32_t>{base, kv(0), base + uint32_t(config.q_tile_bytes()), kv(1),
                                              kv(2), kv(3), kv(4), kv(5), kv(6), kv(7), kv(8), kv(9)});
}

PROMISE("softmax of one stage runs while the MMA of the other is in flight") {
  using L = Sizes<dim>;
  const Problem problem{Dtype::fp16, false, 1, 256, 1024, 1, 1, 0, dim};
  const std::vector<fa4sim_event> events = traced(problem);
  for (const uint32_t stage : {0u, 1u}) {
    // One softmax step of the stage's first warp: from its first load of S to the landing of its last store
    // of P.
    struct Step {
      uint64_t begin, end;
    };
    std::vector<Step> steps;
    // A step ends with the store of the last columns of P: the first ones may be stored, and S loaded, once more before.
    bool stored = true;
    for (const fa4sim_event& e : events) {
      if (e.warp != uint32_t(L::softmax_warp) + stage * kWarpsPerRole) continue;
      if (e.kind == FA4SIM_EVENT_TMEM_LOAD) {
        if (stored) steps.push_back({e.begin, e.end});
        stored = false;
      } else if (e.kind == FA4SIM_EVENT_TMEM_STORE) {
        REQUIRE(!steps.empty());
        stored = (e.address - L::p_column) % L::s_columns == L::p_columns * 3 / 4;
        steps.back().end = std::max(steps.back().end, e.end);
      }
    }
    REQUIRE(steps.size() == 8);
    for (size_t i = 1; i + 1 < steps.size(); ++i) {
      const auto overlaps = std::count_if(events.begin(), events.end(), [&](const fa4sim_event& e) {
        return is_value_mma_of<L>(e, 1 - stage) && e.begin < steps[i].end && e.end > steps[i].begin;
      });
      INFO("stage " << stage << ", step " << i);
      CHECK(overlaps > 0);
    }
  }
}

PROMISE("LPT's longest CTA is shorter than linear's on causal work") {
  for (const auto& [sms, batch] : std::array<std::array<int64_t, 2>, 2>{{{148, 4}, {8, 1}}}) {
    const Problem problem{Dtype::fp16, true, batch, 512, 512, 32, 8, 0, dim};
    const Inputs inputs = support::make_inputs(problem, 4);
    std::array<uint64_t, 2> longest{};
    for (const fa4_scheduler scheduler : {FA4_SCHEDULER_LINEAR, FA4_SCHEDULER_LPT}) {
      run(problem, inputs, uint32_t(sms), scheduler);
      const support::SimulatorApi& sim = test::device().gpu().simulator();
      std::vector<uint64_t> cycles(sim.get_cta_cycles(nullptr, 0));
      sim.get_cta_cycles(cycles.data(), cycles.size());
      REQUIRE(cycles.size() == size_t(sms));
      longest[scheduler == FA4_SCHEDULER_LPT] = *std::max_element(cycles.begin(), cycles.end());
    }
    INFO(sms << " SMs: linear " << longest[0] << " cycles, LPT " << longest[1]);
    CHECK(longest[1] < longest[0]);
  }
}

PROMISE("results and counts do not depend on the number of host threads") {
  const Problem problem{Dtype::bf16, true, 2, 400, 500, 6, 3, 0, dim};
  const Inputs inputs = support::make_inputs(problem, 6);
  support::RunResult first;
  fa4sim_counters first_counters{};
  for (const uint32_t threads : {1u, 2u, 5u}) {
    test::device().set_host_threads(threads);
    const support::RunResult result =
        test::device().run(problem, inputs, {support::Layout::bhsd, FA4_SCHEDULER_LPT, true, 6});
    const fa4sim_counters c = counters();
    if (threads == 1) {
      first = result;
      first_counters = c;
    }
    CHECK((result.o == first.o));
    CHECK((result.lse == first.lse));
    CHECK(c.thread_instructions == first_counters.thread_instructions);
    CHECK(c.longest_cta_cycles == first_counters.longest_cta_cycles);
    CHECK(c.total_cta_cycles == first_counters.total_cta_cycles);
  }
  test::device().set_host_threads(0);
}
