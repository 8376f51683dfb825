// SPDX-License-Identifier: Apache-2.0
// Mutants of the kernel, derived from its PTX: one for each place in the source (with the chain of calls that
// it was inlined through), all unrolled copies and all entries together.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "asm/attention/kernel.h"

namespace fa4::mutation {

struct Mutant {
  std::string kind;   // "remove wait"
  std::string where;  // the source's own words: "cta.bar.q_empty.wait(stage, q_phase) <- load_q(0)"
  std::map<size_t, std::string> lines;  // what stands there instead
};

class KernelText {
 public:
  // The entries of `kernels` alone, which have one layout of barriers; source_root: where the names of .file begin.
  KernelText(const std::string& ptx, const std::vector<const Kernel*>& kernels, const std::string& source_root);

  std::string text() const;
  std::string text(const Mutant& mutant) const;
  // Of all kinds, those of one kind together.
  std::vector<Mutant> mutants() const;

 private:
  struct Site {
    std::string key, where;
    std::vector<std::string> between;  // the lines of the source before and after, from the innermost call on
  };
  Site site(size_t line) const;
  void read_locations();
  void read_strings();
  std::string source_line(unsigned file, unsigned line) const;

  struct Location {
    unsigned file = 0, line = 0, column = 0;
    std::string function;  // symbol
    int caller = -1;       // index into locations_
  };
  const Kernel& kernel_;  // the first
  std::string source_root_;
  std::string dynamic_shared_;  // the symbol of dynamic shared memory
  std::vector<std::string> lines_;
  std::vector<Location> locations_;
  std::vector<int> location_of_line_;
  std::map<unsigned, std::string> files_;
  std::map<std::string, std::string> strings_;  // of .debug_str, by label
  mutable std::map<unsigned, std::vector<std::string>> sources_;
};

}  // namespace fa4::mutation
