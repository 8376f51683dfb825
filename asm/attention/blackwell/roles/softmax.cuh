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
  const Cta<config> my_cta = cta.of_row(row);
  const float scale_log2 = params.scale_log2;
  SCursor<config> s_cursor{stage};
  uint32_t message_phase = 0;

  // Waits until correction has acted on the last message. Once a block, behind the block's own message: the next one, of the
  // block after or of the task's end, finds the slot free. And before P is handed over: correction acts when the value MMA of the
  // block before is complete, so that no warp arrives for this block while another has yet to for that one.
  const auto wait_message_slot = [&] {
    cta.bar.softmax_corr_empty.wait_warp(stage, message_phase);
    message_phase ^= 1;
  };

  bool later = false;  // than the first block of the task: O must be rescaled
  TaskWalk<config, Reader::warp> walk(cta.tasks);

  const auto bias_of_row = [&](int32_t block) {
    const Task task = walk.again();
    Bias bias = bias_of(params, task, task.row_position(stage, row), task.row_head(row));
    bias.diagonal -= static_cast<float>(block * config.block_keys);
    return bias;
  };
  // The row's keys in a block that needs a mask.
  const auto keys_of_row = [&](const Task& task) {
    return cta.mask.keys(task.row_position(stage, row), task.seq_q, task.seq_kv);
  };
  const auto is_adjusted = [&] { return config.general() && params.general.score != ScoreKind::plain; };

  // One block: the row sees the keys of `visible` (masked blocks only; in a general kernel it finds out itself).
  const auto step = [&](auto masked, RowState& state, int32_t block, [[maybe_unused]] KeyRange visible) {
    const int buffer = s_cursor.buffer(stage);
    const uint32_t s_tmem = my_cta.s_tmem(buffer), p_tmem = my_cta.p_tmem(buffer);
    cta.bar.s_ready.wait_warp(buffer, s_cursor.phase());
    s_cursor.advance(config.q_stages);
    ptx::tcgen05_fence_after_thread_sync();
    ScoreRow<chunks> s;
#pragma unroll
    for (int c = 0; c < chunks; ++c) ptx::tcgen05_ld_32x32b(s[c], s_tmem + c * kChunkColumns);
    ptx::tcgen05_wait_ld();
#pragma unroll
    for (int c = 0; c < chunks; ++c) ptx::delivered(s[c]);

    if (is_adjusted()) adjust_scores<chunks>(s, params, bias_of_row(block));
    if constexpr (decltype(masked)::value) {  // where a row of the warp needs it
      if (config.general()) visible = keys_of_row(walk.again());
      const int32_t first_key = block * config.block_keys;
      if (ptx::vote_sync_any(visible.begin > first_key || visible.end < first_key + config.block_keys)) {
        mask_row<Mask<config.mask>::bounded_below>(s, visible, first_key);
      }
    }

    float factor = 1.0f, offset = state.exponent_offset(scale_log2);
    const float block_maximum = row_maximum(s, state.maximum);
    // The maximum seldom moves. The first columns of an unmasked block do not wait for it: their P is as if it did not, and
    // where it does it is made once more, from the scores that still lie in TMEM.
    constexpr int early_columns = decltype(masked)::value ? 0 : kEarlyColumns;
    const auto store_early = [&] {
      if constexpr (early_columns > 0) store_p<config, 0, early_columns>(p_tmem, s[0], 0, scale_log2, offset);
    };
    store_early();

    // The message stands in both ways of the branch, and so at their beginning: behind it, it would drift among exponentials.
    const auto send = [&] {
      if (!later) return;
      cta.scale_or_sum(stage, row) = factor;
      ptx::tcgen05_fence_before_thread_sync();
      cta.bar.softmax_corr_full.arrive(stage);
    };
    // One vote for all that is rare, so that what is not waits for nothing but the maximum. Inside, rows may part where a maximum is
    // taken, and the second vote joins them: what follows is .aligned.
    const float moved_log2 = state.moved_log2(block_maximum, scale_log2);
    if (ptx::vote_sync_any(RowState::is_taken(moved_log2) || is_large(offset))) [[unlikely]] {
      factor = state.take_maximum(block_maximum, moved_log2);
      send();
      offset = state.exponent_offset(scale_log2);
      if constexpr (early_columns > 0) {
        ptx::bar_warp_sync();    // take_maximum may have parted the rows
        ptx::tcgen05_wait_st();  // two stores to the same columns are in no order
        ptx::tcgen05_ld_32x32b(s[0], s_tmem);
        ptx::tcgen05_wait_ld();
        ptx::delivered(s[0]);
        if (is_adjusted()) adjust_scores<1>(s, params, bias_of_row(block));
      }
      if (ptx::vote_sync_any(is_large(offset))) subtract_large_maximum(s, offset, state.maximum);
      store_early();
    } else {
      send();
    }

    // P leaves in two parts: the value MMA starts on the first while the second is computed.
    const auto hand_over_stores = [] {
      ptx::tcgen05_wait_st();
      ptx::tcgen05_fence_before_thread_sync();
    };
    store_p<config, early_columns, kChunkColumns>(p_tmem, s[0], 0, scale_log2, offset);
#pragma unroll
    for (int c = 1; c < chunks_before_tail; ++c) store_p<config, 0, kChunkColumns>(p_tmem, s[c], c, scale_log2, offset);
    // This wait is a loop and ends a basic block, the unit in which ptxas orders instructions: elsewhere, the
    // exponentials of the tail would mix with the first part of P, which then leaves as late as the tail.
    wait_message_slot();
    hand_over_stores();
    cta.bar.p_o_rescale.arrive(stage);
    state.add<0, chunks_before_tail>(s, factor);
#pragma unroll
    for (int c = chunks_before_tail; c < chunks; ++c) store_p<config, 0, kChunkColumns>(p_tmem, s[c], c, scale_log2, offset);
    hand_over_stores();
    cta.bar.p_tail.arrive(stage);
    state.add<chunks_before_tail, chunks>(s, 1.0f);
    later = true;
  };

  while (walk.next()) {
    const Task& task = walk.task;
    const BlockRegions blocks = stage_blocks<config>(cta.mask, task, stage);
    if (!config.always_visits() && blocks.end == blocks.begin) continue;
    const KeyRange visible = config.general() ? KeyRange{} : keys_of_row(task);

    RowState state;
    later = false;
    if constexpr (config.general()) {
      int32_t block = blocks.end;
      const auto regions = [&] { return stage_blocks<config>(cta.mask, walk.again(), stage); };
      for (int32_t end = blocks.unmasked_end;; end = regions().begin) {
        while (block > end) step(std::true_type{}, state, --block, visible);
        if (block == regions().begin) break;
        end = regions().unmasked_begin;
        while (block > end) step(std::false_type{}, state, --block, visible);
      }
    } else {
      // The blocks begin with 0, but for a task that sees no key: whatever its one block is called, all of it is masked.
      int32_t block = blocks.end - blocks.begin;
      while (block > blocks.unmasked_end) step(std::true_type{}, state, --block, visible);
      while (block > 0) step(std::false_type{}, state, --block, visible);
    }

    cta.scale_or_sum(stage, row) = state.sum;
    cta.row_max(stage, row) = state.maximum;
    cta.bar.softmax_corr_full.arrive(stage);
  }
}

}  // namespace fa4::blackwell
