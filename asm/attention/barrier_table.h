// SPDX-License-Identifier: Apache-2.0
// Every mbarrier of the kernel: the one table that initialises them, gives each its type
// (attention/barriers.cuh), names them for the simulated GPU and prints them in `fa4 info`. Plain C++, no
// device code.
#pragma once

#include <stdint.h>

namespace fa4 {

// The three flavours complete on different signals; a wait on the wrong one is how such kernels silently
// corrupt.
enum class BarrierFlavour : uint32_t {
  tma,      // TMABar: one arrival that announces bytes, and the bytes themselves
  tcgen05,  // TCGen05Bar: one arrival by tcgen05.commit, when the MMAs before it have completed
  counted,  // MBarrier: a counted arrival of threads
};

enum class BarrierId : uint32_t {
  q_full,
  q_empty,
  kv_full,
  kv_empty,
  s_ready,
  p_o_rescale,
  p_tail,
  softmax_corr_full,
  softmax_corr_empty,
  o_ready,
  corr_epi_full,
  corr_epi_empty,
};

struct BarrierRow {
  BarrierId id;
  const char* name;
  BarrierFlavour flavour;
  uint32_t stages;
  uint32_t arrivals;    // that complete a phase
  uint32_t bytes;       // that complete a phase, beside the arrivals; TMABar only
  const char* signals;  // who
  const char* waits;    // who
  const char* meaning;
};

// clang-format off
inline constexpr BarrierRow kBarriers[] = {
    {BarrierId::q_full, "q.full", BarrierFlavour::tma, 2, 1, 32768,
     "load (1 lane) and TMA", "mma", "Q tile of the stage has landed"},
    {BarrierId::q_empty, "q.empty", BarrierFlavour::tcgen05, 2, 1, 0,
     "mma (commit)", "load", "last score MMA of the stage has read its Q tile"},
    {BarrierId::kv_full, "kv.full", BarrierFlavour::tma, 3, 1, 32768,
     "load (1 lane) and TMA", "mma", "K or V block has landed in the slot"},
    {BarrierId::kv_empty, "kv.empty", BarrierFlavour::tcgen05, 3, 1, 0,
     "mma (commit)", "load", "MMAs of both stages have read the slot"},
    {BarrierId::s_ready, "s_ready", BarrierFlavour::tcgen05, 2, 1, 0,
     "mma (commit)", "softmax of the stage", "scores are in TMEM, and the value MMA of the block before is complete"},
    {BarrierId::p_o_rescale, "p_o_rescale", BarrierFlavour::counted, 2, 256, 0,
     "softmax of the stage (128), correction (128)", "mma", "3/4 of P stored; O rescaled or released"},
    {BarrierId::p_tail, "p_tail", BarrierFlavour::counted, 2, 128, 0,
     "softmax of the stage (128)", "mma", "last quarter of P stored"},
    {BarrierId::softmax_corr_full, "softmax_corr.full", BarrierFlavour::counted, 2, 128, 0,
     "softmax of the stage (128)", "correction", "scale of a block, or sum and maximum of the task, are in shared memory"},
    {BarrierId::softmax_corr_empty, "softmax_corr.empty", BarrierFlavour::counted, 2, 128, 0,
     "correction (128)", "softmax of the stage", "that message has been read"},
    {BarrierId::o_ready, "o_ready", BarrierFlavour::tcgen05, 2, 1, 0,
     "mma (commit)", "correction", "last value MMA of the task is complete"},
    {BarrierId::corr_epi_full, "corr_epi.full", BarrierFlavour::counted, 2, 128, 0,
     "correction (128)", "store", "O tile is in shared memory"},
    {BarrierId::corr_epi_empty, "corr_epi.empty", BarrierFlavour::counted, 2, 1, 0,
     "store (1 lane)", "correction", "TMA has read the O tile"},
};
// clang-format on

inline constexpr uint32_t kBarrierKinds = sizeof(kBarriers) / sizeof(kBarriers[0]);

// The rows stand in the order of their ids, so an id is an index.
constexpr const BarrierRow& barrier_row(BarrierId id) {
  return kBarriers[static_cast<uint32_t>(id)];
}

// Index of the first mbarrier of a row in the array of all of them.
constexpr uint32_t barrier_slot(BarrierId id) {
  uint32_t slot = 0;
  for (uint32_t row = 0; row < static_cast<uint32_t>(id); ++row) slot += kBarriers[row].stages;
  return slot;
}

inline constexpr uint32_t kBarrierSlots =
    barrier_slot(static_cast<BarrierId>(kBarrierKinds - 1)) + kBarriers[kBarrierKinds - 1].stages;

constexpr bool barrier_rows_consistent() {
  for (uint32_t row = 0; row < kBarrierKinds; ++row) {
    const BarrierRow& r = kBarriers[row];
    if (static_cast<uint32_t>(r.id) != row || r.stages == 0 || r.arrivals == 0) return false;
    if ((r.flavour == BarrierFlavour::tma) != (r.bytes != 0)) return false;
    if (r.flavour != BarrierFlavour::counted && r.arrivals != 1) return false;
  }
  return true;
}
static_assert(barrier_rows_consistent());

}  // namespace fa4
