// SPDX-License-Identifier: Apache-2.0
// The checkers of a launch, one for each cluster (or CTA without one) that runs at a time, and what they found together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "finding.h"

namespace fa4::sim {

class Observer;
namespace check {
class Checker;
class Grid;
}

class Collector {
 public:
  Collector();
  ~Collector();
  Observer* observer(uint32_t slot);  // owned here; from any thread
  // In order of CTA and cycle, one for each pair of instructions; independent of the number of host threads. Ends what
  // was collected so far.
  std::vector<Finding> take();
  // From now on, before anything is watched: what orders accesses that conflict is kept, for these pairs of lines of the PTX or,
  // if there are none, for all.
  void explain(std::set<std::pair<uint32_t, uint32_t>> pairs);
  std::vector<Ordering> take_orderings();
  // FA4SIM_AXIOM_*: what the verdicts so far rest on.
  uint32_t axioms() const { return axioms_; }

 private:
  std::mutex mutex_;
  std::unique_ptr<check::Grid> grid_;
  std::vector<std::unique_ptr<check::Checker>> checkers_;
  uint32_t axioms_ = 0;
  bool explains_ = false;
  std::set<std::pair<uint32_t, uint32_t>> pairs_;
  std::vector<Ordering> orderings_;
};

}  // namespace fa4::sim
