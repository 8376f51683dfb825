// SPDX-License-Identifier: Apache-2.0
// Attention on the CPU, twice: in double precision, which is taken for the truth, and in the precision that a
// tensor core gives (fp32 scores and sums, P rounded to the dtype), whose distance from the truth sets the
// tolerance. Neither shares code or order of summation with the kernel. Both use all cores.
#pragma once

#include "problem.h"

namespace fa4::support {

// o: (batch, seq_q, q_heads, head dimension of V) packed. lse: (batch, q_heads, seq_q) packed, natural
// logarithm. A query without a visible key, or whose scores are all -inf, has o = 0 and lse = -inf, or the
// sink. Rows that an entry has not are 0.
struct Reference {
  std::vector<double> o, lse;
  // (batch, kv_heads): V is not finite at every key, so that fa4.h leaves o of the query heads that share the
  // KV head unspecified; what stands in o is then of no meaning. 0 or 1.
  std::vector<uint8_t> unspecified;
};

Reference reference_double(const Problem& problem, const Inputs& inputs);

// Scores and sums in fp32, P rounded to the dtype relative to a maximum that lags behind by up to 8 in log2 (the online softmax of
// the kernels' specification, in blocks of 64 keys), output rounded to the dtype; lse in fp32. Returned in double for comparison.
Reference reference_same_precision(const Problem& problem, const Inputs& inputs);

}  // namespace fa4::support
