// SPDX-License-Identifier: Apache-2.0
// What a checker can watch: every access to shared, tensor and global memory, every synchronisation, and the life of
// every asynchronous operation of one CTA. Semantics call it at the moment when the thing happens; a CTA without an
// observer pays one test of a pointer.
#pragma once

#include <cstdint>

#include "op.h"

namespace fa4::sim {

struct Cluster;
struct Cta;
struct Warp;
struct Event;
struct MatrixDescriptor;

enum class FenceKind : uint8_t {
  proxy_async,         // all of memory
  proxy_async_shared,  // fence.proxy.async.shared::cta
  proxy_async_cluster, // fence.proxy.async.shared::cluster
  proxy_async_global,  // fence.proxy.async.global
  mbarrier_init,
  before_thread_sync,
  after_thread_sync,
  memory,              // fence.{sc,acq_rel,acquire,release}, membar: Op::order says which
};

// The operands of one tcgen05.mma.
struct MmaAccess {
  const MatrixDescriptor* a;  // nullptr: A is in tensor memory
  const MatrixDescriptor* b;
  bool a_mn_major, b_mn_major;
  uint32_t m, n;
  uint32_t a_column, d_column;
};

// What a warp's part of one wgmma.mma_async reads of shared memory.
struct WgmmaAccess {
  const MatrixDescriptor* a;  // nullptr: A is in registers
  const MatrixDescriptor* b;
  bool a_mn_major, b_mn_major;
  uint32_t n;
  uint64_t number;            // among those of the warp, from 1
};

class Observer {
 public:
  virtual ~Observer() = default;

  // A CTA starts. An observer watches a cluster: all its CTAs begin, in the order of their ranks, before any of them runs.
  virtual void begin(const Cta& cta) = 0;
  virtual void ended(const Cta& cta) = 0;       // all its lanes have exited
  // Some of `lanes` take a branch: those of `taken`, to the instruction `target`.
  virtual void branched(const Warp& w, const Op* op, Mask lanes, Mask taken, const Op* target) = 0;

  // ---- threads; a mask names the lanes that take part ----
  // `owner`: the CTA of the cluster whose shared memory it is.
  virtual void shared_access(const Warp& w, const Op* op, int lane, const Cta& owner, uint32_t address, uint32_t bytes, bool write) = 0;
  virtual void global_access(const Warp& w, const Op* op, int lane, uint64_t address, uint32_t bytes, bool write) = 0;
  virtual void tmem_access(const Warp& w, const Op* op, uint32_t column, uint32_t columns, bool write) = 0;
  virtual void tmem_waited(const Warp& w, bool stores) = 0;  // wait::st or wait::ld
  // Model::silicon: a register of a load of these columns is used before wait::ld, and so the load is over.
  virtual void tmem_delivered(const Warp& w, uint32_t column, uint32_t columns) = 0;
  virtual void tmem_allocated(const Warp& w, const Op* op, uint32_t column, uint32_t columns, uint32_t shared_address) = 0;
  virtual void tmem_released(const Warp& w, const Op* op, uint32_t column, uint32_t columns) = 0;
  virtual void warp_barrier(const Warp& w, const Op* op, Mask members) = 0;
  virtual void cta_barrier_arrived(const Warp& w, const Op* op, Mask lanes, uint32_t id) = 0;
  virtual void cta_barrier_passed(const Warp& w, Mask lanes, uint32_t id) = 0;  // for each waiter, when it opens
  virtual void cta_barrier_opened(const Cta& cta, uint32_t id) = 0;                           // after the last of these
  virtual void cluster_barrier_arrived(const Warp& w, const Op* op, Mask lanes) = 0;
  virtual void cluster_barrier_completed(const Cluster& cluster) = 0;  // before those who wait pass
  virtual void cluster_barrier_passed(const Warp& w, const Op* op, Mask lanes) = 0;
  virtual void fence(const Warp& w, const Op* op, Mask lanes, FenceKind kind) = 0;
  // Model::silicon: a setmaxnreg where another warp of the warpgroup asked for so many registers.
  virtual void register_counts_differ(const Warp& w, const Op* op, uint32_t registers) = 0;
  // Model::silicon: where another warp of the warpgroup executed the wgmma instruction `other`, this one executed `op`; null:
  // it has exited.
  virtual void warpgroup_differs(const Warp& w, const Op* op, const Op* other) = 0;

  // ---- mbarriers, by shared address; those that others may signal are their owner's ----
  virtual void mbarrier_initialised(const Warp& w, const Op* op, int lane, uint32_t address) = 0;
  virtual void mbarrier_invalidated(const Warp& w, const Op* op, int lane, uint32_t address) = 0;
  // Before it counts; lanes whose arrivals count in one phase together.
  virtual void mbarrier_arriving(const Warp& w, const Op* op, Mask lanes, const Cta& owner, uint32_t address) = 0;
  virtual void mbarrier_completed(const Cta& owner, uint32_t address, uint32_t phase) = 0;  // the phase that has just completed
  virtual void mbarrier_waited(const Warp& w, const Op* op, Mask lanes, uint32_t address) = 0;  // with success

  // ---- asynchronous agents; what an `issued` returns comes back in Event::token ----
  // Into the target's shared memory, from global or the CTA's shared memory or registers, completes on a barrier there.
  virtual uint32_t copy_in_issued(const Warp& w, const Event& event) = 0;
  virtual void copy_in_landed(const Event& event) = 0;                      // before complete_tx
  virtual void copy_out_issued(const Warp& w, const Event& event) = 0;      // shared to global, in a bulk group
  virtual void copy_group_waited(const Warp& w, Mask lanes, uint64_t first_pending_group, bool read_only) = 0;
  // cp.async: issued by a lane, known to it by a wait, or made known by an arrival on an mbarrier that follows it.
  virtual void thread_copy_issued(const Warp& w, const Op* op, int lane, uint32_t address, uint32_t bytes) = 0;
  virtual void thread_copy_waited(const Warp& w, int lane, uint32_t address, uint32_t bytes) = 0;
  virtual void thread_copy_arrival_issued(const Warp& w, const Event& event) = 0;
  virtual void thread_copy_arrived(const Event& event, uint32_t address, uint32_t bytes) = 0;
  virtual void thread_copy_arriving(const Event& event) = 0;                // after its copies, before it counts
  virtual void mma_issued(const Warp& w, const Op* op, int lane, const MmaAccess& access) = 0;
  virtual void wgmma_issued(const Warp& w, const Op* op, const WgmmaAccess& access) = 0;
  virtual void wgmma_waited(const Warp& w, uint64_t number) = 0;            // for those up to this one
  virtual uint32_t commit_issued(const Warp& w, const Event& event) = 0;
  virtual void commit_landed(const Event& event) = 0;                       // before the arrival
};

}  // namespace fa4::sim
