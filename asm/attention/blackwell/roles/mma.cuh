// SPDX-License-Identifier: Apache-2.0
// MMA: one warp drives both matrix products of all Q stages, in one program order.
//
//   two stages, two S      S0 S1      | P0V S0' P1V S1'  | P0V S0' P1V S1'  | ... | P0V P1V
//   two stages, three S    S0 S1 S0'  | P0V S1' P1V S0'' | P0V S1' P1V S0'' | ... | P0V P1V
//   one stage, two S       S0 S0'     | P0V S0''         | P0V S0''         | ... | P0V
//
// S0' is the score MMA of stage 0 for the next block: while softmax works on one stage, the tensor core has the other's
// MMAs. With one S more in TMEM than stages the next scores of a stage already lie there when its softmax is done with a block. The
// blocks of all tasks are one stream: the first score MMAs of a task come before the last value MMAs of the task before. Where O is
// staged over Q they come after these, as Q lands after O is stored.
//
// MMAs of a CTA execute in the order of their issue, so a score MMA may overwrite the columns of the P that the value MMA before
// it reads. And the commit after a score MMA covers the value MMAs before it, so with an S for each stage whoever has seen s_ready of
// a block may touch O.
//
// The whole warp walks, so that addresses and descriptors lie in uniform registers; one elected lane of it issues.
#pragma once

#include "../cta.cuh"

namespace fa4::blackwell {

// Instruction descriptor of kind::f16 for M = 128, fp32 accumulation, A and B of one 16-bit type.
FA4_HOST_DEVICE constexpr uint32_t mma_descriptor(ElementType element, int n) {
  const uint32_t type = static_cast<uint32_t>(element);
  return 1u << 4 | type << 7 | type << 10 | static_cast<uint32_t>(n >> 3) << 17 | (128u >> 4) << 24;
}
inline constexpr uint32_t kNegateA = 1u << 13;
inline constexpr uint32_t kBTransposed = 1u << 16;  // B is MN-major: V as [key][head dim]
static_assert(mma_descriptor(ElementType::bf16, 128) == 0x08200490u &&
              mma_descriptor(ElementType::f16, 128) == 0x08200010u);

// Shared-memory matrix descriptors of a tile of `rows` rows, in units of 16 bytes. The upper word is one constant: 1024
// bytes from 8 rows to the next 8, descriptor version 1, 128-byte swizzle. The lower word is the start address, and the
// leading offset from bit 16; a step along the tile is one addition to it.
template <int rows>
struct SharedDescriptor {
  static constexpr uint32_t upper = (8 * kRowBytes >> 4) | 1u << 14 | 2u << 29;
  static constexpr uint32_t piece = rows * kRowBytes >> 4;

  // K-major (Q, K): 16 elements along the head dimension are 32 bytes; four such steps fill a piece.
  __device__ static __forceinline__ uint64_t k_major(uint32_t tile, int step) {
    constexpr int steps_per_piece = kPieceColumns / kMmaK;
    const uint32_t offset =
        (step / steps_per_piece) * piece + (step % steps_per_piece) * (kMmaK * kElementBytes >> 4);
    return join((tile >> 4 | 1u << 16) + offset);  // leading offset unused: 1
  }

  // MN-major (V): 16 keys are 16 rows; the leading offset leads from one piece of the head dimension to the next.
  __device__ static __forceinline__ uint64_t mn_major(uint32_t tile, int step) {
    return join((tile >> 4 | piece << 16) + step * (kMmaK * kRowBytes >> 4));
  }

  __device__ static __forceinline__ uint64_t join(uint32_t lower) {
    return static_cast<uint64_t>(upper) << 32 | lower;
  }
};

template <Config config>
__device__ __forceinline__ void mma_role(const Cta<config>& cta) {
  using L = Layout<config>;
  constexpr int last_stage = config.q_stages - 1;
  constexpr uint32_t score_descriptor_of_config = mma_descriptor(config.element, config.block_keys);
  constexpr uint32_t value_descriptor = mma_descriptor(config.element, config.v_dim) | kBTransposed;
  const AttentionParams& params = cta.params;
  const uint32_t score_descriptor = score_descriptor_of_config | (params.negate_scores != 0 ? kNegateA : 0u);

  auto kv = PipelineState<config.kv_slots>::consumer();
  // Waits for the next K or V block and returns its slot.
  const auto next_kv = [&] {
    cta.bar.kv_full.wait(kv.index, kv.phase);
    const int slot = kv.index;
    kv.advance();
    return slot;
  };

  BlockWalk<config, Reader::warp> scores(cta.tasks, cta.mask);
  SCursor<config> s_cursor{0};
  uint32_t q_phase = 0;
  bool more_scores = true;
  int k_slot = 0;
  const auto advance_scores = [&](int stage, bool values_begin) {  // to the stream's next block, if the stage is its first
    if (stage == 0) more_scores = next_keys(scores, more_scores, values_begin);
  };
  const auto score = [&](int stage) {  // S = Q K^T
    if (!more_scores) return;
    if (stage == 0) k_slot = next_kv();
    if (scores.first) {
      cta.bar.q_full.wait(stage, q_phase);
      if (stage == last_stage) q_phase ^= 1;
    }
    const uint32_t q_tile = cta.q_tile(stage);
    const uint32_t k_tile = cta.k_tile(k_slot);
    const int buffer = s_cursor.buffer(stage);
    const auto step_of = [&](int step) {
      ptx::tcgen05_mma_f16_ss(cta.s_tmem(buffer), SharedDescriptor<kTileRows>::k_major(q_tile, step),
                              SharedDescriptor<config.block_keys>::k_major(k_tile, step), score_descriptor, step > 0);
    };
    if constexpr (L::score_steps <= 8) {
#pragma unroll
      for (int step = 0; step < L::score_steps; ++step) step_of(step);
    } else {
#pragma unroll 4
      for (int step = 0; step < L::score_steps; ++step) step_of(step);
    }
    cta.bar.s_ready.commit(buffer);
    s_cursor.advance(1);
    if (stage == last_stage) cta.bar.kv_empty.commit(k_slot);
    if (!L::o_over_q && scores.last()) cta.bar.q_empty.commit(stage);
  };

  const auto first_scores = [&] {
#pragma unroll
    for (int n = 0; n < L::s_buffers; ++n) {
      advance_scores(n % config.q_stages, n == 0);
      score(n % config.q_stages);
    }
  };

  BlockWalk<config, Reader::warp> values(cta.tasks, cta.mask);
  SCursor<config> p_cursor{0};
  uint32_t p_phase = 0;  // p_o_rescale and p_tail of both stages turn once a block
  // O += P V, and behind it the score MMA that may overwrite this P.
  const auto value_and_score = [&](int stage, int v_slot) {
    const int score_stage = (stage + L::s_buffers) % config.q_stages;
    const uint32_t p = cta.p_tmem(p_cursor.buffer(stage));
    const uint32_t v_tile = cta.v_tile(v_slot);
    const auto steps = [&](int begin, int end) {
#pragma unroll
      for (int step = begin; step < end; ++step) {
        ptx::tcgen05_mma_f16_ts(cta.o_tmem(stage), p + step * (kMmaK * kElementBytes / 4),
                                SharedDescriptor<config.block_keys>::mn_major(v_tile, step), value_descriptor,
                                !values.first || step > 0);
      }
    };
    // The gates: V has landed (the caller waited), O is rescaled or released, P is stored.
    cta.bar.p_o_rescale.wait(stage, p_phase);
    ptx::tcgen05_fence_after_thread_sync();
    steps(0, L::value_steps_before_tail);
    advance_scores(score_stage, false);
    cta.bar.p_tail.wait(stage, p_phase);
    ptx::tcgen05_fence_after_thread_sync();
    steps(L::value_steps_before_tail, L::value_steps);
    if (L::scores_ahead || values.last()) cta.bar.o_ready.commit(stage);
    if (stage == last_stage) cta.bar.kv_empty.commit(v_slot);
    p_cursor.advance(1);
    score(score_stage);
  };

  if (!L::o_over_q) first_scores();
  for (; values.next(); p_phase ^= 1) {
    if (L::o_over_q && values.first) first_scores();
    const int v_slot = next_kv();
    value_and_score(0, v_slot);
    if constexpr (config.q_stages == 2) value_and_score(1, v_slot);
  }
}

}  // namespace fa4::blackwell
