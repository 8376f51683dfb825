// SPDX-License-Identifier: Apache-2.0
// How the table of an entry's names is put together; what stands in it, name_table.h of each architecture says. Plain C++.
#pragma once

#include "barrier_row.h"
#include "names.h"

namespace fa4 {

// An array of NameRecord; the last one is the end mark.
template <uint32_t count>
struct NameTable {
  NameRecord record[count + 1];
};

template <uint32_t capacity>
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

  constexpr void add_role(int first_warp, int warps, const char* name, uint32_t digit = 0) {
    add(NameKind::role, static_cast<uint32_t>(first_warp), static_cast<uint32_t>(first_warp + warps), name, digit);
  }

  constexpr void add_shared(int begin, int bytes, const char* name, uint32_t digit = 0) {
    add(NameKind::shared, static_cast<uint32_t>(begin), static_cast<uint32_t>(begin + bytes), name, digit);
  }

  // "name[stage]" for every mbarrier; `first`: byte offset of the first.
  template <uint32_t kinds>
  constexpr void add_barriers(const BarrierRows<kinds>& table, uint32_t first) {
    for (const BarrierRow& row : table.row) {
      char name[sizeof(NameRecord::name)] = {};
      uint32_t length = 0;
      for (const char* c = row.name; *c != 0; ++c) name[length++] = *c;
      name[length++] = '[';
      name[length++] = '%';
      name[length++] = ']';
      for (uint32_t stage = 0; stage < row.stages; ++stage, first += 8)
        add(NameKind::barrier, first, first + 8, name, stage);
    }
  }

  constexpr const NameTable<capacity>& table() const { return table_; }
  constexpr uint32_t count() const { return count_; }

 private:
  NameTable<capacity> table_{};  // all zero: every record past the last is an end mark
  uint32_t count_ = 0;
};

}  // namespace fa4
