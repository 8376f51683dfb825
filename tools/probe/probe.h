// SPDX-License-Identifier: Apache-2.0
// Measures on a real GPU what the model of time (tools/time) rests on.
#pragma once

#include <string_view>
#include <vector>

#include "tests/support/gpu.h"

namespace fa4::probe {

// A number of the model: `name` is that of tools/time/parameters.cpp, in its unit.
struct Measured {
  std::string_view name;
  double value;
};

// Runs the small kernels of probes.cu, some milliseconds in all. A number that comes out below a half, for
// instance the difference of two latencies, is left out. A GPU of compute capability 9.0, 10.0 or 10.3;
// throws std::runtime_error with a sentence for another, and where a kernel fails. On a simulated GPU the
// values mean nothing.
std::vector<Measured> measure(support::Gpu& gpu);

}  // namespace fa4::probe
