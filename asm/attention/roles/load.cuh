// SPDX-License-Identifier: Apache-2.0
// Load: one lane that moves Q, K and V into shared memory, always a step ahead of the MMA driver.
//   Q0, K[n-1], Q1, V[n-1], then K[i], V[i] for i = n-2 .. 0
// Skipped blocks are not loaded; a task without blocks loads nothing at all.
#pragma once

#include "../../ptx/tma.cuh"
#include "../cta.cuh"

namespace fa4 {

template <bool causal>
__device__ __forceinline__ void load_role(const Cta& cta) {
  const AttentionParams& params = cta.params;
  ptx::prefetch_tensormap(&params.q);
  ptx::prefetch_tensormap(&params.k);
  ptx::prefetch_tensormap(&params.v);

  uint32_t q_phase = 1;  // both stages turn once a task
  auto kv = PipelineState<kKvStages>::producer();

  for (TaskWalk walk(params); walk.next();) {
    const int32_t blocks = walk.blocks<causal>();
    if (blocks == 0) continue;
    const Task task = walk.task;
    const int32_t first_head = task.head_group << params.packed_heads_log2;
    const int32_t kv_head = task.head_group / params.groups_per_kv_head;

    const auto load_q = [&](int stage) {
      cta.bar.q_empty.wait(stage, q_phase);
      cta.bar.q_full.arrive_expect_tx(stage, kTileBytes);
      const int32_t coordinates[5] = {0, first_head, walk.position(stage), 0, task.batch};
      ptx::cp_async_bulk_tensor_load(cta.address(cta.map.q[stage]), &params.q, coordinates,
                                     cta.bar.q_full.address(stage));
    };
    const auto load_kv = [&](const CUtensorMap& tensor, int32_t block) {
      cta.bar.kv_empty.wait(kv.index, kv.phase);
      cta.bar.kv_full.arrive_expect_tx(kv.index, kTileBytes);
      const int32_t coordinates[5] = {0, kv_head, block * kBlockKeys, 0, task.batch};
      ptx::cp_async_bulk_tensor_load(cta.address(cta.map.kv[kv.index]), &tensor, coordinates,
                                     cta.bar.kv_full.address(kv.index));
      kv.advance();
    };

    load_q(0);
    load_kv(params.k, blocks - 1);
    load_q(1);
    load_kv(params.v, blocks - 1);
    for (int32_t block = blocks - 2; block >= 0; --block) {
      load_kv(params.k, block);
      load_kv(params.v, block);
    }
    q_phase ^= 1;
  }

  // Until every slot is free once more: a commit that is still under way would arrive in the shared memory of
  // whichever CTA comes next.
  for (int stage = 0; stage < kQStages; ++stage) cta.bar.q_empty.wait(stage, q_phase);
  for (int slot = 0; slot < kKvStages; ++slot, kv.advance()) cta.bar.kv_empty.wait(kv.index, kv.phase);
}

}  // namespace fa4
