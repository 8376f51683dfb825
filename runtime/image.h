// SPDX-License-Identifier: Apache-2.0
// What an image holds: the target of each piece of code in a fatbinary, a cubin or a PTX text, and the
// devices that run it. Asked before the driver loads an image, because a driver reports a wrong architecture
// late and vaguely.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "message.h"

namespace fa4 {

struct ImageEntry {
  enum class Kind { ptx, cubin };
  Kind kind;
  uint32_t arch;  // 100 for sm_100f
  char suffix;    // 'a': that architecture alone; 'f': its family; '\0': forward compatible
  // The oldest driver that takes the entry: its CUDA version as cuDriverGetVersion gives it, 1000 * major +
  // 10 * minor. 0: not known.
  int driver_version = 0;

  // Whether a device of this compute capability runs the entry. `arch` is 10 * major + minor.
  bool runs_on(uint32_t device_arch) const;
  std::string target() const;  // "sm_100f"
};

// Reads the entries of an image as the driver takes it: a fatbinary (also compressed), a 64-bit cubin, or PTX
// text. FA4_ERROR_INVALID_ARGUMENT when it is none of these or its headers contradict each other.
fa4_status read_image(const void* image, std::vector<ImageEntry>& entries, Message& message);

// Whether a device of this compute capability runs one of the entries.
bool image_runs_on(const std::vector<ImageEntry>& entries, uint32_t device_arch);

// "sm_90a cubin and PTX, sm_100f cubin and PTX, for compute capability 9.0, 10.0 and 10.3"
std::string describe_image(const std::vector<ImageEntry>& entries);

// What a driver that failed to load an image may lack: "the driver is of CUDA 12.4 (cuDriverGetVersion
// 12040); this image needs one of CUDA 13.0 or newer on sm_100". "" when by its version the driver can load
// one of the entries that the device runs.
std::string describe_old_driver(const std::vector<ImageEntry>& entries, uint32_t device_arch,
                                int driver_version);

}  // namespace fa4
