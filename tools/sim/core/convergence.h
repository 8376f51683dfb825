// SPDX-License-Identifier: Apache-2.0
// Lanes of a warp part at branches and exits. Where they come together again, and what those do that are
// there first.
#pragma once

#include "machine.h"

namespace fa4::sim {

// Lanes that diverged came together again behind the branch in practice, but the ISA does not promise it.
bool lanes_are_independent(const Cta& cta);

// The fragment reached the place where its lanes meet the others: it waits there.
void arrive_at_join(Warp& warp);
// Lets lanes leave the joins that expect them, from the innermost one outwards, and opens those that waited
// for them alone.
void leave_joins(Warp& warp, int16_t join, Mask lanes);
// Lets the lanes that wait at a reconvergence point go on without the others: a lane may spin on something
// that a waiting lane will do.
bool release_joins(Warp& warp);

// The lanes of `mask` stop at `pc` in `state`; other lanes of the fragment, whose guard is false, go on
// behind `op`.
Fragment& park(Warp& warp, const Op* op, Mask mask, Fragment::State state, const Op* pc);

// Whether all lanes of the warp that have not exited are here, at a barrier (PTX ISA 9.7.13.1, 9.7.13.3: a
// barrier waits for all non-exited threads of its warp). If not, those that are wait, and execute `op` again
// when the others have come to it too, or have exited; the handler returns nullptr.
bool gathered(Warp& warp, const Op* op, Mask mask);
// The same for other .sync.aligned instructions, which need the whole warp: a fault if a lane has exited
// (9.7.15, 9.7.16: "if any thread in the warp has exited", the behaviour is undefined).
bool whole_warp(Warp& warp, const Op* op, Mask mask);

// Whether the fragment waits for the lanes of a member mask at `op`, or, as the lanes of a bar.warp.sync may,
// at another one.
bool waits_with(const Fragment& other, const Op* op, Mask members, bool barrier);
// Lanes have exited: those that wait for them go on.
void regroup(Warp& warp);
// For a warp in which lanes wait for each other: where no lane can go on and none waits for anybody outside
// the warp, lanes at reconvergence points go on alone; if there are none, it is a fault to be at an .aligned
// instruction.
void settle(Warp& warp);

}  // namespace fa4::sim
