// SPDX-License-Identifier: Apache-2.0
// Which device a command runs on, and why.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "asm/attention/kernel.h"
#include "runtime/image.h"
#include "tests/support/gpu.h"

namespace fa4::cli {

enum class DeviceKind { automatic, gpu, sim };

struct DeviceChoice {
  std::string library;  // for dlopen
  int ordinal = 0;
  std::string reason;  // "no GPU to use: ..."
};

struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The path of libfa4sim.so: beside this program, in ../lib of an installation, or in the build tree. Throws
// DeviceError with the places that were tried.
std::string find_simulator();

// The real driver's devices, or why there are none.
struct GpuList {
  std::vector<support::Gpu::Properties> devices;
  int driver_version = 0;
  std::string failure;  // "" when the driver answered
};
GpuList list_gpus(const std::string& library);

// What the built-in image holds.
std::vector<ImageEntry> builtin_entries();

// The kernels that a device runs. Throws DeviceError where there are none.
const KernelList& kernels_of(const support::Gpu::Properties& device);

// Which GPU a simulated one is from now on, in this process and its children, before its library is opened:
// "sm_90". "": as it is.
void simulate(const std::string& gpu);
// `driver` names the driver library in place of libcuda.so.1 or libfa4sim.so; "" for these.
DeviceChoice choose_device(DeviceKind kind, const std::string& driver);

}  // namespace fa4::cli
