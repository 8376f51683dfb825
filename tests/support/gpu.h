// SPDX-License-Identifier: Apache-2.0
// A device behind the CUDA driver API, opened from a library that is named: libcuda.so.1 for a real GPU,
// libfa4sim.so for the simulated one. Memory, time and properties; launching is libfa4's business. A failed
// driver call throws std::runtime_error with function, code and text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/driver.h"
#include "tools/sim/driver/fa4sim.h"

namespace fa4::support {

// The functions that only the simulated GPU has.
struct SimulatorApi {
  decltype(&fa4sim_configure) configure = nullptr;
  decltype(&fa4sim_get_config) get_config = nullptr;
  decltype(&fa4sim_get_counters) get_counters = nullptr;
  decltype(&fa4sim_get_cta_cycles) get_cta_cycles = nullptr;
  decltype(&fa4sim_trace_cta) trace_cta = nullptr;
  decltype(&fa4sim_get_trace) get_trace = nullptr;
  decltype(&fa4sim_get_source_instructions) get_source_instructions = nullptr;
  decltype(&fa4sim_set_progress) set_progress = nullptr;
  decltype(&fa4sim_last_error) last_error = nullptr;
  decltype(&fa4sim_check) check = nullptr;
  decltype(&fa4sim_count_findings) count_findings = nullptr;
  decltype(&fa4sim_take_findings) take_findings = nullptr;
  decltype(&fa4sim_set_adversarial) set_adversarial = nullptr;
  decltype(&fa4sim_set_model) set_model = nullptr;
  decltype(&fa4sim_axioms) axioms = nullptr;
  decltype(&fa4sim_record) record = nullptr;
  decltype(&fa4sim_take_sync) take_sync = nullptr;
};

class Gpu {
 public:
  // Opens the library, initialises it and makes the primary context of `ordinal` current on this thread.
  Gpu(const std::string& library, int ordinal);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // Devices that a driver library offers. Throws when it cannot be opened or initialised.
  struct Properties {
    std::string name;
    int major = 0, minor = 0, sm_count = 0;
    uint64_t memory_bytes = 0;
    uint32_t arch() const { return static_cast<uint32_t>(10 * major + minor); }
  };
  static std::vector<Properties> list(const std::string& library, int* driver_version);

  const std::string& library() const { return library_; }
  const Properties& properties() const { return properties_; }
  // Null members when the driver is a real one.
  const SimulatorApi& simulator() const { return simulator_; }
  bool simulated() const { return simulator_.configure != nullptr; }

  CUdeviceptr allocate(uint64_t bytes);
  void release(CUdeviceptr address) noexcept;
  void upload(CUdeviceptr to, const void* from, uint64_t bytes);
  void download(void* to, CUdeviceptr from, uint64_t bytes);
  void synchronize();
  const fa4::HostDriver& driver() const { return driver_; }
  // Throws unless the result is CUDA_SUCCESS; `function` is named in the sentence.
  void check(CUresult result, const char* function) const;
  // Seconds between two points of the default stream, by the device's own clock.
  void start_timer();
  double stop_timer();
  // Destroys the primary context with whatever error it carries and makes a new one current.
  void reset();

 private:
  void retain();

  std::string library_;
  fa4::HostDriver driver_;
  SimulatorApi simulator_;
  Properties properties_;
  CUdevice device_ = 0;
  CUevent begin_ = nullptr, end_ = nullptr;
};

// An allocation that frees itself.
class DeviceBuffer {
 public:
  DeviceBuffer(Gpu& gpu, uint64_t bytes)
      : gpu_(gpu), address_(bytes ? gpu.allocate(bytes) : 0), bytes_(bytes) {}
  ~DeviceBuffer() {
    if (address_) gpu_.release(address_);
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  CUdeviceptr address() const { return address_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Gpu& gpu_;
  CUdeviceptr address_;
  uint64_t bytes_;
};

}  // namespace fa4::support
