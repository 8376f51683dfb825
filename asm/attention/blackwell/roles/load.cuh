// SPDX-License-Identifier: Apache-2.0
// Load: one lane that moves Q, K and V into shared memory, always a step ahead of the MMA driver, in the order in which it
// wants them.
//   an S in TMEM for each stage    Q0, K[n-1], Q1, V[n-1], then K[i], V[i] for i = n-2 .. 0, and so on with the next task
//   one more                       the same with each K one block earlier: Q0, K[n-1], Q1, K[n-2], V[n-1], K[n-3], V[n-2] ...
// In the latter two K of the next task come before the last V of this one, if O does not lie over Q. If it does, each task is loaded
// to its last V before the next begins, and that with K: it lands while O of the task before is still to be stored, which Q must
// await.
//   O over Q                       K[n-1], Q0, Q1, V[n-1] ...  or  K[n-1], Q0, K[n-2], V[n-1] ...
// No tile that the MMAs want stands behind one that waits for these MMAs: the Q of a task waits for the last value MMAs of the task
// before, and all K and V of that one have been asked for.
// Skipped blocks are not loaded; a task without blocks loads nothing at all.
#pragma once

#include "../../tile_copy.cuh"
#include "../cta.cuh"

namespace fa4::blackwell {

// While the barriers are being initialised.
__device__ __forceinline__ void prefetch_tensor_maps(const AttentionParams& params) {
  ptx::prefetch_tensormap(&params.q);
  ptx::prefetch_tensormap(&params.k);
  ptx::prefetch_tensormap(&params.v);
}

template <Config config>
__device__ __forceinline__ void load_role(const Cta<config>& cta) {
  using L = Layout<config>;
  const AttentionParams& params = cta.params;

  uint32_t q_phase = 1;  // both stages turn once a task
  auto kv = PipelineState<config.kv_slots>::producer();

  const auto load_q = [&](const Task& task, int stage) {
    if constexpr (L::o_over_q) cta.bar.corr_epi_empty.wait(stage, q_phase);
    else cta.bar.q_empty.wait(stage, q_phase);
    cta.bar.q_full.arrive_expect_tx(stage, config.q_tile_bytes());
    load_tile<config, config.qk_pieces(), kTileRows>(cta.q_tile(stage), params.q, task.first_head, task.q_origin + task.position(stage),
                                             task.q_plane, params.qk_pieces_apart, cta.bar.q_full.address(stage));
  };
  using Walk = BlockWalk<config, Reader::lane>;
  const auto load_kv = [&]<int pieces>(std::integral_constant<int, pieces>, const Walk& walk, const CUtensorMap& map, int32_t plane,
                                       uint32_t tile, int bytes, uint32_t pieces_apart) {
    const Task& task = walk.task();
    cta.bar.kv_empty.wait(kv.index, kv.phase);
    if (L::reaches_next_slot(kv.index, bytes)) cta.bar.kv_empty.wait(kv.index + 1, kv.phase);
    cta.bar.kv_full.arrive_expect_tx(kv.index, bytes);
    load_tile<config, pieces, config.block_keys>(tile, map, task.kv_head, task.kv_origin + walk.block * config.block_keys, plane,
                                         pieces_apart, cta.bar.kv_full.address(kv.index));
    kv.advance();
  };
  constexpr std::integral_constant<int, config.qk_pieces()> qk_pieces;
  constexpr std::integral_constant<int, config.v_pieces()> v_pieces;
  Walk keys(cta.tasks, cta.mask), values(cta.tasks, cta.mask);
  bool more_keys = true;
  const auto load_k = [&](bool values_begin) {
    more_keys = next_keys(keys, more_keys, values_begin);
    if (!more_keys) return;
    if (!L::o_over_q && keys.first) load_q(keys.task(), 0);
    load_kv(qk_pieces, keys, params.k, keys.task().k_plane, cta.k_tile(kv.index), config.k_tile_bytes(), params.qk_pieces_apart);
    if (!keys.first) return;
    if constexpr (L::o_over_q) load_q(keys.task(), 0);
    if constexpr (config.q_stages == 2) load_q(keys.task(), 1);
    q_phase ^= 1;
  };

  if constexpr (!L::o_over_q) {
    load_k(true);
    if constexpr (L::scores_ahead) load_k(false);
  }
  while (values.next()) {
    if (L::o_over_q && values.first) {
      load_k(true);
      if constexpr (L::scores_ahead) load_k(false);
    }
    load_kv(v_pieces, values, params.v, values.task().v_plane, cta.v_tile(kv.index), config.v_tile_bytes(), params.v_pieces_apart);
    load_k(false);
  }

  // Until every slot is free once more: a commit that is still under way would arrive in the shared memory of
  // whichever CTA comes next.
  if constexpr (!L::o_over_q)
    for (int stage = 0; stage < config.q_stages; ++stage) cta.bar.q_empty.wait(stage, q_phase);
  for (int slot = 0; slot < config.kv_slots; ++slot, kv.advance()) cta.bar.kv_empty.wait(kv.index, kv.phase);
}

}  // namespace fa4::blackwell
