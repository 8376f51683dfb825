// SPDX-License-Identifier: Apache-2.0
// What branches, exits and barriers have in common: where lanes meet, and who waits for whom.
#pragma once

#include "machine.h"

namespace fa4::sim {

class Builder;
class Modifiers;

// The fragment reached the place where its lanes meet the others: it waits there.
void arrive_at_join(Warp& warp);
// Lets the lanes that wait at a reconvergence point go on without the others: a lane may spin on something
// that a waiting lane will do.
bool release_joins(Warp& warp);

// Lanes that diverged come together again behind the branch in practice, but the ISA does not promise it.
bool lanes_are_independent(const Cta& cta);
// Lanes of the warp have exited: barriers no longer wait for them.
void leave_barriers(Warp& warp, Mask lanes);

void leave_cluster_barrier(Warp& warp, Mask lanes);

void build_warp_barrier(Builder& builder);                           // bar.warp.sync
void build_cluster_barrier(Builder& builder, Modifiers& modifiers);  // barrier.cluster

}  // namespace fa4::sim
