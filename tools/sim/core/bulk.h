// SPDX-License-Identifier: Apache-2.0
// The TMA engine's side of cp.async.bulk: what happens when a copy lands.
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

// True when the lane's bulk groups are as far as a wait_group asks for.
bool bulk_groups_passed(const Warp& warp, const Fragment& fragment);

}  // namespace fa4::sim
