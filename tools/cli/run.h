// SPDX-License-Identifier: Apache-2.0
// `fa4 run`: one attention problem, from a shape or from files, on a device, with a check.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "devices.h"

namespace fa4::cli {

// Lengths of batch entries on one side: lists such as "100,2000,7" or names of .npy files; "": not given.
struct LengthOptions {
  std::string lengths, cu_seqlens;  // of packed entries; prefix sums of the same
  std::string seqused;              // rows of each entry that count
};

// Of sinks and slopes: seeded, where they are not a file's.
inline constexpr const char* kSeeded = "seeded";

struct RunRequest {
  // From a shape, filled with seeded inputs...
  int64_t batch = 1, seq_q = 1024, seq_kv = 1024, q_heads = 32, kv_heads = 8, head_dim = 128;
  int64_t head_dim_v = 0;  // 0: head_dim
  // Whether options gave them. Else lengths say what they are, if there are any, and seq_kv is seq_q.
  bool batch_given = false, seq_q_given = false, seq_kv_given = false;
  uint64_t seed = 1;
  // ... or from files: all three or none.
  std::string q_path, k_path, v_path;
  std::string out_path, lse_path;
  bool bhsd =
      false;  // order of the files' extents: (batch, head, sequence, head dimension); else (b, s, h, d)

  LengthOptions q_lengths, kv_lengths;
  bool causal = false;
  bool top_left = false;  // the diagonal goes through the first query and the first key
  bool window = false;
  int64_t window_left = -1, window_right = -1;  // -1: no bound
  double softcap = 0;                           // 0: none
  std::string sinks, alibi;                     // kSeeded, an .npy file, or "": none
  std::string dtype;                            // "fp16", "bf16" or "": that of the files, fp16 for a shape
  double scale = 0;                             // 0: 1 / sqrt(head dimension)
  std::string scheduler = "auto";
  std::string exp2 = "auto";  // what computes exponentials

  DeviceKind device = DeviceKind::automatic;
  std::string driver;
  std::string gpu;  // which one is simulated ("sm_90"); "": sm_100, or as FA4SIM_GPU says
  uint32_t sms = 0;
  uint32_t threads = 0;
  bool check = false;
  bool hazards = false;    // under the happens-before checker
  std::string image_path;  // PTX or fatbinary in place of the built-in image
};

// Exit codes of the program.
enum ExitCode { kSuccess = 0, kCheckFailed = 1, kRefused = 2, kDeviceFailed = 3 };

int run(const RunRequest& request);

}  // namespace fa4::cli
