// SPDX-License-Identifier: Apache-2.0
// What the checker has to say: one finding for each pair of instructions that disagree, with everything needed to mend it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fa4::sim {

enum class FindingKind : uint8_t {
  race,             // two accesses, one a write, that nothing orders
  missing_proxy_fence,  // ordered, but generic writes are read by the async proxy without fence.proxy.async
  distant_proxy_fence,  // ... with one, but not in the thread that wrote: a warning
  missing_tensor_fence, // ordered, but a tcgen05.fence is missing at the hand-over: a warning
  barrier_init,     // a barrier is used by a thread or agent to which its initialisation is not visible
  barrier_init_fence,  // a bulk copy signals a barrier whose init is visible, but has not been fenced for copies: a warning
  barrier_reuse,    // a barrier is invalidated or initialised again while a thread may still use it
  phase_skipped,    // a wait that comes when its phase is no longer the current one or the one before
  cta_life,         // shared memory of a CTA that may not have begun, or may have ended
  phase_overrun,    // a phase that may complete before somebody has waited for the one before
  barrier_overlap,  // a barrier of the CTA's threads is used by warps that nothing keeps from counting in the use before
  unobserved_work,  // the CTA ended and nobody has waited for a copy or an MMA
  unbalanced_bytes, // the CTA ended with a barrier whose announced and arrived bytes differ
  global_overlap,   // two CTAs write the same global memory
  // Model::silicon: deviations from the ISA that hardware does not mind, warnings.
  register_counts,  // setmaxnreg of the warps of a warpgroup with different counts
  warpgroup_parted, // a wgmma instruction that not all warps of a warpgroup execute
  store_not_waited, // tcgen05.st handed over without wait::st
  wait_of_another_warp,  // what a wgmma reads is written again after another warp of its warpgroup has waited for it
};

struct Finding {
  FindingKind kind;
  bool warning = false;
  uint64_t count = 1;       // how often, over all CTAs
  uint64_t cta = 0;         // first seen in
  uint64_t cycle = 0;
  std::string kernel;       // "" where it concerns a launch as a whole
  std::string memory;       // "sKV slot 1 (0x14400), 16 bytes"
  std::string first;        // the earlier access: role, warp, lane, what, where
  std::string second;       // the later one
  std::string last_sync;    // the newest synchronisation that the second one has seen of the first one's thread
  std::string chain;        // what the ISA asks for at such a hand-over
  uint32_t first_op = 0, second_op = 0;
};

// Two accesses that conflict, and what ordered them: the chain of synchronisations from one to the other.
struct Ordering {
  std::string kernel;
  uint32_t first_line = 0, second_line = 0;  // of the PTX
  std::string memory, first, second;
  std::vector<std::string> steps;            // roles and places, in order; empty: no chain was found
  std::vector<uint32_t> lines;               // of the PTX, of the steps
};

std::string kind_name(FindingKind kind);
std::string describe(const Finding& finding);  // several lines

// Adds findings, one for each (kernel, kind, first op, second op).
void merge(std::vector<Finding>& all, const std::vector<Finding>& more);

}  // namespace fa4::sim
