// SPDX-License-Identifier: Apache-2.0
// What a checker can watch: every access to shared, tensor and global memory, every synchronisation, and the life of
// every asynchronous operation of one CTA. Semantics call it at the moment when the thing happens; a CTA without an
// observer pays one test of a pointer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "op.h"

namespace fa4::sim {

struct Warp;
struct Cta;
struct Event;
struct MBarrier;
struct MatrixDescriptor;

enum class FenceKind : uint8_t { proxy_async, mbarrier_init, before_thread_sync, after_thread_sync };

// The operands of one tcgen05.mma.
struct MmaAccess {
  const MatrixDescriptor* a;  // nullptr: A is in tensor memory
  const MatrixDescriptor* b;
  bool a_mn_major, b_mn_major;
  uint32_t m, n;
  uint32_t a_column, d_column;
  bool accumulate;
};

class Observer {
 public:
  virtual ~Observer() = default;

  // Threads. A mask names the lanes that take part.
  virtual void shared_access(const Warp& w, const Op* op, int lane, uint32_t address, uint32_t bytes, bool write) = 0;
  virtual void global_access(const Warp& w, const Op* op, int lane, uint64_t address, uint32_t bytes, bool write, bool atomic) = 0;
  virtual void tmem_access(const Warp& w, const Op* op, uint32_t column, uint32_t columns, bool write) = 0;
  virtual void tmem_waited(const Warp& w, bool stores) = 0;  // wait::st or wait::ld: the warp's accesses are done
  virtual void warp_barrier(const Warp& w, const Op* op, Mask members) = 0;
  virtual void cta_barrier_arrived(const Warp& w, const Op* op, Mask lanes, uint32_t id) = 0;
  virtual void cta_barrier_passed(const Warp& w, Mask lanes, uint32_t id) = 0;  // once for each waiter, when it opens
  virtual void cta_barrier_opened(uint32_t id) = 0;                            // after the last cta_barrier_passed
  virtual void fence(const Warp& w, const Op* op, Mask lanes, FenceKind kind) = 0;

  virtual void mbarrier_init(const Warp& w, const Op* op, int lane, uint32_t address) = 0;
  virtual void mbarrier_used(const Warp& w, const Op* op, int lane, uint32_t address) = 0;  // before any thread's use
  virtual void mbarrier_arrived(const Warp& w, const Op* op, int lane, uint32_t address) = 0;
  virtual void mbarrier_completed(uint32_t address, uint32_t phase) = 0;  // the phase that has just completed
  virtual void mbarrier_waited(const Warp& w, const Op* op, int lane, uint32_t address) = 0;  // with success

  // Asynchronous agents. `id` pairs issue and landing.
  virtual void copy_in_issued(const Warp& w, const Event& event) = 0;   // global to shared, completes on event.address
  virtual void copy_in_landed(const Event& event) = 0;                  // before complete_tx
  virtual void copy_out_issued(const Warp& w, const Event& event) = 0;  // shared to global, in a bulk group
  virtual void copy_group_waited(const Warp& w, const Op* op, Mask lanes, uint32_t newest_pending, bool read_only) = 0;
  virtual void mma_issued(const Warp& w, const Op* op, int lane, const MmaAccess& access) = 0;
  virtual void commit_issued(const Warp& w, const Event& event) = 0;
  virtual void commit_landed(const Event& event) = 0;                   // before the arrival

  virtual void tmem_allocated(const Warp& w, const Op* op, uint32_t column, uint32_t columns, uint32_t shared_address) = 0;
  virtual void tmem_released(const Warp& w, const Op* op, uint32_t column, uint32_t columns) = 0;
  virtual void ended(bool work_in_flight) = 0;  // all lanes have exited
};

}  // namespace fa4::sim
