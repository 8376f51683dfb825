// SPDX-License-Identifier: Apache-2.0
// The layouts of placement.h.
#include "placement.h"

#include <algorithm>
#include <stdexcept>

namespace fa4::support {
namespace {

constexpr int64_t kGuard = 1024;  // elements of NaN before and after a view: 2 KiB, a multiple of 16 bytes

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
  const auto own_buffers = [&](auto make) {
    result.q = make(0, p.seq_q, p.q_heads, p.head_dim);
    result.k = make(1, p.seq_kv, p.kv_heads, p.head_dim);
    result.v = make(2, p.seq_kv, p.kv_heads, p.head_dim);
    result.o = make(3, p.seq_q, p.q_heads, p.head_dim);
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
      result.v = {2, kGuard, 0, p.head_dim, 0};
      break;
    case Layout::fused_qkv: {
      if (p.seq_q != p.seq_kv) throw std::logic_error("a fused QKV tensor has one sequence length");
      const View all = dense(0, p.seq_q, p.q_heads + 2 * p.kv_heads, p.head_dim);
      result.q = result.k = result.v = all;
      result.k.offset += p.q_heads * p.head_dim;
      result.v.offset += (p.q_heads + p.kv_heads) * p.head_dim;
      result.o = dense(1, p.seq_q, p.q_heads, p.head_dim);
      break;
    }
  }
  result.buffer_elements.assign(size_t(result.o.buffer) + 1, 2 * kGuard);
  const auto reserve = [&](const View& view, int64_t seq, int64_t heads) {
    if (p.batch == 0 || seq == 0) return;
    int64_t& elements = result.buffer_elements[size_t(view.buffer)];
    elements = std::max(elements, view.at(p.batch - 1, seq - 1, heads - 1) + p.head_dim + kGuard);
  };
  reserve(result.q, p.seq_q, p.q_heads);
  reserve(result.k, p.seq_kv, p.kv_heads);
  reserve(result.v, p.seq_kv, p.kv_heads);
  reserve(result.o, p.seq_q, p.q_heads);

  const int64_t lse_padding = layout == Layout::padded ? 3 : 0;
  result.lse_head_stride = p.seq_q + lse_padding;
  result.lse_batch_stride = p.q_heads * result.lse_head_stride + lse_padding;
  result.lse_offset = 17;  // LSE need only be 4-byte aligned
  result.lse_elements = p.batch * result.lse_batch_stride + 2 * result.lse_offset;
  return result;
}

Inputs broadcast_kv(const Problem& p, Inputs inputs) {
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t s = 0; s < p.seq_kv; ++s)
      for (int64_t h = 0; h < p.kv_heads; ++h)
        for (int64_t d = 0; d < p.head_dim; ++d) {
          const size_t to = size_t(((b * p.seq_kv + s) * p.kv_heads + h) * p.head_dim + d);
          const size_t from = size_t(s * p.kv_heads * p.head_dim + d);
          inputs.k[to] = inputs.k[from];
          inputs.v[to] = inputs.v[from];
        }
  return inputs;
}

}  // namespace fa4::support
