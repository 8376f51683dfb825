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

inline bool same_map(const TensorMapDescription& a, const TensorMapDescription& b) {
  return a.type == b.type && a.address == b.address && std::memcmp(a.extents, b.extents, sizeof a.extents) == 0 &&
         std::memcmp(a.strides, b.strides, sizeof a.strides) == 0 && std::memcmp(a.box, b.box, sizeof a.box) == 0;
}

inline bool same_plan(const Plan& a, const Plan& b) {
  return a.kernel == b.kernel && a.grid == b.grid && same_map(a.q, b.q) && same_map(a.k, b.k) && same_map(a.v, b.v) &&
         same_map(a.o, b.o) && same_scalars(a.params, b.params);
}

}  // namespace fa4::test
