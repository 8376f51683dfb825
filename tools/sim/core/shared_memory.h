// SPDX-License-Identifier: Apache-2.0
// A CTA's shared memory with its shadow: one bit a byte says that it was written and is not the destination of a copy
// in flight, another that it is. Barriers live in it and are no data.
#pragma once

#include <cstdint>
#include <string>

#include "machine.h"

namespace fa4::sim {

void set_shared_valid(Cta& cta, uint32_t address, uint32_t bytes, bool valid);
// A copy in flight will write them: not valid until then.
void claim_shared(Cta& cta, uint32_t address, uint32_t bytes);
// First byte in the range that is not valid, or -1.
int64_t first_invalid_shared(const Cta& cta, uint32_t address, uint32_t bytes);
inline bool is_claimed(const Cta& cta, uint32_t address) { return cta.shared_claimed[address / 64] >> (address % 64) & 1; }
// "" if [address, address + bytes) lies in the CTA's shared memory, else a sentence.
std::string outside_shared(const Cta& cta, uint64_t address, uint64_t bytes);
// The live barrier object that overlaps the range, or nullptr.
const MBarrier* mbarrier_in(const Cta& cta, uint32_t address, uint32_t bytes);

// A name from the module's table, or "shared 0x1234".
std::string shared_name(const Cta& cta, uint32_t address);
// The same of a byte that is not valid, and why.
std::string invalid_name(const Cta& reader, const Cta& owner, uint32_t address);
std::string barrier_name(const Cta& cta, uint32_t address);
std::string tmem_name(const Cta& cta, uint32_t column);

// Where a shared::cluster address, or a generic one in the window of shared memory, points.
struct SharedPlace {
  Cta* cta = nullptr;    // null: the address names no CTA of the cluster
  uint32_t address = 0;  // in that CTA's shared memory
  bool operator==(const SharedPlace&) const = default;
};
inline SharedPlace shared_place(Cta& cta, uint64_t address) {
  if (address >= kSharedWindow && address < kSharedWindow + kWindowBytes) address -= kSharedWindow;
  const uint64_t rank = address >> kRankShift;
  const uint32_t offset = uint32_t(address) & ((1u << kRankShift) - 1);
  if (rank == cta.rank) return {&cta, offset};
  if (rank >= cta.cluster->size) return {};
  return {cta.cluster->ctas[rank], offset};
}
// The same for what reaches the own CTA alone: its address there, or 0, which no CTA can use.
inline uint32_t own_shared(Cta& cta, uint64_t address) {
  const SharedPlace place = shared_place(cta, address);
  return place.cta == &cta ? place.address : 0;
}
// For what may reach other CTAs of the cluster. Faults unless the address names one whose shared memory is there.
SharedPlace require_place(const Warp& warp, const Op* op, uint64_t address);
void require_alive(const Warp& warp, const Op* op, const Cta& owner);
// "" or " of CTA 5 (rank 1 of the cluster)", behind the name of something that is not the warp's own CTA's.
std::string of_cta(const Cta& cta, const Cta& owner);

}  // namespace fa4::sim
