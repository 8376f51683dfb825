// SPDX-License-Identifier: Apache-2.0
// The fields of a problem one by one: the values that each may have, and those that mean nothing without another. Tensors, and what
// follows from several fields together, are problem.h's.
#pragma once

#include <cstdint>

#include "message.h"

namespace fa4 {

// The kernel counts sequences (kMaxSequence of config.h), heads, batch, pages and tasks in 32 bits.
inline constexpr int64_t kMaxHeads = INT32_MAX;
inline constexpr int64_t kMaxBatch = INT32_MAX;
inline constexpr int64_t kMaxPages = INT32_MAX;
inline constexpr int64_t kMaxTasks = INT32_MAX;

// FA4_OK, or a code and a sentence that names the first field that is wrong, its value and what would be accepted.
fa4_status check_fields(const fa4_forward_params& params, Message& message);

}  // namespace fa4
