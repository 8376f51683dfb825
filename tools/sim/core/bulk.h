// SPDX-License-Identifier: Apache-2.0
// The TMA engine's side of cp.async.bulk: what happens when a copy is issued and when it lands.
#pragma once

#include "machine.h"

namespace fa4::sim {

void land_box_load(const Event& event);
void land_bulk_load(const Event& event);
void land_box_store_read(const Event& event);
void land_box_store_done(const Event& event);
// Under adversarial timing: the source of a load or a store is read, the destination of a store is written.
void fetch_load(const Event& event);
void fetch_store(const Event& event);
void write_store(const Event& event);

// ---- for copies of all kinds ----

constexpr const char* kBulkAlignment = "a bulk copy's addresses and size are multiples of 16 bytes";
// When what the TMA engine begins now is done.
uint64_t engine_time(Cta& cta, uint64_t now, uint32_t bytes, uint64_t latency);
// Faults unless event.bytes at event.shared are the owner's to be written by a bulk copy.
void require_run(const Warp& warp, const Op* op, const Cta& owner, const Event& event);
// The bytes are there: tells the observer and the target's mbarrier.
void complete_copy(const Event& event);

}  // namespace fa4::sim
