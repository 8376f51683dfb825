// SPDX-License-Identifier: Apache-2.0
// Softmax: one warpgroup per Q stage, one thread per row. It turns S into P in TMEM, and tells correction by
// how much O must be scaled. Blocks run from the last to the first: the masked ones come first, then a loop
// without mask code.
#pragma once

#include "../cta.cuh"
#include "../mask.cuh"
#include "../softmax.cuh"

namespace fa4 {

template <class Element, bool causal>
__device__ __forceinline__ void softmax_role(const Cta& cta, int stage) {
  const AttentionParams& params = cta.params;
  const int row = static_cast<int>(threadIdx.x) % kTileRows;
  const uint32_t lanes = static_cast<uint32_t>(row / 32 * 32)
                         << 16;  // the quarter of TMEM that this warp can reach
  const uint32_t s_tmem = cta.tmem + lanes + kTmemS + stage * kTmemStage;
  const uint32_t p_tmem = cta.tmem + lanes + kTmemP + stage * kTmemStage;
  const float scale_log2 = params.scale_log2;
  uint32_t s_phase = 0;
  uint32_t message_phase = 1;  // producer of softmax_corr

  // Waits until correction has read the last message. Once a block, behind the block's own message: the next
  // one, of the block after or of the task's end, finds the slot free.
  const auto wait_message_slot = [&] {
    cta.bar.softmax_corr_empty.wait_warp(stage, message_phase);
    message_phase ^= 1;
  };

  // One block: `visible` keys of it and before it may be seen (masked blocks only); `later` blocks rescale O.
  const auto step = [&](auto masked, RowState& state, int32_t block, int32_t visible, bool later) {
    cta.bar.s_ready.wait_warp(stage, s_phase);
    s_phase ^= 1;
    ptx::tcgen05_fence_after_thread_sync();
    ScoreRow s;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) ptx::tcgen05_ld_32x32b(s[c], s_tmem + c * kChunkColumns);
    ptx::tcgen05_wait_ld();
#pragma unroll
    for (int c = 0; c < kChunks; ++c) ptx::delivered(s[c]);

    if constexpr (decltype(masked)::value) mask_row(s, visible, block * kBlockKeys);

    const float factor = state.update_maximum(row_maximum(s, state.maximum), scale_log2);
    if (later) {
      cta.map.scale_or_sum[stage][row] = factor;
      ptx::tcgen05_fence_before_thread_sync();
      cta.bar.softmax_corr_full.arrive(stage);
    }

    // The vote also joins the rows, which may have parted above: what follows is .aligned.
    float offset = state.exponent_offset(scale_log2);
    if (ptx::vote_sync_any(is_large(offset))) [[unlikely]] subtract_large_maximum(s, offset, state.maximum);

    // P leaves in two parts: the value MMA starts on the first while the second is computed.
    const auto store_chunks = [&](int first, int last) {
#pragma unroll
      for (int c = first; c < last; ++c) {
        exponentials(s[c], scale_log2, offset);
        uint32_t packed[kChunkColumns / 2];
        pack_chunk<Element>(packed, s[c]);
        ptx::tcgen05_st_32x32b(p_tmem + c * (kChunkColumns / 2), packed);
      }
      ptx::tcgen05_wait_st();
      ptx::tcgen05_fence_before_thread_sync();
    };
    store_chunks(0, kChunksBeforeTail);
    cta.bar.p_o_rescale.arrive(stage);
    // This wait is a loop and ends a basic block, the unit in which ptxas orders instructions: elsewhere, the
    // exponentials of the tail would mix with the first part of P, which then leaves as late as the tail.
    wait_message_slot();
    state.add<0, kChunksBeforeTail>(s, factor);
    store_chunks(kChunksBeforeTail, kChunks);
    cta.bar.p_tail.arrive(stage);
    state.add<kChunksBeforeTail, kChunks>(s, 1.0f);
  };

  for (TaskWalk walk(params); walk.next();) {
    const int32_t blocks = walk.blocks<causal>();
    if (blocks == 0) continue;
    const int32_t unmasked = unmasked_block_count<causal>(walk.task.m_block, stage, params.packed_heads_log2,
                                                          params.seq_q, params.seq_kv);
    const int32_t position = walk.position(stage) + (row >> params.packed_heads_log2);
    const int32_t visible = visible_keys<causal>(position, params.seq_q, params.seq_kv);

    RowState state;
    int32_t block = blocks - 1;
    for (; block >= unmasked; --block) step(std::true_type{}, state, block, visible, block < blocks - 1);
    for (; block >= 0; --block) step(std::false_type{}, state, block, visible, block < blocks - 1);

    cta.map.scale_or_sum[stage][row] = state.sum;
    cta.map.row_max[stage][row] = state.maximum;
    cta.bar.softmax_corr_full.arrive(stage);
  }
}

}  // namespace fa4
