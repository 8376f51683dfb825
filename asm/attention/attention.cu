// SPDX-License-Identifier: Apache-2.0
// FlashAttention-4, forward, for Blackwell: the entry points, and who does what. Read this first.
//
//   warps  0-3   softmax of Q stage 0     S -> P            roles/softmax.cuh
//   warps  4-7   softmax of Q stage 1                       roles/softmax.cuh
//   warps  8-11  correction               O rescaled, out   roles/correction.cuh
//   warp   12    MMA driver               both products     roles/mma.cuh
//   warp   13    load                     Q, K, V by TMA    roles/load.cuh
//   warp   14    store                    O by TMA          roles/store.cuh
//   warp   15    idle
//
//   load --q.full, kv.full--> mma --s_ready--> softmax --p_o_rescale, p_tail--> mma --o_ready--> correction
//                                              softmax --softmax_corr--> correction --p_o_rescale--> mma
//                                                                        correction --corr_epi--> store
//
// Sizes and memory maps are in tile.h, all barriers in barrier_table.h.
#include "cta.cuh"
#include "name_table.h"
#include "names.h"
#include "roles/correction.cuh"
#include "roles/load.cuh"
#include "roles/mma.cuh"
#include "roles/softmax.cuh"
#include "roles/store.cuh"

namespace fa4 {

template <class Element, bool causal>
__device__ __forceinline__ void forward(const AttentionParams& params) {
  extern __shared__ __align__(kSharedAlignment) uint8_t dynamic_shared[];
  SharedMap& map = *reinterpret_cast<SharedMap*>(dynamic_shared);
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared));
  // The same in all lanes, and the compiler should know.
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);

  // Set-up: barriers by one thread, all of TMEM by the MMA warp, then everybody meets.
  if (threadIdx.x == 0) init_barriers(shared);
  ptx::bar_warp_sync();
  if (warp == kMmaWarp) {
    ptx::tcgen05_alloc<kTmemColumns>(shared + static_cast<uint32_t>(offsetof(SharedMap, tmem_base)));
    ptx::tcgen05_relinquish_alloc_permit();
  }
  ptx::tcgen05_fence_before_thread_sync();
  ptx::bar_sync<0>();
  ptx::tcgen05_fence_after_thread_sync();
  const Cta cta{params, map, shared, map.tmem_base, Barriers(shared)};

  if (warp < kCorrectionWarp) {
    ptx::setmaxnreg_inc<kSoftmaxRegisters>();
    softmax_role<Element, causal>(cta, warp / 4);
  } else if (warp < kMmaWarp) {
    ptx::setmaxnreg_dec<kCorrectionRegisters>();
    correction_role<Element, causal>(cta);
  } else {
    ptx::setmaxnreg_dec<kOtherRegisters>();
    const bool elected = ptx::elect_sync();
    if (warp == kMmaWarp && elected) mma_role<Element, causal>(cta);
    if (warp == kLoadWarp && elected) load_role<causal>(cta);
    if (warp == kStoreWarp && elected) store_role(cta);
  }

  // Nothing is under way any more: correction has waited for the last MMAs, load for their commits, store for
  // the last boxes.
  ptx::bar_warp_sync();
  ptx::tcgen05_fence_before_thread_sync();
  ptx::bar_sync<0>();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp == kMmaWarp) ptx::tcgen05_dealloc<kTmemColumns>(cta.tmem);
}

}  // namespace fa4

// One entry for each element type and mask. Launch: kThreads threads, kDynamicSharedBytes of dynamic shared
// memory, any grid from 1 to task_count CTAs, no cluster.
#define FA4_FORWARD(name, Element, causal)                        \
  extern "C" __global__ void __launch_bounds__(fa4::kThreads, 1)  \
      name(const __grid_constant__ fa4::AttentionParams params) { \
    fa4::forward<fa4::Element, causal>(params);                   \
  }

FA4_FORWARD(fa4_forward_f16_full, Float16, false)
FA4_FORWARD(fa4_forward_f16_causal, Float16, true)
FA4_FORWARD(fa4_forward_bf16_full, BFloat16, false)
FA4_FORWARD(fa4_forward_bf16_causal, BFloat16, true)

// Names for whoever looks at a running kernel from outside.
extern "C" __device__ const fa4::NameTable fa4_names = fa4::make_name_table();
