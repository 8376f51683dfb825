// SPDX-License-Identifier: Apache-2.0
// fa4 for C++: the C ABI of fa4.h with ownership, defaults and exceptions, and nothing else.
//
//     fa4::Context context;                                             // in the current CUDA context
//     fa4::Problem problem(FA4_FP16, {.batch = 1, .seq_q = 1024, .seq_kv = 1024, .q_heads = 32, .kv_heads =
//     8}); problem.set_q(q).set_k(k).set_v(v).set_o(o).set_causal().set_stream(stream);
//     context.forward(problem);
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "fa4.h"

namespace fa4 {

// A status that is not FA4_OK; what() is the sentence of fa4_last_error().
class Error : public std::runtime_error {
 public:
  Error(fa4_status status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  fa4_status status() const noexcept { return status_; }

 private:
  fa4_status status_;
};

inline void check(fa4_status status) {
  if (status != FA4_OK) throw Error(status, fa4_last_error());
}

// Extents, as in fa4_forward_params.
struct Shape {
  int64_t batch = 1;
  int64_t seq_q = 0;
  int64_t seq_kv = 0;
  int64_t q_heads = 1;
  int64_t kv_heads = 1;
  int64_t head_dim = 128;
  int64_t head_dim_v = 0;  // of V and O; 0: head_dim
};

// Strides in elements of a (batch, sequence, head, head dimension) view.
struct Strides {
  int64_t batch, seq, head;

  // Of a dense tensor that is stored (batch, sequence, head, head dimension).
  static constexpr Strides bshd(int64_t seq, int64_t heads, int64_t head_dim = 128) {
    return {seq * heads * head_dim, heads * head_dim, head_dim};
  }
  // Of a dense tensor that is stored (batch, head, sequence, head dimension).
  static constexpr Strides bhsd(int64_t seq, int64_t heads, int64_t head_dim = 128) {
    return {seq * heads * head_dim, head_dim, seq * head_dim};
  }
};

// fa4_forward_params with everything set that has a default: version, zeros, and dense (batch, sequence,
// head, head dimension) tensors. Every field stays accessible. What is packed or lies in pages is said before the tensors and the LSE
// are set: their defaults follow from it.
struct Problem : fa4_forward_params {
  Problem(fa4_dtype type, const Shape& shape) : fa4_forward_params{} {
    struct_size = sizeof(fa4_forward_params);
    version = FA4_VERSION;
    dtype = type;
    batch = shape.batch;
    seq_q = shape.seq_q;
    seq_kv = shape.seq_kv;
    q_heads = shape.q_heads;
    kv_heads = shape.kv_heads;
    head_dim = shape.head_dim;
    head_dim_v = shape.head_dim_v;
  }

  Problem& set_q(uint64_t data) { return set_q(data, Strides::bshd(seq_q, q_heads, head_dim)); }
  Problem& set_k(uint64_t data) { return set_k(data, Strides::bshd(kv_rows(), kv_heads, head_dim)); }
  Problem& set_v(uint64_t data) { return set_v(data, Strides::bshd(kv_rows(), kv_heads, v_dim())); }
  Problem& set_o(uint64_t data) { return set_o(data, Strides::bshd(seq_q, q_heads, v_dim())); }
  Problem& set_q(uint64_t data, const Strides& strides) { return set(q, data, strides); }
  Problem& set_k(uint64_t data, const Strides& strides) { return set(k, data, strides); }
  Problem& set_v(uint64_t data, const Strides& strides) { return set(v, data, strides); }
  Problem& set_o(uint64_t data, const Strides& strides) { return set(o, data, strides); }

  // Dense (batch, q_heads, seq_q), or (q_heads, total_q) of packed batch entries.
  Problem& set_lse(uint64_t data) {
    return cu_seqlens_q != 0 ? set_lse(data, 0, total_q) : set_lse(data, q_heads * seq_q, seq_q);
  }
  Problem& set_lse(uint64_t data, int64_t batch_stride, int64_t head_stride) {
    lse = data;
    lse_batch_stride = batch_stride;
    lse_head_stride = head_stride;
    return *this;
  }

  Problem& set_causal(bool on = true) {
    causal = on ? 1 : 0;
    return *this;
  }
  Problem& set_diagonal_alignment(fa4_diagonal_alignment alignment) {
    diagonal_alignment = alignment;
    return *this;
  }
  // Keys before and behind the diagonal; -1: all.
  Problem& set_window(int64_t left, int64_t right) {
    window = 1;
    window_left = left;
    window_right = right;
    return *this;
  }
  // Lengths of batch entries, on the device; with any of them a call needs a workspace. Entries behind one another: where each begins,
  // and the rows of all.
  Problem& set_packed_q(uint64_t cu_seqlens, int64_t total) {
    cu_seqlens_q = cu_seqlens;
    total_q = total;
    return *this;
  }
  Problem& set_packed_k(uint64_t cu_seqlens, int64_t total) {
    cu_seqlens_k = cu_seqlens;
    total_k = total;
    return *this;
  }
  // Rows of each batch entry that count.
  Problem& set_seqused_q(uint64_t lengths) {
    seqused_q = lengths;
    return *this;
  }
  Problem& set_seqused_k(uint64_t lengths) {
    seqused_k = lengths;
    return *this;
  }
  // K and V in a pool of pages of so many keys. Not built yet: refused.
  Problem& set_pages(uint64_t table, int64_t table_stride, int64_t keys_per_page, int64_t pages) {
    block_table = table;
    block_table_stride = table_stride;
    page_size = keys_per_page;
    num_pages = pages;
    return *this;
  }
  Problem& set_num_splits(int32_t splits) {
    num_splits = splits;
    return *this;
  }
  // Not with ALiBi slopes.
  Problem& set_softcap(double cap) {
    softcap = cap;
    return *this;
  }
  // A logit for each query head, fp32 on the device.
  Problem& set_sinks(uint64_t logits) {
    sinks = logits;
    return *this;
  }
  // A slope for each query head, fp32 on the device; of each batch entry so many elements apart.
  Problem& set_alibi_slopes(uint64_t slopes, int64_t batch_stride = 0) {
    alibi_slopes = slopes;
    alibi_batch_stride = batch_stride;
    return *this;
  }
  Problem& set_softmax_scale(double scale) {
    softmax_scale = scale;
    return *this;
  }
  Problem& set_scheduler(fa4_scheduler kind) {
    scheduler = kind;
    return *this;
  }
  // Of Context::workspace_size() bytes; fa4_forward_params says who zeroes it, and when.
  Problem& set_workspace(void* memory, uint64_t bytes) {
    workspace = memory;
    workspace_size = bytes;
    return *this;
  }
  Problem& set_stream(void* cu_stream) {
    stream = cu_stream;
    return *this;
  }
  Problem& set_max_ctas(int32_t ctas) {
    max_ctas = ctas;
    return *this;
  }

 private:
  int64_t v_dim() const { return head_dim_v != 0 ? head_dim_v : head_dim; }
  int64_t kv_rows() const { return block_table != 0 ? page_size : seq_kv; }  // that a batch stride steps over

  Problem& set(fa4_tensor& tensor, uint64_t data, const Strides& strides) {
    tensor = {data, strides.batch, strides.seq, strides.head};
    return *this;
  }
};

// Owns a fa4_context. Moved, not copied; calls on a const Context are safe from several threads.
class Context {
 public:
  // driver_library and image as in fa4_create_params; null: libcuda.so.1 and the built-in image.
  explicit Context(const char* driver_library = nullptr, const void* image = nullptr) {
    fa4_create_params params{};
    params.struct_size = sizeof params;
    params.version = FA4_VERSION;
    params.driver_library = driver_library;
    params.image = image;
    check(fa4_create(&params, &context_));
  }
  Context(Context&& other) noexcept : context_(std::exchange(other.context_, nullptr)) {}
  Context& operator=(Context&& other) noexcept {
    std::swap(context_, other.context_);
    return *this;
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { fa4_destroy(context_); }

  void forward(const Problem& problem) const { check(fa4_forward(context_, &problem)); }
  uint64_t workspace_size(const Problem& problem) const {
    uint64_t size = 0;
    check(fa4_workspace_size(context_, &problem, &size));
    return size;
  }
  const fa4_context* get() const noexcept { return context_; }

 private:
  fa4_context* context_ = nullptr;
};

// Why a problem would be refused, or "" when fa4_forward takes it, with a workspace where it needs one.
inline std::string why_unsupported(const Problem& problem) {
  return fa4_supported(nullptr, &problem) == FA4_OK ? std::string() : std::string(fa4_last_error());
}

}  // namespace fa4
