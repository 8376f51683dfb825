// SPDX-License-Identifier: Apache-2.0
// The tensor core's side of wgmma: what happens when a warp's part of a wgmma.mma_async completes.
#pragma once

#include "machine.h"

namespace fa4::sim {

void land_wgmma(const Event& event);
void read_wgmma_operands(const Event& event);  // under adversarial timing, between issue and completion
// Executes what the warp has issued and what has not been executed yet, so that registers hold what it will
// write: for a move of such a register, which compilers make and hardware does not see.
void complete_wgmmas(Warp& warp);
// Nobody else can run: a wait of which the warp's own part is complete is over. True if it was one.
bool let_wgmma_wait_go(Warp& warp, Fragment& fragment);
// When its warps have exited: those of a warpgroup have executed the same number of wgmma instructions, or it is
// a fault; under Model::silicon a finding, if they have executed the same number of wgmma.mma_async.
void check_warpgroups(Cta& cta);

}  // namespace fa4::sim
