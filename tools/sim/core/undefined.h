// SPDX-License-Identifier: Apache-2.0
// Data that nobody has written. Compilers load a word of shared memory before they know that it is needed, work on it,
// and drop the result: a load of what nobody has written gives undefined bits, and what the ops do with them is followed
// bit by bit through registers, predicates and memory. A fault is what lets them be seen: an address, a predicate that
// decides what is executed, a store to global memory, and everything that leaves the lane but a shuffle.
// A warp that holds such bits is executed by step_undefined(), op by op; all others pay nothing.
#pragma once

#include <string>

#include "machine.h"
#include "warp_wide.h"

namespace fa4::sim {

// Executes the op for those of a fragment's lanes for which its guard holds, as the engine otherwise does itself.
const Op* step_undefined(Warp& warp, const Op* op, Mask lanes);
// Whether a lane that has not exited still holds undefined bits.
bool holds_undefined(const Warp& warp);

// ---- for the ops that move such bits: of one lane, to its registers, from them, and between lanes
void load_undefined(Warp& warp, const Op* op, int lane, const Touched& touched);
bool stores_undefined(const Warp& warp, const Op* op, int lane);
void store_undefined(Warp& warp, const Op* op, int lane, const Touched& touched);
void shuffle_undefined(Warp& warp, const Op* op, Mask members, const int* sources);
// Faults if bytes of a lane's local memory are undefined.
void require_defined_local(const Warp& warp, const Op* op, int lane, uint64_t address, uint64_t bytes);

// "it is loaded from ...": an index into Cluster::undefined.
std::string undefined_source(const Cta& reader, uint32_t source);

}  // namespace fa4::sim
