// SPDX-License-Identifier: Apache-2.0
// Query: one lane that loads Q of the tasks to come, with the record that says what the task is. A warp of
// its own, so that Q is on its way as soon as its slot is free, however far the stream of K and V has got.
#pragma once

#include "../../tile_copy.cuh"
#include "../cta.cuh"

namespace fa4::hopper {

template <Config config>
__device__ __forceinline__ void query_role(const Cta<config>& cta) {
  using L = Layout<config>;
  const AttentionParams& params = cta.params;
  ptx::prefetch_tensormap(&params.q);
  auto q = PipelineState<kQSlots>::producer();
  uint32_t q_read_phase = 1;
  for (TaskWalk<config, Reader::lane> walk(cta.tasks); walk.next(); q.advance(), q_read_phase ^= 1) {
    const Task& task = walk.task;
#pragma unroll 1
    for (int i = 0; i < L::consumers; ++i) cta.bar.q_empty.wait(q.index * L::consumers + i, q.phase);
    const BlockRegions blocks = visited_blocks<config>(mask_of<config>(params), task);
    cta.store_task(q.index, {task.batch, task.first_head, task.position(0), config.general() ? blocks.end : blocks.end - blocks.begin});
    if constexpr (config.general())
      cta.store_entry(q.index, {task.seq_q, task.seq_kv, task.first_row, walk.last() ? 1 : 0, blocks.begin, {}});
#pragma unroll 1
    for (int i = 0; i < L::consumers; ++i) {
      const int stage = q.index * L::consumers + i;
      if constexpr (L::q_tiles == 1) cta.bar.q_read.wait(i, q_read_phase);
      cta.bar.q_full.arrive_expect_tx(stage, config.q_tile_bytes());
      load_tile<config, config.qk_pieces(), kTileRows>(cta.q_tile(q.index, i), params.q, task.first_head, task.q_origin + task.position(i), task.q_plane,
                                               params.qk_pieces_apart, cta.bar.q_full.address(stage));
    }
  }
}

}  // namespace fa4::hopper
