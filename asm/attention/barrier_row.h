// SPDX-License-Identifier: Apache-2.0
// What there is to say about a barrier of a kernel: a row of the kernel's barrier table. Plain C++, no device code.
#pragma once

#include <stdint.h>

namespace fa4 {

// The three flavours complete on different signals; a wait on the wrong one is how such kernels silently corrupt.
enum class BarrierFlavour : uint32_t {
  tma,      // TMABar: one arrival that announces bytes, and the bytes themselves
  tcgen05,  // TCGen05Bar: one arrival by tcgen05.commit, when the MMAs before it have completed
  counted,  // MBarrier: a counted arrival of threads
};

struct BarrierRow {
  const char* name;
  BarrierFlavour flavour;
  uint32_t stages;
  uint32_t arrivals;    // that complete a phase
  uint32_t bytes;       // that complete a phase, beside the arrivals; TMABar only
  const char* signals;  // who
  const char* waits;    // who
  const char* meaning;
};

}  // namespace fa4
