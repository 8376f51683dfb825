// SPDX-License-Identifier: Apache-2.0
// The checkers of a launch, one for each CTA that runs at a time, and what they found together.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
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
  // Whether what was watched so far rests on the axiom of the order of MMAs.
  bool used_mma_axiom() const { return used_mma_axiom_; }

 private:
  std::mutex mutex_;
  std::unique_ptr<check::Grid> grid_;
  std::vector<std::unique_ptr<check::Checker>> checkers_;
  bool used_mma_axiom_ = false;
};

}  // namespace fa4::sim
