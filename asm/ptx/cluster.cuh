// SPDX-License-Identifier: Apache-2.0
// Thread-block clusters: rank, barrier, addresses and mbarriers of other CTAs, and TMA loads that land in several
// CTAs at once.
#pragma once

#include <stdint.h>

namespace fa4::ptx {

// mov.u32 d, %cluster_ctarank;                                                                PTX ISA 7.8, 10.18
__device__ __forceinline__ uint32_t cluster_ctarank() {
  uint32_t d;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(d));
  return d;
}

// barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;         PTX ISA 7.8, 9.7.13.3
// All threads of all CTAs of the cluster.
__device__ __forceinline__ void barrier_cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void barrier_cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// mapa.shared::cluster.u32 d, a, rank;                                                   PTX ISA 7.8, 9.7.9.23
// The address in CTA `rank` of what lies at shared::cta address `a` here.
__device__ __forceinline__ uint32_t mapa(uint32_t a, uint32_t rank) {
  uint32_t d;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(rank));
  return d;
}

// mbarrier.arrive.shared::cluster.b64 _, [addr];                                     PTX ISA 8.0, 9.7.13.15.13
// `barrier` is a shared::cluster address, of this or of another CTA. (With .release.cluster spelt out, ptxas puts a
// fence of GPU scope before it.)
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
//     [dst], [map, {c0..c4}], [bar], mask;                                          PTX ISA 8.0, 9.7.9.25.5.2
// The box lands at the same offset in every CTA of `mask`, and counts on the mbarrier at the same offset there.
__device__ __forceinline__ void cp_async_bulk_tensor_load_multicast(uint32_t destination, const void* map,
                                                                    const int32_t (&c)[5], uint32_t barrier,
                                                                    uint16_t mask) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;" ::"r"(destination),
      "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]), "r"(barrier), "h"(mask)
      : "memory");
}

}  // namespace fa4::ptx
