// SPDX-License-Identifier: Apache-2.0
// What a host needs to know of each specialisation to choose and launch it: from the list in ../specialisations.h. Plain
// C++, no device code.
#pragma once

#include "../specialisations.h"
#include "layout.h"
#include "name_table.h"

namespace fa4 {

struct Kernel {
  const char* entry;  // its name in the image
  Config config;
  uint32_t threads;       // of a CTA
  uint32_t shared_bytes;  // dynamic shared memory of a CTA
  // Warps below correction_warp do softmax, those from mma_warp on everything but correction. Registers of their threads.
  uint32_t correction_warp, mma_warp;
  uint32_t softmax_registers, correction_registers, other_registers;
  uint32_t barriers_offset;  // of the mbarriers, in the order of barrier_table(config), in dynamic shared memory
  const NameRecord* names;   // of roles, barriers and memories, up to an end mark
};

template <Config config>
inline constexpr NameTable<config> kNames = make_name_table<config>();

template <Config config>
constexpr Kernel make_kernel(const char* entry) {
  using L = Layout<config>;
  return {entry,        config,           L::threads, L::shared_bytes, L::correction_warp,
          L::mma_warp,  L::softmax_registers, L::correction_registers, L::other_registers,
          L::barriers_offset, kNames<config>.record};
}

inline constexpr Kernel kKernels[] = {
#define FA4_KERNEL(entry, element, mask, qk_dim, v_dim) \
  make_kernel<blackwell_config(ElementType::element, MaskKind::mask, qk_dim, v_dim)>(#entry),
    FA4_SPECIALISATIONS(FA4_KERNEL)
#undef FA4_KERNEL
};
inline constexpr uint32_t kKernelCount = sizeof(kKernels) / sizeof(kKernels[0]);

// Whether it is the first of its head dimension in the list: what masks and element types do not change is said once.
constexpr bool first_of_head_dim(const Kernel& kernel) {
  for (const Kernel& before : kKernels) {
    if (&before == &kernel) return true;
    if (before.config.qk_dim == kernel.config.qk_dim) return false;
  }
  return false;
}

// Null when there is none.
constexpr const Kernel* find_kernel(ElementType element, MaskKind mask, int64_t qk_dim, int64_t v_dim) {
  for (const Kernel& kernel : kKernels) {
    const Config& c = kernel.config;
    if (c.element == element && c.mask == mask && c.qk_dim == qk_dim && c.v_dim == v_dim) return &kernel;
  }
  return nullptr;
}

}  // namespace fa4
