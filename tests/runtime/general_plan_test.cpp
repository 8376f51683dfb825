// SPDX-License-Identifier: Apache-2.0
// Plans of general problems against their meaning: with the coordinates that roles make of a task, the tensor
// maps reach the very rows and keys of an entry and nothing behind its end; bounds hold whatever the lengths
// on the device are; scales, bands and arrays arrive.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "asm/attention/task.h"
#include "plans.h"
#include "problems.h"
#include "runtime/problem.h"
#include "support/catch.h"

using fa4::Config;
using fa4::ElementType;
using fa4::GeneralParams;
using fa4::KernelList;
using fa4::MaskKind;
using fa4::Message;
using fa4::Plan;
using fa4::Problem;
using fa4::ScoreKind;
using fa4::TensorMapDescription;
using fa4::test::dense_problem;
using fa4::test::kArrayAddress;
using fa4::test::small_problem;

namespace {

Plan plan_of(const Problem& problem, const KernelList& kernels, uint32_t sm_count = 132) {
  Plan plan;
  Message message;
  const fa4_status status = fa4::plan_forward(problem, {&kernels, sm_count}, plan, message);
  INFO(message.text());
  REQUIRE(status == FA4_OK);
  return plan;
}

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t operator()(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(engine_() % static_cast<uint64_t>(most - least + 1));
  }
  bool flip() { return (*this)(0, 1) != 0; }

 private:
  std::mt19937_64 engine_;
};

// What stands on the device for one side of the batch, and what is said of it in the params.
struct Lengths {
  std::vector<int64_t> cu;    // batch + 1 of packed tensors, else none
  std::vector<int64_t> used;  // of each entry, or none
  int64_t bound, total;

  int64_t first(int64_t entry) const { return cu.empty() ? 0 : cu[size_t(entry)]; }
  int64_t length(int64_t entry) const {
    const int64_t length = cu.empty() ? bound : cu[size_t(entry) + 1] - cu[size_t(entry)];
    return used.empty() ? length : std::min(length, used[size_t(entry)]);
  }
};

Lengths random_lengths(Random& random, int64_t batch, int64_t bound) {
  Lengths side{{}, {}, bound, 0};
  const auto length = [&] { return random(0, 3) == 0 ? random(0, 1) * bound : random(0, bound); };
  if (random.flip()) {
    side.cu = {0};
    for (int64_t b = 0; b < batch; ++b) side.cu.push_back(side.cu.back() + length());
    side.total = side.cu.back() + random(0, 2);  // rows behind the last entry are nobody's
  }
  if (random.flip())
    for (int64_t b = 0; b < batch; ++b) side.used.push_back(length());
  return side;
}

// Strides of which nothing needs to be dense or in order, for rows that may lie among each other; a view that
// is written keeps them apart.
fa4_tensor random_tensor(Random& random, uint64_t address, int64_t heads, int64_t rows, int64_t dim,
                         bool written) {
  fa4_tensor tensor{address + 16 * static_cast<uint64_t>(random(0, 9)), 0, 0, 0};
  tensor.head_stride = 8 * random(dim / 8, dim / 8 + 3);
  tensor.seq_stride = heads * tensor.head_stride + 8 * random(0, 5);
  if (!written && random(0, 3) == 0) tensor.seq_stride = 8 * random(0, 40);
  tensor.batch_stride = rows * tensor.seq_stride + 8 * random(0, 1000);
  if (!written && random(0, 3) == 0) tensor.batch_stride = 8 * random(0, 40);
  if (random.flip()) {  // heads outside
    tensor.seq_stride = dim + 8 * random(0, 3);
    tensor.head_stride = rows * tensor.seq_stride + 8 * random(0, 3);
    tensor.batch_stride = heads * tensor.head_stride + 8 * random(0, 3);
  }
  return tensor;
}

// A tensor of one side, with everything that says where its elements lie.
struct View {
  const fa4_tensor& tensor;
  const Lengths& side;
  int64_t batch, heads;

  // By the definition in fa4.h.
  uint64_t address(int64_t entry, int64_t row, int64_t head, int64_t column) const {
    const bool packed = !side.cu.empty();
    const int64_t rows = packed ? side.total : side.bound;
    int64_t element = column;
    if (packed) row += side.first(entry);
    if (!packed && batch > 1) element += entry * tensor.batch_stride;
    if (rows > 1) element += row * tensor.seq_stride;
    if (heads > 1) element += head * tensor.head_stride;
    return tensor.data + 2 * static_cast<uint64_t>(element);
  }
};

// Whether the map has an element at these coordinates exactly if the entry has that row, and then the very
// one. Addresses wrap at 2^64.
bool right(const TensorMapDescription& map, int32_t head, int64_t position, int32_t plane, const View& view,
           int64_t entry, int64_t row) {
  for (const int64_t column : {int64_t{0}, static_cast<int64_t>(map.extents[0]) - 8}) {
    const int64_t c[5] = {column, head, position, fa4::kMapRows, plane};
    bool inside = true;
    uint64_t address = map.address + 2 * static_cast<uint64_t>(c[0]);
    for (int i = 0; i < 5; ++i) inside = inside && c[i] >= 0 && static_cast<uint64_t>(c[i]) < map.extents[i];
    for (int i = 1; i < 5; ++i) address += static_cast<uint64_t>(c[i]) * map.strides[i - 1];
    if (inside != (row < view.side.length(entry))) return false;
    if (inside && address != view.address(entry, row, head, column)) return false;
  }
  return true;
}

// Rows and keys that the tasks of a problem do not reach, or reach elsewhere.
template <Config config>
int misplaced(const Problem& problem, const Plan& plan, const Lengths& q_side, const Lengths& k_side) {
  const fa4::AttentionParams& params = plan.params;
  const View q{problem.q, q_side, problem.batch, problem.q_heads},
      o{problem.o, q_side, problem.batch, problem.q_heads};
  const View k{problem.k, k_side, problem.batch, problem.kv_heads},
      v{problem.v, k_side, problem.batch, problem.kv_heads};
  const int64_t positions = config.block_rows() >> params.packed_heads_log2;
  int wrong = 0;
  for (int32_t b = 0; b < problem.batch; ++b) {
    const fa4::Entry entry{int32_t(q_side.length(b)), int32_t(k_side.length(b)), int32_t(q_side.first(b)),
                           int32_t(k_side.first(b))};
    for (int32_t group = 0; group < params.order.head_groups.value; ++group)
      for (int32_t m_block = 0; m_block * positions < std::max(entry.seq_q, 1);
           ++m_block) {  // one also of an entry without rows
        const fa4::Task task = fa4::make_task<config>(params, {b, group, m_block}, entry);
        int32_t rows = 0;
        for (int32_t stage = 0; stage < config.q_stages; ++stage)
          for (int32_t row = 0; row < config.tile_rows; ++row) {
            const int32_t head = task.row_head(row), position = task.row_position(stage, row);
            rows += position < entry.seq_q;
            wrong += !right(plan.q, head, int64_t{task.q_origin} + position, task.q_plane, q, b, position);
            wrong += !right(plan.o, head, int64_t{task.q_origin} + position, task.o_plane, o, b, position);
          }
        wrong += rows != task.rows || task.kv_head != task.first_head / (problem.q_heads / problem.kv_heads);
        if (m_block != 0) continue;
        for (int32_t key = 0; key < entry.seq_kv + 2 * config.block_keys; ++key) {
          wrong += !right(plan.k, task.kv_head, int64_t{task.kv_origin} + key, task.k_plane, k, b, key);
          wrong += !right(plan.v, task.kv_head, int64_t{task.kv_origin} + key, task.v_plane, v, b, key);
        }
      }
  }
  return wrong;
}

// `least_qk`, `least_v`: the smallest head dimensions of Q and K, and of V and O, that are too large for the kernels before this one.
template <Config config>
void check_maps(const KernelList& kernels, uint64_t seed, int64_t least_qk, int64_t least_v) {
  Random random(seed);
  int own_lengths = 0;
  for (int round = 0; round < 150; ++round) {
    const int64_t batch = random(1, 4), kv_heads = random(1, 3), ratio = int64_t{1} << random(0, 3);
    const auto bound = [&] { return random(0, 4) == 0 ? random(1, 2) : random(1, 300); };
    const auto dimension = [&](int64_t least, int64_t most) { return 8 * random(least / 8, most / 8); };
    const bool large_v = least_v <= config.v_dim && random.flip();
    const int64_t dim = dimension(large_v ? 8 : least_qk, config.qk_dim), v_dim = dimension(large_v ? least_v : 8, config.v_dim);
    const Lengths q_side = random_lengths(random, batch, bound());
    const Lengths k_side = random_lengths(random, batch, random(0, 9) == 0 ? 0 : bound());
    Problem problem(FA4_FP16, {.batch = batch,
                               .seq_q = q_side.bound,
                               .seq_kv = k_side.bound,
                               .q_heads = ratio * kv_heads,
                               .kv_heads = kv_heads,
                               .head_dim = dim,
                               .head_dim_v = v_dim});
    if (!q_side.cu.empty()) problem.set_packed_q(kArrayAddress, q_side.total);
    if (!k_side.cu.empty()) problem.set_packed_k(kArrayAddress + 4096, k_side.total);
    if (!q_side.used.empty()) problem.set_seqused_q(kArrayAddress + 8192);
    if (!k_side.used.empty()) problem.set_seqused_k(kArrayAddress + 12288);
    own_lengths += fa4::has_own_lengths(problem);
    problem.set_sinks(kArrayAddress);  // general also where all entries have the bounds
    const auto tensor = [&](uint64_t address, const Lengths& side, int64_t heads, int64_t columns, bool written) {
      const int64_t rows = side.cu.empty() ? side.bound : side.total;
      fa4_tensor view = random_tensor(random, address, heads, std::max<int64_t>(rows, 1), columns, written);
      // Frameworks put anything into strides of one element, and so do those who pack into batch strides.
      if (batch == 1 || !side.cu.empty()) view.batch_stride = random.flip() ? -3 : (int64_t{1} << 50) + 8;
      if (rows <= 1) view.seq_stride = random.flip() ? 5 : INT64_MAX;
      if (heads == 1) view.head_stride = random.flip() ? -1 : 7;
      return view;
    };
    problem.q = tensor(fa4::test::kQAddress, q_side, problem.q_heads, dim, false);
    problem.k = tensor(fa4::test::kKAddress, k_side, kv_heads, dim, false);
    problem.v = tensor(fa4::test::kVAddress, k_side, kv_heads, v_dim, false);
    problem.o = tensor(fa4::test::kOAddress, q_side, problem.q_heads, v_dim, true);
    const Plan plan = plan_of(problem, kernels);
    INFO("seed " << seed << ", round " << round << ", head dimension " << dim << ", V " << v_dim);
    if (plan.grid == 0) {
      CHECK(problem.total_q == 0);
      continue;
    }
    const Config& planned = plan.kernel->config;
    REQUIRE((planned.general() && planned.tile_rows == config.tile_rows &&
             planned.q_stages == config.q_stages && planned.block_keys == config.block_keys &&
             planned.qk_dim == config.qk_dim && planned.v_dim == config.v_dim));
    Message message;
    for (const auto& [map, columns] : {std::pair{&plan.q, dim}, {&plan.k, dim}, {&plan.v, v_dim}, {&plan.o, v_dim}}) {
      CHECK(fa4::check_tensor_map(*map, "", message) == FA4_OK);
      CHECK(map->extents[0] == uint64_t(columns));
      CHECK((map->box[0] == 64 && map->box[3] == 1 && map->box[4] == 1));
    }
    CHECK(plan.params.qk_pieces_apart == uint32_t(dim % 64 != 0));
    CHECK(plan.params.v_pieces_apart == uint32_t(v_dim % 64 != 0));
    CHECK(misplaced<config>(problem, plan, q_side, k_side) == 0);
  }
  CHECK(own_lengths > 75);
}

template <int qk_dim, int v_dim>
void check_maps_of(uint64_t seed, int64_t least_qk, int64_t least_v) {
  check_maps<fa4::hopper::make_config(ElementType::f16, MaskKind::band, qk_dim, v_dim)>(fa4::hopper::kKernels, seed, least_qk, least_v);
  check_maps<fa4::blackwell::make_config(ElementType::f16, MaskKind::band, qk_dim, v_dim)>(fa4::blackwell::kKernels, seed + 100, least_qk,
                                                                                            least_v);
}

}  // namespace

TEST_CASE("maps of general problems reach the rows and keys of each entry, and nothing behind its end",
          "[runtime]") {
  check_maps_of<64, 64>(1, 8, 8);
  check_maps_of<96, 96>(2, 72, 72);
  check_maps_of<128, 128>(3, 104, 104);
  check_maps_of<192, 128>(4, 136, 136);
  check_maps_of<256, 256>(5, 200, 136);
}

TEST_CASE("places of the longest and the widest maps stay within 32 bits", "[runtime]") {
  constexpr Config config = fa4::blackwell::make_config(ElementType::f16, MaskKind::band, 128, 128);
  const auto place = [](const fa4::MapSteps& steps, int64_t entry, int64_t rows) {
    return entry * steps.entry + rows * steps.row;
  };
  // Strides with nothing in common but 8 elements: as many places as there may be.
  Problem wide = small_problem().set_window(16, -1);
  wide.k.seq_stride = 8 * 37;
  wide.k.batch_stride = 8 * (fa4::kMaxPlaces - 1 - 37 * 200);
  Plan plan = plan_of(wide, fa4::blackwell::kKernels);
  CHECK(plan.k.extents[4] == fa4::kMaxPlaces);
  CHECK(place(plan.params.general.k, 1, 200) == fa4::kMaxPlaces - 1);
  CHECK(fa4::make_task<config>(plan.params, {1, 0, 0}).k_plane == fa4::kMaxPlaces - 1);
  // As many entries as there may be, of one key each, which lie where the strides say or all at one place.
  constexpr int64_t most = fa4::kMaxBatch;
  Problem many = dense_problem({.batch = most, .seq_q = 1, .seq_kv = 1}).set_window(0, 0).set_softcap(5);
  plan = plan_of(many, fa4::blackwell::kKernels);
  CHECK(place(plan.params.general.k, most - 1, 1) == most - 1);
  CHECK(fa4::make_task<config>(plan.params, {int32_t(most - 1), 0, 0}).k_plane == most - 1);
  many.k.batch_stride = 0;
  plan = plan_of(many, fa4::blackwell::kKernels);
  CHECK(fa4::make_task<config>(plan.params, {int32_t(most - 1), 0, 0}).k_plane == 0);
  CHECK(plan.k.extents[4] == 1);
  // The longest entries there may be, packed into the longest tensors: at their end, and all that a window is
  // wide.
  Problem longest = dense_problem({.seq_q = fa4::kMapRows, .seq_kv = fa4::kMapRows});
  longest.set_packed_q(kArrayAddress, fa4::kMaxSequence)
      .set_packed_k(kArrayAddress, fa4::kMaxSequence)
      .set_lse(0);
  plan = plan_of(longest, fa4::blackwell::kKernels);
  for (const int32_t rows : {1, 1000, fa4::kMapRows}) {
    const fa4::Entry entry{rows, rows, fa4::kMaxSequence - rows, fa4::kMaxSequence - rows};
    const int32_t last_block = (rows - 1) / config.block_rows();
    const fa4::Task task = fa4::make_task<config>(plan.params, {0, 0, last_block}, entry);
    CHECK(int64_t{task.q_origin} + task.row_position(1, 127) ==
          fa4::kMapRows - rows + 256LL * last_block + 255);
    CHECK(task.q_plane == fa4::kMaxSequence);
    CHECK(task.k_plane == fa4::kMaxSequence);
  }
}

TEST_CASE("entries longer than a map's window are refused, by a general kernel alone", "[runtime]") {
  const auto sentence = [](const Problem& problem) {
    Message message;
    fa4::CheckedProblem checked;
    const fa4_status status = fa4::check_problem(problem, fa4::hopper::kKernels, checked, message);
    CHECK(status == (message.text()[0] == '\0' ? FA4_OK : FA4_ERROR_UNSUPPORTED));
    return std::string(message.text());
  };
  const std::string accepted =
      "; up to 1073741824 are supported with lengths on the device, a window, top-left alignment, softcap, "
      "sinks or ALiBi";
  Problem problem = dense_problem({.seq_q = 2, .seq_kv = fa4::kMapRows + 1}).set_lse(0);
  CHECK(sentence(problem) == "");
  CHECK(sentence(problem.set_softcap(30)) == "seq_kv is 1073741825" + accepted);
  problem.seq_kv = fa4::kMapRows;
  CHECK(sentence(problem) == "");
  problem.seq_q = fa4::kMaxSequence;
  CHECK(sentence(problem) == "seq_q is 2147483391" + accepted);
  // No entry is longer than all rows of a packed tensor.
  problem.set_packed_q(kArrayAddress, fa4::kMapRows + 1);
  CHECK(sentence(problem) == "seq_q is 2147483391" + accepted);
  problem.total_q = fa4::kMapRows;
  CHECK(sentence(problem) == "");
}

TEST_CASE("a general map begins at its tensor, and without keys at one that is some tensor's", "[runtime]") {
  // A load wholly outside a map faults where the map's address is not mapped.
  const Problem problem = small_problem().set_seqused_k(kArrayAddress);
  const Plan plan = plan_of(problem, fa4::hopper::kKernels);
  CHECK(plan.q.address == problem.q.data);
  CHECK(plan.k.address == problem.k.data);
  CHECK(plan.k.extents[2] == fa4::kMapRows);
  CHECK(plan.k.strides[1] == 2 * 256);
  CHECK(plan.k.strides[3] == 2 * 256);  // entries lie 200 rows apart
  CHECK(plan.params.general.k.entry == 200);
  CHECK(plan.params.general.k.row == 1);
  CHECK(plan.k.extents[4] == 401);
  CHECK(plan.k.box[3] == 1);
  for (const bool packed : {false, true}) {
    Problem empty = problem;
    empty.seq_kv = 0;
    empty.k.data = 0;
    if (packed) empty.set_packed_k(kArrayAddress, 0);
    const Plan none = plan_of(empty, fa4::hopper::kKernels);
    CHECK(none.grid == 16);
    CHECK(none.params.seq_kv == 0);
    CHECK(none.k.address == empty.q.data);
    CHECK(none.v.address == empty.q.data);
  }
  // With a bound of no keys, of tensors that have some.
  Problem unused = problem;
  unused.seq_kv = 0;
  unused.set_packed_k(kArrayAddress, 7);
  CHECK(plan_of(unused, fa4::hopper::kKernels).k.address == unused.k.data);
}

TEST_CASE("rows any distance apart: the dimension that takes a window's length back wraps", "[runtime]") {
  for (const int64_t stride :
       {int64_t{0}, int64_t{8}, int64_t{128}, int64_t{1} << 32, (int64_t{1} << 33) - 8, int64_t{1} << 33,
        (int64_t{1} << 33) + 8, int64_t{1} << 38, (int64_t{1} << 39) - 8}) {
    Problem problem = dense_problem({.batch = 2, .seq_q = 3, .seq_kv = 5}).set_window(1, 1);
    problem.k.batch_stride = problem.k.seq_stride = stride;
    problem.k.data = 0x1000;
    const Plan plan = plan_of(problem, fa4::hopper::kKernels);
    Message message;
    CHECK(fa4::check_tensor_map(plan.k, "k", message) == FA4_OK);
    const Lengths side{{}, {}, 5, 0};
    const View k{problem.k, side, 2, 1};
    constexpr Config config = fa4::hopper::make_config(ElementType::f16, MaskKind::band, 128, 128);
    int wrong = 0;
    for (int32_t b = 0; b < 2; ++b) {
      const fa4::Task task = fa4::make_task<config>(plan.params, {b, 0, 0});
      for (int32_t key = 0; key < 128; ++key)
        wrong += !right(plan.k, 0, int64_t{task.kv_origin} + key, task.k_plane, k, b, key);
    }
    INFO("stride " << stride);
    CHECK(wrong == 0);
  }
}

TEST_CASE("the bounds of blocks and tasks hold for all lengths that a packed tensor has room for",
          "[runtime]") {
  Random random(5);
  for (const KernelList* kernels : fa4::kArchitectures)
    for (int round = 0; round < 300; ++round) {
      const int64_t batch = random(1, 40), bound = random(1, 1000);
      std::vector<int64_t> lengths;
      for (int64_t b = 0; b < batch; ++b)
        lengths.push_back(random(0, 4) == 0 ? bound : random(0, std::min<int64_t>(bound, random(1, 1000))));
      const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
      if (total == 0) continue;
      Problem problem =
          dense_problem({.batch = batch, .seq_q = bound, .seq_kv = 64, .q_heads = 8, .kv_heads = 2});
      problem.set_packed_q(kArrayAddress, total).set_lse(0);
      const Plan plan = plan_of(problem, *kernels, 1 << 20);
      const Config& config = plan.kernel->config;
      const fa4::Packing packing = fa4::pack_heads(problem, config);
      const int64_t positions = config.block_rows() / packing.packed_heads;
      int64_t blocks = 0, longest = 0;
      for (const int64_t length : lengths) {
        blocks += (length + positions - 1) / positions;
        longest = std::max(longest, (length + positions - 1) / positions);
      }
      INFO("batch " << batch << ", bound " << bound << ", total " << total);
      CHECK(blocks <= packing.all_m_blocks);
      CHECK(longest <= packing.m_blocks);
      CHECK(packing.all_m_blocks <= total / positions + batch);
      CHECK(packing.all_m_blocks <= batch * packing.m_blocks);
      CHECK(plan.grid == packing.all_m_blocks * packing.head_groups);
      CHECK(plan.params.order.head_groups.value == packing.head_groups);
      CHECK(plan_of(problem, *kernels, 3).grid == std::min<int64_t>(3, plan.grid));
      CHECK(plan_of(problem.set_max_ctas(2), *kernels, 3).grid == std::min<int64_t>(2, plan.grid));
    }
}

TEST_CASE("packed entries are not taken for as many tasks as their bound allows", "[runtime]") {
  Problem problem = dense_problem({.batch = 1 << 20, .seq_q = 1 << 20, .seq_kv = 64});
  Message message;
  fa4::CheckedProblem checked;
  problem.set_seqused_q(kArrayAddress).set_lse(0);
  CHECK(fa4::check_problem(problem, fa4::blackwell::kKernels, checked, message) == FA4_ERROR_UNSUPPORTED);
  CHECK(std::string(message.text()) ==
        "1 head groups x 4294967296 query blocks of all batch entries are too many tasks; their product may "
        "be at most 2147483647");
  problem.set_packed_q(kArrayAddress, 1 << 24);
  const Plan plan = plan_of(problem, fa4::blackwell::kKernels);
  CHECK(fa4::pack_heads(problem, plan.kernel->config).all_m_blocks == (1 << 20) + (1 << 16));
  CHECK(plan.params.seq_q == 1 << 20);
  CHECK(plan.params.general.total_q == 1 << 24);
  problem.total_q = 100;  // no entry is longer than all of them
  CHECK(plan_of(problem, fa4::blackwell::kKernels).params.seq_q == 100);
}

TEST_CASE("bounds of a band, beyond 32 bits or none", "[runtime]") {
  // With lengths of entries, so that no window comes to a simpler mask.
  const auto band = [](const Problem& problem) {
    const GeneralParams general =
        plan_of(Problem(problem).set_seqused_k(kArrayAddress), fa4::hopper::kKernels).params.general;
    return std::vector<int64_t>{general.left, general.right, int64_t{general.top_left}};
  };
  using Band = std::vector<int64_t>;
  constexpr int64_t none = INT32_MAX;
  const Problem plain = small_problem();
  CHECK(band(plain) == Band{none, none, 0});
  CHECK(band(Problem(plain).set_causal()) == Band{none, 0, 0});
  CHECK(band(Problem(plain).set_causal().set_diagonal_alignment(FA4_DIAGONAL_TOP_LEFT)) == Band{none, 0, 1});
  CHECK(band(Problem(plain).set_window(-1, -1)) == Band{none, none, 0});
  CHECK(band(Problem(plain).set_window(0, 0)) == Band{0, 0, 0});
  CHECK(band(Problem(plain).set_window(7, 9)) == Band{7, 9, 0});
  CHECK(band(Problem(plain).set_window(7, 9).set_causal()) == Band{7, 0, 0});
  CHECK(band(Problem(plain).set_window(7, -1).set_causal()) == Band{7, 0, 0});
  for (const int64_t wide : {none - 1, none, none + 1, int64_t{1} << 32, int64_t{INT64_MAX}}) {
    CHECK(band(Problem(plain).set_window(wide, 5)) == Band{std::min(wide, none), 5, 0});
    CHECK(band(Problem(plain).set_window(5, wide)) == Band{5, std::min(wide, none), 0});
  }
}

TEST_CASE("scales of plain, capped and biased scores", "[runtime]") {
  const auto check = [](const Problem& problem, ScoreKind kind, double before, double behind,
                        double log2_behind) {
    for (const KernelList* kernels : fa4::kArchitectures) {
      const fa4::AttentionParams params = plan_of(problem, *kernels).params;
      CHECK(params.general.score == kind);
      CHECK(params.general.score_scale == float(before));
      CHECK(params.scale == float(behind));
      CHECK(params.scale_log2 == float(log2_behind));
      CHECK(params.negate_scores == (problem.softmax_scale < 0 ? 1u : 0u));
    }
  };
  constexpr double log2e = std::numbers::log2e;
  for (const double given : {0.0, 0.3, -0.3, -1e30, 2e-38}) {
    const double scale = given != 0 ? std::fabs(given) : 1 / std::sqrt(128.0);
    Problem plain = small_problem().set_sinks(kArrayAddress);
    plain.set_softmax_scale(given);
    check(plain, ScoreKind::plain, 1, scale, scale * log2e);
    for (const double cap : {30.0, 0.5, 2e30}) {
      if (scale / cap > 3.4e38 || scale / cap < 1.2e-38) continue;
      check(Problem(plain).set_softcap(cap), ScoreKind::softcap, scale / cap, cap, cap * log2e);
    }
    // Of ALiBi, scores are in units of log2 once they are biased.
    check(Problem(plain).set_alibi_slopes(kArrayAddress), ScoreKind::alibi, scale * log2e, 1 / log2e, 1);
  }
}

TEST_CASE("addresses, totals and strides of a general problem arrive", "[runtime]") {
  Problem problem = small_problem();
  problem.set_alibi_slopes(kArrayAddress + 64, 24).set_sinks(kArrayAddress + 128);
  Plan plan = plan_of(problem, fa4::hopper::kKernels);
  const GeneralParams* general = &plan.params.general;
  CHECK(general->slopes == reinterpret_cast<const float*>(kArrayAddress + 64));
  CHECK(general->slopes_entry_stride == 24);
  CHECK(general->sinks == reinterpret_cast<const float*>(kArrayAddress + 128));
  CHECK(general->cu_seqlens_q == nullptr);
  CHECK(general->cu_seqlens_k == nullptr);
  CHECK(general->seqused_q == nullptr);
  CHECK(general->seqused_k == nullptr);
  CHECK(general->task_counter == nullptr);
  CHECK(general->batch == 2);
  CHECK(plan.params.lse_batch_stride == 800);
  // Entries that are all alike have the static order, LPT as under a causal mask unless the caller says
  // otherwise.
  CHECK(plan.params.order ==
        plan_of(small_problem().set_scheduler(FA4_SCHEDULER_LPT), fa4::hopper::kKernels).params.order);
  problem.set_scheduler(FA4_SCHEDULER_LINEAR);
  CHECK(plan_of(problem, fa4::hopper::kKernels).params.order.kind == fa4::SchedulerKind::linear);

  uint32_t workspace = 0;
  problem.set_packed_q(kArrayAddress, 150)
      .set_packed_k(kArrayAddress + 256, 350)
      .set_seqused_q(kArrayAddress + 512);
  problem.set_seqused_k(kArrayAddress + 768).set_lse(fa4::test::kLseAddress).set_workspace(&workspace, 4);
  plan = plan_of(problem, fa4::hopper::kKernels);
  CHECK(general->cu_seqlens_q == reinterpret_cast<const int32_t*>(kArrayAddress));
  CHECK(general->cu_seqlens_k == reinterpret_cast<const int32_t*>(kArrayAddress + 256));
  CHECK(general->seqused_q == reinterpret_cast<const int32_t*>(kArrayAddress + 512));
  CHECK(general->seqused_k == reinterpret_cast<const int32_t*>(kArrayAddress + 768));
  CHECK(general->total_q == 150);
  CHECK(general->total_k == 350);
  CHECK(general->task_counter == &workspace);
  CHECK(general->keys_in_l2 == (50 << 20) / 512);
  CHECK(plan.params.lse_head_stride == 150);
  problem.lse_batch_stride = 77;  // of packed entries: not used
  CHECK(plan_of(problem, fa4::hopper::kKernels).params.lse_batch_stride == 0);
}
