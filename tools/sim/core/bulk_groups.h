// SPDX-License-Identifier: Apache-2.0
// Bulk groups: a lane gathers its bulk stores in them and waits until they have been read, or are complete.
#pragma once

#include "machine.h"

namespace fa4::sim {

BulkGroups& groups(Warp& warp, int lane);
void retire(BulkGroups& groups);  // those that are complete
// True when the lane's bulk groups are as far as a wait_group asks for.
bool bulk_groups_passed(const Warp& warp, const Fragment& fragment);
void wake_bulk_waiters(const Event& event);

const Op* commit_bulk_group(Warp& warp, const Op* op, Mask mask);
const Op* wait_bulk_group(Warp& warp, const Op* op, Mask mask);  // Op::mode 1: .read

}  // namespace fa4::sim
