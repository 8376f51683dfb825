// SPDX-License-Identifier: Apache-2.0
// What the tests observe, a line each, appended to the file that the environment variable FA4_RECORD names;
// nothing without it. Two trees behave alike when their sorted files are equal: tests/record.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace fa4::support {

inline void record(const std::string& line) {
  static const char* const path = std::getenv("FA4_RECORD");
  if (!path) return;
  if (std::FILE* file = std::fopen(path, "a")) {
    std::fputs((line + "\n").c_str(), file);  // one write: lines of several processes do not mix
    std::fclose(file);
  }
}

// FNV-1a over the bytes.
template <typename T>
std::string digest(const std::vector<T>& values) {
  uint64_t hash = 0xcbf29ce484222325u;
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size() * sizeof(T); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

// Who made an access of a finding: what stands before its place.
inline std::string actor(const std::string& access) {
  return access.substr(0, access.find(':'));
}

}  // namespace fa4::support
