// SPDX-License-Identifier: Apache-2.0
// From a problem to a launch: which kernel, how many CTAs, which tensor maps, which parameters. A pure
// function that needs no driver.
#pragma once

#include <cstdint>

#include "../asm/attention/kernels.h"
#include "../asm/attention/params.h"
#include "message.h"
#include "tensor_map.h"

namespace fa4 {

// What a plan needs to know of the device.
struct DeviceTraits {
  const KernelList* kernels;  // that it runs
  uint32_t sm_count;
};

struct Plan {
  const Kernel* kernel;  // one of the device's
  uint32_t grid;         // CTAs; 0: there is nothing to compute and nothing else of the plan is set
  TensorMapDescription q, k, v, o;
  AttentionParams params;  // all but the tensor maps, which the driver encodes
};

// Checks the problem and plans it for a device.
fa4_status plan_forward(const fa4_forward_params& problem, const DeviceTraits& device, Plan& plan, Message& message);

}  // namespace fa4
