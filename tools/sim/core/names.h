// SPDX-License-Identifier: Apache-2.0
// Names of roles, barriers, shared memory and tensor memory that a module brings along in its variable `fa4_names`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../../asm/attention/names.h"
#include "../ptx/module.h"

namespace fa4::sim {

class NameTable {
 public:
  NameTable() = default;
  explicit NameTable(const ptx::Module& module);
  // "" when nothing has a name there.
  std::string find(NameKind kind, int64_t at) const;

 private:
  std::vector<NameRecord> records_;
};

}  // namespace fa4::sim
