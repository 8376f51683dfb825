// SPDX-License-Identifier: Apache-2.0
// The phases of mbarriers and named barriers that a recorded run went through: how many signals complete each
// is known before anything is replayed.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "machine.h"

namespace fa4::time {

struct Phase {
  uint32_t address = 0;
  int32_t number = 0;
  uint32_t missing = 0, woken = 0;
  uint64_t time = 0;  // of the last signal so far
  Signal last;
  struct Waiter {
    uint32_t warp;
    uint64_t begin;
    uint8_t scoreboard;  // 7: the warp stands at a named barrier
  };
  std::vector<Waiter> waiters;
};
inline constexpr uint32_t kNoPhase = ~0u;

class Phases {
 public:
  // The phase of each record of a way; kNoPhase where it has none. All ways are asked for before any check.
  std::vector<uint32_t> of(const WarpWay& way);
  // Throws Error when nothing completes one of them.
  void check(uint32_t warp, const std::vector<uint32_t>& phases) const;
  Phase& operator[](uint32_t id) { return phases_[id]; }

 private:
  uint32_t id(uint32_t address, int32_t number);

  std::vector<Phase> phases_;
  std::unordered_map<uint64_t, uint32_t> ids_;
};

}  // namespace fa4::time
