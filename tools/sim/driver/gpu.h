// SPDX-License-Identifier: Apache-2.0
// The GPUs that the simulated one can be.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fa4::sim::driver {

// Instructions are executed alike: a GPU is what code it takes, and what it says about itself.
struct GpuKind {
  uint32_t number;                  // 10 * major + minor of its compute capability
  uint32_t sm_count;
  int clock_khz, memory_clock_khz;  // at most
  int memory_bus_bits;
  int l2_bytes;

  std::string target() const { return "sm_" + std::to_string(number); }
  std::string name() const { return "fa4 simulated GPU (" + target() + ")"; }
  // "sm_100 runs PTX for sm_100a and sm_100f, and without a letter for sm_100 and older", for refusals.
  std::string accepts() const;
};

// H200, B200 and B300, as their drivers describe them.
std::span<const GpuKind> gpu_kinds();
constexpr uint32_t kDefaultGpu = 100;
constexpr const char* kGpuNames = "sm_90, sm_100 or sm_103";
// Null when there is no such GPU. By the number of its compute capability, or "sm_90".
const GpuKind* find_gpu(uint32_t number);
const GpuKind* find_gpu(std::string_view target);

}  // namespace fa4::sim::driver
