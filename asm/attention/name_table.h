// SPDX-License-Identifier: Apache-2.0
// The rows of `fa4_names`: roles, barriers, shared memory and TMEM by name, made from tile.h and
// barrier_table.h so that they cannot disagree with the kernel. Plain C++: the kernel embeds it, `fa4 info`
// prints it.
#pragma once

#include "names.h"
#include "tile.h"

namespace fa4 {

inline constexpr uint32_t kRoleNames = 7;
inline constexpr uint32_t kSharedNames = kQStages + kKvStages + kQStages + 2 * kQStages + 2;
inline constexpr uint32_t kTmemNames = 3 * kQStages;
inline constexpr uint32_t kNameRecords = kRoleNames + kBarrierSlots + kSharedNames + kTmemNames + 1;

// The same bytes as NameRecord[kNameRecords]; the last one is the end mark.
struct NameTable {
  NameRecord record[kNameRecords];
};

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
  constexpr void add_barrier(BarrierId id, uint32_t stage) {
    char name[sizeof(NameRecord::name)] = {};
    uint32_t length = 0;
    for (const char* c = barrier_row(id).name; *c != 0; ++c) name[length++] = *c;
    name[length++] = '[';
    name[length++] = '%';
    name[length++] = ']';
    add(NameKind::barrier, barrier_offset(id, stage), barrier_offset(id, stage) + 8, name, stage);
  }

  constexpr void add_shared(size_t begin, size_t bytes, const char* name, uint32_t digit = 0) {
    add(NameKind::shared, static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + bytes), name, digit);
  }

  constexpr const NameTable& table() const { return table_; }
  constexpr uint32_t count() const { return count_; }

 private:
  NameTable table_{};  // all zero: every record past the last is an end mark
  uint32_t count_ = 0;
};

constexpr NameTableBuilder build_name_table() {
  NameTableBuilder b;
  b.add(NameKind::role, kSoftmaxWarp, kSoftmaxWarp + 4, "softmax 0");
  b.add(NameKind::role, kSoftmaxWarp + 4, kSoftmaxWarp + 8, "softmax 1");
  b.add(NameKind::role, kCorrectionWarp, kCorrectionWarp + 4, "correction");
  b.add(NameKind::role, kMmaWarp, kMmaWarp + 1, "mma");
  b.add(NameKind::role, kLoadWarp, kLoadWarp + 1, "load");
  b.add(NameKind::role, kStoreWarp, kStoreWarp + 1, "store");
  b.add(NameKind::role, kIdleWarp, kIdleWarp + 1, "idle");

  for (const BarrierRow& row : kBarriers) {
    for (uint32_t stage = 0; stage < row.stages; ++stage) b.add_barrier(row.id, stage);
  }

  for (uint32_t i = 0; i < kQStages; ++i)
    b.add_shared(offsetof(SharedMap, q) + i * kTileBytes, kTileBytes, "sQ stage %", i);
  for (uint32_t i = 0; i < kKvStages; ++i)
    b.add_shared(offsetof(SharedMap, kv) + i * kTileBytes, kTileBytes, "sKV slot %", i);
  for (uint32_t i = 0; i < kQStages; ++i)
    b.add_shared(offsetof(SharedMap, o) + i * kTileBytes, kTileBytes, "sO stage %", i);
  constexpr uint32_t row_bytes = kTileRows * sizeof(float);
  for (uint32_t i = 0; i < kQStages; ++i) {
    b.add_shared(offsetof(SharedMap, scale_or_sum) + i * row_bytes, row_bytes, "scale or row_sum, stage %",
                 i);
  }
  for (uint32_t i = 0; i < kQStages; ++i) {
    b.add_shared(offsetof(SharedMap, row_max) + i * row_bytes, row_bytes, "row_max, stage %", i);
  }
  b.add_shared(offsetof(SharedMap, barriers), sizeof(SharedMap::barriers), "barriers");
  b.add_shared(offsetof(SharedMap, tmem_base), sizeof(SharedMap::tmem_base), "TMEM base");

  for (uint32_t i = 0; i < kQStages; ++i) {
    const uint32_t stage = i * kTmemStage;
    b.add(NameKind::tmem, kTmemS + stage, kTmemS + stage + kBlockKeys, "S%", i);
    b.add(NameKind::tmem, kTmemP + stage, kTmemP + stage + kPColumns, "P%", i);
    b.add(NameKind::tmem, kTmemO + stage, kTmemO + stage + kHeadDim, "O%", i);
  }
  return b;
}

constexpr NameTable make_name_table() {
  return build_name_table().table();
}
static_assert(build_name_table().count() + 1 == kNameRecords);

}  // namespace fa4
