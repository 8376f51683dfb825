// SPDX-License-Identifier: Apache-2.0
// Fences between threads, and between proxies: the generic one of ld and st, the async one of TMA and MMA.
#pragma once

namespace fa4::ptx {

// fence.mbarrier_init.release.cluster;                                                  PTX ISA 8.0, 9.7.13.4
// Orders earlier mbarrier.init of this thread before later operations on them.
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// fence.proxy.async.shared::cta;                                                        PTX ISA 8.0, 9.7.13.4
// Executed by the thread that wrote shared memory with ordinary stores, before TMA or an MMA reads it.
__device__ __forceinline__ void fence_proxy_async_shared_cta() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// fence.proxy.async;                                                                    PTX ISA 8.0, 9.7.13.4
// The same for every state space.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async;" ::: "memory");
}

// fence.acq_rel.cta;                                                                    PTX ISA 6.0, 9.7.13.4
__device__ __forceinline__ void fence_acq_rel_cta() {
  asm volatile("fence.acq_rel.cta;" ::: "memory");
}

}  // namespace fa4::ptx
