// SPDX-License-Identifier: Apache-2.0
// One SM, cycle by cycle, from the machine code that ships: four schedulers that issue one instruction a
// cycle, their pipes and their port of tensor memory; and, for all of them, the tensor core's queue, shared
// memory, TMA and mbarriers. What an instruction computes plays no part: a warp's way is given, and so is
// what each synchronising instruction synchronises on.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "parameters.h"
#include "sass.h"
#include "tools/sim/driver/fa4sim.h"

namespace fa4::time {

enum class Unit : uint8_t {
  control,
  ffma,
  ffma_pair,
  imad,
  alu,
  mufu,
  uniform,
  memory,
  tmem,
  mma,
  tma,
  count
};
const char* name_of(Unit unit);

// An instruction as the machine sees it.
struct MicroOp {
  enum class Effect : uint8_t {
    none,
    wait,
    arrive,
    commit,
    mma,
    warpgroup_mma,
    wait_mma,
    tmem_load,
    tmem_store,
    tmem_fence,
    copy_in,
    copy_out,
    close_group,
    wait_group,
    bar_sync,
    bar_arrive,
    shared,
    end
  };
  Effect effect = Effect::none;
  Unit unit = Unit::control;
  uint8_t interval = 0;                      // cycles that the unit takes nobody else
  uint8_t stall = 1;                         // cycles until the warp may issue again
  bool keep = true;                          // the yield bit as stored
  uint8_t writes = 7, reads = 7, waits = 0;  // scoreboards
  uint8_t ports = 1;                         // cycles of the register ports
  // Of arithmetic, and every one for MUFU, beside which no other issues: which banks, even or odd, its
  // sources lie in; two bits for each place among the operands.
  uint8_t sources = 0;
  static constexpr uint8_t second_source = 3 << 2, every_source = 0x3f;
  uint8_t pending = 0;   // wait_group, wait_mma: groups that may stay; warpgroup_mma: 1 if it closes a group
  uint16_t latency = 0;  // until the scoreboard of the result is free
  uint16_t read_latency = 0;  // ... of the sources
  uint16_t cost = 0;          // shared memory: cycles; tensor memory: bytes a lane
};
MicroOp decode(const Instruction& instruction, const Gpu& gpu);

// A piece of a warp's way: instructions in order. The last one synchronises or ends the warp.
struct Segment {
  std::vector<uint32_t> code;  // indices
  std::vector<bool> jumps;     // [i]: what follows instruction i is not the next one in memory
};

struct Step {
  uint32_t segment;
  uint32_t first_record, records;  // what its last instruction did: indices into WarpWay::records
};
struct WarpWay {
  std::vector<Step> steps;
  std::vector<fa4sim_sync> records;
};

struct Program {
  std::vector<MicroOp> code;
  std::vector<Segment> segments;
  std::vector<WarpWay> warps;
};

// Where the cycles of a warp went.
enum class Cause : uint8_t {
  issue,       // an instruction of its own
  dependency,  // the stall count of the instruction before: a result of fixed latency
  branch,      // a jump
  // A scoreboard:
  mufu_result,
  tmem_result,
  shared_result,
  memory_result,
  tensor_sources,
  other_result,
  barrier,  // an mbarrier: by address in WarpTime::barriers
  cta_barrier,
  mma_group,  // MMAs of a warpgroup: a group of them, or a place in their queue
  group,      // bulk stores
  // A pipe:
  ffma_busy,
  imad_busy,
  alu_busy,
  mufu_busy,
  uniform_busy,
  memory_busy,
  tmem_busy,
  mma_busy,
  tma_busy,
  registers_busy,  // the register file: the accumulators of MMAs
  other_warp,      // it could have issued; another warp did
  over,            // after its end
  count
};
const char* name_of(Cause cause);

struct WarpTime {
  uint64_t end = 0;
  uint64_t issued = 0;
  std::array<uint64_t, size_t(Cause::count)> cycles{};
  std::array<uint64_t, size_t(Unit::count)> busy{};     // unit cycles that its instructions took
  std::vector<std::pair<uint32_t, uint64_t>> barriers;  // mbarrier address, cycles
};

// Who completed a phase.
struct Signal {
  enum class From : uint8_t { nobody, warp, tensor, copy } from = From::nobody;
  uint32_t warp = 0;   // that arrived, or that issued the MMA or copy
  uint32_t index = 0;  // tensor: into Timing::mmas; copy: into Timing::copies
  uint64_t time = 0;   // cycle of the arrival
};

// Addresses of what is no mbarrier.
inline constexpr uint32_t kCtaBarrier = 1u << 31;  // | id: a named barrier
inline constexpr uint32_t kMmaGroup = 1u << 29;    // MMAs of a warpgroup

// A wait that did not pass at once.
struct Blocked {
  uint32_t address;  // of the mbarrier, or one of the following
  int32_t phase;
  uint64_t begin, end;  // cycles: its issue, and when the warp went on
  Signal signal;
};

struct MmaTime {
  uint64_t issue, begin, end;  // cycles
  uint32_t warp;
  uint32_t d_column;
  uint16_t m, n;
  bool a_shared;
};
struct CopyTime {
  uint64_t issue, begin, end;
  uint32_t warp, bytes, address;
  bool out;
};
// What a warp passed at a time: for pictures.
struct Mark {
  uint64_t time;
  uint32_t step;
};

struct Timing {
  uint64_t cycles = 0;
  uint64_t tensor_busy = 0;
  uint64_t shared_operand_bytes = 0, copy_in_bytes = 0, copy_out_bytes = 0;
  std::vector<WarpTime> warps;
  std::vector<std::vector<Blocked>> blocked;  // [warp]
  std::vector<std::vector<Mark>> marks;       // [warp]: of each step
  std::vector<MmaTime> mmas;
  std::vector<CopyTime> copies;
  std::vector<uint64_t> issued;  // [scheduler]
};

// Throws Error when no warp can go on: the way does not fit the machine code.
Timing run(const Program& program, const Gpu& gpu, Arbitration arbitration);

}  // namespace fa4::time
