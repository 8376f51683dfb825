// SPDX-License-Identifier: Apache-2.0
// `fa4 check`: runs the kernel on the simulated GPU under the happens-before checker, with nominal and with
// adversarial timing, and says what is not ordered.
#pragma once

#include <cstdint>
#include <string>

#include "run.h"

namespace fa4::cli {

struct CheckRequest {
  RunRequest problem;
  std::string image_path;  // PTX or fatbinary in place of the built-in image
  std::string json_path;
  uint64_t seeds = 4;  // adversarial runs beside the nominal one
  std::string model = "isa";  // or "silicon"
  bool independent_lanes = false;
};

// 0: clean, 1: findings, 2: could not run.
int check(const CheckRequest& request);

}  // namespace fa4::cli
