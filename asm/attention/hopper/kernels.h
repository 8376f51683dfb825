// SPDX-License-Identifier: Apache-2.0
// The kernels for Hopper, from the list in ../specialisations.h. Plain C++, no device code.
#pragma once

#include "../kernel.h"
#include "../specialisations.h"
#include "layout.h"
#include "name_table.h"

namespace fa4::hopper {

template <Config config>
inline constexpr NameTable<name_count(config)> kNames = make_name_table<config>();
template <Config config>
inline constexpr BarrierTable kBarriers = barrier_table(config);

template <Config config>
constexpr Kernel make_kernel(const char* entry, int64_t most_rows) {
  using L = Layout<config>;
  return {.entry = entry,
          .config = config,
          .most_rows = most_rows,
          .threads = L::threads,
          .shared_bytes = L::shared_bytes,
          .register_steps = 2,
          .registers = {{L::load_warp, L::other_registers}, {L::consumer_warp, L::consumer_registers}},
          .barriers_offset = L::barriers_offset,
          .barrier_rows = BarrierTable::kinds,
          .barriers = kBarriers<config>.row,
          .names = kNames<config>.record};
}

inline constexpr Kernel kKernelRows[] = {
#define FA4_SHORT_KERNEL(entry, element, mask, qk_dim, v_dim, consumers, most_rows)                               \
  make_kernel<make_config(ElementType::element, MaskKind::mask, qk_dim, v_dim, consumers)>(#entry, most_rows),
#define FA4_KERNEL(entry, element, mask, qk_dim, v_dim) \
  make_kernel<make_config(ElementType::element, MaskKind::mask, qk_dim, v_dim)>(#entry, 0),
    FA4_HOPPER_SHORT_SPECIALISATIONS(FA4_SHORT_KERNEL) FA4_SPECIALISATIONS(FA4_KERNEL)
#undef FA4_KERNEL
#undef FA4_SHORT_KERNEL
};
inline constexpr KernelList kKernels{"Hopper", "sm_90a", 9, KernelList::kAnyMinor, kKernelRows,
                                     sizeof(kKernelRows) / sizeof(kKernelRows[0]), Exp2::mufu, nullptr};

}  // namespace fa4::hopper
