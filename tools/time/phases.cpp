// SPDX-License-Identifier: Apache-2.0
#include "phases.h"

namespace fa4::time {

uint32_t Phases::id(uint32_t address, int32_t number) {
  const auto [at, fresh] =
      ids_.try_emplace(uint64_t(address) << 32 | uint32_t(number), uint32_t(phases_.size()));
  if (fresh) {
    phases_.emplace_back();
    phases_.back().address = address;
    phases_.back().number = number;
  }
  return at->second;
}

std::vector<uint32_t> Phases::of(const WarpWay& way) {
  std::vector<uint32_t> all;
  const auto signalled = [&](uint32_t address, int32_t number) {
    const uint32_t phase = id(address, number);
    ++phases_[phase].missing;
    return phase;
  };
  for (const fa4sim_sync& r : way.records) {
    uint32_t phase = kNoPhase;
    switch (r.kind) {
      case FA4SIM_SYNC_ARRIVE:
      case FA4SIM_SYNC_COMMIT:
      case FA4SIM_SYNC_COPY_IN:
        if (r.phase >= 0) phase = signalled(r.address, r.phase);
        break;
      case FA4SIM_SYNC_WAIT:
        if (r.phase >= 0) phase = id(r.address, r.phase);
        break;
      case FA4SIM_SYNC_CTA_BARRIER:  // whether the warp also waits there is the instruction's business
        phase = signalled(kCtaBarrier | r.address, r.phase);
        break;
      default:
        break;
    }
    all.push_back(phase);
  }
  return all;
}

void Phases::check(uint32_t warp, const std::vector<uint32_t>& phases) const {
  for (uint32_t phase : phases)
    if (phase != kNoPhase && phases_[phase].missing == 0)
      throw Error("warp " + std::to_string(warp) + " waits for phase " +
                  std::to_string(phases_[phase].number) + " of the barrier at " +
                  std::to_string(phases_[phase].address) + ", which nothing in this CTA completes");
}

}  // namespace fa4::time
