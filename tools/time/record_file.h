// SPDX-License-Identifier: Apache-2.0
// Files that the simulated GPU writes of other programs' launches (FA4SIM_RECORD, see
// tools/sim/driver/fa4sim.h).
#pragma once

#include <string>
#include <vector>

#include "tools/sim/driver/fa4sim.h"

namespace fa4::time {

struct RecordedLaunch {
  std::string kernel, ptx;
  uint64_t cta = 0, ctas = 0, threads = 0;
  std::vector<fa4sim_sync> records;
};

// All launches of a file. Throws Error.
std::vector<RecordedLaunch> read_record_file(const std::string& path);

}  // namespace fa4::time
