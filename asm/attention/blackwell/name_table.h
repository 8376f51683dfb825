// SPDX-License-Identifier: Apache-2.0
// The rows of an entry's names: roles, barriers, shared memory and TMEM by name, made from layout.h and
// barrier_table.h so that they cannot disagree with the kernel. Plain C++: the kernel embeds it, `fa4 info`
// prints it.
#pragma once

#include "../names.h"
#include "layout.h"

namespace fa4 {

// How many names there are: a role for each Q stage and five more; a range for each tile and message buffer, and two more;
// S, P and O.
constexpr uint32_t name_count(const Config& config) {
  const uint32_t stages = static_cast<uint32_t>(config.q_stages);
  return (stages + 5) + barrier_table(config).slots() + (2 * stages + static_cast<uint32_t>(config.kv_slots) + 2 * stages + 2) +
         (4 + stages);
}

// The same bytes as an array of NameRecord; the last one is the end mark.
template <Config config>
struct NameTable {
  NameRecord record[name_count(config) + 1];
};

template <Config config>
class NameTableBuilder {
 public:
  // `name` with "%" replaced by one decimal digit.
  constexpr void add(NameKind kind, uint32_t begin, uint32_t end, const char* name, uint32_t digit = 0) {
    NameRecord& r = table_.record[count_++];
    r.kind = kind;
    r.begin = begin;
    r.end = end;
    for (uint32_t i = 0; name[i] != 0; ++i)
      r.name[i] = name[i] == '%' ? static_cast<char>('0' + digit) : name[i];
  }

  // "name[stage]"
  constexpr void add_barrier(uint32_t id, uint32_t stage) {
    constexpr BarrierTable table = barrier_table(config);
    const uint32_t offset = barrier_offset<config>(static_cast<BarrierId>(id), stage);
    char name[sizeof(NameRecord::name)] = {};
    uint32_t length = 0;
    for (const char* c = table.row[id].name; *c != 0; ++c) name[length++] = *c;
    name[length++] = '[';
    name[length++] = '%';
    name[length++] = ']';
    add(NameKind::barrier, offset, offset + 8, name, stage);
  }

  constexpr void add_shared(int begin, int bytes, const char* name, uint32_t digit = 0) {
    add(NameKind::shared, static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + bytes), name, digit);
  }

  constexpr const NameTable<config>& table() const { return table_; }
  constexpr uint32_t count() const { return count_; }

 private:
  NameTable<config> table_{};  // all zero: every record past the last is an end mark
  uint32_t count_ = 0;
};

template <Config config>
constexpr NameTableBuilder<config> build_name_table() {
  using L = Layout<config>;
  NameTableBuilder<config> b;
  for (int i = 0; i < config.q_stages; ++i)
    b.add(NameKind::role, L::softmax_warp + 4 * i, L::softmax_warp + 4 * i + 4, "softmax %", i);
  b.add(NameKind::role, L::correction_warp, L::correction_warp + 4, "correction");
  b.add(NameKind::role, L::mma_warp, L::mma_warp + 1, "mma");
  b.add(NameKind::role, L::load_warp, L::load_warp + 1, "load");
  b.add(NameKind::role, L::store_warp, L::store_warp + 1, "store");
  b.add(NameKind::role, L::idle_warp, L::idle_warp + 1, "idle");

  for (uint32_t id = 0; id < BarrierTable::kinds; ++id) {
    for (uint32_t stage = 0; stage < barrier_table(config).row[id].stages; ++stage) b.add_barrier(id, stage);
  }

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

  for (int i = 0; i < 2; ++i) {
    const int s = L::s_column + i * L::s_stage_columns, p = L::p_column + i * L::s_stage_columns;
    b.add(NameKind::tmem, s, s + L::s_stage_columns, "S%", i);
    b.add(NameKind::tmem, p, p + L::p_columns, "P%", i);
  }
  for (int i = 0; i < config.q_stages; ++i) {
    const int o = L::o_column + i * L::o_stage_columns;
    b.add(NameKind::tmem, o, o + L::o_stage_columns, "O%", i);
  }
  return b;
}

template <Config config>
constexpr NameTable<config> make_name_table() {
  static_assert(build_name_table<config>().count() == name_count(config));
  return build_name_table<config>().table();
}

}  // namespace fa4
