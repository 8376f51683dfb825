// SPDX-License-Identifier: Apache-2.0
// What instructions that a warp executes as a whole have in common, and how threads reach memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "machine.h"

namespace fa4::sim {

// A register's value, the same in all lanes of the mask, or a fault that names `what`.
uint32_t uniform(Warp& warp, const Op* op, uint16_t row, Mask mask, const char* what);

// What an access touches that is not global memory or a parameter.
struct Touched {
  Cta* owner = nullptr;    // whose shared memory it is
  bool local = false;
  uint32_t address = 0;    // there, or in the thread's local memory
  bool unwritten = false;  // a read of shared memory of which nobody has written every byte
};
// The bytes that a thread's access touches, checked, marked as written, and told to the observer. Op::space
// is the state space of the address. `held`: the store will come later (visibility.h). Who takes `touched` may read what
// nobody has written.
std::byte* locate(Warp& warp, const Op* op, int lane, uint64_t address, uint32_t bytes, bool write,
                  bool held = false, Touched* touched = nullptr);

}  // namespace fa4::sim
