// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>

#include "../core/builder.h"
#include "../core/inline_calls.h"
#include "../ptx/grammar.h"

namespace fa4::sim {

LoadedProgram::LoadedProgram(std::string ptx_text, Rows rows)
    : module_(ptx::parse(std::move(ptx_text))), rows_(rows), names_(module_) {
  ptx::check_instructions(module_);
  check_callees(module_);
  for (const ptx::Variable& v : module_.variables) {
    if (v.space != ptx::Space::global && v.space != ptx::Space::constant) continue;
    variables_.push_back(&v);
    globals_.push_back({v.name, v.size});
  }
  for (const ptx::Function& f : module_.functions) {
    if (!f.is_entry || !f.has_body) continue;
    names_of_entries_.push_back(f.name);
    entries_.push_back({&f, {}, {}, {}, {}});
  }
}

static EntryInfo describe(const ptx::Function& f, const Code& code) {
  EntryInfo info;
  info.name = f.name;
  uint32_t offset = 0;
  for (const ptx::Variable& p : f.params) {
    const uint32_t alignment = std::max({1u, p.alignment, ptx::size_in_bytes(p.type)});
    offset = (offset + alignment - 1) / alignment * alignment;
    info.params.push_back({offset, uint32_t(p.size)});
    offset += uint32_t(p.size);
  }
  info.param_bytes = code.param_bytes;
  info.static_shared_bytes = code.static_shared_bytes;
  info.local_bytes = code.local_bytes;
  info.max_threads = code.max_threads;
  info.registers = code.launch_registers;
  for (int d = 0; d < 3 && f.required_threads[0]; ++d) info.required_block[d] = std::max(1u, f.required_threads[d]);
  std::copy(code.cluster, code.cluster + 3, info.cluster.begin());
  info.max_cluster_rank = code.max_cluster_rank;
  info.explicit_cluster = code.explicit_cluster;
  return info;
}

const LoadedProgram::Entry& LoadedProgram::taken(size_t index) const {
  const std::lock_guard guard(lock_);
  Entry& entry = entries_[index];
  if (entry.refusal) throw *entry.refusal;
  if (entry.code) return entry;
  try {
    if (has_calls(*entry.function)) entry.expanded = inline_calls(module_, *entry.function);
    entry.code = Builder(module_, entry.expanded ? *entry.expanded : *entry.function, rows_).build();
  } catch (const ptx::Error& error) {
    entry.refusal = error;
    throw;
  }
  entry.info = describe(*entry.function, *entry.code);
  return entry;
}

const EntryInfo& LoadedProgram::take(size_t entry) const { return taken(entry).info; }

const Code* LoadedProgram::code(const std::string& entry) const {
  const auto found = std::find(names_of_entries_.begin(), names_of_entries_.end(), entry);
  return found == names_of_entries_.end() ? nullptr : &*taken(size_t(found - names_of_entries_.begin())).code;
}

std::shared_ptr<const Program> build_program(std::string ptx_text, Rows rows) {
  return std::make_shared<LoadedProgram>(std::move(ptx_text), rows);
}

}  // namespace fa4::sim
