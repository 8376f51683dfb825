// SPDX-License-Identifier: Apache-2.0
// Atomics and reductions of vectors and of 128 bits, for the builder of the others.
#pragma once

#include "builder.h"
#include "reduction.h"

namespace fa4::sim {

// What has been taken from the modifiers.
struct WideAtomic {
  Reduction kind;
  AddressSpace space;
  uint8_t order;   // MemoryOrder
  bool returns;    // atom; else red
  uint32_t count;  // of a vector's elements
};
void build_vector_atomic(Builder& builder, Modifiers& modifiers, const WideAtomic& atomic);
void build_atomic_128(Builder& builder, const WideAtomic& atomic);

}  // namespace fa4::sim
