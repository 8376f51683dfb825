// SPDX-License-Identifier: Apache-2.0
// Numbers in messages.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace fa4::sim {

inline std::string hex(uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace fa4::sim
