// SPDX-License-Identifier: Apache-2.0
// Whether two plans are the same, field by field: there is padding between them.
#pragma once

#include <cstring>

#include "runtime/plan.h"

namespace fa4::test {

// All but the tensor maps.
inline bool same_scalars(const AttentionParams& a, const AttentionParams& b) {
  return a.lse == b.lse && a.lse_batch_stride == b.lse_batch_stride && a.lse_head_stride == b.lse_head_stride &&
         a.seq_q == b.seq_q && a.seq_kv == b.seq_kv && a.packed_heads_log2 == b.packed_heads_log2 &&
         a.groups_per_kv_head == b.groups_per_kv_head && a.order == b.order && a.scale_log2 == b.scale_log2 &&
         a.scale == b.scale && a.negate_scores == b.negate_scores && a.qk_pieces_apart == b.qk_pieces_apart &&
         a.v_pieces_apart == b.v_pieces_apart;
}

inline bool same_steps(const MapSteps& a, const MapSteps& b) {
  return a.entry == b.entry && a.row == b.row;
}

// What general kernels read besides, and no plan of another sets.
inline bool same_general(const GeneralParams& a, const GeneralParams& b) {
  return a.cu_seqlens_q == b.cu_seqlens_q && a.cu_seqlens_k == b.cu_seqlens_k && a.seqused_q == b.seqused_q &&
         a.seqused_k == b.seqused_k && a.total_q == b.total_q && a.total_k == b.total_k && a.batch == b.batch && same_steps(a.q, b.q) &&
         same_steps(a.k, b.k) && same_steps(a.v, b.v) && same_steps(a.o, b.o) && a.left == b.left && a.right == b.right &&
         a.top_left == b.top_left && a.score == b.score && a.score_scale == b.score_scale && a.slopes == b.slopes &&
         a.slopes_entry_stride == b.slopes_entry_stride && a.sinks == b.sinks && a.task_counter == b.task_counter &&
         a.keys_in_l2 == b.keys_in_l2;
}

inline bool same_params(const Kernel& kernel, const AttentionParams& a, const AttentionParams& b) {
  return same_scalars(a, b) && (!kernel.config.general() || same_general(a.general, b.general));
}

inline bool same_map(const TensorMapDescription& a, const TensorMapDescription& b) {
  return a.type == b.type && a.address == b.address && std::memcmp(a.extents, b.extents, sizeof a.extents) == 0 &&
         std::memcmp(a.strides, b.strides, sizeof a.strides) == 0 && std::memcmp(a.box, b.box, sizeof a.box) == 0;
}

inline bool same_plan(const Plan& a, const Plan& b) {
  return a.kernel == b.kernel && a.grid == b.grid && same_map(a.q, b.q) && same_map(a.k, b.k) && same_map(a.v, b.v) &&
         same_map(a.o, b.o) && same_params(*a.kernel, a.params, b.params);
}

}  // namespace fa4::test
