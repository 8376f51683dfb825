// SPDX-License-Identifier: Apache-2.0
// What fa4_create makes: the driver, the kernels, and what a call needs to know of the device. Immutable once
// open, so that calls from several threads share it without a lock.
#pragma once

#include <cuda.h>

#include "driver.h"
#include "library.h"
#include "message.h"

namespace fa4 {

class Context {
 public:
  fa4_status open(const fa4_create_params& params, Message& message);

  // Plans, describes and launches. The call path of the library: no allocation, no synchronisation.
  fa4_status forward(const fa4_forward_params& problem, Message& message) const;

  const KernelList& kernels() const { return library_.kernels(); }

 private:
  Driver driver_;  // before library_, which unloads through it
  Library library_;
  CUcontext cuda_context_ = nullptr;
  uint32_t sm_count_ = 0;
};

}  // namespace fa4
