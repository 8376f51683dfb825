// SPDX-License-Identifier: Apache-2.0
// Query: one lane that loads Q of the tasks to come, with the record that says what the task is. A warp of
// its own, so that Q is on its way as soon as its slot is free, however far the stream of K and V has got.
#pragma once

#include "../../../ptx/tma.cuh"
#include "../cta.cuh"

namespace fa4::hopper {

template <Config c>
__device__ __forceinline__ void query_role(const Cta<c>& cta) {
  using T = Tile<c>;
  const AttentionParams& params = cta.params;
  ptx::prefetch_tensormap(&params.q);
  auto q = PipelineState<kQSlots>::producer();
  for (TaskWalk<c> walk(cta); walk.next(); q.advance()) {
    const TaskId task = walk.task;
    const int32_t first_head = task.head_group << params.packed_heads_log2;
#pragma unroll 1
    for (int i = 0; i < c.consumers; ++i) cta.q_empty.wait(q.index * c.consumers + i, q.phase);
    cta.store_task(q.index, {task.batch, task.head_group, walk.position(0), walk.blocks()});
#pragma unroll 1
    for (int i = 0; i < c.consumers; ++i) {
      const int stage = q.index * c.consumers + i;
      cta.q_full.arrive_expect_tx(stage, T::kQBytes);
      const int32_t coordinates[5] = {0, first_head, walk.position(i), 0, task.batch};
      ptx::cp_async_bulk_tensor_load(cta.q_tile(q.index, i), &params.q, coordinates,
                                     cta.q_full.address(stage));
    }
  }
}

}  // namespace fa4::hopper
