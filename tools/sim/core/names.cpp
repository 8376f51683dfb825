// SPDX-License-Identifier: Apache-2.0
#include "names.h"

#include <cstring>

namespace fa4::sim {

NameTable::NameTable(const ptx::Variable& v) {
  for (size_t at = 0; at + sizeof(NameRecord) <= v.initializer.size(); at += sizeof(NameRecord)) {
    NameRecord record;
    std::memcpy(&record, v.initializer.data() + at, sizeof record);
    if (record.kind == NameKind::end) break;
    record.name[sizeof record.name - 1] = 0;
    records_.push_back(record);
  }
}

ModuleNames::ModuleNames(const ptx::Module& module) {
  for (const ptx::Function& f : module.functions) {
    if (!f.is_entry) continue;
    for (const ptx::Variable& v : module.variables) {
      if (v.name == f.name + "_names") tables_.emplace(f.name, NameTable(v));
    }
  }
}

const NameTable& ModuleNames::of(const std::string& entry) const {
  const auto found = tables_.find(entry);
  return found == tables_.end() ? none_ : found->second;
}

std::string NameTable::find(NameKind kind, int64_t at) const {
  const NameRecord* best = nullptr;  // the narrowest range that holds it
  for (const NameRecord& r : records_) {
    if (r.kind != kind || at < int64_t(r.begin) || at >= int64_t(r.end)) continue;
    if (!best || r.end - r.begin < best->end - best->begin) best = &r;
  }
  return best ? best->name : std::string();
}

}  // namespace fa4::sim
