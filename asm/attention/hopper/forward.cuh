// SPDX-License-Identifier: Apache-2.0
// FlashAttention forward for Hopper (sm_90a): who does what. Read this first.
//
//   warpgroup 0      by TMA, one lane each: warp 0 loads K and V (roles/load.cuh), warp 1 Q
//   (roles/query.cuh), warp 2
//                    stores O (roles/store.cuh)
//   warpgroups 1..n  consumers, 64 rows each: both products and softmax (roles/consumer.cuh)
//
//   load --kv.full--> consumers --kv.empty--> load
//   query --q.full--> consumers --o.full--> store --q.empty--> query
//
// Sizes are in config.h, all barriers in barrier_table.h.
#pragma once

#include <type_traits>

#include "cta.cuh"
#include "roles/consumer.cuh"
#include "roles/load.cuh"
#include "roles/query.cuh"
#include "roles/store.cuh"

namespace fa4::hopper {

template <class Element, Config c>
__device__ __forceinline__ void forward(const AttentionParams& params) {
  using T = Tile<c>;
  extern __shared__ __align__(kSharedAlignment) uint8_t dynamic_shared[];
  const Cta<c> cta(params, static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared)));
  // The same in all lanes, and the compiler should know.
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);

  if (threadIdx.x == 0) cta.init_barriers();
  ptx::bar_warp_sync();
  ptx::bar_sync<0>();

  if (warp < kWarpgroupThreads / 32) {
    ptx::setmaxnreg_dec<T::kProducerRegisters>();
    const bool elected = ptx::elect_sync();
    if (warp == kLoadWarp && elected) load_role<c>(cta);
    if (warp == kQueryWarp && elected) query_role<c>(cta);
    if (warp == kStoreWarp && elected) store_role<c>(cta);
    ptx::bar_warp_sync();
  } else {
    ptx::setmaxnreg_inc<T::kConsumerRegisters>();
    consumer_role<Element, c>(cta, warp / (kWarpgroupThreads / 32) - 1);
  }
}

}  // namespace fa4::hopper
