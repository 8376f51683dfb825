// SPDX-License-Identifier: Apache-2.0
// Load: one lane that moves K and V into shared memory, as far ahead of the consumers as the slots allow. The
// blocks of all tasks are one stream, in which V follows the K of the next block:
//   K[n-1] | K[n-2] V[n-1] | ... | K[0] V[1] | K'[n-1] V[0] | ...
#pragma once

#include "../../../ptx/tma.cuh"
#include "../cta.cuh"

namespace fa4::hopper {

template <Config c>
__device__ __forceinline__ void load_role(const Cta<c>& cta) {
  using T = Tile<c>;
  const AttentionParams& params = cta.params;
  ptx::prefetch_tensormap(&params.k);
  ptx::prefetch_tensormap(&params.v);

  auto kv = PipelineState<c.kv_slots>::producer();

  const auto load_kv = [&](const CUtensorMap& tensor, int32_t kv_head, int32_t key, int32_t batch) {
    cta.kv_empty.wait(kv.index, kv.phase);
    cta.kv_full.arrive_expect_tx(kv.index, T::kKvBytes);
    const uint32_t tile = cta.kv_tile(kv.index);
#pragma unroll
    for (int half = 0; half < T::kHalves; ++half) {
      const int32_t coordinates[5] = {0, kv_head, key, half, batch};
      ptx::cp_async_bulk_tensor_load(tile + half * T::kKvHalfBytes, &tensor, coordinates,
                                     cta.kv_full.address(kv.index));
    }
    kv.advance();
  };

  int32_t v_head = 0, v_key = -1, v_batch = 0;  // of the block whose V is still to come
  for (TaskWalk<c> walk(cta); walk.next();) {
    const TaskId task = walk.task;
    const int32_t kv_head = task.head_group / params.groups_per_kv_head;
    const bool no_keys = walk.keys() <= 0;
    for (int32_t block = walk.blocks() - 1; block >= 0; --block) {
      const int32_t key = no_keys ? (params.seq_kv > 0 ? params.seq_kv : 1) : block * c.block_keys;
      load_kv(params.k, kv_head, key, task.batch);
      if (v_key >= 0) load_kv(params.v, v_head, v_key, v_batch);
      v_head = kv_head, v_key = key, v_batch = task.batch;
    }
  }
  load_kv(params.v, v_head, v_key, v_batch);

  // Until every slot is free once more: nothing may be under way to a CTA that has gone.
  for (int slot = 0; slot < c.kv_slots; ++slot, kv.advance()) cta.kv_empty.wait(kv.index, kv.phase);
}

}  // namespace fa4::hopper
