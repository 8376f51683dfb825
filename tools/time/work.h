// SPDX-License-Identifier: Apache-2.0
// How much a stretch of a program computes, by kinds of instructions that ptxas neither adds nor removes: by
// this a stretch of machine code is told from another one with the same synchronising instructions at its
// ends.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "sass.h"
#include "tools/sim/driver/fa4sim.h"
#include "tools/sim/ptx/module.h"

namespace fa4::time {

// Warp instructions; a difference of two may be negative.
struct Work {
  int32_t mufu = 0;     // ex2, rcp, ...
  int32_t fma = 0;      // add, mul, fma of f32 and f32x2
  int32_t minmax = 0;   // of f32; one of three operands is two
  int32_t shuffle = 0;  // shfl, vote, redux, match
  int32_t memory = 0;   // loads, stores, atomics
  int32_t select = 0;   // selp of f32; in the PTX alone: ptxas has other ways
  int32_t all = 0;      // of any kind

  auto operator<=>(const Work&) const = default;
  Work& operator+=(const Work& other);
  Work operator-(const Work& other) const;
};

Work work_of(const Instruction& instruction);
Work work_of(const sim::ptx::Instruction& instruction);

// How unlike two stretches are: the kinds count, and the number of instructions where the kinds do not tell.
int32_t distance(const Work& a, const Work& b);

// What a warp executed between its synchronising instructions, from the branches that it took.
class WorkOfWarp {
 public:
  explicit WorkOfWarp(const sim::ptx::Function& function);
  // The warp's next record, branches among them. Of one that synchronises: the work since the last one, its
  // own included.
  Work next(const fa4sim_sync& record);
  Work rest();  // until its end

 private:
  struct Lanes {
    uint32_t mask, next;  // the instruction that they execute next
    bool again;           // they have gone back to it
  };
  Work walk(uint32_t from, uint32_t to) const;  // `to` included; instructions in a row
  Work arrive(const fa4sim_sync& record);

  std::vector<Work> before_;     // [instruction]: work of all before it
  std::vector<uint32_t> ends_;   // instructions that end every lane, ascending
  std::vector<uint32_t> waits_;  // ... that wait for a phase, and leave no record when they fail
  std::vector<Lanes> lanes_{{~0u, 0, false}};
  uint32_t last_ = ~0u;  // lanes of the last record
  Work since_;
};

}  // namespace fa4::time
