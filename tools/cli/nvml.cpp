// SPDX-License-Identifier: Apache-2.0
// NVML by dlopen: names, types and constants are those of nvml.h, which a toolkit need not bring.
#include "nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace fa4::cli {
namespace {

constexpr const char* kLibrary = "libnvidia-ml.so.1";
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlClockSm = 1;  // NVML_CLOCK_SM

// nvmlClocksEventReason...: what keeps a clock below the one that was asked for.
struct Reason {
  unsigned long long bit;
  const char* text;
};
constexpr Reason kReasons[] = {{0x4, "power cap"},
                               {0x8, "hardware slowdown"},
                               {0x20, "temperature"},
                               {0x40, "hardware temperature"},
                               {0x80, "power brake"}};

double median(std::vector<unsigned> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + int64_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

struct Nvml::Api {
  ~Api() {
    if (initialised) Shutdown();
    if (handle) dlclose(handle);
  }
  void* handle = nullptr;
  void* device = nullptr;  // nvmlDevice_t
  bool initialised = false;
  int (*Init)() = nullptr;
  int (*Shutdown)() = nullptr;
  const char* (*ErrorString)(int) = nullptr;
  int (*DeviceGetHandleByPciBusId)(const char*, void**) = nullptr;
  int (*DeviceGetClockInfo)(void*, int, unsigned*) = nullptr;
  int (*DeviceGetPowerUsage)(void*, unsigned*) = nullptr;
  int (*DeviceGetReasons)(void*, unsigned long long*) = nullptr;
};

Nvml::Nvml(const std::string& pci_bus_id) : api_(std::make_unique<Api>()) {
  api_->handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!api_->handle) {
    missing_ = fmt::format("there is no {}", kLibrary);
    return;
  }
  const auto find = [&](auto& member, const char* name) {
    member = reinterpret_cast<std::remove_reference_t<decltype(member)>>(dlsym(api_->handle, name));
    if (!member) missing_ = fmt::format("{} has no {}", kLibrary, name);
  };
  find(api_->Init, "nvmlInit_v2");
  find(api_->Shutdown, "nvmlShutdown");
  find(api_->ErrorString, "nvmlErrorString");
  find(api_->DeviceGetHandleByPciBusId, "nvmlDeviceGetHandleByPciBusId_v2");
  find(api_->DeviceGetClockInfo, "nvmlDeviceGetClockInfo");
  find(api_->DeviceGetPowerUsage, "nvmlDeviceGetPowerUsage");
  find(api_->DeviceGetReasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  if (!missing_.empty()) return;
  const auto check = [&](int result, const char* function) {
    if (result != kNvmlSuccess)
      missing_ = fmt::format("{} failed with error {}, {}", function, result, api_->ErrorString(result));
    return result == kNvmlSuccess;
  };
  api_->initialised = check(api_->Init(), "nvmlInit");
  if (api_->initialised)
    check(api_->DeviceGetHandleByPciBusId(pci_bus_id.c_str(), &api_->device),
          "nvmlDeviceGetHandleByPciBusId");
}

Nvml::~Nvml() {
  if (thread_.joinable()) stop();
}

void Nvml::sample() {
  unsigned value = 0;
  unsigned long long reasons = 0;
  if (api_->DeviceGetClockInfo(api_->device, kNvmlClockSm, &value) == kNvmlSuccess) clocks_.push_back(value);
  if (api_->DeviceGetPowerUsage(api_->device, &value) == kNvmlSuccess) milliwatts_.push_back(value);
  if (api_->DeviceGetReasons(api_->device, &reasons) == kNvmlSuccess) reasons_ |= reasons;
}

void Nvml::start() {
  clocks_.clear();
  milliwatts_.clear();
  reasons_ = 0;
  stop_ = false;
  if (!missing_.empty()) return;
  thread_ = std::thread([this] {
    while (!stop_) {
      sample();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
}

Seen Nvml::stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  Seen seen;
  seen.clock_mhz = median(clocks_);
  seen.power_w = median(milliwatts_) * 1e-3;
  seen.samples = int(clocks_.size());
  for (const Reason& reason : kReasons)
    if (reasons_ & reason.bit) seen.limited_by.push_back(reason.text);
  return seen;
}

}  // namespace fa4::cli
