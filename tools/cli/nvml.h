// SPDX-License-Identifier: Apache-2.0
// The SM clock and the power of a GPU while something runs, read from NVML (libnvidia-ml.so.1, opened at run
// time).
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace fa4::cli {

// What was seen between start() and stop(): medians over the samples. 0 where nothing is known.
struct Seen {
  double clock_mhz = 0;  // of the SMs
  double power_w = 0;    // of the board, which NVML itself averages over up to a second
  int samples = 0;
  std::vector<std::string> limited_by;  // what held the clock down at any sample: "power cap", ...
};

class Nvml {
 public:
  // `pci_bus_id` as cuDeviceGetPCIBusId writes it.
  explicit Nvml(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  // "", or why nothing is seen.
  const std::string& missing() const { return missing_; }

  // Samples every few milliseconds, on a thread of its own, until stop().
  void start();
  Seen stop();

 private:
  struct Api;
  void sample();

  std::unique_ptr<Api> api_;
  std::string missing_;
  std::thread thread_;
  std::atomic<bool> stop_ = false;
  std::vector<unsigned> clocks_, milliwatts_;
  unsigned long long reasons_ = 0;
};

}  // namespace fa4::cli
