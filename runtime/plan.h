// SPDX-License-Identifier: Apache-2.0
// From a problem to a launch: which kernel, how many CTAs, which tensor maps, which parameters. A pure
// function that needs no driver.
#pragma once

#include <cstdint>

#include "../asm/attention/params.h"
#include "message.h"
#include "tensor_map.h"

namespace fa4 {

// The specialisations in the image, by kernel_index.
inline constexpr uint32_t kKernelCount = 4;
inline constexpr const char* kKernelNames[kKernelCount] = {
    "fa4_forward_f16_full", "fa4_forward_f16_causal", "fa4_forward_bf16_full", "fa4_forward_bf16_causal"};
constexpr uint32_t kernel_index(bool bf16, bool causal) {
  return (bf16 ? 2u : 0u) + (causal ? 1u : 0u);
}

struct Plan {
  uint32_t kernel;  // index into kKernelNames
  uint32_t grid;    // CTAs; 0: there is nothing to compute and nothing else of the plan is set
  TensorMapDescription q, k, v, o;
  AttentionParams params;  // all but the tensor maps, which the driver encodes
};

// Checks the problem and plans it for a device of `sm_count` SMs.
fa4_status plan_forward(const fa4_forward_params& problem, uint32_t sm_count, Plan& plan, Message& message);

}  // namespace fa4
