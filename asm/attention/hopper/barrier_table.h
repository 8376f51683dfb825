// SPDX-License-Identifier: Apache-2.0
// Every mbarrier of the Hopper kernel: the one table from which come its ids, its objects with the type of their flavour
// (cta.cuh), their places in shared memory and their initialisation, their names for the simulated GPU, and what
// `fa4 info` prints. Plain C++, no device code.
#pragma once

#include "../barrier_row.h"
#include "../config.h"
#include "../task_record.h"

// ROW(id, name, flavour, stages, arrivals, bytes, who signals, who waits, what a completed phase says). `config` is the
// specialisation. Q has a barrier for each consumer in each slot.
// clang-format off
#define FA4_HOPPER_BARRIERS(ROW)                                                                                      \
  ROW(q_full, "q.full", tma, kQSlots * config.q_stages, 1, config.q_tile_bytes(),                                     \
      "query (1 lane) and TMA", "consumer", "Q of the warpgroup has landed, and the task record is written")          \
  ROW(q_empty, "q.empty", counted, kQSlots * config.q_stages, 1, 0,                                                   \
      "store (1 lane)", "query", "TMA has read O, which took the place of Q or a slot, and store the task record")    \
  ROW(q_read, "q.read", counted, q_tiles(config) == 1 ? config.q_stages : 0, 4, 0,                                    \
      "consumer (1 lane of each warp)", "query", "the last scores of the task are there: another Q may land")         \
  ROW(o_full, "o.full", counted, kQSlots * config.q_stages, 4, 0,                                                     \
      "consumer (1 lane of each warp)", "store", "O of the warpgroup stands in its place")                            \
  ROW(kv_full, "kv.full", tma, config.kv_slots, 1, config.k_tile_bytes(),                                             \
      "load (1 lane) and TMA", "consumers", "K or V block has landed in the slot; or the slot is O's")                \
  ROW(kv_empty, "kv.empty", counted, config.kv_slots, 4 * static_cast<uint32_t>(config.q_stages), 0,                  \
      "consumers (1 lane of each warp)", "load", "MMAs of all consumers have read the slot; of O: TMA, for store")    \
  ROW(task_full, "task.full", counted, task_slots(config), 1, 0,                                                      \
      "scheduler (1 lane)", "load, query", "record of a task is written")                                             \
  ROW(task_empty, "task.empty", counted, task_slots(config), 2, 0,                                                    \
      "load, query (1 lane each)", "scheduler", "both have read the record")
// clang-format on

namespace fa4::hopper {

inline constexpr int kQSlots = 2;  // of tasks: this one and the next

// Q tiles of a warpgroup: one in each slot, where there is room; O then leaves through the slot its Q came in.
constexpr int q_tiles(const Config& config) {
  return config.o_place == OPlace::ring ? 1 : kQSlots;
}

enum class BarrierId : uint32_t {
#define FA4_ID(id, ...) id,
  FA4_HOPPER_BARRIERS(FA4_ID)
#undef FA4_ID
};

#define FA4_COUNT(...) +1
using BarrierTable = BarrierRows<FA4_HOPPER_BARRIERS(FA4_COUNT)>;
#undef FA4_COUNT

constexpr BarrierTable barrier_table(const Config& config) {
  return {{
#define FA4_ROW(id, name, flavour, stages, arrivals, bytes, signals, waits, meaning)                                 \
  {name, BarrierFlavour::flavour, static_cast<uint32_t>(stages), arrivals, static_cast<uint32_t>(bytes), signals, waits, \
   meaning},
      FA4_HOPPER_BARRIERS(FA4_ROW)
#undef FA4_ROW
  }};
}

// Named barriers: one for each consumer, the order in which they issue their MMAs. 0 is the whole CTA's.
inline constexpr int kOrderBarrier = 1;

}  // namespace fa4::hopper
