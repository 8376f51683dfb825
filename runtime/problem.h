// SPDX-License-Identifier: Apache-2.0
// Everything a caller can get wrong about a problem, refused before anything is described or launched.
#pragma once

#include <cstdint>

#include "../asm/attention/kernels.h"
#include "fields.h"
#include "message.h"

namespace fa4 {

// The device's kernels, with their exponentials as the params ask for; null when it has none such. exp2 must have been checked.
const KernelList* with_exp2(const fa4_forward_params& params, const KernelList& kernels);

// The mask that hides the keys which causal, the window and the alignment hide for these lengths: a window's kernel is asked for
// only where no simpler one does. The fields must have been checked.
MaskKind mask_of(const fa4_forward_params& params);

// Head dimension of V and O.
inline int64_t head_dim_v(const fa4_forward_params& params) {
  return params.head_dim_v != 0 ? params.head_dim_v : params.head_dim;
}

// The kernel of the list that takes the problem; null when there is none for its head dimensions or its mask. The fields must have
// been checked.
const Kernel* kernel_for(const fa4_forward_params& params, const KernelList& kernels);

// How query heads ride in a Q tile.
struct Packing {
  int64_t packed_heads;  // gcd(q_heads / kv_heads, rows of a Q tile): a power of two
  int64_t head_groups;   // q_heads / packed_heads
  int64_t m_blocks;      // ceil(seq_q / (rows of an m_block / packed_heads))
};
Packing pack_heads(const fa4_forward_params& params, const Config& config);

// FA4_OK, or a code and a sentence that names the field, its value and what would be accepted. The params are the library's own
// (sized_struct.h). Of a problem that is taken: the kernel, and how heads ride in its tiles.
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
