// SPDX-License-Identifier: Apache-2.0
// The handlers of instructions that work lane by lane. The same source is built for several instruction sets of the
// host; lane_handler() gives the one for this CPU.
#pragma once

#include <cstdint>

#include "op.h"

namespace fa4::sim {

enum class LaneCode : uint16_t {
#define LANE(name, ...) name,
#include "lane_codes.inc"
#undef LANE
  count
};

// Values of Op::mode for comparisons (setp) ...
enum class Compare : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
// ... for the roundings of arithmetic and conversions
enum class Rounding : uint8_t { nearest_even, toward_zero, down, up };

// How setp combines its comparison with a third operand (Op::size).
enum class Combine : uint8_t { none, with_and, with_or, with_xor };

Handler lane_handler(LaneCode code);

// Names of instruction sets for which a table was built, widest first; the tests compare them.
struct LaneTable {
  const char* instruction_set;
  const Handler* handlers;
  bool (*supported)();
};
const LaneTable* lane_tables(int* count);

}  // namespace fa4::sim
