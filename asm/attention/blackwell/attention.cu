// SPDX-License-Identifier: Apache-2.0
// FlashAttention-4, forward, for Blackwell: the entry points, and who does what. Read this first.
//
//   warps  0-3   softmax of Q stage 0     S -> P            roles/softmax.cuh
//   warps  4-7   softmax of Q stage 1                       roles/softmax.cuh
//   warps  8-11  correction               O rescaled, out   roles/correction.cuh
//   warp   12    MMA driver               both products     roles/mma.cuh
//   warp   13    load                     Q, K, V by TMA    roles/load.cuh
//   warp   14    store                    O by TMA          roles/store.cuh
//   warp   15    scheduler            which tasks       ../scheduler_role.cuh, general kernels; else idle
//
// (Of head dimensions up to 128, and 192 with 128. Above, there is one Q stage: no warps 4-7, and the others are numbered from there.)
//
//   load --q.full, kv.full--> mma --s_ready--> softmax --p_o_rescale, p_tail--> mma --o_ready--> correction
//                                              softmax --softmax_corr--> correction --p_o_rescale--> mma
//                                                                        correction --corr_epi--> store
//
// What a specialisation is stands in ../config.h, its memory maps in layout.h, all barriers in barrier_table.h.
#include "../names.h"
#include "../scheduler_role.cuh"
#include "../specialisations.h"
#include "cta.cuh"
#include "name_table.h"
#include "roles/correction.cuh"
#include "roles/load.cuh"
#include "roles/mma.cuh"
#include "roles/softmax.cuh"
#include "roles/store.cuh"

namespace fa4::blackwell {

template <Config config>
__device__ __forceinline__ void forward(const AttentionParams& params) {
  using L = Layout<config>;
  extern __shared__ __align__(kSharedAlignment) uint8_t dynamic_shared[];
  const uint32_t shared = static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared));
  // The same in all lanes, and the compiler should know.
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);

  // Set-up: barriers by one thread, all of TMEM by the MMA warp, then everybody meets.
  if (threadIdx.x == 0) init_barriers<config>(shared);
  if (threadIdx.x == 32 * L::load_warp) prefetch_tensor_maps(params);
  ptx::bar_warp_sync();
  if (warp == L::mma_warp) {
    ptx::tcgen05_alloc<kTmemColumns>(shared + L::tmem_base_offset);
    ptx::tcgen05_relinquish_alloc_permit();
  }
  ptx::tcgen05_fence_before_thread_sync();
  ptx::bar_sync<0>();
  ptx::tcgen05_fence_after_thread_sync();
  const uint32_t tmem = *reinterpret_cast<const uint32_t*>(dynamic_shared + L::tmem_base_offset);
  const Barriers<config> barriers(shared);
  const Cta<config> cta{params,   tasks_of<config>(params, shared, barriers), dynamic_shared, shared, tmem, barriers,
                        mask_of<config>(params)};

  if (warp < L::correction_warp) {
    ptx::setmaxnreg_inc<L::softmax_registers>();
    softmax_role<config>(cta, warp / 4);
  } else if (warp < L::mma_warp) {
    ptx::setmaxnreg_dec<L::correction_registers>();
    correction_role<config>(cta);
  } else {
    ptx::setmaxnreg_dec<L::other_registers>();
    if (warp == L::mma_warp) mma_role<config>(cta);
    if constexpr (config.general()) {
      if (warp == L::scheduler_warp) scheduler_role<config>(cta.tasks);
    }
    const bool elected = ptx::elect_sync();
    if (warp == L::load_warp && elected) load_role<config>(cta);
    if (warp == L::store_warp && elected) store_role<config>(cta);
  }

  // A general kernel has no register for it all the way.
  const int warp_again = config.general() ? static_cast<int>(ptx::tid_x_again()) / 32 : warp;
  // Nothing is under way any more: correction has waited for the last MMAs, load for their commits, store for
  // the last boxes.
  ptx::bar_warp_sync();
  ptx::tcgen05_fence_before_thread_sync();
  ptx::bar_sync<0>();
  ptx::tcgen05_fence_after_thread_sync();
  if (warp_again == L::mma_warp) ptx::tcgen05_dealloc<kTmemColumns>(cta.tmem);
}

}  // namespace fa4::blackwell

// One entry for each specialisation, and its names for whoever looks at a running kernel from outside. Launch:
// Layout::threads threads, Layout::shared_bytes of dynamic shared memory, any grid from 1 to task_count CTAs, no cluster.
#define FA4_ENTRY_OF(entry, element, mask, qk_dim, v_dim, exp2)                                                     \
  inline constexpr fa4::Config entry##_config = fa4::blackwell::make_config(                                        \
      fa4::ElementType::element, fa4::MaskKind::mask, qk_dim, v_dim, fa4::Exp2::exp2);                              \
  extern "C" __global__ void __launch_bounds__(fa4::blackwell::Layout<entry##_config>::threads, 1)                  \
      entry(const __grid_constant__ fa4::AttentionParams params) {                                                  \
    fa4::blackwell::forward<entry##_config>(params);                                                                \
  }                                                                                                                 \
  extern "C" __device__ const auto entry##_names = fa4::blackwell::make_name_table<entry##_config>();
#define FA4_ENTRY(entry, ...) FA4_ENTRY_OF(entry, __VA_ARGS__, mufu)
#define FA4_POLYNOMIAL_ENTRY(entry, ...) FA4_ENTRY_OF(entry##_polynomial, __VA_ARGS__, polynomial)

FA4_SPECIALISATIONS(FA4_ENTRY)
FA4_SPECIALISATIONS(FA4_POLYNOMIAL_ENTRY)
