// SPDX-License-Identifier: Apache-2.0
// Params structs of callers that were compiled with another fa4.h. They begin with struct_size and version, and grow at their end
// alone: fa4.h says what follows from that.
#pragma once

#include <cstdint>

#include "message.h"

namespace fa4 {

// Sizes that are read at all: the two fields that say what follows, and what keeps a wild value from reading wild memory.
inline constexpr uint32_t kLeastStructBytes = 8, kMostStructBytes = 4096;

// Copies what the caller has of a struct into `own`, of `own_bytes`, with zeros behind it.
// FA4_ERROR_VERSION and a sentence about `name` when it is of another version or size, or has a field that is not known here.
fa4_status read_struct(const void* given, const char* name, void* own, uint32_t own_bytes, Message& message);

inline fa4_status read_params(const fa4_create_params* given, fa4_create_params& own, Message& message) {
  return read_struct(given, "fa4_create_params", &own, sizeof own, message);
}
inline fa4_status read_params(const fa4_forward_params* given, fa4_forward_params& own, Message& message) {
  return read_struct(given, "fa4_forward_params", &own, sizeof own, message);
}

}  // namespace fa4
