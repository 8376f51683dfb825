// SPDX-License-Identifier: Apache-2.0
// The mbarrier object: what arrivals and transaction bytes do to it, wherever they come from.
#pragma once

#include <cstdint>
#include <string>

#include "machine.h"

namespace fa4::sim {

// The live barrier at this shared address, or nullptr.
MBarrier* find_mbarrier(Cta& cta, uint64_t address);

// Each returns "" or what is wrong (over-arrival, transaction count out of range). `time` is when it happens: waiters of
// a phase that completes go on from there.
std::string expect_tx(Cta& cta, MBarrier& barrier, int64_t bytes);
std::string complete_tx(Cta& cta, MBarrier& barrier, int64_t bytes, uint64_t time);
std::string arrive(Cta& cta, MBarrier& barrier, uint32_t count, uint64_t time);

// True when the phase of this parity has completed.
inline bool phase_passed(const MBarrier& barrier, uint32_t parity) { return (barrier.phase & 1) != (parity & 1); }

}  // namespace fa4::sim
