// SPDX-License-Identifier: Apache-2.0
// The layouts of placement.h.
#include "placement.h"

#include <algorithm>
#include <stdexcept>

namespace fa4::support {
namespace {

constexpr int64_t kGuard = 1024;  // elements of NaN before and after a view: 2 KiB, a multiple of 16 bytes

// The two outer dimensions of a side's tensors.
struct Extents {
  int64_t batch, rows;
  bool packed;
};
Extents extents_of(const Problem& p, const Lengths& lengths, int64_t bound) {
  return lengths.packed.empty() ? Extents{p.batch, bound, false}
                                : Extents{1, lengths.cu_seqlens().back(), true};
}

View dense(int buffer, int64_t seq, int64_t heads, int64_t head_dim) {
  return {buffer, kGuard, seq * heads * head_dim, heads * head_dim, head_dim};
}
View head_major(int buffer, int64_t seq, int64_t heads, int64_t head_dim) {
  return {buffer, kGuard, heads * seq * head_dim, head_dim, seq * head_dim};
}
View padded(int buffer, int64_t seq, int64_t heads, int64_t head_dim) {
  const int64_t head = head_dim + 136, token = heads * head + 24;  // farther apart than a tile is wide
  return {buffer, kGuard, (seq + 1) * token + 40, token, head};
}

}  // namespace

const char* name_of(Layout layout) {
  switch (layout) {
    case Layout::bshd:
      return "bshd";
    case Layout::bhsd:
      return "bhsd";
    case Layout::fused_qkv:
      return "fused QKV";
    case Layout::broadcast:
      return "broadcast K and V";
    case Layout::padded:
      return "padded";
  }
  return "?";
}

Placement place(const Problem& p, Layout layout) {
  Placement result;
  const Extents q = extents_of(p, p.q_lengths, p.seq_q), kv = extents_of(p, p.kv_lengths, p.seq_kv);
  const auto own_buffers = [&](auto make) {
    result.q = make(0, q.rows, p.q_heads, p.head_dim);
    result.k = make(1, kv.rows, p.kv_heads, p.head_dim);
    result.v = make(2, kv.rows, p.kv_heads, p.v_dim());
    result.o = make(3, q.rows, p.q_heads, p.v_dim());
  };
  switch (layout) {
    case Layout::bshd:
      own_buffers(dense);
      break;
    case Layout::bhsd:
      own_buffers(head_major);
      break;
    case Layout::padded:
      own_buffers(padded);
      break;
    case Layout::broadcast:
      own_buffers(dense);
      result.k = {1, kGuard, 0, p.head_dim, 0};
      result.v = {2, kGuard, 0, p.v_dim(), 0};
      break;
    case Layout::fused_qkv: {
      if (q.rows != kv.rows || q.batch != kv.batch)
        throw std::logic_error("a fused QKV tensor has one sequence length");
      const int64_t token = (p.q_heads + p.kv_heads) * p.head_dim + p.kv_heads * p.v_dim();
      result.q = result.k = {0, kGuard, q.rows * token, token, p.head_dim};
      result.v = {0, kGuard, q.rows * token, token, p.v_dim()};
      result.k.offset += p.q_heads * p.head_dim;
      result.v.offset += (p.q_heads + p.kv_heads) * p.head_dim;
      result.o = dense(1, q.rows, p.q_heads, p.v_dim());
      break;
    }
  }
  result.buffer_elements.assign(size_t(result.o.buffer) + 1, 2 * kGuard);
  const auto reserve = [&](View& view, const Extents& extents, int64_t heads, int64_t dim) {
    if (extents.batch > 0 && extents.rows > 0) {
      int64_t& elements = result.buffer_elements[size_t(view.buffer)];
      elements = std::max(elements, view.at(extents.batch - 1, extents.rows - 1, heads - 1) + dim + kGuard);
    }
    if (extents.packed) view.batch_stride = kNoStride;
  };
  reserve(result.q, q, p.q_heads, p.head_dim);
  reserve(result.k, kv, p.kv_heads, p.head_dim);
  reserve(result.v, kv, p.kv_heads, p.v_dim());
  reserve(result.o, q, p.q_heads, p.v_dim());

  const int64_t lse_padding = layout == Layout::padded ? 3 : 0;
  result.lse_head_stride = q.rows + lse_padding;
  result.lse_batch_stride = p.q_heads * result.lse_head_stride + lse_padding;
  result.lse_offset = 17;  // LSE need only be 4-byte aligned
  result.lse_elements = q.batch * result.lse_batch_stride + 2 * result.lse_offset;
  if (q.packed) result.lse_batch_stride = 0;
  return result;
}

Inputs broadcast_kv(const Problem& p, Inputs inputs) {
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t s = 0; s < p.seq_kv; ++s)
      for (int64_t h = 0; h < p.kv_heads; ++h) {
        const int64_t to = (b * p.seq_kv + s) * p.kv_heads + h;
        const int64_t from = ((p.kv_lengths.packed.empty() ? 0 : b) * p.seq_kv + s) * p.kv_heads;
        std::copy_n(inputs.k.begin() + from * p.head_dim, p.head_dim, inputs.k.begin() + to * p.head_dim);
        std::copy_n(inputs.v.begin() + from * p.v_dim(), p.v_dim(), inputs.v.begin() + to * p.v_dim());
      }
  return inputs;
}

}  // namespace fa4::support
