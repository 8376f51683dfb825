// SPDX-License-Identifier: Apache-2.0
// The three flavours of barrier as types, and a cursor over a ring of them. A flavour offers only the signal
// that completes it, so that nobody waits for bytes on a barrier of threads.
//
// Phases. A barrier starts in phase 0. wait(p) returns once the phase of parity p has completed: a consumer's
// first wait is for parity 0; a producer's first wait, for a slot that nobody has used yet, is for parity 1
// and passes at once.
#pragma once

#include <type_traits>

#include "../ptx/fence.cuh"
#include "../ptx/mbarrier.cuh"
#include "../ptx/sync.cuh"
#include "../ptx/tcgen05.cuh"
#include "barrier_row.h"

namespace fa4 {

// `stages` mbarriers in a row; what all flavours share.
class BarrierRing {
 public:
  __device__ explicit BarrierRing(uint32_t first) : first_(first) {}

  // For a role that runs in one elected lane, or whose next instruction of a warp joins the lanes.
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
  // Arrives when every MMA that the warp's elected lane has issued so far is complete. For all lanes of a warp.
  __device__ __forceinline__ void commit(int stage) const { ptx::tcgen05_commit(at(stage)); }
};

class MBarrier : public BarrierRing {
 public:
  using BarrierRing::BarrierRing;
  // One arrival for each calling thread.
  __device__ __forceinline__ void arrive(int stage) const { ptx::mbarrier_arrive(at(stage)); }
  // `count` of them.
  __device__ __forceinline__ void arrive(int stage, uint32_t count) const { ptx::mbarrier_arrive(at(stage), count); }
  // One for each whose predicate is true; for all lanes of a warp, which stay together.
  __device__ __forceinline__ void arrive_if(int stage, bool predicate) const {
    ptx::mbarrier_arrive_if(at(stage), predicate);
  }
};

template <BarrierFlavour flavour>
using BarrierOf = std::conditional_t<flavour == BarrierFlavour::tma, TMABar,
                                     std::conditional_t<flavour == BarrierFlavour::tcgen05, TCGen05Bar, MBarrier>>;

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
