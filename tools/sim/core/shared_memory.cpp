// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "hex.h"
#include "names.h"
#include "undefined.h"

namespace fa4::sim {

namespace {
void set_bits(std::vector<uint64_t>& bits, uint32_t address, uint32_t bytes, bool value) {
  for (uint32_t at = address; at < address + bytes;) {
    const uint32_t bit = at % 64, count = std::min(64 - bit, address + bytes - at);
    const uint64_t mask = (count == 64 ? ~0ull : (1ull << count) - 1) << bit;
    uint64_t& word = bits[at / 64];
    word = value ? word | mask : word & ~mask;
    at += count;
  }
}
}  // namespace

void set_shared_valid(Cta& cta, uint32_t address, uint32_t bytes, bool valid) {
  set_bits(cta.shared_valid, address, bytes, valid);
  if (valid) return;
  ++cta.shared_invalidations;
  set_bits(cta.shared_claimed, address, bytes, false);
  for (uint32_t word = address / 4; word <= (address + bytes - 1) / 4; ++word) cta.undefined_words.erase(word);
}

void claim_shared(Cta& cta, uint32_t address, uint32_t bytes) {
  set_bits(cta.shared_valid, address, bytes, false);
  set_bits(cta.shared_claimed, address, bytes, true);
  ++cta.shared_invalidations;
}

int64_t first_invalid_shared(const Cta& cta, uint32_t address, uint32_t bytes) {
  for (uint32_t at = address; at < address + bytes;) {
    const uint32_t bit = at % 64, count = std::min(64 - bit, address + bytes - at);
    const uint64_t mask = (count == 64 ? ~0ull : (1ull << count) - 1) << bit;
    const uint64_t missing = ~cta.shared_valid[at / 64] & mask;
    if (missing) return int64_t(at / 64 * 64) + std::countr_zero(missing);
    at += count;
  }
  return -1;
}

std::string outside_shared(const Cta& cta, uint64_t address, uint64_t bytes) {
  if (address >= kSharedBase && address <= cta.shared_end && bytes <= cta.shared_end - address) return {};
  char text[160];
  std::snprintf(text, sizeof text, "shared address 0x%llx (%llu bytes) is outside the CTA's shared memory 0x%x..0x%x",
                static_cast<unsigned long long>(address), static_cast<unsigned long long>(bytes), kSharedBase,
                cta.shared_end);
  return text;
}

std::string of_cta(const Cta& cta, const Cta& owner) {
  if (&cta == &owner) return {};
  return " of CTA " + std::to_string(owner.id) + " (rank " + std::to_string(owner.rank) + " of the cluster)";
}

void require_alive(const Warp& w, const Op* op, const Cta& owner) {
  if (!owner.over || w.time <= owner.end) return;
  fault(w, op, Fault::Kind::no_cta, "the shared memory" + of_cta(*w.cta, owner) + " is gone: that CTA has exited. It has to wait, at a barrier of the cluster for example, until nobody needs its memory");
}

SharedPlace require_place(const Warp& w, const Op* op, uint64_t address) {
  const SharedPlace place = shared_place(*w.cta, address);
  if (!place.cta) {
    fault(w, op, Fault::Kind::no_cta, "shared address " + hex(address) + " names no CTA of the cluster, which has " +
          std::to_string(w.cta->cluster->size) + (w.cta->cluster->size == 1 ? " CTA" : " CTAs"));
  }
  if (place.cta != w.cta) require_alive(w, op, *place.cta);
  return place;
}

const MBarrier* mbarrier_in(const Cta& cta, uint32_t address, uint32_t bytes) {
  if (cta.mbarriers.empty()) return nullptr;
  for (uint32_t at = address / 8; at <= (address + bytes - 1) / 8; ++at) {
    const uint16_t index = cta.mbarrier_at[at];
    if (index && cta.mbarriers[index - 1].live) return &cta.mbarriers[index - 1];
  }
  return nullptr;
}

namespace {
std::string with_address(const std::string& name, const char* what, uint32_t address) {
  char text[48];
  std::snprintf(text, sizeof text, "%s0x%x", what, address);
  return name.empty() ? text : name;
}
}  // namespace

std::string shared_name(const Cta& cta, uint32_t address) {
  const std::string name =
      cta.launch->names->find(NameKind::shared, int64_t(address) - int64_t(cta.dynamic_shared));
  char text[32];
  std::snprintf(text, sizeof text, " (0x%x)", address);
  return name.empty() ? "shared memory" + std::string(text) : name + text;
}

std::string invalid_name(const Cta& reader, const Cta& owner, uint32_t address) {
  const std::string name = shared_name(owner, address) + of_cta(reader, owner);
  if (is_claimed(owner, address)) return name + ", which a copy in flight will write";
  const auto stored = owner.undefined_words.find(address / 4);
  if (stored == owner.undefined_words.end()) return name + ", which nobody has written";
  return name + ", into which undefined data was stored: " + undefined_source(reader, stored->second);
}

std::string barrier_name(const Cta& cta, uint32_t address) {
  return with_address(cta.launch->names->find(NameKind::barrier, int64_t(address) - int64_t(cta.dynamic_shared)),
                      "mbarrier ", address);
}

std::string tmem_name(const Cta& cta, uint32_t column) {
  const std::string name = cta.launch->names->find(NameKind::tmem, column);
  return "TMEM column " + std::to_string(column) + (name.empty() ? "" : " (" + name + ")");
}

}  // namespace fa4::sim
