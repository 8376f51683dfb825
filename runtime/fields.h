// SPDX-License-Identifier: Apache-2.0
// The fields of a problem one by one: the values that each may have, and those that mean nothing without another. Tensors, and what
// follows from several fields together, are problem.h's.
#pragma once

#include <cfloat>
#include <cstdint>
#include <numbers>

#include "../asm/attention/config.h"
#include "message.h"

namespace fa4 {

// The kernel counts sequences (kMaxSequence of config.h), heads, batch, pages and tasks in 32 bits, and looks for an entry of the
// batch in steps of a warp's lanes, of which the last may reach past the end.
inline constexpr int64_t kMaxHeads = INT32_MAX;
inline constexpr int64_t kMaxBatch = kMaxSequence;
inline constexpr int64_t kMaxPages = INT32_MAX;
inline constexpr int64_t kMaxTasks = INT32_MAX;

// Of the magnitude of a softmax scale, and of a softcap, which takes its place: it and its product with log2(e) must be normal
// floats, as the kernel flushes subnormal ones.
inline constexpr double kLeastScale = FLT_MIN, kMostScale = FLT_MAX / std::numbers::log2e;

// FA4_OK, or a code and a sentence that names the first field that is wrong, its value and what would be accepted.
fa4_status check_fields(const fa4_forward_params& params, Message& message);

}  // namespace fa4
