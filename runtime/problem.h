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

// Whether entries of the batch have lengths of their own, which are on the device.
bool has_own_lengths(const fa4_forward_params& params);

// The batch and sequence dimensions of Q and O, or of K and V, in memory.
struct Side {
  int64_t entries;  // 1 where they are packed
  int64_t rows;     // of an entry, or of all of them packed
  int64_t bound;    // no entry is longer
};
Side q_side(const fa4_forward_params& params);
Side k_side(const fa4_forward_params& params);

// The last dimension of a general kernel's tensor map (GeneralParams): its stride in elements, the places that an entry and a row
// are apart, and how many there are.
struct MapPlaces {
  int64_t stride, entry_step, row_step, count;
};
inline constexpr int64_t kMaxPlaces = INT32_MAX;
MapPlaces map_places(const fa4_tensor& tensor, const Side& side);

// How many keys a row sees before and behind its diagonal; -1: all.
struct Band {
  int64_t left, right;
};
Band band_of(const fa4_forward_params& params);

// The mask of the kernel for it: that which hides the keys that causal, the window and the alignment hide for these lengths. A
// band's, the general kernel, is asked for only where no simpler one does. The fields must have been checked.
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
  int64_t m_blocks;      // of the longest entry: ceil(its rows / (rows of an m_block / packed_heads))
  int64_t all_m_blocks;  // of all entries; where they have lengths of their own, at most so many
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
  return params.batch == 0 || params.seq_q == 0 || (params.cu_seqlens_q != 0 && params.total_q == 0);
}

// Device memory that a launch needs, in bytes; and whether the params give it. Not part of check_problem: who asks for the size has
// none yet.
uint64_t workspace_bytes(const fa4_forward_params& params);
fa4_status check_workspace(const fa4_forward_params& params, Message& message);

// The softmax scale that the params ask for: their own, or the default.
double softmax_scale(const fa4_forward_params& params);

}  // namespace fa4
