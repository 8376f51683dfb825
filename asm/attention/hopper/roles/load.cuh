// SPDX-License-Identifier: Apache-2.0
// Load: one lane that moves K and V into shared memory, as far ahead of the consumers as the slots allow. The
// blocks of all tasks are one stream, in which V follows the K of the next block:
//   K[n-1] | K[n-2] V[n-1] | ... | K[0] V[1] | K'[n-1] V[0] | ...
#pragma once

#include "../../tile_copy.cuh"
#include "../cta.cuh"

namespace fa4::hopper {

template <Config config>
__device__ __forceinline__ void load_role(const Cta<config>& cta) {
  const AttentionParams& params = cta.params;
  ptx::prefetch_tensormap(&params.k);
  ptx::prefetch_tensormap(&params.v);

  auto kv = PipelineState<config.kv_slots>::producer();

  static_assert(config.qk_dim == config.v_dim);
  const auto load_kv = [&](const CUtensorMap& map, int32_t kv_head, int32_t key, int32_t plane, uint32_t pieces_apart) {
    cta.bar.kv_empty.wait(kv.index, kv.phase);
    cta.bar.kv_full.arrive_expect_tx(kv.index, config.k_tile_bytes());
    load_tile<config, config.qk_pieces(), config.block_keys>(cta.kv_tile(kv.index), map, kv_head, key, plane, pieces_apart,
                                                     cta.bar.kv_full.address(kv.index));
    kv.advance();
  };

  int32_t v_head = 0, v_key = -1, v_plane = 0;  // of the block whose V is still to come
  for (TaskWalk<config, Reader::lane> walk(cta.tasks); walk.next();) {
    const Task& task = walk.task;
    const bool sees_keys = visited_blocks<config>(mask_of<config>(params), task).end > 0;
    const BlockRegions blocks = blocks_of<config>(params, task);
    for (int32_t block = blocks.end - 1; block >= blocks.begin; --block) {
      const int32_t key = task.kv_origin + (sees_keys ? block * config.block_keys : (task.seq_kv > 0 ? task.seq_kv : 1));
      load_kv(params.k, task.kv_head, key, task.k_plane, params.qk_pieces_apart);
      if (v_key >= 0) load_kv(params.v, v_head, v_key, v_plane, params.v_pieces_apart);
      v_head = task.kv_head, v_key = key, v_plane = task.v_plane;
    }
  }
  load_kv(params.v, v_head, v_key, v_plane, params.v_pieces_apart);
  // Nothing is under way to the CTA when it goes: consumers wait for every block.
}

}  // namespace fa4::hopper
