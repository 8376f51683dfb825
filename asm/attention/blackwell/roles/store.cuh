// SPDX-License-Identifier: Apache-2.0
// Store: one lane that sends finished O tiles from shared memory to global memory, and returns their buffers: to correction, or where
// they are Q's to load, which has been waiting for them.
#pragma once

#include "../../tile_copy.cuh"
#include "../cta.cuh"

namespace fa4::blackwell {

template <Config config>
__device__ __forceinline__ void store_role(const Cta<config>& cta) {
  using L = Layout<config>;
  const AttentionParams& params = cta.params;
  ptx::prefetch_tensormap(&params.o);
  uint32_t phase = 0;  // both stages turn once a task

  for (TaskWalk<config, Reader::lane> walk(cta.tasks); walk.next(); phase ^= 1) {
    const Task& task = walk.task;
#pragma unroll
    for (int stage = 0; stage < config.q_stages; ++stage) {
      cta.bar.corr_epi_full.wait(stage, phase);
      // The map clips the rows past its end. A stage wholly past it has nothing to store; its (empty) group keeps the
      // count below right.
      if (task.rows > stage * kTileRows) {
        store_tile<config, config.v_pieces(), kTileRows>(params.o, task.first_head, task.q_origin + task.position(stage), task.o_plane,
                                                 params.v_pieces_apart, cta.o_tile(stage));
      }
      ptx::cp_async_bulk_commit_group();
      if constexpr (L::o_over_q) {
        ptx::cp_async_bulk_wait_group_read<0>();
        cta.bar.corr_epi_empty.arrive(stage);
      }
    }
    if constexpr (!L::o_over_q) {
      static_assert(config.q_stages == 2);
      ptx::cp_async_bulk_wait_group_read<1>();
      cta.bar.corr_epi_empty.arrive(0);
      ptx::cp_async_bulk_wait_group_read<0>();
      cta.bar.corr_epi_empty.arrive(1);
    }
  }
  ptx::cp_async_bulk_wait_group<0>();  // the writes have landed before the CTA goes
}

}  // namespace fa4::blackwell
