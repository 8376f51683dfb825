// SPDX-License-Identifier: Apache-2.0
// The Program that build_program makes: the parsed module, the code of every entry, and the module's variables.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "../core/names.h"
#include "../core/op.h"
#include "../ptx/module.h"
#include "device.h"

namespace fa4::sim {

class LoadedProgram final : public Program {
 public:
  LoadedProgram(std::string ptx_text, Rows rows);
  const std::vector<EntryInfo>& entries() const override { return entries_; }
  const std::vector<GlobalInfo>& globals() const override { return globals_; }

  const Code* code(const std::string& entry) const;  // nullptr: no such entry
  const ptx::Module& module() const { return module_; }
  const ModuleNames& names() const { return names_; }
  const ptx::Variable& global_variable(size_t index) const { return *variables_[index]; }

 private:
  ptx::Module module_;
  std::deque<ptx::Function> expanded_;  // entries with the bodies of the functions that they call
  std::vector<EntryInfo> entries_;
  std::vector<GlobalInfo> globals_;
  std::vector<const ptx::Variable*> variables_;
  std::vector<Code> codes_;
  ModuleNames names_;
};

}  // namespace fa4::sim
