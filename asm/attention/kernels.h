// SPDX-License-Identifier: Apache-2.0
// Every kernel of the image, by architecture. Plain C++, no device code.
#pragma once

#include "blackwell/kernels.h"
#include "hopper/kernels.h"

namespace fa4 {

inline constexpr const KernelList* kArchitectures[] = {&hopper::kKernels, &blackwell::kPolynomialKernels, &blackwell::kKernels};

// Those of a device of this compute capability, `arch` being 10 * major + minor; null when there are none.
constexpr const KernelList* kernels_for(uint32_t arch) {
  for (const KernelList* list : kArchitectures)
    if (list->major == arch / 10 && (list->minor == KernelList::kAnyMinor || list->minor == arch % 10)) return list;
  return nullptr;
}

}  // namespace fa4
