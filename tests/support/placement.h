// SPDX-License-Identifier: Apache-2.0
// Where tensors lie in device memory: strided views of buffers whose other elements are NaN, so that whatever
// is read or written beside a view shows. Packed entries are one entry of all their rows.
#pragma once

#include "problem.h"

namespace fa4::support {

enum class Layout {
  bshd,       // (batch, sequence, head, head_dim), dense
  bhsd,       // (batch, head, sequence, head_dim), dense
  fused_qkv,  // Q, K and V are slices of one (batch, sequence, q_heads + 2 kv_heads, head_dim) tensor; needs
              // seq_q == seq_kv
  broadcast,  // K and V hold one head of one batch entry, repeated with stride 0; packed, one head of each
              // entry
  padded,     // every stride larger than dense by an odd number of 16-byte units
};
const char* name_of(Layout layout);

// Elements; the head dimension has stride 1.
struct View {
  int buffer = 0;
  int64_t offset = 0, batch_stride = 0, seq_stride = 0, head_stride = 0;
  int64_t at(int64_t b, int64_t s, int64_t h) const {
    return offset + b * batch_stride + s * seq_stride + h * head_stride;
  }
};

struct Placement {
  std::vector<int64_t> buffer_elements;  // the last one is O's
  View q, k, v, o;
  int64_t lse_elements = 0, lse_offset = 0, lse_batch_stride = 0, lse_head_stride = 0;
};
Placement place(const Problem& problem, Layout layout);

// The elements of a packed tensor's batch stride, which nobody may use.
constexpr int64_t kNoStride = -3;

// Calls visit(entry, row of the entry, its batch index and sequence index in the tensors) for every row that
// counts.
template <typename Visit>
void for_each_row(const Problem& p, const Lengths& lengths, int64_t bound, const Visit& visit) {
  const std::vector<int64_t> begin = lengths.cu_seqlens();
  const bool packed = !lengths.packed.empty();
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t s = 0; s < lengths.of(b, bound); ++s)
      visit(b, s, packed ? 0 : b, packed ? begin[size_t(b)] + s : s);
}

// For Layout::broadcast: the inputs with K and V of batch 0, or of each packed entry, and head 0 everywhere.
Inputs broadcast_kv(const Problem& problem, Inputs inputs);

// A NaN that no arithmetic of the kernel produces, to tell an element that was never written.
constexpr uint16_t kPoison16 = 0x7FA5;
constexpr uint32_t kPoison32 = 0x7FA5A5A5u;

}  // namespace fa4::support
