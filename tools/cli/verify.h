// SPDX-License-Identifier: Apache-2.0
// `fa4 verify`: what the simulated GPU believes, held against a real GPU or against recorded answers of one.
#pragma once

#include <string>

#include "devices.h"

namespace fa4::cli {

struct VerifyRequest {
  DeviceKind device = DeviceKind::automatic;
  std::string gpu_driver;  // in place of libcuda.so.1
  std::string sim_driver;  // in place of libfa4sim.so
  std::string gpu;         // which one is simulated ("sm_90"), for all rows that it has; "": as the real or the recorded one
  std::string rows;        // only rows whose name contains this
  std::string json_path;   // "" : no JSON
};

// An ExitCode of run.h.
int verify(const VerifyRequest& request);

}  // namespace fa4::cli
