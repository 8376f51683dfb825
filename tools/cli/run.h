// SPDX-License-Identifier: Apache-2.0
// `fa4 run`: one attention problem, from a shape or from files, on a device, with a check.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "devices.h"

namespace fa4::cli {

struct RunRequest {
  // From a shape, filled with seeded inputs...
  int64_t batch = 1, seq_q = 1024, seq_kv = 1024, q_heads = 32, kv_heads = 8, head_dim = 128;
  uint64_t seed = 1;
  // ... or from files: all three or none.
  std::string q_path, k_path, v_path;
  std::string out_path, lse_path;
  bool bhsd =
      false;  // order of the files' extents: (batch, head, sequence, head dimension); else (b, s, h, d)

  bool causal = false;
  std::string dtype;  // "fp16", "bf16" or "": that of the files, fp16 for a shape
  double scale = 0;   // 0: 1 / sqrt(head dimension)
  std::string scheduler = "auto";
  std::string exp2 = "auto";  // what computes exponentials

  DeviceKind device = DeviceKind::automatic;
  std::string driver;
  std::string gpu;  // which one is simulated ("sm_90"); "": sm_100, or as FA4SIM_GPU says
  uint32_t sms = 0;
  uint32_t threads = 0;
  bool check = false;
  bool hazards = false;     // under the happens-before checker
  std::string image_path;   // PTX or fatbinary in place of the built-in image
};

// Exit codes of the program.
enum ExitCode { kSuccess = 0, kCheckFailed = 1, kRefused = 2, kDeviceFailed = 3 };

int run(const RunRequest& request);

}  // namespace fa4::cli
