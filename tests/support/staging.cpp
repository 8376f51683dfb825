// SPDX-License-Identifier: Apache-2.0
// Everything that a kernel may read or write lies among poison, or among what the caller wants beside it, and is compared afterwards.
#include "staging.h"

#include <algorithm>
#include <bit>

namespace fa4::support {
namespace {

template <typename T>
uint64_t bytes_of(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

constexpr size_t kArrayGuard = 17;  // words: arrays need only be 4-byte aligned
constexpr size_t kWorkspaceGuard =
    64;  // words: 256 bytes, so that the workspace is as aligned as an allocation
constexpr const char* kWorkspace = "workspace";

std::vector<uint32_t> words_of(const std::vector<int64_t>& values) {
  return {values.begin(), values.end()};
}
std::vector<uint32_t> words_of(const std::vector<float>& values) {
  std::vector<uint32_t> words;
  for (const float value : values) words.push_back(std::bit_cast<uint32_t>(value));
  return words;
}

}  // namespace

fa4_forward_params params_of(const Problem& p, const Inputs& inputs, const PlaceArray& array) {
  fa4_forward_params params{};
  params.struct_size = sizeof params;
  params.version = FA4_VERSION;
  params.dtype = p.dtype == Dtype::fp16 ? FA4_FP16 : FA4_BF16;
  params.causal = p.causal;
  params.batch = p.batch;
  params.seq_q = p.seq_q;
  params.seq_kv = p.seq_kv;
  params.q_heads = p.q_heads;
  params.kv_heads = p.kv_heads;
  params.head_dim = p.head_dim;
  params.head_dim_v = p.head_dim_v;
  params.softmax_scale = p.scale;
  params.diagonal_alignment = p.top_left ? FA4_DIAGONAL_TOP_LEFT : FA4_DIAGONAL_BOTTOM_RIGHT;
  if (p.window) {
    params.window = 1;
    params.window_left = p.window_left;
    params.window_right = p.window_right;
  }
  if (!p.q_lengths.packed.empty()) {
    const std::vector<int64_t> rows = p.q_lengths.cu_seqlens();
    params.cu_seqlens_q = array("cu_seqlens_q", words_of(rows));
    params.total_q = rows.back();
  }
  if (!p.kv_lengths.packed.empty()) {
    const std::vector<int64_t> rows = p.kv_lengths.cu_seqlens();
    params.cu_seqlens_k = array("cu_seqlens_k", words_of(rows));
    params.total_k = rows.back();
  }
  if (!p.q_lengths.used.empty()) params.seqused_q = array("seqused_q", words_of(p.q_lengths.used));
  if (!p.kv_lengths.used.empty()) params.seqused_k = array("seqused_k", words_of(p.kv_lengths.used));
  params.softcap = p.softcap;
  if (p.sinks) params.sinks = array("sinks", words_of(inputs.sinks));
  if (p.alibi) {
    params.alibi_slopes = array("alibi_slopes", words_of(inputs.slopes));
    params.alibi_batch_stride = p.slopes_by_entry ? p.q_heads : 0;
  }
  return params;
}

StagedProblem::StagedProblem(const Problem& problem, const Inputs& inputs, Layout layout, bool lse,
                             uint16_t beside, const DeviceMemory& memory)
    : problem_(problem), memory_(memory), placement_(place(problem, layout)) {
  for (const int64_t elements : placement_.buffer_elements) buffers_.emplace_back(size_t(elements), beside);
  std::fill(buffers_.back().begin(), buffers_.back().end(), kPoison16);  // O's
  // Rows that do not count stay what lies beside the views.
  const auto scatter = [&](const std::vector<uint16_t>& packed, const Lengths& lengths, int64_t bound,
                           int64_t heads, int64_t dim, const View& view) {
    for_each_row(problem, lengths, bound, [&](int64_t b, int64_t i, int64_t batch, int64_t s) {
      for (int64_t h = 0; h < heads; ++h)
        std::copy_n(packed.begin() + ((b * bound + i) * heads + h) * dim, dim,
                    buffers_[size_t(view.buffer)].begin() + view.at(batch, s, h));
    });
  };
  const Problem& p = problem;
  scatter(inputs.q, p.q_lengths, p.seq_q, p.q_heads, p.head_dim, placement_.q);
  scatter(inputs.k, p.kv_lengths, p.seq_kv, p.kv_heads, p.head_dim, placement_.k);
  scatter(inputs.v, p.kv_lengths, p.seq_kv, p.kv_heads, p.v_dim(), placement_.v);
  for (const std::vector<uint16_t>& values : buffers_)
    addresses_.push_back(memory.put(values.data(), bytes_of(values)));

  params = params_of(problem, inputs, [&](const char* name, const std::vector<uint32_t>& words) {
    return add_array(name, words, kArrayGuard);
  });
  const auto tensor = [&](const View& view) {
    return fa4_tensor{addresses_[size_t(view.buffer)] + uint64_t(view.offset) * sizeof(uint16_t),
                      view.batch_stride, view.seq_stride, view.head_stride};
  };
  params.q = tensor(placement_.q);
  params.k = tensor(placement_.k);
  params.v = tensor(placement_.v);
  params.o = tensor(placement_.o);
  if (!lse) return;
  lse_.assign(size_t(placement_.lse_elements), kPoison32);
  lse_address_ = memory.put(lse_.data(), bytes_of(lse_));
  params.lse = lse_address_ + uint64_t(placement_.lse_offset) * sizeof(float);
  params.lse_batch_stride = placement_.lse_batch_stride;
  params.lse_head_stride = placement_.lse_head_stride;
}

uint64_t StagedProblem::add_array(const std::string& name, const std::vector<uint32_t>& words, size_t guard) {
  Array array{name, 0, std::vector<uint32_t>(words.size() + 2 * guard, kPoison32)};
  std::copy(words.begin(), words.end(), array.words.begin() + int64_t(guard));
  array.address = memory_.put(array.words.data(), bytes_of(array.words));
  arrays_.push_back(std::move(array));
  return arrays_.back().address + guard * sizeof(uint32_t);
}

void StagedProblem::add_workspace(uint64_t bytes) {
  const uint64_t address =
      add_array(kWorkspace, std::vector<uint32_t>(size_t(bytes + 3) / 4, 0), kWorkspaceGuard);
  if (bytes != 0) params.workspace = reinterpret_cast<void*>(address);
  params.workspace_size = bytes;
}

void StagedProblem::read_o(Output& output) const {
  const Problem& p = problem_;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const bool is_o = i == size_t(placement_.o.buffer);
    std::vector<uint16_t> after(buffers_[i].size());
    memory_.get(after.data(), addresses_[i], bytes_of(after));
    if (is_o) {
      const int64_t dim = p.v_dim();
      output.o.assign(size_t(p.o_elements()), kPoison16);
      for_each_row(p, p.q_lengths, p.seq_q, [&](int64_t b, int64_t s, int64_t batch, int64_t seq) {
        for (int64_t h = 0; h < p.q_heads; ++h) {
          const auto from = after.begin() + placement_.o.at(batch, seq, h);
          std::copy_n(from, dim, output.o.begin() + ((b * p.seq_q + s) * p.q_heads + h) * dim);
          std::fill_n(from, dim, kPoison16);  // what is left must be as it was
        }
      });
    }
    const auto changed = std::mismatch(after.begin(), after.end(), buffers_[i].begin());
    if (changed.first != after.end())
      output.damage =
          "element " + std::to_string(changed.first - after.begin()) + " of buffer " + std::to_string(i) +
          (is_o ? " (O's, beside the rows of the batch entries)" : " (an input)") + " was changed";
  }
}

void StagedProblem::read_lse(Output& output) const {
  const Problem& p = problem_;
  std::vector<uint32_t> after(lse_.size());
  memory_.get(after.data(), lse_address_, bytes_of(after));
  output.lse.assign(size_t(p.lse_elements()), std::bit_cast<float>(kPoison32));
  for_each_row(p, p.q_lengths, p.seq_q, [&](int64_t b, int64_t s, int64_t batch, int64_t seq) {
    for (int64_t h = 0; h < p.q_heads; ++h) {
      uint32_t& from = after[size_t(placement_.lse_offset + batch * placement_.lse_batch_stride +
                                    h * placement_.lse_head_stride + seq)];
      output.lse[size_t((b * p.q_heads + h) * p.seq_q + s)] = std::bit_cast<float>(from);
      from = kPoison32;
    }
  });
  if (after != lse_)
    output.damage = "an element of the LSE buffer beside the rows of the batch entries was changed";
}

Output StagedProblem::read() const {
  Output output;
  read_o(output);
  if (params.lse != 0) read_lse(output);
  for (const Array& array : arrays_) {
    std::vector<uint32_t> after(array.words.size());
    memory_.get(after.data(), array.address, bytes_of(after));
    if (after == array.words) continue;
    output.damage = array.name == kWorkspace
                        ? "the workspace is not zero again, or what lies beside it was changed"
                        : array.name + ", or what lies beside it, was changed";
  }
  return output;
}

}  // namespace fa4::support
