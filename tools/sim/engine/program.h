// SPDX-License-Identifier: Apache-2.0
// The Program that build_program makes: the parsed module, its variables, and the code of the entries that have been taken.
#pragma once

#include <deque>
#include <mutex>
#include <optional>
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
  const std::vector<std::string>& entries() const override { return names_of_entries_; }
  const EntryInfo& take(size_t entry) const override;
  const std::vector<GlobalInfo>& globals() const override { return globals_; }

  // Null: no such entry. Throws as take.
  const Code* code(const std::string& entry) const;
  const ptx::Module& module() const { return module_; }
  const ModuleNames& names() const { return names_; }
  const ptx::Variable& global_variable(size_t index) const { return *variables_[index]; }

 private:
  struct Entry {
    const ptx::Function* function;
    std::optional<ptx::Function> expanded;  // with the bodies of the functions that it calls
    std::optional<Code> code;               // once it has been taken
    std::optional<ptx::Error> refusal;      // or this
    EntryInfo info;
  };
  const Entry& taken(size_t entry) const;

  ptx::Module module_;
  const Rows rows_;
  std::vector<std::string> names_of_entries_;
  mutable std::mutex lock_;                // of the entries
  mutable std::deque<Entry> entries_;
  std::vector<GlobalInfo> globals_;
  std::vector<const ptx::Variable*> variables_;
  ModuleNames names_;
};

}  // namespace fa4::sim
