// SPDX-License-Identifier: Apache-2.0
// For which GPUs PTX is: "sm_100f" is code for compute capability 10.0 with what its family has beyond the common instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fa4::sim::ptx {

struct Target {
  uint32_t number = 0;  // 10 * major + minor
  char letter = 0;      // 'a': that GPU alone; 'f': its family; 0: that GPU and all newer ones
  bool operator==(const Target&) const = default;
};

// None when the text is no target ("sm_100x", "compute_90").
std::optional<Target> read_target(std::string_view text);

// Whether a GPU of compute capability `number` runs code for the target.
bool runs(uint32_t number, Target target);

}  // namespace fa4::sim::ptx
