// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include <algorithm>

#include "../core/builder.h"
#include "../core/inline_calls.h"

namespace fa4::sim {

LoadedProgram::LoadedProgram(std::string ptx_text, Rows rows) : module_(ptx::parse(std::move(ptx_text))), names_(module_) {
  for (const ptx::Variable& v : module_.variables) {
    if (v.space != ptx::Space::global && v.space != ptx::Space::constant) continue;
    variables_.push_back(&v);
    globals_.push_back({v.name, v.size});
  }
  for (const ptx::Function& f : module_.functions) {
    if (!f.is_entry || !f.has_body) continue;
    const bool calls = has_calls(f);
    if (calls) expanded_.push_back(inline_calls(module_, f));
    codes_.push_back(Builder(module_, calls ? expanded_.back() : f, rows).build());
    const Code& code = codes_.back();
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
    entries_.push_back(std::move(info));
  }
}

const Code* LoadedProgram::code(const std::string& entry) const {
  for (const Code& c : codes_) {
    if (c.name == entry) return &c;
  }
  return nullptr;
}

std::shared_ptr<const Program> build_program(std::string ptx_text, Rows rows) {
  return std::make_shared<LoadedProgram>(std::move(ptx_text), rows);
}

}  // namespace fa4::sim
