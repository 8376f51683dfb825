// SPDX-License-Identifier: Apache-2.0
// Which synchronising instruction of the machine code is which one of the PTX, and the way through the
// machine code of a warp whose way through the PTX is known.
//
// Each node of the machine code is a copy of one node of the PTX, such that whatever may follow the copy may
// follow the original (a homomorphism of the two graphs), and each node of the PTX has a copy. What follows
// only if a guard in between is false is not asked for: of several guards of one branch of the PTX no one is
// false alone. Where that leaves a choice, nothing is guessed silently: `ambiguous` counts the nodes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sync.h"

namespace fa4::time {

struct Matching {
  std::vector<std::vector<uint32_t>>
      originals;           // [node of the machine code]: nodes of the PTX; empty: not reached
  uint32_t ambiguous = 0;  // nodes with more than one
};

// Throws Error, with both lists around the place, where the graphs do not match.
Matching match(const SyncGraph& ptx, const SyncGraph& sass);

// The nodes of the machine code that a warp executes, one for each of `executed` (nodes of the PTX, in order,
// without entry and end). Of several ways, the one with the fewest nodes that are no first attempt. Throws
// Error with both lists where there is none.
std::vector<uint32_t> follow(const SyncGraph& ptx, const SyncGraph& sass, const Matching& matching,
                             std::span<const uint32_t> executed);

}  // namespace fa4::time
