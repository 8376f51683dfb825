// SPDX-License-Identifier: Apache-2.0
// Names of roles, barriers, shared memory and tensor memory of a kernel, which its module brings along in the variable
// `<entry>_names`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../../../asm/attention/names.h"
#include "../ptx/module.h"

namespace fa4::sim {

class NameTable {
 public:
  NameTable() = default;
  explicit NameTable(const ptx::Variable& variable);
  // "" when nothing has a name there.
  std::string find(NameKind kind, int64_t at) const;

 private:
  std::vector<NameRecord> records_;
};

// The tables of a module, by entry.
class ModuleNames {
 public:
  explicit ModuleNames(const ptx::Module& module);
  const NameTable& of(const std::string& entry) const;  // an empty one where the module has none

 private:
  std::map<std::string, NameTable> tables_;
  NameTable none_;
};

}  // namespace fa4::sim
