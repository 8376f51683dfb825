// SPDX-License-Identifier: Apache-2.0
// One attention problem as the tests and the command line speak of it, with tensors packed in (batch,
// sequence, head, head dimension) order. Where the tensors lie in device memory is another matter
// (attention_device.h).
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "half.h"

namespace fa4::support {

struct Problem {
  Dtype dtype = Dtype::fp16;
  bool causal = false;  // bottom-right aligned: query i sees keys j <= i + seq_kv - seq_q
  int64_t batch = 1, seq_q = 1, seq_kv = 1, q_heads = 1, kv_heads = 1;
  double scale = 0;  // 0: 1 / sqrt(head dimension)
  int64_t head_dim = 128;

  double effective_scale() const { return scale != 0 ? scale : 1.0 / std::sqrt(double(head_dim)); }
  int64_t ratio() const { return q_heads / kv_heads; }
  int64_t q_elements() const { return batch * seq_q * q_heads * head_dim; }
  int64_t kv_elements() const { return batch * seq_kv * kv_heads * head_dim; }
  int64_t lse_elements() const { return batch * q_heads * seq_q; }
  // Keys that query `position` sees: the first so many.
  int64_t visible_keys(int64_t position) const {
    if (!causal) return seq_kv;
    const int64_t limit = position + seq_kv - seq_q + 1;
    return limit < 0 ? 0 : limit < seq_kv ? limit : seq_kv;
  }
};

std::string describe(const Problem& problem);

// Q, K and V: raw 16-bit values, element (b, s, h, d) at ((b * seq + s) * heads + h) * head_dim + d.
struct Inputs {
  std::vector<uint16_t> q, k, v;
};

}  // namespace fa4::support
