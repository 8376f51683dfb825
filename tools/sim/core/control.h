// SPDX-License-Identifier: Apache-2.0
// What the families of control flow and barriers take from each other.
#pragma once

#include "machine.h"

namespace fa4::sim {

class Builder;
class Modifiers;

// Lanes of the warp have exited: barriers no longer wait for them (PTX ISA 9.7.12.7).
void leave_barriers(Warp& warp, Mask lanes);

void leave_cluster_barrier(Warp& warp, Mask lanes);

void build_warp_barrier(Builder& builder);                           // bar.warp.sync
void build_cluster_barrier(Builder& builder, Modifiers& modifiers);  // barrier.cluster

}  // namespace fa4::sim
