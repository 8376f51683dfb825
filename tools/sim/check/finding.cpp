// SPDX-License-Identifier: Apache-2.0
#include "finding.h"

#include <algorithm>

namespace fa4::sim {

std::string kind_name(FindingKind kind) {
  switch (kind) {
    case FindingKind::race: return "race";
    case FindingKind::missing_proxy_fence: return "missing proxy fence";
    case FindingKind::distant_proxy_fence: return "proxy fence not in the writing thread";
    case FindingKind::missing_tensor_fence: return "missing tcgen05 fence";
    case FindingKind::barrier_init: return "barrier used before its init is visible";
    case FindingKind::barrier_init_fence: return "barrier init without its fence";
    case FindingKind::barrier_reuse: return "barrier ended while others may use it";
    case FindingKind::phase_skipped: return "barrier phase skipped";
    case FindingKind::cta_life: return "shared memory of a CTA that may not be there";
    case FindingKind::phase_overrun: return "barrier phase that may be missed";
    case FindingKind::barrier_overlap: return "uses of a barrier that nothing keeps apart";
    case FindingKind::unobserved_work: return "asynchronous work that nobody waited for";
    case FindingKind::unbalanced_bytes: return "bytes that no phase accounts for";
    case FindingKind::global_overlap: return "two CTAs write the same global memory";
    case FindingKind::register_counts: return "setmaxnreg counts that differ in a warpgroup";
    case FindingKind::warpgroup_parted: return "wgmma instruction of a part of a warpgroup";
    case FindingKind::store_not_waited: return "tcgen05.st handed over without wait::st";
    case FindingKind::wait_of_another_warp: return "wgmma that another warp has waited for";
  }
  return {};
}

std::string describe(const Finding& f) {
  std::string text = (f.warning ? "warning: " : "error: ") + kind_name(f.kind);
  if (!f.memory.empty()) text += " on " + f.memory;
  text += "\n";
  if (!f.first.empty()) text += "    first   " + f.first + "\n";
  if (!f.second.empty()) text += "    then    " + f.second + "\n";
  if (!f.last_sync.empty()) text += "    ordered " + f.last_sync + "\n";
  if (!f.chain.empty()) text += "    needed  " + f.chain + "\n";
  text += "    seen    " + std::to_string(f.count) + (f.count == 1 ? " time" : " times") + ", first in CTA " +
          std::to_string(f.cta) + " at cycle " + std::to_string(f.cycle) + "\n";
  return text;
}

void merge(std::vector<Finding>& all, const std::vector<Finding>& more) {
  for (const Finding& f : more) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Finding& g) {
      return g.kind == f.kind && g.first_op == f.first_op && g.second_op == f.second_op && g.kernel == f.kernel;
    });
    if (same == all.end()) {
      all.push_back(f);
      continue;
    }
    const uint64_t count = same->count + f.count;
    if (f.cta < same->cta) *same = f;
    same->count = count;
  }
}

}  // namespace fa4::sim
