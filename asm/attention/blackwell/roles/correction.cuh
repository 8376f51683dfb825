// SPDX-License-Identifier: Apache-2.0
// Correction: one warpgroup that keeps O in the right scale. When a row's maximum moves, what is already
// accumulated for it goes TMEM -> registers -> TMEM; at the end of a task O is normalised, rounded and handed
// to the store warp.
//
// It owns the third gate of the value MMA, its half of p_o_rescale: one arrival per stage and block. For the
// first block of a task there is nothing to rescale, and O is "released": at the start of the kernel, and
// after an epilogue has read the O of the task before. Behind each arrival it gives the message slot back.
#pragma once

#include <math_constants.h>

#include "../../row.cuh"
#include "../cta.cuh"

namespace fa4::blackwell {

// Multiplies the row of O by `factor`, in chunks of kRescaleTile columns.
template <Config config>
__device__ __forceinline__ void rescale_o(uint32_t o_tmem, float factor) {
  const ptx::f32x2 factor2 = ptx::mov_pack_f32x2(factor, factor);
#pragma unroll
  for (int column = 0; column < config.v_dim; column += kRescaleTile) {
    float o[kRescaleTile];
    ptx::tcgen05_ld_32x32b(o, o_tmem + column);
    ptx::tcgen05_wait_ld();
    ptx::delivered(o);
#pragma unroll
    for (int i = 0; i < kRescaleTile; i += 2) {
      ptx::mov_unpack_f32x2(o[i], o[i + 1], ptx::mul_rn_f32x2(ptx::mov_pack_f32x2(o[i], o[i + 1]), factor2));
    }
    ptx::tcgen05_st_32x32b(o_tmem + column, o);
  }
  ptx::tcgen05_wait_st();
}

// Where 8 elements of a row (16 bytes, number `unit` of the row) lie in the swizzled O tile.
__device__ __forceinline__ uint4* o_unit(uint8_t* tile, int row, int unit) {
  constexpr int units_per_piece = kRowBytes / 16;
  const int swizzled = (unit % units_per_piece) ^ (row % 8);
  return reinterpret_cast<uint4*>(tile + unit / units_per_piece * (kTileRows * kRowBytes) + row * kRowBytes +
                                  swizzled * 16);
}

// Row of O: TMEM -> times 1 / sum -> 16 bit -> shared memory. A row that saw no key is 0 whatever O holds.
template <Config config>
__device__ __forceinline__ void normalise_o(uint32_t o_tmem, float inverse, bool sees_keys, uint8_t* tile, int row) {
  const uint32_t keep = sees_keys ? 0xffffffffu : 0u;
#pragma unroll
  for (int column = 0; column < config.v_dim; column += kRescaleTile) {
    float o[kRescaleTile];
    ptx::tcgen05_ld_32x32b(o, o_tmem + column);
    ptx::tcgen05_wait_ld();
    ptx::delivered(o);
    uint32_t packed[kRescaleTile / 2];
#pragma unroll
    for (int i = 0; i < kRescaleTile / 2; ++i) {
      packed[i] = pack<config.element>(o[2 * i] * inverse, o[2 * i + 1] * inverse) & keep;
    }
#pragma unroll
    for (int i = 0; i < kRescaleTile / 2; i += 4) {
      *o_unit(tile, row, column / 8 + i / 4) =
          make_uint4(packed[i], packed[i + 1], packed[i + 2], packed[i + 3]);
    }
  }
}

template <Config config>
__device__ __forceinline__ void correction_role(const Cta<config>& cta) {
  using L = Layout<config>;
  const AttentionParams& params = cta.params;
  const int row = static_cast<int>(threadIdx.x) % kTileRows;
  uint32_t message_phase = 0;  // consumer of softmax_corr; both stages turn once a block
  uint32_t o_phase = 0;        // turns with every commit of o_ready
  uint32_t epi_phase = 1;  // producer of corr_epi

  const auto release_o = [&](int stage) {  // to the value MMA; and the message slot to softmax
    cta.bar.p_o_rescale.arrive(stage);
    cta.bar.softmax_corr_empty.arrive(stage);
  };
  for (int stage = 0; stage < config.q_stages; ++stage) release_o(stage);  // as O starts

  // A store reads whole pieces of the O tile. What their last columns hold, where no MMA computes them, is clipped; but it is defined.
  if constexpr (!L::o_over_q && config.v_dim % kPieceColumns != 0) {
    for (int stage = 0; stage < config.q_stages; ++stage) {
#pragma unroll
      for (int unit = config.v_dim / 8; unit < config.v_pieces() * kPieceColumns / 8; ++unit)
        *o_unit(cta.o_bytes(stage), row, unit) = make_uint4(0, 0, 0, 0);
    }
  }

  const auto store_lse = [&](const Task& task, int stage, float lse) {
    const int32_t position = task.row_position(stage, row);
    if (params.lse == nullptr || position >= task.seq_q) return;
    params.lse[task.batch * params.lse_batch_stride + task.row_head(row) * params.lse_head_stride + task.first_row + position] = lse;
  };
  const auto hand_over = [&](int stage) {  // the O tile is written: by every thread its own part
    ptx::fence_proxy_async_shared_cta();
    cta.bar.corr_epi_full.arrive(stage);
  };

  for (TaskWalk<config, Reader::warp> walk(cta.tasks); walk.next();) {
    const BlockRegions visited = visited_blocks<config>(cta.mask, walk.task);
    const int32_t blocks = visited.end - visited.begin;

    for (int32_t block = 1; block < blocks; ++block) {
#pragma unroll 1
      for (int stage = 0; stage < config.q_stages; ++stage) {
        cta.bar.softmax_corr_full.wait_warp(stage, message_phase);
        const float factor = cta.scale_or_sum(stage, row);
        // O stands still: the value MMA of the block before is complete. Where scores are not ahead, the message came after
        // s_ready, which says so.
        if constexpr (L::scores_ahead) cta.bar.o_ready.wait_warp(stage, o_phase);
        if (ptx::vote_sync_any(factor < 1.0f)) {
          ptx::tcgen05_fence_after_thread_sync();
          rescale_o<config>(cta.of_row(row).o_tmem(stage), factor);
        }
        ptx::tcgen05_fence_before_thread_sync();
        release_o(stage);
      }
      message_phase ^= 1;
      if constexpr (L::scores_ahead) o_phase ^= 1;
    }

#pragma unroll 1
    for (int stage = 0; stage < config.q_stages; ++stage) {
      if (!config.always_visits() && blocks == 0) {  // no key is visible to any row of the task
        cta.bar.corr_epi_empty.wait_warp(stage, epi_phase);
#pragma unroll
        for (int unit = 0; unit < config.v_dim / 8; ++unit)
          *o_unit(cta.o_bytes(stage), row, unit) = make_uint4(0, 0, 0, 0);
        hand_over(stage);
        store_lse(walk.task, stage, -CUDART_INF_F);
        continue;
      }
      cta.bar.softmax_corr_full.wait_warp(stage, message_phase);
      const float sum = cta.scale_or_sum(stage, row);
      const float maximum = cta.row_max(stage, row);
      SinkSum with_sink{sum, 1.0f, false};
      float sink = 0.0f;
      if constexpr (config.general()) {
        if (params.general.sinks != nullptr) {
          sink = params.general.sinks[walk.task.row_head(row)];
          with_sink = add_sink(sum, maximum, sink, params.scale_log2);
        }
      }
      cta.bar.o_ready.wait_warp(stage, o_phase);
      ptx::tcgen05_fence_after_thread_sync();
      // O over Q: what has landed in the tile since did so when the last O had been stored.
      if constexpr (!L::o_over_q) cta.bar.corr_epi_empty.wait_warp(stage, epi_phase);
      float inverse = 1.0f / with_sink.total;
      if constexpr (config.general()) inverse *= with_sink.keys;
      normalise_o<config>(cta.of_row(row).o_tmem(stage), inverse, sum != 0.0f, cta.o_bytes(stage), row);
      ptx::tcgen05_fence_before_thread_sync();
      release_o(stage);  // for the next task
      hand_over(stage);
      const float log = logf(with_sink.total);
      const float lse = with_sink.is_base ? sink + log : __fmaf_rn(maximum, params.scale, log);
      store_lse(walk.task, stage, with_sink.total == 0.0f ? -CUDART_INF_F : lse);
    }
    epi_phase ^= 1;
    if (config.always_visits() || blocks != 0) {
      message_phase ^= 1;
      o_phase ^= 1;
    }
  }
}

}  // namespace fa4::blackwell
