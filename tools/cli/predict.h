// SPDX-License-Identifier: Apache-2.0
// `fa4 time`: where the cycles of a launch go, predicted from the machine code.
#pragma once

#include <cstdint>
#include <string>

#include "run.h"

namespace fa4::cli {

struct TimeRequest {
  RunRequest problem;
  std::string chip;             // whose numbers: "b200", "b300", "h200"; "": of the GPU that is simulated
  std::string parameters_path;  // report of `fa4 verify --json` from a GPU: the numbers that it measured
  std::string image_path;    // fatbinary with the same entries in place of the built-in image
  int64_t cta = -1;          // the CTA whose SM is timed; -1: the one with the most work
  // Another program's launch: what FA4SIM_RECORD wrote, which launch in it (from 0, -1: the last), and the
  // cubin of its kernel.
  std::string record_path, cubin_path;
  int64_t launch = -1;
  std::string json_path, trace_path, svg_path;
  uint64_t from = 0, until = 0;  // cycles that the picture shows; until 0: as many as are legible
};

// 0: done, 2: refused, or there is no nvdisasm, 3: the device failed or the machine code could not be
// matched.
int predict(const TimeRequest& request);

}  // namespace fa4::cli
