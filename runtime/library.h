// SPDX-License-Identifier: Apache-2.0
// An image loaded into the current context: the attention kernels, ready to launch.
#pragma once

#include <cuda.h>

#include <vector>

#include "driver.h"
#include "message.h"
#include "plan.h"

namespace fa4 {

// The fatbinary that the library was built with: cubin and PTX of every kernel.
const void* builtin_image();

class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library();

  // Refuses a device that the image has no code for (FA4_ERROR_ARCHITECTURE); otherwise loads the image into
  // the current context, finds the kernels for the device and grants them their shared memory. `driver` must
  // outlive the object. Once per object.
  fa4_status load(const Driver& driver, const void* image, CUdevice device, Message& message);

  // Those that the device runs.
  const KernelList& kernels() const { return *kernels_; }
  // Of one of them, or of the same with their exponentials the other way.
  CUfunction function(const Kernel& kernel) const {
    const KernelList* list = kernel.config.exp2 == kernels_->exp2 ? kernels_ : kernels_->other_exp2;
    return functions_[(list == kernels_ ? 0 : kernels_->count) + static_cast<size_t>(&kernel - list->first)];
  }

 private:
  fa4_status load_functions(const KernelList& kernels, Message& message);

  const Driver* driver_ = nullptr;
  CUmodule module_ = nullptr;
  const KernelList* kernels_ = nullptr;
  std::vector<CUfunction> functions_;  // in the order of kernels_, and behind them of the other list
};

}  // namespace fa4
