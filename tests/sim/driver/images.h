// SPDX-License-Identifier: Apache-2.0
// The images that the tests of the driver load: kernels.ptx as it is, and what ptxas and fatbinary make of
// it.
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.h"

inline std::string read_whole(const char* path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

inline std::string kernels_ptx() {
  return read_whole(KERNELS_PTX);
}
inline std::string kernels_for(const std::string& target) {
  return replaced(kernels_ptx(), "sm_100f", target);
}
