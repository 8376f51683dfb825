// SPDX-License-Identifier: Apache-2.0
// `fa4 time`: where the cycles of a launch go, predicted from the machine code.
#pragma once

#include <cstdint>
#include <string>

#include "run.h"

namespace fa4::cli {

struct TimeRequest {
  RunRequest problem;
  std::string gpu = "b200";  // whose numbers
  std::string image_path;    // fatbinary with the same entries in place of the built-in image
  int64_t cta = -1;          // the CTA whose SM is timed; -1: the one with the most work
  std::string json_path;
};

// 0: done, 2: refused, or there is no nvdisasm, 3: the device failed or the machine code could not be
// matched.
int predict(const TimeRequest& request);

}  // namespace fa4::cli
