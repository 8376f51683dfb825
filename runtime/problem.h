// SPDX-License-Identifier: Apache-2.0
// Everything a caller can get wrong about a problem, refused before anything is described or launched.
#pragma once

#include <cstdint>

#include "../asm/attention/kernels.h"
#include "message.h"

namespace fa4 {

// The kernel counts sequences (kMaxSequence of config.h), heads, batch and tasks in 32 bits.
inline constexpr int64_t kMaxHeads = INT32_MAX;
inline constexpr int64_t kMaxBatch = INT32_MAX;
inline constexpr int64_t kMaxTasks = INT32_MAX;

// The device's kernels, with their exponentials as the params ask for; null when it has none such. exp2 must have been checked.
const KernelList* with_exp2(const fa4_forward_params& params, const KernelList& kernels);

// The kernel of the list that takes the problem; null when there is none for its head dimension. dtype, causal and the
// extents must have been checked.
const Kernel* kernel_for(const fa4_forward_params& params, const KernelList& kernels);

// How query heads ride in a Q tile.
struct Packing {
  int64_t packed_heads;  // gcd(q_heads / kv_heads, rows of a Q tile): a power of two
  int64_t head_groups;   // q_heads / packed_heads
  int64_t m_blocks;      // ceil(seq_q / (rows of an m_block / packed_heads))
};
Packing pack_heads(const fa4_forward_params& params, const Config& config);

// FA4_OK, or a code and a sentence that names the field, its value and what would be accepted. Of a problem that is
// taken: the kernel, and how heads ride in its tiles.
struct CheckedProblem {
  const Kernel* kernel;
  Packing packing;
};
fa4_status check_problem(const fa4_forward_params& params, const KernelList& of_device, CheckedProblem& checked,
                         Message& message);

// A checked problem without output elements: nothing is to be launched.
inline bool is_empty(const fa4_forward_params& params) {
  return params.batch == 0 || params.seq_q == 0;
}

// The softmax scale that the params ask for: their own, or the default.
double softmax_scale(const fa4_forward_params& params);

}  // namespace fa4
