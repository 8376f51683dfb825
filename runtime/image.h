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
  // Where the code lies in the image, in bytes; compressed: it must be unpacked first. Of a cubin or a PTX text alone: 0 and 0.
  uint64_t offset = 0, size = 0;
  bool compressed = false;

  // Whether a device of this compute capability runs the entry. `arch` is 10 * major + minor.
  bool runs_on(uint32_t device_arch) const;
  std::string target() const;  // "sm_100f"
};

// Reads the entries of an image as the driver takes it: a fatbinary (also compressed), a 64-bit cubin, or PTX
// text. FA4_ERROR_INVALID_ARGUMENT when it is none of these or its headers contradict each other.
fa4_status read_image(const void* image, std::vector<ImageEntry>& entries, Message& message);

// "sm_100f cubin and sm_100f PTX, for compute capability 10.0 and 10.3"
std::string describe_image(const std::vector<ImageEntry>& entries);

}  // namespace fa4
