// SPDX-License-Identifier: Apache-2.0
// The tensor memory accelerator: boxes of a tensor map to and from shared memory, and the bulk groups that
// track stores. One thread issues. `map` is the generic address of a CUtensorMap in parameter, constant or
// global memory; coordinates are in elements, innermost first, and may lie outside of the tensor (loads then
// give zeros, stores skip them).
#pragma once

#include <stdint.h>

namespace fa4::ptx {

// prefetch.tensormap [map];                                                             PTX ISA 8.0, 9.7.9.15
__device__ __forceinline__ void prefetch_tensormap(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// cp.async.bulk.tensor.5d.shared::cta.global.tile.mbarrier::complete_tx::bytes [dst], [map, {c0..c4}], [bar];
//                                                                                   PTX ISA 8.6, 9.7.9.25.5.2
// The bytes of the whole box, out of bounds or not, are counted on the barrier.
__device__ __forceinline__ void cp_async_bulk_tensor_load(uint32_t destination, const void* map,
                                                          const int32_t (&c)[5], uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(destination),
      "l"(map), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]), "r"(barrier)
      : "memory");
}

// cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [map, {c0..c4}], [src];
//                                                                                   PTX ISA 8.0, 9.7.9.25.5.2
// Joins the bulk group that the issuing thread commits next.
__device__ __forceinline__ void cp_async_bulk_tensor_store(const void* map, const int32_t (&c)[5],
                                                           uint32_t source) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group"
      " [%0, {%1, %2, %3, %4, %5}], [%6];" ::"l"(map),
      "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]), "r"(source)
      : "memory");
}

// cp.async.bulk.commit_group;                                                       PTX ISA 8.0, 9.7.9.25.6.1
__device__ __forceinline__ void cp_async_bulk_commit_group() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// cp.async.bulk.wait_group N;                                                       PTX ISA 8.0, 9.7.9.25.6.2
// Until at most `pending` of this thread's newest groups are incomplete: their writes have landed.
template <int pending>
__device__ __forceinline__ void cp_async_bulk_wait_group() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

// cp.async.bulk.wait_group.read N;                                                  PTX ISA 8.0, 9.7.9.25.6.2
// As above, and only until their sources have been read: shared memory may be reused.
template <int pending>
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}

}  // namespace fa4::ptx
