// SPDX-License-Identifier: Apache-2.0
// Store: one lane that sends finished O tiles from shared memory to global memory, and returns their slots.
#pragma once

#include "../../tile_copy.cuh"
#include "../cta.cuh"

namespace fa4::hopper {

template <Config config>
__device__ __forceinline__ void store_role(const Cta<config>& cta) {
  using L = Layout<config>;
  const AttentionParams& params = cta.params;
  ptx::prefetch_tensormap(&params.o);
  auto q = PipelineState<kQSlots>::consumer();
  bool more = true;
  for (int32_t wave = 0; config.general() ? more : cta.has_task(wave); ++wave, q.advance()) {
#pragma unroll
    for (int i = 0; i < L::consumers; ++i) {
      const int stage = q.index * L::consumers + i;
      cta.bar.o_full.wait(stage, q.phase);
      const auto task = cta.load_task(q.index);
      const auto entry = cta.load_entry(q.index);
      if constexpr (config.general()) more = entry.last == 0;
      const int slot = L::o_in_ring ? ptx::ld_shared_b32(cta.o_slot(q.index, i)) : 0;
      const int32_t position = task.first_position + i * (kTileRows >> params.packed_heads_log2);
      if (position < entry.seq_q) {
        int32_t origin = 0, plane = task.batch;
        if constexpr (config.general()) {
          origin = kMapRows - entry.seq_q;
          plane = params.general.o.plane(task.batch, entry.first_row + entry.seq_q);
        }
        store_tile<config, config.v_pieces(), kTileRows>(params.o, task.first_head, origin + position, plane, params.v_pieces_apart,
                                                 cta.o_tile(q.index, i, slot));
      }
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read<0>();
      if constexpr (L::o_in_ring) cta.bar.kv_empty.arrive(slot, L::o_arrivals);
      cta.bar.q_empty.arrive(stage);
    }
  }
  ptx::cp_async_bulk_wait_group<0>();  // the writes have landed before the CTA goes
}

}  // namespace fa4::hopper
