// SPDX-License-Identifier: Apache-2.0
// What the prediction hangs on: the same replay with each number that is not known at both ends of its range.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "way.h"

namespace fa4::time {

struct Variation {
  std::string what;  // "MUFU latency 40 cycles"
  std::string source;
  uint64_t cycles;  // of the launch
};
struct Band {
  uint64_t low, high;  // cycles, over all variations
  std::vector<Variation> variations;
};

// Leaves the replay decoded for `gpu`. `nominal`: cycles with the numbers as they are. On a measured GPU only
// the arbitration among three or four busy warps is varied.
Band band(Replay& replay, const Function& sass, const Gpu& gpu, uint64_t nominal);

}  // namespace fa4::time
