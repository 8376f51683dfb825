// SPDX-License-Identifier: Apache-2.0
// Every mbarrier of the kernel: the one table from which come its ids, its objects with the type of their flavour
// (barriers.cuh), their places in shared memory and their initialisation, their names for the simulated GPU, and what
// `fa4 info` prints. A new barrier is a row here and its use in the roles. Plain C++, no device code.
#pragma once

#include "../barrier_row.h"
#include "../config.h"
#include "../task_record.h"
#include "tmem.h"

// ROW(id, name, flavour, stages, arrivals, bytes, who signals, who waits, what a completed phase says). `config` is the
// specialisation; where K and V tiles are unlike, kv.full has the bytes of a K block, and the load role announces V's. Where O is
// staged over Q, what is loaded next waits for the store of O, which comes after the last score MMA: there is no q.empty then.
// clang-format off
#define FA4_BARRIERS(ROW)                                                                                             \
  ROW(q_full, "q.full", tma, config.q_stages, 1, config.q_tile_bytes(),                                               \
      "load (1 lane) and TMA", "mma", "Q tile of the stage has landed")                                               \
  ROW(q_empty, "q.empty", tcgen05, config.o_place == OPlace::own ? config.q_stages : 0, 1, 0,                         \
      "mma (commit)", "load", "last score MMA of the stage has read its Q tile")                                      \
  ROW(kv_full, "kv.full", tma, config.kv_slots, 1, config.k_tile_bytes(),                                             \
      "load (1 lane) and TMA", "mma", "K or V block has landed in the slot")                                          \
  ROW(kv_empty, "kv.empty", tcgen05, config.kv_slots, 1, 0,                                                           \
      "mma (commit)", "load", "MMAs of both stages have read the slot")                                               \
  ROW(s_ready, "s_ready", tcgen05, s_buffers(config), 1, 0,                                                           \
      "mma (commit)", "softmax of the stage",                                                                         \
      "scores are in TMEM; where these are not ahead, the value MMA of the block before is complete")                 \
  ROW(p_o_rescale, "p_o_rescale", counted, config.q_stages, 256, 0,                                                   \
      "softmax of the stage (128), correction (128)", "mma", "3/4 of P stored; O rescaled or released")               \
  ROW(p_tail, "p_tail", counted, config.q_stages, 128, 0,                                                             \
      "softmax of the stage (128)", "mma", "last quarter of P stored")                                                \
  ROW(softmax_corr_full, "softmax_corr.full", counted, config.q_stages, 128, 0,                                       \
      "softmax of the stage (128)", "correction",                                                                     \
      "scale of a block, or sum and maximum of the task, are in shared memory")                                       \
  ROW(softmax_corr_empty, "softmax_corr.empty", counted, config.q_stages, 128, 0,                                     \
      "correction (128)", "softmax of the stage", "that message has been acted upon: O is rescaled or released")      \
  ROW(o_ready, "o_ready", tcgen05, config.q_stages, 1, 0,                                                             \
      "mma (commit)", "correction", "value MMA is complete, of the task's last block; scores ahead: of each")         \
  ROW(corr_epi_full, "corr_epi.full", counted, config.q_stages, 128, 0,                                               \
      "correction (128)", "store", "O tile is in shared memory")                                                      \
  ROW(corr_epi_empty, "corr_epi.empty", counted, config.q_stages, 1, 0,                                               \
      "store (1 lane)", "correction; O over Q: load", "TMA has read the O tile")                                      \
  ROW(task_full, "task.full", counted, task_slots(config), 1, 0,                                                      \
      "scheduler (1 lane)", "all other roles", "record of a task is written")                                         \
  ROW(task_empty, "task.empty", counted, task_slots(config), task_readers(config), 0,                                 \
      "all other roles (1 lane of each warp)", "scheduler", "everybody has read the record")
// clang-format on

namespace fa4::blackwell {

// Who reads a task's record: softmax and correction, four warps of each warpgroup; MMA and load twice, for scores and for values;
// store.
constexpr uint32_t task_readers(const Config& config) {
  return 4 * (static_cast<uint32_t>(config.q_stages) + 1) + 2 + 2 + 1;
}

enum class BarrierId : uint32_t {
#define FA4_ID(id, ...) id,
  FA4_BARRIERS(FA4_ID)
#undef FA4_ID
};

#define FA4_COUNT(...) +1
using BarrierTable = BarrierRows<FA4_BARRIERS(FA4_COUNT)>;
#undef FA4_COUNT

constexpr BarrierTable barrier_table(const Config& config) {
  return {{
#define FA4_ROW(id, name, flavour, stages, arrivals, bytes, signals, waits, meaning) \
  {name, BarrierFlavour::flavour, static_cast<uint32_t>(stages), arrivals, static_cast<uint32_t>(bytes), signals, waits, meaning},
      FA4_BARRIERS(FA4_ROW)
#undef FA4_ROW
  }};
}

}  // namespace fa4::blackwell
