// SPDX-License-Identifier: Apache-2.0
// One attention problem as the tests and the command line speak of it, with tensors packed in (batch,
// sequence, head, head dimension) order. Where the tensors lie in device memory is another matter
// (attention_device.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "half.h"

namespace fa4::support {

// Lengths of the batch's entries on one side, Q's or K's and V's, where they are not all the bound.
struct Lengths {
  std::vector<int64_t> packed;  // rows of each entry, which lie one behind the other (cu_seqlens); empty:
                                // (batch, bound) tensors
  std::vector<int64_t> used;    // of each entry only the first so many count (seqused); empty: all

  bool given() const { return !packed.empty() || !used.empty(); }
  // Packed: where each entry begins, and where the last one ends.
  std::vector<int64_t> cu_seqlens() const {
    std::vector<int64_t> rows(1, 0);
    for (const int64_t length : packed) rows.push_back(rows.back() + length);
    return rows;
  }
  // Of an entry, cut at the bound.
  int64_t of(int64_t entry, int64_t bound) const {
    int64_t length = bound;
    if (!packed.empty()) length = std::min(length, packed[size_t(entry)]);
    if (!used.empty()) length = std::min(length, used[size_t(entry)]);
    return std::max<int64_t>(length, 0);
  }
};

struct KeyInterval {
  int64_t begin, end;  // half open; empty when end <= begin
  int64_t count() const { return std::max<int64_t>(end - begin, 0); }
};

struct Problem {
  Dtype dtype = Dtype::fp16;
  bool causal = false;  // query i sees keys j <= i + off
  int64_t batch = 1, seq_q = 1, seq_kv = 1, q_heads = 1,
          kv_heads = 1;  // seq_q and seq_kv are bounds where there are lengths
  double scale = 0;  // 0: 1 / sqrt(head dimension)
  int64_t head_dim = 128;
  int64_t head_dim_v = 0;  // 0: head_dim

  Lengths q_lengths = {}, kv_lengths = {};
  bool top_left = false;                        // off is 0, else seq_kv - seq_q of the entry
  bool window = false;                          // query i sees keys from i + off - left to i + off + right
  int64_t window_left = -1, window_right = -1;  // -1: no bound
  double softcap = 0;                           // 0: none
  bool sinks = false;                           // Inputs::sinks count
  bool alibi = false;                           // Inputs::slopes count
  bool slopes_by_entry = false;                 // each entry of the batch has its own; else all share them

  int64_t v_dim() const { return head_dim_v != 0 ? head_dim_v : head_dim; }
  double effective_scale() const { return scale != 0 ? scale : 1.0 / std::sqrt(double(head_dim)); }
  int64_t ratio() const { return q_heads / kv_heads; }
  int64_t length_q(int64_t entry) const { return q_lengths.of(entry, seq_q); }
  int64_t length_kv(int64_t entry) const { return kv_lengths.of(entry, seq_kv); }
  // Of the diagonal: query i lies on key i + off.
  int64_t off(int64_t entry) const { return top_left ? 0 : length_kv(entry) - length_q(entry); }
  int64_t q_elements() const { return batch * seq_q * q_heads * head_dim; }
  int64_t k_elements() const { return batch * seq_kv * kv_heads * head_dim; }
  int64_t v_elements() const { return batch * seq_kv * kv_heads * v_dim(); }
  int64_t o_elements() const { return batch * seq_q * q_heads * v_dim(); }
  int64_t lse_elements() const { return batch * q_heads * seq_q; }
  // Keys that a query of an entry sees.
  KeyInterval visible(int64_t entry, int64_t position) const {
    const int64_t diagonal = position + off(entry), keys = length_kv(entry);
    constexpr int64_t kWide = int64_t{1} << 40;  // beyond all keys: sums stay in range
    const int64_t right = causal ? 0 : window ? std::min(window_right, kWide) : -1;
    const int64_t left = window ? std::min(window_left, kWide) : -1;
    return {left < 0 ? 0 : std::max<int64_t>(diagonal - left, 0),
            right < 0 ? keys : std::min(diagonal + right + 1, keys)};
  }
};

std::string describe(const Problem& problem);

// Q, K and V: raw 16-bit values, element (b, s, h, d) at ((b * seq + s) * heads + h) * dim + d with seq the
// bound, however long the entry is: what an entry holds does not depend on the lengths.
struct Inputs {
  std::vector<uint16_t> q, k, v;
  std::vector<float> sinks = {};   // q_heads, a logit each
  std::vector<float> slopes = {};  // q_heads, or (batch, q_heads)
};

}  // namespace fa4::support
