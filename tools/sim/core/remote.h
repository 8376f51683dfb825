// SPDX-License-Identifier: Apache-2.0
// Asynchronous writes into the shared memory of a CTA of the cluster that complete on an mbarrier there: bulk
// copies and reductions from shared memory, st.async and red.async.
#pragma once

#include "machine.h"

namespace fa4::sim {

class Builder;
class Modifiers;

void fetch_copy(const Event& event);  // under adversarial timing, before it lands
void land_shared_copy(const Event& event);
void land_remote_store(const Event& event);

void build_shared_copy(Builder& builder, Modifiers& modifiers,
                       bool reduces);  // cp{.reduce}.async.bulk.shared::cluster.shared::cta
void build_remote_store(Builder& builder, Modifiers& modifiers, bool reduces);  // st.async, red.async

}  // namespace fa4::sim
