// SPDX-License-Identifier: Apache-2.0
// FlashAttention forward for Hopper: the entry points, and who does what. Read this first.
//
//   warp   0       load        K, V by TMA                         roles/load.cuh
//   warp   1       query       Q by TMA, and what the task is      roles/query.cuh
//   warp   2       store       O by TMA                            roles/store.cuh
//   warp   3       scheduler   which tasks                         ../scheduler_role.cuh, general kernels; else idle
//   warps  4-7     consumer 0  64 rows: both products and softmax  roles/consumer.cuh
//   warps  8-11    consumer 1  the next 64 rows
//   warps 12-15    consumer 2  for head dimensions up to 96
//
//   load  --kv.full--> consumers --kv.empty--> load
//   query --q.full-->  consumers --o.full-->   store --q.empty--> query
//
// Up to head dimension 128 there is a Q tile for this task and one for the next, and O leaves through that of its task. Above, there
// is one: consumers return it with the task's last scores (q.read), and O leaves through a turn in the ring of K and V.
//
// The blocks of all tasks are one stream. A consumer issues the scores of block j and behind them the value product of
// block j - 1; its softmax of j runs under that product and under what the other consumers issue. Named barriers (order)
// make the consumers take turns. In time, from left to right, S: scores, PV: value product:
//
//   tensor core  | S0(j)  PV0(j-1) | S1(j)  PV1(j-1) | S0(j+1)  PV0(j) | S1(j+1)  PV1(j) |
//   consumer 0         [ softmax 0 (j) ............ ]        [ softmax 0 (j+1) ......... ]
//   consumer 1                           [ softmax 1 (j) ............. ]       [ softmax 1 (j+1) ...
//
// What a specialisation is stands in ../config.h, its memory map in layout.h, all barriers in barrier_table.h.
#include "../names.h"
#include "../scheduler_role.cuh"
#include "../specialisations.h"
#include "cta.cuh"
#include "name_table.h"
#include "roles/consumer.cuh"
#include "roles/load.cuh"
#include "roles/query.cuh"
#include "roles/store.cuh"

namespace fa4::hopper {

template <Config config>
__device__ __forceinline__ void forward(const AttentionParams& params) {
  using L = Layout<config>;
  extern __shared__ __align__(kSharedAlignment) uint8_t dynamic_shared[];
  const Cta<config> cta(params, static_cast<uint32_t>(__cvta_generic_to_shared(dynamic_shared)));
  // The same in all lanes, and the compiler should know.
  const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / 32, 0);

  if (threadIdx.x == 0) cta.bar.init();
  ptx::bar_warp_sync();
  ptx::bar_sync<0>();

  if (warp < L::consumer_warp) {
    ptx::setmaxnreg_dec<L::other_registers>();
    const bool elected = ptx::elect_sync();
    if (warp == L::load_warp && elected) load_role<config>(cta);
    if (warp == L::query_warp && elected) query_role<config>(cta);
    if (warp == L::store_warp && elected) store_role<config>(cta);
    if constexpr (config.general()) {
      if (warp == L::scheduler_warp) scheduler_role<config>(cta.tasks);
    }
  } else {
    ptx::setmaxnreg_inc<L::consumer_registers>();
    consumer_role<config>(cta, (warp - L::consumer_warp) / 4);
  }
}

}  // namespace fa4::hopper

// One entry for each specialisation, and its names for whoever looks at a running kernel from outside. Launch:
// Layout::threads threads, Layout::shared_bytes of dynamic shared memory, any grid from 1 to task_count CTAs, no cluster.
#define FA4_ENTRY_OF(entry, config)                                                                            \
  extern "C" __global__ void __launch_bounds__(fa4::hopper::Layout<config>::threads, 1)                        \
      entry(const __grid_constant__ fa4::AttentionParams params) {                                             \
    fa4::hopper::forward<config>(params);                                                                      \
  }                                                                                                            \
  extern "C" __device__ const auto entry##_names = fa4::hopper::make_name_table<config>();

#define FA4_ENTRY(entry, element, mask, qk_dim, v_dim)                                                         \
  inline constexpr fa4::Config entry##_config =                                                                \
      fa4::hopper::make_config(fa4::ElementType::element, fa4::MaskKind::mask, qk_dim, v_dim);                 \
  FA4_ENTRY_OF(entry, entry##_config)
#define FA4_SHORT_ENTRY(entry, element, mask, qk_dim, v_dim, consumers, most_rows)                             \
  inline constexpr fa4::Config entry##_config =                                                                \
      fa4::hopper::make_config(fa4::ElementType::element, fa4::MaskKind::mask, qk_dim, v_dim, consumers);      \
  FA4_ENTRY_OF(entry, entry##_config)

FA4_SPECIALISATIONS(FA4_ENTRY)
FA4_HOPPER_SHORT_SPECIALISATIONS(FA4_SHORT_ENTRY)
