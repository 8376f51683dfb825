// SPDX-License-Identifier: Apache-2.0
// MMA: one lane of one warp drives both matrix products of both Q stages, in one program order.
//
//   S0 S1 | P0V S0' P1V S1' | P0V S0' P1V S1' | ... | P0V P1V
//
// S0' is the score MMA of the next block: while softmax works on one stage, the tensor core has the other's
// MMAs. Everything else leans on two orders. MMAs of a CTA execute in the order of their issue, so S' may
// overwrite the columns of the P that the value MMA before it reads. And the commit after S' covers that
// value MMA too, so whoever has seen s_ready of a block may touch O.
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

// No instruction: the compiler may not compute what follows from `address` any earlier. Otherwise it keeps
// the descriptors of every step of every tile in registers across the loops, of which this role has 48.
__device__ __forceinline__ uint32_t here(uint32_t address) {
  asm volatile("" : "+r"(address));
  return address;
}

template <Config config>
__device__ __forceinline__ void mma_role(const Cta<config>& cta) {
  using L = Layout<config>;
  static_assert(config.q_stages == 2);
  constexpr uint32_t score_descriptor_of_config = mma_descriptor(config.element, config.block_keys);
  constexpr uint32_t value_descriptor = mma_descriptor(config.element, config.v_dim) | kBTransposed;
  const AttentionParams& params = cta.params;
  const uint32_t score_descriptor = score_descriptor_of_config | (params.negate_scores != 0 ? kNegateA : 0u);

  uint32_t q_phase = 0;
  uint32_t p_phase = 0;  // p_o_rescale and p_tail of both stages turn once a block
  auto kv = PipelineState<config.kv_slots>::consumer();

  // Waits for the next K or V block and returns its slot.
  const auto next_kv = [&] {
    cta.bar.kv_full.wait(kv.index, kv.phase);
    const int slot = kv.index;
    kv.advance();
    return slot;
  };
  const auto score = [&](int stage, int slot) {  // S = Q K^T
    const uint32_t q_tile = here(cta.q_tile(stage));
    const uint32_t k_tile = here(cta.k_tile(slot));
#pragma unroll
    for (int step = 0; step < L::score_steps; ++step) {
      ptx::tcgen05_mma_f16_ss(cta.s_tmem(stage), SharedDescriptor<kTileRows>::k_major(q_tile, step),
                              SharedDescriptor<config.block_keys>::k_major(k_tile, step), score_descriptor, step > 0);
    }
    cta.bar.s_ready.commit(stage);
  };
  const auto value = [&](int stage, int slot, bool first_block) {  // O += P V
    const uint32_t p = here(cta.p_tmem(stage));
    const uint32_t v_tile = here(cta.v_tile(slot));
    const auto steps = [&](int begin, int end) {
#pragma unroll
      for (int step = begin; step < end; ++step) {
        ptx::tcgen05_mma_f16_ts(cta.o_tmem(stage), p + step * (kMmaK * kElementBytes / 4),
                                SharedDescriptor<config.block_keys>::mn_major(v_tile, step), value_descriptor,
                                !first_block || step > 0);
      }
    };
    // The gates: V has landed (the caller waited), O is rescaled or released, P is stored.
    cta.bar.p_o_rescale.wait(stage, p_phase);
    ptx::tcgen05_fence_after_thread_sync();
    steps(0, L::value_steps_before_tail);
    cta.bar.p_tail.wait(stage, p_phase);
    ptx::tcgen05_fence_after_thread_sync();
    steps(L::value_steps_before_tail, L::value_steps);
  };

  for (TaskWalk<config> walk(params); walk.next();) {
    const BlockRegions visited = visited_blocks<config>(cta.mask, walk.task);
    const int32_t blocks = visited.end - visited.begin;
    if (blocks == 0) continue;

    cta.bar.q_full.wait(0, q_phase);
    const int first_k = next_kv();
    score(0, first_k);
    if (blocks == 1) cta.bar.q_empty.commit(0);
    cta.bar.q_full.wait(1, q_phase);
    score(1, first_k);
    if (blocks == 1) cta.bar.q_empty.commit(1);
    cta.bar.kv_empty.commit(first_k);
    q_phase ^= 1;

    for (int32_t block = 1; block < blocks; ++block) {
      const int v = next_kv();
      value(0, v, block == 1);
      const int k = next_kv();
      score(0, k);
      if (block == blocks - 1) cta.bar.q_empty.commit(0);
      value(1, v, block == 1);
      cta.bar.kv_empty.commit(v);
      score(1, k);
      if (block == blocks - 1) cta.bar.q_empty.commit(1);
      cta.bar.kv_empty.commit(k);
      p_phase ^= 1;
    }

    const int last_v = next_kv();
    value(0, last_v, blocks == 1);
    cta.bar.o_ready.commit(0);
    value(1, last_v, blocks == 1);
    cta.bar.o_ready.commit(1);
    cta.bar.kv_empty.commit(last_v);
    p_phase ^= 1;
  }
}

}  // namespace fa4::blackwell
