// SPDX-License-Identifier: Apache-2.0
// What a host needs to know of a specialisation to choose and launch it. The lists of all of them: kernels.h of each
// architecture, and kernels.h beside this file. Plain C++, no device code.
#pragma once

#include <stdint.h>

#include "barrier_row.h"
#include "config.h"
#include "names.h"

namespace fa4 {

// Warps from this one on have so many registers a thread, once their roles have started.
struct WarpRegisters {
  uint32_t first_warp, registers;
};

struct Kernel {
  const char* entry;  // its name in the image
  Config config;
  int64_t most_rows;      // of a head group (query positions times packed heads): a longer one is another kernel's. 0: any
  uint32_t threads;       // of a CTA
  uint32_t shared_bytes;  // dynamic shared memory of a CTA
  uint32_t register_steps;
  WarpRegisters registers[3];  // so many of them, in the order of warps
  uint32_t barriers_offset;    // of the mbarriers, in the order of the rows, in dynamic shared memory
  uint32_t barrier_rows;
  const BarrierRow* barriers;
  const NameRecord* names;  // of roles, barriers and memories, up to an end mark

  // Head dimensions of Q and K, and of V and O: any multiples of 8 that are not larger. TMA loads zeros for the columns that there are
  // not, and stores none of them.
  constexpr bool takes(int64_t qk_dim, int64_t v_dim) const {
    return qk_dim >= 8 && v_dim >= 8 && qk_dim % 8 == 0 && v_dim % 8 == 0 && qk_dim <= config.qk_dim && v_dim <= config.v_dim;
  }

  constexpr uint32_t registers_of(uint32_t warp) const {
    uint32_t step = register_steps - 1;
    while (step > 0 && warp < registers[step].first_warp) --step;
    return registers[step].registers;
  }
};

// All kernels for the GPUs of one architecture, with their exponentials computed one way.
struct KernelList {
  static constexpr uint32_t kAnyMinor = ~0u;

  const char* name;         // of the architecture: "Blackwell"
  const char* target;       // what its code was compiled for: "sm_100f"
  uint32_t major, minor;    // of the compute capabilities whose own it is
  const Kernel* first;
  uint32_t count;
  Exp2 exp2;
  const KernelList* other_exp2;  // the same kernels the other way, which the same GPUs run; null when there are none

  constexpr const Kernel* begin() const { return first; }
  constexpr const Kernel* end() const { return first + count; }

  // The first that takes these head dimensions and head groups of so many rows; null when there is none. Smaller ones stand before
  // larger ones, and specialised ones before those for any length.
  constexpr const Kernel* find(ElementType element, MaskKind mask, int64_t qk_dim, int64_t v_dim, int64_t rows) const {
    for (const Kernel& kernel : *this) {
      const Config& c = kernel.config;
      if (c.element == element && c.mask == mask && kernel.takes(qk_dim, v_dim) &&
          (kernel.most_rows == 0 || rows <= kernel.most_rows))
        return &kernel;
    }
    return nullptr;
  }

  // The largest head dimension on either side that a kernel has.
  constexpr int most_head_dim() const {
    int most = 0;
    for (const Kernel& kernel : *this) {
      const Config& c = kernel.config;
      const int larger = c.qk_dim > c.v_dim ? c.qk_dim : c.v_dim;
      if (larger > most) most = larger;
    }
    return most;
  }

  // Whether it is the first of its head dimension: what masks and element types do not change is said once.
  constexpr bool first_of_head_dim(const Kernel& kernel) const {
    for (const Kernel& before : *this) {
      if (&before == &kernel) return true;
      if (before.config.qk_dim == kernel.config.qk_dim && before.config.v_dim == kernel.config.v_dim) return false;
    }
    return false;
  }
};

}  // namespace fa4
