// SPDX-License-Identifier: Apache-2.0
// Softmax: one warpgroup per Q stage, one thread per row. It turns S into P in TMEM, and tells correction by
// how much O must be scaled. Blocks run from the last to the first: the masked ones come first, then a loop
// without mask code.
#pragma once

#include "../../mask_columns.cuh"
#include "../cta.cuh"
#include "../row.cuh"

namespace fa4::blackwell {

template <Config config>
__device__ __forceinline__ void softmax_role(const Cta<config>& cta, int stage) {
  using L = Layout<config>;
  constexpr int chunks = config.block_keys / kChunkColumns;
  constexpr int chunks_before_tail = L::value_steps_before_tail * kMmaK / kChunkColumns;
  static_assert(chunks_before_tail * kChunkColumns == L::value_steps_before_tail * kMmaK);
  const AttentionParams& params = cta.params;
  const int row = static_cast<int>(threadIdx.x) % kTileRows;
  const uint32_t s_tmem = cta.of_row(row).s_tmem(stage);
  const uint32_t p_tmem = cta.of_row(row).p_tmem(stage);
  const float scale_log2 = params.scale_log2;
  uint32_t s_phase = 0;
  uint32_t message_phase = 1;  // producer of softmax_corr

  // Waits until correction has read the last message. Once a block, behind the block's own message: the next
  // one, of the block after or of the task's end, finds the slot free.
  const auto wait_message_slot = [&] {
    cta.bar.softmax_corr_empty.wait_warp(stage, message_phase);
    message_phase ^= 1;
  };

  bool later = false;  // than the first block of the task: O must be rescaled

  // One block: the row sees the keys of `visible` (masked blocks only).
  const auto step = [&](auto masked, RowState& state, int32_t block, KeyRange visible) {
    cta.bar.s_ready.wait_warp(stage, s_phase);
    s_phase ^= 1;
    ptx::tcgen05_fence_after_thread_sync();
    ScoreRow<chunks> s;
#pragma unroll
    for (int c = 0; c < chunks; ++c) ptx::tcgen05_ld_32x32b(s[c], s_tmem + c * kChunkColumns);
    ptx::tcgen05_wait_ld();
#pragma unroll
    for (int c = 0; c < chunks; ++c) ptx::delivered(s[c]);

    if constexpr (decltype(masked)::value) mask_row<Mask<config.mask>::bounded_below>(s, visible, block * config.block_keys);

    // One vote for all that is rare, so that what is not waits for nothing but the maximum. It also joins the rows, which
    // may part inside: what follows is .aligned.
    float factor = 1.0f, offset = state.exponent_offset(scale_log2);
    const float block_maximum = row_maximum(s, state.maximum);
    const float moved_log2 = state.moved_log2(block_maximum, scale_log2);
    if (ptx::vote_sync_any(RowState::is_taken(moved_log2) || is_large(offset))) [[unlikely]] {
      factor = state.take_maximum(block_maximum, moved_log2);
      offset = state.exponent_offset(scale_log2);
      if (ptx::vote_sync_any(is_large(offset))) subtract_large_maximum(s, offset, state.maximum);
    }
    if (later) {
      cta.scale_or_sum(stage, row) = factor;
      ptx::tcgen05_fence_before_thread_sync();
      cta.bar.softmax_corr_full.arrive(stage);
    }

    // P leaves in two parts: the value MMA starts on the first while the second is computed.
    const auto store_chunks = [&](int first, int last) {
#pragma unroll
      for (int c = first; c < last; ++c) {
        exponentials<config.exp2>(s[c], c, scale_log2, offset);
        uint32_t packed[kChunkColumns / 2];
        pack_chunk<config.element>(packed, s[c]);
        ptx::tcgen05_st_32x32b(p_tmem + c * (kChunkColumns / 2), packed);
      }
      ptx::tcgen05_wait_st();
      ptx::tcgen05_fence_before_thread_sync();
    };
    store_chunks(0, chunks_before_tail);
    cta.bar.p_o_rescale.arrive(stage);
    // This wait is a loop and ends a basic block, the unit in which ptxas orders instructions: elsewhere, the
    // exponentials of the tail would mix with the first part of P, which then leaves as late as the tail.
    wait_message_slot();
    state.add<0, chunks_before_tail>(s, factor);
    store_chunks(chunks_before_tail, chunks);
    cta.bar.p_tail.arrive(stage);
    state.add<chunks_before_tail, chunks>(s, 1.0f);
    later = true;
  };

  for (TaskWalk<config> walk(params); walk.next();) {
    const Task& task = walk.task;
    const BlockRegions blocks = stage_blocks<config>(cta.mask, task, stage);
    if (blocks.end == blocks.begin) continue;
    const KeyRange visible = cta.mask.keys(task.row_position(stage, row), task.seq_q, task.seq_kv);

    RowState state;
    int32_t block = blocks.end;
    later = false;
    while (block > blocks.unmasked_end) step(std::true_type{}, state, --block, visible);
    while (block > blocks.unmasked_begin) step(std::false_type{}, state, --block, visible);
    if constexpr (Mask<config.mask>::bounded_below) {
      while (block > blocks.begin) step(std::true_type{}, state, --block, visible);
    }

    cta.scale_or_sum(stage, row) = state.sum;
    cta.row_max(stage, row) = state.maximum;
    cta.bar.softmax_corr_full.arrive(stage);
  }
}

}  // namespace fa4::blackwell
