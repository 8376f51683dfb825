// SPDX-License-Identifier: Apache-2.0
// The barriers of barrier_table.h as objects of their flavours, and their initialisation.
#pragma once

#include "../barrier_ring.cuh"
#include "layout.h"

namespace fa4::blackwell {

// Every barrier of the kernel, a member each by its name in the table. `shared` is the shared::cta address of dynamic
// shared memory.
template <Config config>
struct Barriers {
  __device__ explicit Barriers(uint32_t shared) : shared_(shared) {}

 private:
  uint32_t shared_;  // before the members that are made from it

 public:
#define FA4_MEMBER(id, name, flavour, ...)                                          \
  BarrierOf<BarrierFlavour::flavour> id = BarrierOf<BarrierFlavour::flavour>(shared_ + \
                                                                             kBarrierOffset<config, BarrierId::id>);
  FA4_BARRIERS(FA4_MEMBER)
#undef FA4_MEMBER
};

// `id` names the row to whoever reads the line table of the PTX.
template <BarrierId id, uint32_t stages, uint32_t arrivals>
__device__ __forceinline__ void init_row(uint32_t first) {
#pragma unroll
  for (uint32_t stage = 0; stage != stages; ++stage) ptx::mbarrier_init(first + 8 * stage, arrivals);
}

// Initialises all of them as the table says. One thread; everybody else must synchronise with it afterwards.
template <Config config>
__device__ __forceinline__ void init_barriers(uint32_t shared) {
#define FA4_INIT(id, ...)                                                                                       \
  init_row<BarrierId::id, kBarrierStages<config, BarrierId::id>, kBarrierArrivals<config, BarrierId::id>>( \
      shared + kBarrierOffset<config, BarrierId::id>);
  FA4_BARRIERS(FA4_INIT)
#undef FA4_INIT
  ptx::fence_mbarrier_init();
}

}  // namespace fa4::blackwell
