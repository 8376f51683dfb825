// SPDX-License-Identifier: Apache-2.0
// A timing as lanes of bars: what the tensor core, the roles and TMA did when, and the hand-overs of the
// chain that decides the end. Drawn as SVG, or written for a trace viewer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report.h"

namespace fa4::time {

enum class BarKind : uint8_t {
  score0,
  score1,
  score2,
  value0,
  value1,
  value2,
  product,  // the tensor core; stage or consumer 0, 1 or 2
  masked,
  unmasked,  // softmax of a block of keys
  work,      // of a warp
  rescale,
  epilogue,  // of the correction
  load,
  store,
  waiting  // only in traces
};

struct Bar {
  uint64_t begin, end;  // cycles
  BarKind kind;
  std::string label;  // inside the bar, where it fits
  std::string title;  // in full
};
struct Lane {
  std::string name;
  std::vector<Bar> bars;  // in order, none overlaps the next
};
struct Arrow {
  size_t from, to;      // lanes
  uint64_t begin, end;  // cycles
  std::string title;
};
struct Timeline {
  std::vector<Lane> lanes;
  std::vector<Arrow> arrows;
  uint64_t cycles = 0;
};

// Tensor core, then a lane a role that works, then TMA's loads and stores.
Timeline timeline(const Replay& replay, const Timing& timing, const Names& names, const Report& report);

// One picture of [begin, end) cycles; light and dark by the viewer's scheme.
std::string svg(const Timeline& timeline, uint64_t begin, uint64_t end, const std::string& title);

// Chrome's trace format, which Perfetto reads: a nanosecond there is a cycle. The lanes, and below them a
// track a warp with its waits.
std::string chrome_trace(const Timeline& timeline, const Timing& timing, const Names& names);

}  // namespace fa4::time
