// SPDX-License-Identifier: Apache-2.0
// Loading is all done here, once: taking a CUfunction loads its code even under the driver's lazy loading, so
// that the first launch has nothing left to load and can be captured in a graph.
#include "library.h"

#include <cstring>
#include <string>
#include <vector>

#include "image.h"

namespace fa4 {
namespace {

// The image, the device that it is for, and the device's kernels.
struct Target {
  std::vector<ImageEntry> entries;
  uint32_t device_arch = 0;
  const KernelList* kernels = nullptr;
};

// Sets the kernels for the device, or refuses it.
fa4_status choose_kernels(const Driver& driver, const void* image, CUdevice device, Target& target,
                          Message& message) {
  if (fa4_status status = read_image(image, target.entries, message); status != FA4_OK) return status;
  int major = 0, minor = 0;
  char name[256] = "";
  const auto attribute = [&](int& value, CUdevice_attribute which) {
    return driver.check(driver.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute", message);
  };
  fa4_status status = attribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  if (status == FA4_OK) status = attribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (status == FA4_OK) {
    status = driver.check(driver.cuDeviceGetName(name, sizeof name, device), "cuDeviceGetName", message);
  }
  if (status != FA4_OK) return status;
  target.device_arch = static_cast<uint32_t>(major * 10 + minor);
  target.kernels = kernels_for(target.device_arch);
  if (target.kernels != nullptr && image_runs_on(target.entries, target.device_arch)) return FA4_OK;
  return message.fail(FA4_ERROR_ARCHITECTURE,
                      "this GPU, %s, is sm_%u (compute capability %d.%d); the image holds %s", name,
                      target.device_arch, major, minor, describe_image(target.entries).c_str());
}

// Whether a load may have failed for the driver's age. What a driver answers to a cubin or a compression that
// is younger than it is in no document, but it is one of these.
bool may_be_age(CUresult result) {
  return result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || result == CUDA_ERROR_NOT_SUPPORTED;
}

// Loads the image. What the driver's compiler says about PTX that it cannot take goes behind the sentence.
// The driver's version is asked for when the load has failed, not before: what a driver loads that is older
// than it should be is not refused.
fa4_status load_module(const Driver& driver, const void* image, const Target& target, CUmodule& module,
                       Message& message) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  const CUresult result = driver.cuModuleLoadDataEx(&module, image, 2, options, values);
  const fa4_status status = driver.check(result, "cuModuleLoadDataEx", message);
  int version = 0;
  if (may_be_age(result) && driver.cuDriverGetVersion(&version) == CUDA_SUCCESS) {
    const std::string age = describe_old_driver(target.entries, target.device_arch, version);
    if (!age.empty()) message.append("; %s", age.c_str());
  }
  log[sizeof log - 1] = '\0';
  for (std::size_t end = std::strlen(log); end != 0 && std::strchr(" \r\n", log[end - 1]); --end)
    log[end - 1] = '\0';
  if (status != FA4_OK && log[0] != '\0') message.append("; its log:\n%s", log);
  return status;
}

}  // namespace

Library::~Library() {
  // A destructor has nobody to report to; after the context is gone the driver refuses, and the module is
  // gone with it.
  if (module_ != nullptr) driver_->cuModuleUnload(module_);
}

fa4_status Library::load(const Driver& driver, const void* image, CUdevice device, Message& message) {
  Target target;
  fa4_status status = choose_kernels(driver, image, device, target, message);
  if (status != FA4_OK) return status;
  driver_ = &driver;
  kernels_ = target.kernels;
  status = load_module(driver, image, target, module_, message);
  if (status != FA4_OK) return status;
  status = load_functions(*kernels_, message);
  if (status == FA4_OK && kernels_->other_exp2 != nullptr) status = load_functions(*kernels_->other_exp2, message);
  return status;
}

fa4_status Library::load_functions(const KernelList& kernels, Message& message) {
  functions_.reserve(functions_.size() + kernels.count);
  for (const Kernel& kernel : kernels) {
    const std::string get = std::string("cuModuleGetFunction of ") + kernel.entry;
    const std::string set = std::string("cuFuncSetAttribute of ") + kernel.entry;
    CUfunction function = nullptr;
    fa4_status status =
        driver_->check(driver_->cuModuleGetFunction(&function, module_, kernel.entry), get.c_str(), message);
    if (status != FA4_OK) return status;
    status = driver_->check(driver_->cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                        static_cast<int>(kernel.shared_bytes)),
                            set.c_str(), message);
    if (status != FA4_OK) return status;
    functions_.push_back(function);
  }
  return FA4_OK;
}

}  // namespace fa4
