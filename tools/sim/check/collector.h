// SPDX-License-Identifier: Apache-2.0
// One checker for each host thread of a launch, and what they found together.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "finding.h"

namespace fa4::sim {

class Observer;
namespace check {
class Checker;
}

class Collector {
 public:
  Collector();
  ~Collector();
  Observer* observer(uint32_t host_thread);  // to be asked from that thread; owned here
  // In order of CTA and cycle, one for each pair of instructions; independent of the number of host threads. Ends what
  // was collected so far.
  std::vector<Finding> take();

 private:
  static constexpr uint32_t kMaxThreads = 1024;
  std::vector<std::unique_ptr<check::Checker>> checkers_;
};

}  // namespace fa4::sim
