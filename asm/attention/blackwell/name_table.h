// SPDX-License-Identifier: Apache-2.0
// The rows of an entry's names: roles, barriers, shared memory and TMEM by name, made from layout.h and
// barrier_table.h so that they cannot disagree with the kernel. Plain C++: the kernel embeds it, `fa4 info`
// prints it.
#pragma once

#include "../name_table_builder.h"
#include "layout.h"

namespace fa4::blackwell {

// How many names there are: a role for each Q stage and five more; a range for each tile and message buffer, and two more;
// S, P and O.
constexpr uint32_t name_count(const Config& config) {
  const uint32_t stages = static_cast<uint32_t>(config.q_stages);
  return (stages + 5) + barrier_table(config).slots() + (2 * stages + static_cast<uint32_t>(config.kv_slots) + 2 * stages + 2) +
         static_cast<uint32_t>(task_slots(config)) + (2 * static_cast<uint32_t>(s_buffers(config)) + stages);
}

template <Config config>
constexpr NameTableBuilder<name_count(config)> build_name_table() {
  using L = Layout<config>;
  NameTableBuilder<name_count(config)> b;
  for (int i = 0; i < config.q_stages; ++i)
    b.add_role(L::softmax_warp + 4 * i, 4, "softmax %", i);
  b.add_role(L::correction_warp, 4, "correction");
  b.add_role(L::mma_warp, 1, "mma");
  b.add_role(L::load_warp, 1, "load");
  b.add_role(L::store_warp, 1, "store");
  b.add_role(L::scheduler_warp, 1, config.general() ? "scheduler" : "idle");

  b.add_barriers(barrier_table(config), L::barriers_offset);

  for (int i = 0; i < config.q_stages; ++i)
    b.add_shared(L::q_offset + i * config.q_tile_bytes(), config.q_tile_bytes(), "sQ stage %", i);
  for (int i = 0; i < config.kv_slots; ++i) {  // by the K tile; V, where smaller, lies in it or beside it
    b.add_shared(L::kv_offset + L::k_slot_offset(i), config.k_tile_bytes(), "sKV slot %", i);
  }
  for (int i = 0; i < config.q_stages; ++i)
    b.add_shared(L::o_offset + i * L::o_stage_bytes, config.o_tile_bytes(), "sO stage %", i);
  constexpr int row_bytes = kTileRows * 4;
  for (int i = 0; i < config.q_stages; ++i)
    b.add_shared(L::scale_or_sum_offset + i * row_bytes, row_bytes, "scale or row_sum, stage %", i);
  for (int i = 0; i < config.q_stages; ++i)
    b.add_shared(L::row_max_offset + i * row_bytes, row_bytes, "row_max, stage %", i);
  b.add_shared(L::barriers_offset, L::barriers_bytes, "barriers");
  b.add_shared(L::tmem_base_offset, 4, "TMEM base");
  constexpr int record_bytes = sizeof(TaskRecord);
  for (int i = 0; i < task_slots(config); ++i) b.add_shared(L::task_offset + i * record_bytes, record_bytes, "task record %", i);

  for (int i = 0; i < L::s_buffers; ++i) {
    const int s = L::s_column + i * L::s_columns, p = L::p_column + i * L::s_columns;
    b.add(NameKind::tmem, s, s + L::s_columns, "S%", i);
    b.add(NameKind::tmem, p, p + L::p_columns, "P%", i);
  }
  for (int i = 0; i < config.q_stages; ++i) {
    const int o = L::o_column + i * L::o_stage_columns;
    b.add(NameKind::tmem, o, o + L::o_stage_columns, "O%", i);
  }
  return b;
}

template <Config config>
constexpr NameTable<name_count(config)> make_name_table() {
  static_assert(build_name_table<config>().count() == name_count(config));
  return build_name_table<config>().table();
}

}  // namespace fa4::blackwell
