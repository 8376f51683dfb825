// SPDX-License-Identifier: Apache-2.0
// The choice of a device.
#include "devices.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "asm/attention/kernels.h"
#include "runtime/library.h"

namespace fa4::cli {
namespace {

constexpr const char* kGpuDriver = "libcuda.so.1";

std::string gpu_text(const support::Gpu::Properties& device) {
  return fmt::format("{} (compute capability {}.{})", device.name, device.major, device.minor);
}

// The first device that the image has code for, else a sentence about what there is.
DeviceChoice choose_gpu(const std::string& library) {
  const GpuList gpus = list_gpus(library);
  if (!gpus.failure.empty()) throw DeviceError(gpus.failure);
  const std::vector<ImageEntry> entries = builtin_entries();
  std::string seen;
  for (size_t i = 0; i < gpus.devices.size(); ++i) {
    if (image_runs_on(entries, gpus.devices[i].arch()))
      return {library, int(i), fmt::format("{} runs the image", gpu_text(gpus.devices[i]))};
    seen += (seen.empty() ? "" : ", ") + gpu_text(gpus.devices[i]);
  }
  throw DeviceError(fmt::format("{} offers {}; the image holds {}", library,
                                seen.empty() ? "no device" : seen, describe_image(entries)));
}

}  // namespace

std::string find_simulator() {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::string tried;
  for (const std::filesystem::path& folder :
       {here, here / "../lib", here / FA4_LIBDIR_FROM_BINDIR, here / "../sim/driver"}) {
    const std::filesystem::path path = (folder / "libfa4sim.so").lexically_normal();
    if (std::filesystem::exists(path)) return path.string();
    tried += (tried.empty() ? "" : ", ") + path.string();
  }
  throw DeviceError(
      fmt::format("the simulated GPU, libfa4sim.so, is in none of {}; name it with --driver", tried));
}

GpuList list_gpus(const std::string& library) {
  GpuList result;
  try {
    result.devices = support::Gpu::list(library, &result.driver_version);
  } catch (const std::runtime_error& error) {
    result.failure = error.what();
  }
  return result;
}

std::vector<ImageEntry> builtin_entries() {
  std::vector<ImageEntry> entries;
  Message message;
  if (read_image(builtin_image(), entries, message) != FA4_OK) throw DeviceError(message.text());
  return entries;
}

const KernelList& kernels_of(const support::Gpu::Properties& device) {
  const KernelList* kernels = kernels_for(device.arch());
  if (kernels == nullptr) throw DeviceError(fmt::format("there is no kernel for {}", gpu_text(device)));
  return *kernels;
}

void simulate(const std::string& gpu) {
  if (!gpu.empty()) setenv("FA4SIM_GPU", gpu.c_str(), 1);
}

DeviceChoice choose_device(DeviceKind kind, const std::string& driver) {
  const std::string gpu_driver = driver.empty() ? kGpuDriver : driver;
  switch (kind) {
    case DeviceKind::gpu: {
      DeviceChoice choice = choose_gpu(gpu_driver);
      choice.reason = "asked for; " + choice.reason;
      return choice;
    }
    case DeviceKind::sim:
      return {driver.empty() ? find_simulator() : driver, 0, "asked for"};
    case DeviceKind::automatic:
      break;
  }
  if (!driver.empty()) return {driver, 0, "its driver library was named"};
  try {
    return choose_gpu(gpu_driver);
  } catch (const DeviceError& no_gpu) {
    return {find_simulator(), 0, fmt::format("no GPU to use: {}", no_gpu.what())};
  }
}

}  // namespace fa4::cli
