// SPDX-License-Identifier: Apache-2.0
// The copies of cp.async, which single threads make: what happens when they land, and when their thread has
// waited.
#pragma once

#include "builder.h"
#include "machine.h"

namespace fa4::sim {

void land_thread_copy(const Event& event);
void land_thread_copy_arrival(const Event& event);  // cp.async.mbarrier.arrive
// True when the lanes' copies are as far as a wait asks for.
bool thread_copies_passed(const Warp& warp, const Fragment& fragment);

// cp.async without .bulk; cp and async are taken.
void build_thread_copy(Builder& builder, Modifiers& modifiers);

}  // namespace fa4::sim
