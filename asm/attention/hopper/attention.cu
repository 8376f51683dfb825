// SPDX-License-Identifier: Apache-2.0
// The entry points for sm_90a. Launch: Tile<c>::kThreads threads, Tile<c>::kSharedBytes of dynamic shared
// memory, any grid from 1 to task_count CTAs, no cluster.
//
// AttentionParams as for Blackwell (../params.h), but for the shape of a tile: packed_heads = gcd(q_heads /
// kv_heads, 64), a task is Tile<c>::kTaskRows rows, boxes of Q and O are (64, packed_heads, 64 /
// packed_heads, D / 64, 1), of K and V (64, 1, block_keys, 1, 1). K and V without keys are described as one
// row at any address that can be read: it is never read. `negate_scores` negates Q in shared memory.
#include "forward.cuh"
#include "specialisations.h"

#define FA4_FORWARD(name, Element, config)                                                          \
  extern "C" __global__ void __launch_bounds__(fa4::hopper::Tile<fa4::hopper::config>::kThreads, 1) \
      name(const __grid_constant__ fa4::AttentionParams params) {                                   \
    fa4::hopper::forward<fa4::hopper::Element, fa4::hopper::config>(params);                        \
  }
#define FA4_FORWARD_BOTH(suffix, config)                 \
  FA4_FORWARD(fa4_forward_f16_##suffix, Float16, config) \
  FA4_FORWARD(fa4_forward_bf16_##suffix, BFloat16, config)

FA4_FORWARD_BOTH(d128_full, kD128Full)
FA4_FORWARD_BOTH(d128_causal, kD128Causal)
FA4_FORWARD_BOTH(d64_full, kD64Full)
FA4_FORWARD_BOTH(d64_causal, kD64Causal)
FA4_FORWARD_BOTH(d64_causal_short, kD64CausalShort)
