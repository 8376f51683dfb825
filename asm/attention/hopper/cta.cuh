// SPDX-License-Identifier: Apache-2.0
// What every role is handed: the parameters, the barriers, the tiles, and the records of the tasks.
#pragma once

#include "../../ptx/fence.cuh"
#include "../../ptx/ldst.cuh"
#include "../../ptx/mbarrier.cuh"
#include "../../ptx/sync.cuh"
#include "../barrier_ring.cuh"
#include "../score.cuh"
#include "../task_walk.cuh"
#include "layout.h"

namespace fa4::hopper {

// Every barrier of the kernel, a member each by its name in the table. `shared` is the shared::cta address of dynamic
// shared memory.
template <Config config>
struct Barriers {
  __device__ explicit Barriers(uint32_t shared) : shared_(shared) {}

  // As the table says. One thread; everybody else must synchronise with it afterwards.
  __device__ __forceinline__ void init() const {
#define FA4_INIT(id, ...)                                                   \
  for (uint32_t i = 0; i != kBarrierStages<config, BarrierId::id>; ++i)     \
    ptx::mbarrier_init(shared_ + kBarrierOffset<config, BarrierId::id> + 8 * i, kBarrierArrivals<config, BarrierId::id>);
    FA4_HOPPER_BARRIERS(FA4_INIT)
#undef FA4_INIT
    ptx::fence_mbarrier_init();
  }

 private:
  uint32_t shared_;  // before the members that are made from it

 public:
#define FA4_MEMBER(id, name, flavour, ...)                     \
  BarrierOf<BarrierFlavour::flavour> id =                      \
      BarrierOf<BarrierFlavour::flavour>(shared_ + kBarrierOffset<config, BarrierId::id>);
  FA4_HOPPER_BARRIERS(FA4_MEMBER)
#undef FA4_MEMBER
};

template <Config config>
struct Cta {
  using L = Layout<config>;
  using QRecord = typename L::QRecord;
  using QEntryRecord = typename L::QEntryRecord;

  __device__ static Tasks<config> tasks_of(const AttentionParams& params, uint32_t shared, const Barriers<config>& bar) {
    if constexpr (config.general()) return {params, {shared + L::ring_offset, bar.task_full, bar.task_empty}};
    else return {params, {}};
  }

  const AttentionParams& params;
  uint32_t shared;  // shared::cta address of the SharedMap
  Barriers<config> bar;
  Tasks<config> tasks;

  __device__ Cta(const AttentionParams& p, uint32_t s) : params(p), shared(s), bar(s), tasks(tasks_of(p, s, bar)) {}

  __device__ __forceinline__ uint32_t q_tile(int slot, int consumer) const {
    return shared + L::q_offset + ((L::q_tiles > 1 ? slot : 0) * L::consumers + consumer) * config.q_tile_bytes();
  }
  __device__ __forceinline__ uint32_t k_tile(int slot) const { return shared + L::kv_offset + L::k_slot_offset(slot); }
  __device__ __forceinline__ uint32_t v_tile(int slot) const { return shared + L::kv_offset + L::v_slot_offset(slot); }
  // Of a consumer's O: over its Q, or in a slot of the ring.
  __device__ __forceinline__ uint32_t o_tile(int q_slot, int consumer, int ring_slot) const {
    if constexpr (L::o_in_ring) return v_tile(ring_slot) + consumer % L::o_of_turn * config.o_tile_bytes();
    else return q_tile(q_slot, consumer);
  }
  __device__ __forceinline__ uint32_t o_slot(int q_slot, int consumer) const {
    return shared + L::o_slot_offset + (q_slot * L::consumers + consumer) * 4;
  }
  __device__ __forceinline__ uint32_t task_record(int slot) const {
    return shared + L::task_offset + slot * static_cast<int>(sizeof(QRecord));
  }
  __device__ __forceinline__ void store_task(int slot, const QRecord& task) const {
    ptx::st_shared_v4(task_record(slot), task.batch, task.first_head, task.first_position, task.blocks_end);
  }
  __device__ __forceinline__ QRecord load_task(int slot) const {
    QRecord task;
    ptx::ld_shared_v4(task.batch, task.first_head, task.first_position, task.blocks_end, task_record(slot));
    return task;
  }
  // Of a general kernel; of others the entry is the launch's.
  __device__ __forceinline__ uint32_t entry_record(int slot) const {
    return shared + L::entry_offset + slot * static_cast<int>(sizeof(QEntryRecord));
  }
  __device__ __forceinline__ void store_entry(int slot, const QEntryRecord& entry) const {
    ptx::st_shared_v4(entry_record(slot), entry.seq_q, entry.seq_kv, entry.first_row, entry.last);
    ptx::st_shared_v4(entry_record(slot) + 16, entry.blocks_begin, 0, 0, 0);
  }
  __device__ __forceinline__ QEntryRecord load_entry(int slot) const {
    QEntryRecord entry{params.seq_q, params.seq_kv, 0, 0, 0, {}};
    if constexpr (config.general()) {
      ptx::ld_shared_v4(entry.seq_q, entry.seq_kv, entry.first_row, entry.last, entry_record(slot));
      ptx::ld_shared_v4(entry.blocks_begin, entry.unused[0], entry.unused[1], entry.unused[2], entry_record(slot) + 16);
    }
    return entry;
  }
  // Whether this CTA has a task in the given wave. Not of a general kernel.
  __device__ __forceinline__ bool has_task(int32_t wave) const {
    return task_of(params.order, static_cast<int32_t>(blockIdx.x), wave, static_cast<int32_t>(gridDim.x)) >= 0;
  }
};

// Slots of K and V in the order in which they are loaded and taken.
template <Config config>
class KvCursor {
  using L = Layout<config>;
  using Ring = PipelineState<L::ring_slots>;

 public:
  struct Slot {
    int index;
    uint32_t phase;
  };
  __device__ static KvCursor consumer() { return {Ring::consumer(), Ring::consumer()}; }
  __device__ static KvCursor producer() { return {Ring::producer(), Ring::producer()}; }

  // The slot of the next K, of the next V; and on to the one after.
  __device__ __forceinline__ Slot k() const { return {k_.index, k_.phase}; }
  __device__ __forceinline__ Slot v() const {
    if constexpr (L::rings_apart) return {L::ring_slots + v_.index, v_.phase};
    else return k();
  }
  __device__ __forceinline__ void advance_k() { k_.advance(); }
  __device__ __forceinline__ void advance_v() {
    if constexpr (L::rings_apart) v_.advance();
    else k_.advance();
  }

 private:
  __device__ KvCursor(Ring k, Ring v) : k_(k), v_(v) {}

  Ring k_, v_;  // of one ring: k_
};

}  // namespace fa4::hopper
