// SPDX-License-Identifier: Apache-2.0
// The three flavours of barrier as types, and a cursor over a ring of them. A flavour offers only the signal
// that completes it, so that nobody waits for bytes on a barrier of threads; which barrier has which flavour,
// and how many arrivals, is the table of barrier_table.h.
//
// Phases. A barrier starts in phase 0. wait(p) returns once the phase of parity p has completed: a consumer's
// first wait is for parity 0; a producer's first wait, for a slot that nobody has used yet, is for parity 1
// and passes at once.
#pragma once

#include <type_traits>
#include <utility>

#include "../ptx/fence.cuh"
#include "../ptx/mbarrier.cuh"
#include "../ptx/sync.cuh"
#include "../ptx/tcgen05.cuh"
#include "tile.h"

namespace fa4 {

// `stages` mbarriers in a row; what all flavours share.
class BarrierRing {
 public:
  __device__ explicit BarrierRing(uint32_t first) : first_(first) {}

  // For a role that runs in one elected lane.
  __device__ __forceinline__ void wait(int stage, uint32_t parity) const {
    while (!ptx::mbarrier_try_wait_parity(at(stage), parity)) {
    }
  }

  // For all lanes of a warp: they leave together, as the .aligned instructions that follow demand.
  __device__ __forceinline__ void wait_warp(int stage, uint32_t parity) const {
    wait(stage, parity);
    ptx::bar_warp_sync();
  }

 protected:
  __device__ __forceinline__ uint32_t at(int stage) const { return first_ + 8 * stage; }

 private:
  uint32_t first_;  // shared::cta address
};

class TMABar : public BarrierRing {
 public:
  using BarrierRing::BarrierRing;
  // Announces the bytes of the boxes that the caller issues next, and arrives; the bytes complete the phase.
  __device__ __forceinline__ void arrive_expect_tx(int stage, uint32_t bytes) const {
    ptx::mbarrier_arrive_expect_tx(at(stage), bytes);
  }
  // What a TMA load is told to signal.
  __device__ __forceinline__ uint32_t address(int stage) const { return at(stage); }
};

class TCGen05Bar : public BarrierRing {
 public:
  using BarrierRing::BarrierRing;
  // Arrives when every MMA that this thread has issued so far is complete.
  __device__ __forceinline__ void commit(int stage) const { ptx::tcgen05_commit(at(stage)); }
};

class MBarrier : public BarrierRing {
 public:
  using BarrierRing::BarrierRing;
  // One arrival for each calling thread.
  __device__ __forceinline__ void arrive(int stage) const { ptx::mbarrier_arrive(at(stage)); }
};

template <BarrierId id>
using BarrierType = std::conditional_t<
    barrier_row(id).flavour == BarrierFlavour::tma, TMABar,
    std::conditional_t<barrier_row(id).flavour == BarrierFlavour::tcgen05, TCGen05Bar, MBarrier>>;

// The table's numbers as constants that device code may use.
template <BarrierId id>
inline constexpr uint32_t kBarrierOffset = barrier_offset(id, 0);
template <BarrierId id>
inline constexpr uint32_t kBarrierStages = barrier_row(id).stages;
template <BarrierId id>
inline constexpr uint32_t kBarrierArrivals = barrier_row(id).arrivals;

// Every barrier of the kernel. `shared` is the shared::cta address of the SharedMap.
struct Barriers {
  __device__ explicit Barriers(uint32_t shared)
      : q_full(shared + kBarrierOffset<BarrierId::q_full>),
        q_empty(shared + kBarrierOffset<BarrierId::q_empty>),
        kv_full(shared + kBarrierOffset<BarrierId::kv_full>),
        kv_empty(shared + kBarrierOffset<BarrierId::kv_empty>),
        s_ready(shared + kBarrierOffset<BarrierId::s_ready>),
        p_o_rescale(shared + kBarrierOffset<BarrierId::p_o_rescale>),
        p_tail(shared + kBarrierOffset<BarrierId::p_tail>),
        softmax_corr_full(shared + kBarrierOffset<BarrierId::softmax_corr_full>),
        softmax_corr_empty(shared + kBarrierOffset<BarrierId::softmax_corr_empty>),
        o_ready(shared + kBarrierOffset<BarrierId::o_ready>),
        corr_epi_full(shared + kBarrierOffset<BarrierId::corr_epi_full>),
        corr_epi_empty(shared + kBarrierOffset<BarrierId::corr_epi_empty>) {}

  BarrierType<BarrierId::q_full> q_full;
  BarrierType<BarrierId::q_empty> q_empty;
  BarrierType<BarrierId::kv_full> kv_full;
  BarrierType<BarrierId::kv_empty> kv_empty;
  BarrierType<BarrierId::s_ready> s_ready;
  BarrierType<BarrierId::p_o_rescale> p_o_rescale;
  BarrierType<BarrierId::p_tail> p_tail;
  BarrierType<BarrierId::softmax_corr_full> softmax_corr_full;
  BarrierType<BarrierId::softmax_corr_empty> softmax_corr_empty;
  BarrierType<BarrierId::o_ready> o_ready;
  BarrierType<BarrierId::corr_epi_full> corr_epi_full;
  BarrierType<BarrierId::corr_epi_empty> corr_epi_empty;
};

template <BarrierId id>
__device__ __forceinline__ void init_row(uint32_t shared) {
#pragma unroll
  for (uint32_t stage = 0; stage < kBarrierStages<id>; ++stage) {
    ptx::mbarrier_init(shared + kBarrierOffset<id> + 8 * stage, kBarrierArrivals<id>);
  }
}

template <uint32_t... row>
__device__ __forceinline__ void init_rows(uint32_t shared, std::integer_sequence<uint32_t, row...>) {
  (init_row<static_cast<BarrierId>(row)>(shared), ...);
}

// Initialises all of them as the table says. One thread; everybody else must synchronise with it afterwards.
__device__ __forceinline__ void init_barriers(uint32_t shared) {
  init_rows(shared, std::make_integer_sequence<uint32_t, kBarrierKinds>{});
  ptx::fence_mbarrier_init();
}

// A slot of a ring, and the parity that its next wait is for. advance() turns the parity round with the ring.
template <int slots>
struct PipelineState {
  int index;
  uint32_t phase;
  __device__ static PipelineState consumer() { return {0, 0}; }
  __device__ static PipelineState producer() { return {0, 1}; }
  __device__ __forceinline__ void advance() {
    if (++index == slots) {
      index = 0;
      phase ^= 1;
    }
  }
};

}  // namespace fa4
