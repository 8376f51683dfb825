// SPDX-License-Identifier: Apache-2.0
// Picks the lane handlers for this CPU.
#include "lane_handlers.h"

namespace fa4::sim {

namespace avx512 { extern const Handler handlers[]; }
namespace avx2 { extern const Handler handlers[]; }
namespace portable { extern const Handler handlers[]; }

namespace {

const LaneTable tables[] = {
    {"AVX-512", avx512::handlers, [] { return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"); }},
    {"AVX2", avx2::handlers, [] { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }},
    {"portable", portable::handlers, [] { return true; }},
};

const Handler* choose() {
  for (const LaneTable& table : tables) {
    if (table.supported()) return table.handlers;
  }
  return nullptr;
}

}  // namespace

const LaneTable* lane_tables(int* count) {
  *count = int(sizeof tables / sizeof tables[0]);
  return tables;
}

Handler lane_handler(LaneCode code) {
  static const Handler* const handlers = choose();
  return handlers[size_t(code)];
}

}  // namespace fa4::sim
