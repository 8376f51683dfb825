// SPDX-License-Identifier: Apache-2.0
// One value, and all that follows from it: the layouts of Blackwell's kernels, among them those whose tiles are unlike, whose O lies
// over Q, or which have one Q stage.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "asm/attention/kernels.h"
#include "support/catch.h"

namespace {

using fa4::Config;
using fa4::ElementType;
using fa4::MaskKind;
using fa4::OPlace;

using Range = std::pair<int, int>;

bool disjoint(std::vector<Range> ranges, int end) {
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].first < 0 || ranges[i].first >= ranges[i].second || ranges[i].second > end) return false;
    if (i > 0 && ranges[i].first < ranges[i - 1].second) return false;
  }
  return true;
}

template <Config config>
void check_layout() {
  using L = fa4::blackwell::Layout<config>;
  INFO("head dimensions " << config.qk_dim << " and " << config.v_dim);
  // Tensor memory: two S or three, an O for each Q stage, P in its S.
  CHECK(L::s_buffers == (config.v_dim == 64 ? 3 : 2));
  CHECK(L::scores_ahead == (config.v_dim == 64 || config.v_dim == 256));
  std::vector<Range> columns;
  for (int i = 0; i < L::s_buffers; ++i) {
    const int s = L::s_column + i * L::s_columns, p = L::p_column + i * L::s_columns;
    columns.push_back({s, s + config.block_keys});
    CHECK((p >= s && p + config.block_keys / 2 <= s + config.block_keys));
  }
  for (int i = 0; i < config.q_stages; ++i)
    columns.push_back(
        {L::o_column + i * L::o_stage_columns, L::o_column + i * L::o_stage_columns + config.v_dim});
  CHECK(disjoint(columns, 512));

  // Tiles are of whole pieces of 64 columns.
  const int qk_columns = (config.qk_dim + 63) / 64 * 64, v_columns = (config.v_dim + 63) / 64 * 64;
  CHECK((config.qk_dim % 16 == 0 && config.v_dim % 16 == 0 && L::score_steps == config.qk_dim / 16));

  // Shared memory, with the ring as it is when its slots hold K and V in turn, K first or V first.
  for (const int first : {0, 1}) {
    std::vector<Range> bytes;
    const auto add = [&](int begin, int size) { bytes.push_back({begin, begin + size}); };
    for (int i = 0; i < config.q_stages; ++i)
      add(L::q_offset + i * config.q_tile_bytes(), 128 * qk_columns * 2);
    for (int slot = 0; slot < config.kv_slots; ++slot) {
      const bool is_v = (slot + first) % 2 != 0;
      add(L::kv_offset + (is_v ? L::v_slot_offset(slot) : L::k_slot_offset(slot)),
          config.block_keys * (is_v ? v_columns : qk_columns) * 2);
    }
    for (int i = 0; i < config.q_stages; ++i) {
      const int o = L::o_offset + i * L::o_stage_bytes, size = 128 * v_columns * 2;
      if (config.o_place == OPlace::own) {
        add(o, size);
      } else {
        CHECK((o == i * config.q_tile_bytes() && size <= config.q_tile_bytes()));
      }
    }
    add(L::scale_or_sum_offset, config.q_stages * 512);
    add(L::row_max_offset, config.q_stages * 512);
    add(L::barriers_offset, L::barriers_bytes);
    add(L::tmem_base_offset, 4);
    CHECK(disjoint(bytes, L::shared_bytes));
  }
  CHECK(L::shared_bytes <= 232448);
  // A launch gives all threads as many registers, a multiple of 8, and the roles share these out.
  CHECK(L::threads == 128 * (config.q_stages + 2));
  CHECK(128 * (config.q_stages * L::softmax_registers + L::correction_registers + L::other_registers) ==
        (config.q_stages == 2 ? 512 * 128 : 384 * 168));
  for (const int registers : {L::softmax_registers, L::correction_registers, L::other_registers})
    CHECK((registers % 8 == 0 && registers >= 24 && registers <= 256));

  // The bytes that complete a phase are those of the tiles.
  const fa4::blackwell::BarrierTable table = fa4::blackwell::barrier_table(config);
  CHECK(table[fa4::blackwell::BarrierId::q_full].bytes == uint32_t(128 * qk_columns * 2));
  CHECK(table[fa4::blackwell::BarrierId::kv_full].bytes == uint32_t(config.block_keys * qk_columns * 2));
  CHECK(int(table[fa4::blackwell::BarrierId::kv_full].stages) == config.kv_slots);
  CHECK(int(table[fa4::blackwell::BarrierId::s_ready].stages) == L::s_buffers);
  CHECK(int(table[fa4::blackwell::BarrierId::q_empty].stages) == (config.o_place == OPlace::own ? config.q_stages : 0));

  // K and V in turn, in the slots of the ring: a load waits for what its slot held, and so for all that was loaded before that. If it
  // covers something loaded since, that is what the next slot holds, and reaches_next_slot says so.
  const auto tile = [](int load) {
    const int slot = load % config.kv_slots, begin = load % 2 == 0 ? L::k_slot_offset(slot) : L::v_slot_offset(slot);
    return Range{begin, begin + (load % 2 == 0 ? config.k_tile_bytes() : config.v_tile_bytes())};
  };
  for (int load = config.kv_slots; load < 8 * config.kv_slots; ++load) {
    INFO("load " << load);
    const auto [begin, end] = tile(load);
    bool reaches = false;
    for (int before = load - config.kv_slots + 1; before < load; ++before) {
      if (tile(before).first >= end || begin >= tile(before).second) continue;
      CHECK(before == load - config.kv_slots + 1);
      reaches = true;
    }
    CHECK(L::reaches_next_slot(load % config.kv_slots, end - begin) == reaches);
  }
}

template <int qk_dim, int v_dim>
inline constexpr Config kConfig = fa4::blackwell::make_config(ElementType::bf16, MaskKind::causal, qk_dim, v_dim);

}  // namespace

TEST_CASE("layouts follow from a specialisation's value", "[config]") {
  check_layout<kConfig<64, 64>>();
  check_layout<kConfig<96, 96>>();
  check_layout<kConfig<128, 128>>();
  check_layout<kConfig<192, 128>>();
  check_layout<kConfig<256, 256>>();
}

TEST_CASE("unlike head dimensions: O over Q, unlike tiles in one ring, all of tensor memory", "[config]") {
  using L = fa4::blackwell::Layout<kConfig<192, 128>>;
  CHECK(kConfig<192, 128>.q_stages == 2);
  CHECK(kConfig<192, 128>.o_place == OPlace::over_q);
  CHECK(kConfig<192, 128>.k_tile_bytes() == 48 * 1024);
  CHECK(kConfig<192, 128>.v_tile_bytes() == 32 * 1024);
  CHECK(L::ring_bytes == 128 * 1024);
  CHECK(L::used_columns == 512);
}

TEST_CASE("head dimension 256: one Q stage", "[config]") {
  using L = fa4::blackwell::Layout<kConfig<256, 256>>;
  CHECK(kConfig<256, 256>.q_stages == 1);
  CHECK(kConfig<256, 256>.o_place == OPlace::over_q);
  CHECK(kConfig<256, 256>.q_tile_bytes() == 64 * 1024);
  CHECK(L::used_columns == 512);
}

TEST_CASE("the list of specialisations", "[config]") {
  for (const fa4::KernelList* list : fa4::kArchitectures) {
   std::set<std::string> entries;
   for (const fa4::Kernel& kernel : *list) {
    CHECK(entries.insert(kernel.entry).second);
    const Config& c = kernel.config;
    CHECK(list->find(c.element, c.mask, c.qk_dim, c.v_dim, 1 << 20) == (kernel.most_rows == 0 ? &kernel : list->find(c.element, c.mask, c.qk_dim, c.v_dim, 1025)));
    if (kernel.most_rows != 0) CHECK(list->find(c.element, c.mask, c.qk_dim, c.v_dim, kernel.most_rows) == &kernel);
    // The name says what it is.
    const std::string name = kernel.entry;
    CHECK((name.find(c.element == ElementType::bf16 ? "_bf16_" : "_f16_") != std::string::npos));
    const char* const mask = c.mask == MaskKind::full ? "_full" : c.mask == MaskKind::causal ? "_causal" : "_general";
    CHECK((name.find(mask) != std::string::npos));
    CHECK(c.general() == (c.mask == MaskKind::band));
   }
   CHECK(list->find(ElementType::f16, MaskKind::full, 7, 7, 1) == nullptr);
   for (const fa4::Kernel& kernel : *list) {
     CHECK(kernel.config.exp2 == list->exp2);
     CHECK((std::string(kernel.entry).ends_with("_polynomial") == (list->exp2 == fa4::Exp2::polynomial)));
   }
   if (list->other_exp2 == nullptr) continue;
   // The same kernels in the same order but for that.
   REQUIRE(list->other_exp2->count == list->count);
   CHECK(list->other_exp2->other_exp2 == list);
   CHECK(list->other_exp2->exp2 != list->exp2);
   for (uint32_t i = 0; i < list->count; ++i) {
     const Config &a = list->first[i].config, &b = list->other_exp2->first[i].config;
     CHECK((a.element == b.element && a.mask == b.mask && a.qk_dim == b.qk_dim && a.v_dim == b.v_dim));
   }
  }
  CHECK(fa4::kernels_for(90) == &fa4::hopper::kKernels);
  CHECK(fa4::kernels_for(100) == &fa4::blackwell::kPolynomialKernels);
  CHECK(fa4::kernels_for(103) == &fa4::blackwell::kKernels);
  CHECK(fa4::kernels_for(80) == nullptr);
  CHECK(fa4::kernels_for(120) == nullptr);
}
