// SPDX-License-Identifier: Apache-2.0
// The rows of an entry's names: roles, barriers and shared memory by name, made from layout.h and barrier_table.h so that
// they cannot disagree with the kernel. Plain C++: the kernel embeds it, `fa4 info` prints it.
#pragma once

#include "../name_table_builder.h"
#include "layout.h"

namespace fa4::hopper {

// How many names there are: a role for each consumer and four more; a range for each Q tile, each slot of the ring and
// each task record, and one for the barriers.
constexpr uint32_t name_count(const Config& config) {
  const uint32_t consumers = static_cast<uint32_t>(config.q_stages);
  return (consumers + 4) + barrier_table(config).slots() +
         (static_cast<uint32_t>(q_tiles(config)) * consumers + static_cast<uint32_t>(config.kv_slots) + kQSlots + 1) +
         (config.general() ? static_cast<uint32_t>(kQSlots + kTaskSlots) : 0) + (config.o_place == OPlace::ring ? 1 : 0);
}

template <Config config>
constexpr NameTableBuilder<name_count(config)> build_name_table() {
  using L = Layout<config>;
  NameTableBuilder<name_count(config)> b;
  b.add_role(L::load_warp, 1, "load");
  b.add_role(L::query_warp, 1, "query");
  b.add_role(L::store_warp, 1, "store");
  b.add_role(L::scheduler_warp, 1, config.general() ? "scheduler" : "idle");
  for (int i = 0; i < L::consumers; ++i) b.add_role(L::consumer_warp + 4 * i, 4, "consumer %", i);

  b.add_barriers(barrier_table(config), L::barriers_offset);

  for (int i = 0; i < L::q_tiles * L::consumers; ++i)
    b.add_shared(L::q_offset + i * config.q_tile_bytes(), config.q_tile_bytes(),
                 i < L::consumers ? "sQ slot 0, consumer %" : "sQ slot 1, consumer %", i % L::consumers);
  for (int i = 0; i < config.kv_slots; ++i) {
    if (!L::rings_apart) b.add_shared(L::kv_offset + L::k_slot_offset(i), config.k_tile_bytes(), "sKV slot %", i);
    else if (i < L::ring_slots) b.add_shared(L::kv_offset + L::k_slot_offset(i), config.k_tile_bytes(), "sK slot %", i);
    else b.add_shared(L::kv_offset + L::v_slot_offset(i), config.v_tile_bytes(), "sV slot %", i - L::ring_slots);
  }
  b.add_shared(L::barriers_offset, L::barriers_bytes, "barriers");
  constexpr int record_bytes = sizeof(typename L::QRecord), entry_bytes = sizeof(typename L::QEntryRecord);
  for (int i = 0; i < kQSlots; ++i) b.add_shared(L::task_offset + i * record_bytes, record_bytes, "task of Q slot %", i);
  for (int i = 0; i < L::q_entry_records; ++i) b.add_shared(L::entry_offset + i * entry_bytes, entry_bytes, "entry of Q slot %", i);
  constexpr int ring_bytes = sizeof(TaskRecord);
  for (int i = 0; i < task_slots(config); ++i) b.add_shared(L::ring_offset + i * ring_bytes, ring_bytes, "task record %", i);
  if (L::o_in_ring) b.add_shared(L::o_slot_offset, L::o_slots_bytes, "slots of O");
  return b;
}

template <Config config>
constexpr NameTable<name_count(config)> make_name_table() {
  static_assert(build_name_table<config>().count() == name_count(config));
  return build_name_table<config>().table();
}

}  // namespace fa4::hopper
