// SPDX-License-Identifier: Apache-2.0
// Runs a text of the kernel under the happens-before checker in a fixed set of configurations, first with
// nominal timing and then with adversarial seeds, and says what gave it away: a fault, a finding, wrong
// numbers, or other numbers than before.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "asm/attention/kernels.h"
#include "support/compare.h"
#include "support/inputs.h"
#include "support/staging.h"
#include "tests/sim/engine/kernel.h"
#include "tools/sim/check/finding.h"

namespace fa4::mutation {

// Which kernels are looked at: those of fp16 and one head dimension, either the full and the causal one or the general one.
struct Subject {
  const KernelList& list;
  int head_dim;
  bool general;
  // Those that the configurations launch.
  std::vector<const Kernel*> kernels() const;
};

struct Verdict {
  enum class By { nobody, load, fault, error, warning, numbers, timing };
  By by = By::nobody;
  std::string sentence;  // the report's head, on one line
  std::string run;       // configuration and timing in which it was seen
  std::string actors = {};  // of the accesses of a finding; "" for anything else
  bool killed() const { return by != By::nobody; }
};
const char* name_of(Verdict::By by);

class Judge {
 public:
  Judge(const Subject& subject, uint32_t seeds);
  // Stops at the first thing that is wrong.
  Verdict judge(const std::string& ptx) const;
  // In each configuration, with nominal timing: what orders accesses that conflict, for these pairs of lines
  // of the PTX or for all if there are none.
  struct Explained {
    std::string configuration;
    std::vector<sim::Ordering> orderings;
  };
  std::vector<Explained> explain(const std::string& ptx,
                                 const std::set<std::pair<uint32_t, uint32_t>>& pairs) const;
  uint32_t configurations() const { return uint32_t(configs_.size()); }
  uint32_t seeds() const { return seeds_; }

 private:
  struct Config {
    support::Problem problem;
    uint32_t ctas;  // at most
    bool lpt;
    support::Inputs inputs;
    support::Reference expected;
    support::Tolerance tolerance;
  };
  support::Output run(sim::test::Kernel& kernel, const Config& config) const;
  static std::string wrong_numbers(const Config& config, const support::Output& output);
  void add(const support::Problem& problem, uint32_t ctas, bool lpt, support::Inputs inputs);
  void add_plain();
  void add_general();

  const Subject subject_;
  std::vector<Config> configs_;
  uint32_t seeds_;
};

}  // namespace fa4::mutation
