// SPDX-License-Identifier: Apache-2.0
// From a recorded run and a disassembly to what the machine replays: each warp's way through the machine
// code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine.h"
#include "match.h"
#include "work.h"

namespace fa4::time {

struct Replay {
  Program program;
  SyncGraph ptx, sass;
  Matching matching;
  std::vector<std::vector<Work>> work;       // [warp][step]: what the warp did up to its end, by the PTX
  std::vector<std::vector<uint32_t>> nodes;  // [warp][step]: node of the machine code; 1 at the end
  // Pairs of synchronising instructions that follow each other, and those between which the machine code has
  // more than one way. Of these a warp took the one whose work is closest to what it did in the PTX between
  // the two.
  uint32_t stretches = 0, stretches_with_choice = 0;
};

// `records`: of one CTA, in order, all its warps. Throws Error where the machine code does not match.
Replay make_replay(const Function& sass, const sim::ptx::Function& ptx,
                   const std::vector<fa4sim_sync>& records, const Gpu& gpu);

}  // namespace fa4::time
