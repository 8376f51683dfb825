// SPDX-License-Identifier: Apache-2.0
// A CTA's shared memory with its shadow: one bit a byte says that it was written and is not the destination of a copy
// in flight. Barriers live in it and are no data.
#pragma once

#include <cstdint>
#include <string>

#include "machine.h"

namespace fa4::sim {

void set_shared_valid(Cta& cta, uint32_t address, uint32_t bytes, bool valid);
// First byte in the range that may not be read, or -1.
int64_t first_invalid_shared(const Cta& cta, uint32_t address, uint32_t bytes);
// "" if [address, address + bytes) lies in the CTA's shared memory, else a sentence.
std::string outside_shared(const Cta& cta, uint64_t address, uint64_t bytes);
// The live barrier object that overlaps the range, or nullptr.
const MBarrier* mbarrier_in(const Cta& cta, uint32_t address, uint32_t bytes);

// A name from the module's table, or "shared 0x1234".
std::string shared_name(const Cta& cta, uint32_t address);
std::string barrier_name(const Cta& cta, uint32_t address);
std::string tmem_name(const Cta& cta, uint32_t column);

// A shared::cta or shared::cluster or generic address as shared::cta: CTAs are not in clusters, so that every valid one
// names the own CTA. 0, which no CTA can use, for a generic address outside the window of shared memory.
inline uint32_t own_shared(uint64_t address) {
  if (address >= kSharedWindow && address < kSharedWindow + kWindowBytes) address -= kSharedWindow;
  return address >> 32 ? 0 : uint32_t(address);
}

}  // namespace fa4::sim
