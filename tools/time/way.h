// SPDX-License-Identifier: Apache-2.0
// From a recorded run and a disassembly to what the machine replays: each warp's way through the machine
// code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine.h"
#include "match.h"

namespace fa4::time {

struct Replay {
  Program program;
  SyncGraph ptx, sass;
  Matching matching;
  std::vector<std::vector<uint32_t>> nodes;  // [warp][step]: node of the machine code; 1 at the end
  // Segments that hold a branch with several ways to the same next synchronising instruction. The program has
  // the shortest ones; longest[segment]: the one with the most instructions that passes none twice.
  uint32_t segments_with_choice = 0;
  std::vector<Segment> longest;
};

// `records`: of one CTA, in order, all its warps. Throws Error where the machine code does not match.
Replay make_replay(const Function& sass, const sim::ptx::Function& ptx,
                   const std::vector<fa4sim_sync>& records, const Gpu& gpu);

}  // namespace fa4::time
