// SPDX-License-Identifier: Apache-2.0
// Load: one lane that moves K and V into shared memory, as far ahead of the consumers as the slots allow. The
// blocks of all tasks are one stream, in which V follows the K of the next block:
//   K[n-1] | K[n-2] V[n-1] | ... | K[0] V[1] | K'[n-1] V[0] | ...
// Where O leaves through the ring it has its turns behind V[0].
#pragma once

#include "../../tile_copy.cuh"
#include "../cta.cuh"

namespace fa4::hopper {

template <Config config>
__device__ __forceinline__ void load_role(const Cta<config>& cta) {
  using L = Layout<config>;
  const AttentionParams& params = cta.params;
  ptx::prefetch_tensormap(&params.k);
  ptx::prefetch_tensormap(&params.v);

  auto kv = KvCursor<config>::producer();

  const auto load_k = [&](const Task& task, int32_t key) {
    const auto slot = kv.k();
    cta.bar.kv_empty.wait(slot.index, slot.phase);
    cta.bar.kv_full.arrive_expect_tx(slot.index, config.k_tile_bytes());
    load_tile<config, config.qk_pieces(), config.block_keys>(cta.k_tile(slot.index), params.k, task.kv_head, key, task.k_plane,
                                                             params.qk_pieces_apart, cta.bar.kv_full.address(slot.index));
    kv.advance_k();
  };
  int32_t v_head = 0, v_key = -1, v_plane = 0;  // of the block whose V is still to come
  bool v_is_last = false;                       // of its task
  const auto load_v = [&] {
    const auto slot = kv.v();
    cta.bar.kv_empty.wait(slot.index, slot.phase);
    cta.bar.kv_full.arrive_expect_tx(slot.index, config.v_tile_bytes());
    load_tile<config, config.v_pieces(), config.block_keys>(cta.v_tile(slot.index), params.v, v_head, v_key, v_plane,
                                                            params.v_pieces_apart, cta.bar.kv_full.address(slot.index));
    kv.advance_v();
    // O takes the turns behind the last V of its task: the slot is free, and nothing lands in it.
    if constexpr (L::o_in_ring) {
      for (int turn = 0; v_is_last && turn < L::o_turns; ++turn, kv.advance_v()) {
        const auto o_slot = kv.v();
        cta.bar.kv_empty.wait(o_slot.index, o_slot.phase);
        cta.bar.kv_full.arrive_expect_tx(o_slot.index, 0);
      }
    }
  };

  for (TaskWalk<config, Reader::lane> walk(cta.tasks); walk.next();) {
    const Task& task = walk.task;
    const BlockRegions blocks = visited_blocks<config>(mask_of<config>(params), task);
    for (int32_t block = blocks.end - 1; block >= blocks.begin; --block) {
      const int32_t key = task.kv_origin + block * config.block_keys;
      load_k(task, key);
      if (v_key >= 0) load_v();
      v_head = task.kv_head, v_key = key, v_plane = task.v_plane, v_is_last = block == blocks.begin;
    }
  }
  load_v();
  // Nothing is under way to the CTA when it goes: consumers wait for every block.
}

}  // namespace fa4::hopper
