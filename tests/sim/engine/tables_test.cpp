// SPDX-License-Identifier: Apache-2.0
// The handlers of lane-by-lane instructions are built for several instruction sets of the host: all that this
// CPU can run give the same bits, on full and partial warps.
#include <cstring>
#include <string_view>

#include "kernel.h"
#include "support/catch.h"
#include "tools/sim/core/lane_handlers.h"
#include "tools/sim/core/machine.h"

using namespace fa4::sim;
using fa4::sim::test::Random;

namespace {

constexpr const char* kNames[] = {
#define LANE(name, ...) #name,
#include "tools/sim/core/lane_codes.inc"
#undef LANE
};

constexpr int kRows = 16;  // d 0-3, a 4-7, b 8-11, c 12-15
constexpr int kPredicates = 5;

struct State {
  alignas(64) Row rows[kRows];
  uint32_t predicates[kPredicates];
};

uint32_t word(Random& random) {
  static constexpr uint32_t special[] = {0,          1,          0x80000000, 0x7FFFFFFF, 0xFFFFFFFF,
                                         0x3F800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x007FFFFF,
                                         0x00800000, 0x38800000, 0x477FF000, 0x7FF00000, 0xFFF00000,
                                         0x43E00000, 0xC3E00000};
  const uint64_t r = random.next();
  if (r >> 32 & 7) return uint32_t(r);
  if (r >> 35 & 1) return uint32_t(r) % 70;
  return special[uint32_t(r) % (sizeof special / sizeof special[0])];
}

Op operation(std::string_view name, Random& random) {
  Op op;
  op.d = 0, op.a = 4, op.b = 8, op.c = 12;
  op.pd = 1, op.pb = 2, op.pa = 3;
  const uint64_t r = random.next();
  op.pa_not = r & 1, op.pb_not = r >> 1 & 1;
  op.imm = int64_t(r >> 8 & 0xFF);
  const bool comparison = name.starts_with("setp");
  op.mode = uint8_t((r >> 16) % (comparison ? 14 : 4));
  op.size = comparison ? uint8_t(r >> 24 & 3) : uint8_t(1u << (r >> 24 & 3));
  return op;
}

}  // namespace

TEST_CASE("every table of lane handlers gives the same bits") {
  int count = 0;
  const LaneTable* tables = lane_tables(&count);
  REQUIRE(count >= 2);
  int compared = 0;
  for (int t = 0; t < count; ++t) {
    if (!tables[t].supported()) WARN("this CPU lacks " << tables[t].instruction_set);
  }
  for (size_t code = 0; code < size_t(LaneCode::count); ++code) {
    Random random(code + 1);
    for (int round = 0; round < 40; ++round) {
      State begin{};
      for (Row& row : begin.rows) {
        for (uint32_t& lane : row.lane) lane = word(random);
      }
      for (uint32_t& p : begin.predicates) p = uint32_t(random.next());
      begin.predicates[0] = kAllLanes;
      const Mask mask = round % 2 == 0 ? kAllLanes : uint32_t(random.next()) | 1u;
      const Op op = operation(kNames[code], random);
      State first{};
      const char* first_name = nullptr;
      for (int t = 0; t < count; ++t) {
        if (!tables[t].supported()) continue;
        State state = begin;
        Warp warp;
        warp.rows = state.rows;
        warp.predicates = state.predicates;
        REQUIRE(tables[t].handlers[code](warp, &op, mask) == &op + 1);
        if (!first_name) {
          first = state;
          first_name = tables[t].instruction_set;
          continue;
        }
        ++compared;
        for (int row = 0; row < kRows; ++row) {
          for (int lane = 0; lane < kLanes; ++lane) {
            const uint32_t x = first.rows[row].lane[lane], y = state.rows[row].lane[lane];
            const bool touched = mask >> lane & 1;
            if (x != y || (!touched && x != begin.rows[row].lane[lane]) ||
                (row >= 4 && x != begin.rows[row].lane[lane])) {
              FAIL_CHECK(kNames[code] << " row " << row << " lane " << lane << " mode " << int(op.mode)
                                      << ": " << first_name << " " << x << ", " << tables[t].instruction_set
                                      << " " << y << ", before " << begin.rows[row].lane[lane]);
            }
          }
        }
        CHECK(std::memcmp(first.predicates, state.predicates, sizeof first.predicates) == 0);
      }
    }
  }
  CHECK(compared > 0);
}
