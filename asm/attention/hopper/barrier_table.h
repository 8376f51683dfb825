// SPDX-License-Identifier: Apache-2.0
// Every mbarrier of the Hopper kernel: the one table that initialises and names them. Plain C++.
#pragma once

#include <stdint.h>

namespace fa4::hopper {

enum class BarrierId : uint32_t { q_full, q_empty, o_full, kv_full, kv_empty };

enum class BarrierStages : uint32_t {
  q_slots,   // for each slot of Q, one barrier for each consumer
  kv_slots,  // one for each slot of the K/V ring
};
enum class BarrierArrivals : uint32_t {
  one,             // of one lane; with bytes where TMA signals
  warps,           // of the four warps of a warpgroup
  consumer_warps,  // of all consumer warps
};

struct BarrierRow {
  BarrierId id;
  const char* name;
  BarrierStages stages;
  BarrierArrivals arrivals;
  const char* signals;  // who
  const char* waits;    // who
  const char* meaning;
};

// clang-format off
inline constexpr BarrierRow kBarriers[] = {
    {BarrierId::q_full, "q.full", BarrierStages::q_slots, BarrierArrivals::one,
     "query (1 lane) and TMA", "consumer", "Q of the warpgroup has landed, and the task record is written"},
    {BarrierId::q_empty, "q.empty", BarrierStages::q_slots, BarrierArrivals::one,
     "store (1 lane)", "query", "TMA has read the O that took the place of Q"},
    {BarrierId::o_full, "o.full", BarrierStages::q_slots, BarrierArrivals::warps,
     "consumer", "store", "O of the warpgroup stands where its Q was"},
    {BarrierId::kv_full, "kv.full", BarrierStages::kv_slots, BarrierArrivals::one,
     "load (1 lane) and TMA", "consumers", "K or V block has landed in the slot"},
    {BarrierId::kv_empty, "kv.empty", BarrierStages::kv_slots, BarrierArrivals::consumer_warps,
     "consumers", "load", "MMAs of all consumers have read the slot"},
};
// clang-format on
inline constexpr uint32_t kBarrierKinds = sizeof(kBarriers) / sizeof(kBarriers[0]);

constexpr const BarrierRow& barrier_row(BarrierId id) {
  return kBarriers[static_cast<uint32_t>(id)];
}

// `q_stages`: slots of Q times consumers.
constexpr uint32_t barrier_count(BarrierId id, int q_stages, int kv_slots) {
  return static_cast<uint32_t>(barrier_row(id).stages == BarrierStages::q_slots ? q_stages : kv_slots);
}

constexpr uint32_t barrier_arrivals(BarrierId id, int consumers) {
  switch (barrier_row(id).arrivals) {
    case BarrierArrivals::one:
      return 1;
    case BarrierArrivals::warps:
      return 4;
    case BarrierArrivals::consumer_warps:
      return 4 * static_cast<uint32_t>(consumers);
  }
  return 0;
}

// Index of the first mbarrier of a row in the array of all of them.
constexpr uint32_t barrier_slot(BarrierId id, int q_stages, int kv_slots) {
  uint32_t slot = 0;
  for (uint32_t row = 0; row < static_cast<uint32_t>(id); ++row)
    slot += barrier_count(static_cast<BarrierId>(row), q_stages, kv_slots);
  return slot;
}

constexpr uint32_t barrier_slots(int q_stages, int kv_slots) {
  return barrier_slot(static_cast<BarrierId>(kBarrierKinds), q_stages, kv_slots);
}

constexpr bool barrier_rows_consistent() {
  for (uint32_t row = 0; row < kBarrierKinds; ++row)
    if (static_cast<uint32_t>(kBarriers[row].id) != row) return false;
  return true;
}
static_assert(barrier_rows_consistent());

// Named barriers: one for each consumer, the order in which they issue their MMAs. 0 is the whole CTA's.
inline constexpr int kOrderBarrier = 1;

}  // namespace fa4::hopper
