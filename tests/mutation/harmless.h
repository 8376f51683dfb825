// SPDX-License-Identifier: Apache-2.0
// Mutants that do no harm, and why: which other path orders what the instruction ordered.
#pragma once

#include <span>
#include <string>

#include "judge.h"

namespace fa4::mutation {

// The test asks the checker: for the pairs of accesses that the kernel orders by what the mutant changes, it
// must name the chain of synchronisations that orders them without; or there must be no such pair.
enum class Because { another_path, nothing_to_order };

struct Harmless {
  Because because;
  const char* kind;
  const char* where;  // begins so
  const char* near;   // and contains this; null: `where` is all of it
  const char* why;
  int head_dim = 0;  // of the kernels in which it is harmless; 0: of all
};

inline std::span<const Harmless> harmless(const Subject& subject) {
  static const Harmless hopper[] = {
      // ---- waits and arrivals that another path covers ----
      {Because::another_path, "wait on the neighbour", "cta.bar.kv_empty.wait(slot.index, slot.phase);",
       "if (v_key >= 0) load_v(",
       "the next slot holds what is consumed next: consumers release it later than this one", 64},
      {Because::nothing_to_order, "remove arrive", "cta.bar.kv_empty.arrive_if(slot, lane == 0);", "{ end(from); })",
       "the last block of all: nobody fills its slot again"},
      {Because::nothing_to_order, "arrive at the neighbour", "cta.bar.kv_empty.arrive_if(slot, lane == 0);",
       "{ end(from); })", "as without it"},
      // ---- the end of the grid ----
      {Because::nothing_to_order, "remove wait_group", "ptx::cp_async_bulk_wait_group<0>();", "",
       "wait_group.read 0 in the loop has seen the sources read; that the writes have landed is what the end "
       "of the grid means"},
      {Because::nothing_to_order, "wait_group leaves one more", "ptx::cp_async_bulk_wait_group<0>();", "",
       "as without it"},
      // ---- fences and joins with nothing to order ----
      {Because::nothing_to_order, "remove wgmma.fence",
       "ptx::wgmma_fence(); <- issue_values(p, v.index, accumulate);", "<- issue(from)",
       "the fence in front of the scores stands behind the same writes of P and O; nothing writes them between "
       "the products"},
      {Because::nothing_to_order, "remove bar.warp.sync", "ptx::bar_warp_sync();", nullptr,
       "bar.sync follows, which gathers the warp"},
      {Because::nothing_to_order, "remove bar.warp.sync", "ptx::bar_warp_sync();",
       "finish_rows(state, ended_slot, task, first_position);",
       "the shuffle of the next task's record gathers the warp before anything .aligned", 64},
      {Because::another_path, "remove bar.warp.sync", "ptx::bar_warp_sync();",
       "finish_rows(state, ended_slot, task, first_position);",
       "the shuffle of the next task's record gathers the warp before anything .aligned", 128},
      {Because::nothing_to_order, "remove bar.warp.sync", "if constexpr (!L::two_p) ptx::bar_warp_sync();",
       "decltype(masked)::value) mask(block)",
       "in this PTX no branch of the mask divides the lanes: there is nothing to join before the wait for O. Without "
       "it in the source, the compiler makes such branches",
       64},
      {Because::nothing_to_order, "remove bar.warp.sync",
       "if constexpr (!L::two_p) ptx::bar_warp_sync();  // else the vote of softmax joins the lanes, which may differ "
       "here <- if (needs_mask(block)) mask(block);",
       "<- begin(p0);", "the first block of all: the vote of first_softmax gathers the warp before anything .aligned", 64},
      {Because::nothing_to_order, "remove bar.warp.sync", "if (ptx::vote_sync_any(state.sum[0] < 0.0f", "",
       "never executed", 128},
  };
  static const Harmless blackwell[] = {
      // ---- the first loads of all ----
      {Because::nothing_to_order, "remove wait", "cta.bar.kv_empty.wait(kv.index, kv.phase);", "<- load_k(true);",
       "the first K of a CTA: nobody has used its slot"},
      {Because::nothing_to_order, "wait on the neighbour", "cta.bar.kv_empty.wait(kv.index, kv.phase);", "<- load_k(true);",
       "as without it"},
      {Because::nothing_to_order, "remove wait", "cta.bar.kv_empty.wait(kv.index, kv.phase);",
       "<- if constexpr (L::scores_ahead) load_k(false);", "the second K of a CTA: nobody has used its slot", 64},
      {Because::nothing_to_order, "wait on the neighbour", "cta.bar.kv_empty.wait(kv.index, kv.phase);",
       "<- if constexpr (L::scores_ahead) load_k(false);", "as without it", 64},
      {Because::nothing_to_order, "remove wait", "else cta.bar.q_empty.wait(stage, q_phase);", "<- load_k(true);",
       "the first Q of a CTA: nobody has used its tile"},
      {Because::nothing_to_order, "wait on the neighbour",
       "else cta.bar.q_empty.wait(stage, q_phase); <- if (!L::o_over_q && keys.first) load_q(keys.task(), 0);", "<- load_k(true);",
       "as without it"},
      // ---- both stages exchanged, the later signal covering the earlier ----
      {Because::another_path, "wait on the neighbour", "cta.bar.corr_epi_empty.wait_warp(stage, epi_phase);", nullptr,
       "store returns tile 1 after tile 0, so stage 0 waits for more than it must, and stage 1 for what "
       "stage 0 has seen"},
      {Because::another_path, "wait on the neighbour",
       "if constexpr (!L::o_over_q) cta.bar.corr_epi_empty.wait_warp(stage, epi_phase);", nullptr, "the same"},
      {Because::another_path, "wait on the neighbour",
       "else cta.bar.q_empty.wait(stage, q_phase); <- if (!L::o_over_q && keys.first) load_q(keys.task(), 0);", "load_k(false);",
       "q_empty[1] is committed after q_empty[0], and a commit covers all MMAs before it; load_q(keys.task(), 1) waits for "
       "the same phase once more"},
      {Because::nothing_to_order, "wait on the neighbour",
       "for (int stage = 0; stage < config.q_stages; ++stage) cta.bar.q_empty.wait(stage, q_phase);", "",
       "both stages are waited for, in the other order"},
      {Because::another_path, "wait on the neighbour", "cta.bar.corr_epi_full.wait(stage, phase);", "",
       "correction hands over tile 1 after tile 0, so the first wait covers both"},
      {Because::another_path, "arrive at the neighbour",
       "cta.bar.corr_epi_full.arrive(stage); <- hand_over(stage);", "",
       "tile 1 is signalled when tile 0 is written and the other way round; store waits for corr_epi_full[0] "
       "first, which then covers both"},
      // ---- the end of the grid ----
      {Because::nothing_to_order, "remove wait_group", "ptx::cp_async_bulk_wait_group<0>();", "",
       "wait_group.read 0 in the loop has seen the sources read; that the writes have landed is what the end "
       "of the grid means"},
      {Because::nothing_to_order, "wait_group leaves one more", "ptx::cp_async_bulk_wait_group<0>();", "",
       "as without it"},
      // ---- fences with nothing to order ----
      {Because::nothing_to_order, "remove fence::before_thread_sync",
       "ptx::tcgen05_fence_before_thread_sync();", "(after } before ptx::bar_sync<0>();)",
       "the only tcgen05 operation before it is alloc, which blocks until it is done: no asynchronous "
       "operation that a fence would order"},
      {Because::nothing_to_order, "remove fence::after_thread_sync",
       "ptx::tcgen05_fence_after_thread_sync();", "before const uint32_t tmem",
       "as its counterpart before the barrier"},
      {Because::another_path, "remove fence::after_thread_sync", "ptx::tcgen05_fence_after_thread_sync();",
       "before if (warp_again == L::mma_warp) ptx::tcgen05_dealloc",
       "what follows is dealloc, no asynchronous operation either: the barrier orders it"},
      {Because::nothing_to_order, "remove fence::before_thread_sync",
       "ptx::tcgen05_fence_before_thread_sync(); <- send(); <- while (block > blocks.unmasked_end", "",
       "as the next one; and the masked blocks, one or two of a task, leave no pair to it", 128},
      {Because::another_path, "remove fence::before_thread_sync", "ptx::tcgen05_fence_before_thread_sync(); <- send();", "",
       "correction needs of this thread only that it has seen s_ready, where it does not wait for o_ready itself, and a "
       "commit stands for the completion of its MMAs wherever it is passed on to; the thread's own loads of S are handed "
       "over by the fences before p_o_rescale and p_tail"},
      {Because::nothing_to_order, "remove fence::before_thread_sync",
       "ptx::tcgen05_fence_before_thread_sync();", "(after ptx::bar_warp_sync(); before ptx::bar_sync<0>();)",
       "each role has executed one after its last access to tensor memory, at the arrival that handed it "
       "over"},
      // ---- joins of a warp that nothing .aligned follows before the next one ----
      {Because::nothing_to_order, "remove bar.warp.sync", "ptx::bar_warp_sync();", "prefetch_tensor_maps(params)",
       "bar.sync follows, which gathers the warp"},
      {Because::nothing_to_order, "remove bar.warp.sync", "ptx::bar_warp_sync();", "(after // the last boxes.",
       "bar.sync follows, which gathers the warp"},
      {Because::nothing_to_order, "remove bar.warp.sync",
       "if constexpr (L::scores_ahead) cta.bar.o_ready.wait_warp(stage, o_phase);", nullptr,
       "each lane has waited for itself; vote.sync gathers them before anything .aligned", 64},
      {Because::nothing_to_order, "remove bar.warp.sync",
       "cta.bar.softmax_corr_full.wait_warp(stage, message_phase);", "before const float factor",
       "each lane has waited for itself and reads its own word; vote.sync gathers them before anything "
       ".aligned"},
      {Because::nothing_to_order, "remove bar.warp.sync",
       "cta.bar.softmax_corr_full.wait_warp(stage, message_phase);", "before const float sum",
       "each lane has waited for itself and reads its own words; the wait for o_ready joins them before "
       "anything .aligned"},
      {Because::nothing_to_order, "remove bar.warp.sync", "cta.bar.o_ready.wait_warp(stage, o_phase);", "",
       "the wait for corr_epi_empty joins them before anything .aligned"},
      {Because::nothing_to_order, "remove bar.warp.sync",
       "cta.bar.corr_epi_empty.wait_warp(stage, epi_phase);", nullptr,
       "a task without blocks writes zeros with ordinary stores, each lane its own; nothing .aligned before "
       "the next wait"},
      {Because::nothing_to_order, "remove relinquish_alloc_permit", "ptx::tcgen05_relinquish_alloc_permit();",
       "", "the CTA holds all 512 columns: no other CTA of the SM could allocate before the dealloc anyway"},
  };
  // ---- the ring of tasks, of general kernels ----
  static const Harmless hopper_tasks[] = {
      {Because::another_path, "arrive at the neighbour", "tasks_.ring.empty.arrive(TaskRing::slot(number_));", "q.advance()",
       "load keeps each slot until it has been read, and is at most a task behind; and each fourth record is written when query has "
       "given back the one before it, which says that it has read the three before, too"},
  };
  static const Harmless blackwell_tasks[] = {
      // ---- two walks of one warp or lane, one ahead of the other ----
      {Because::another_path, "remove wait",
       "if constexpr (reader == Reader::warp) tasks_.ring.full.wait_warp(slot, phase);", "<- for (; values.next()",
       "the walk over scores, of the same warp and ahead, has waited for the record"},
      {Because::another_path, "remove wait", "else tasks_.ring.full.wait(slot, phase);", "<- while (values.next())",
       "the walk over keys, of the same lane and ahead, has waited for the record"},
      {Because::nothing_to_order, "arrive at the neighbour", "tasks_.ring.empty.arrive_if(", "<- advance_scores(score_stage, false);",
       "the walk over values, of the same warp and behind, gives the same slots back"},
      {Because::nothing_to_order, "remove bar.warp.sync", "ptx::bar_warp_sync(); <- give_back();", "<- advance_scores(",
       "as before: what lanes have read is handed back by the walk over values"},
      // ---- joins of a warp that nothing .aligned follows before the next one ----
      {Because::nothing_to_order, "remove bar.warp.sync",
       "if constexpr (reader == Reader::warp) tasks_.ring.full.wait_warp(slot, phase);", "walk.next()",
       "each lane has waited for itself; the wait for s_ready, or for a message, joins them before anything .aligned"},
      {Because::nothing_to_order, "remove bar.warp.sync",
       "if constexpr (reader == Reader::warp) tasks_.ring.full.wait_warp(slot, phase);", "<- if (!tasks_.next()) return false;",
       "each lane has waited for itself; elect.sync joins them before the MMA"},
      {Because::nothing_to_order, "remove bar.warp.sync", "tasks.ring.empty.wait_warp(", "",
       "lane 0 alone writes, and shuffles join the lanes by themselves"},
  };
  if (subject.general) {
    if (&subject.list == &hopper::kKernels) return hopper_tasks;
    return blackwell_tasks;
  }
  if (&subject.list == &hopper::kKernels) return hopper;
  return blackwell;
}

// Null: none such.
inline const Harmless* find_harmless(const Subject& subject, const std::string& kind, const std::string& where) {
  for (const Harmless& row : harmless(subject)) {
    if (row.head_dim != 0 && row.head_dim != subject.head_dim) continue;
    const bool here = row.near ? where.starts_with(row.where) && where.find(row.near) != std::string::npos
                               : where == row.where;
    if (kind == row.kind && here) return &row;
  }
  return nullptr;
}

}  // namespace fa4::mutation
