// SPDX-License-Identifier: Apache-2.0
// The kernels for Blackwell, from the list in ../specialisations.h. Plain C++, no device code.
#pragma once

#include "../kernel.h"
#include "../specialisations.h"
#include "layout.h"
#include "name_table.h"

namespace fa4::blackwell {

template <Config config>
inline constexpr NameTable<name_count(config)> kNames = make_name_table<config>();
template <Config config>
inline constexpr BarrierTable kBarriers = barrier_table(config);

template <Config config>
constexpr Kernel make_kernel(const char* entry) {
  using L = Layout<config>;
  return {.entry = entry,
          .config = config,
          .most_rows = 0,
          .threads = L::threads,
          .shared_bytes = L::shared_bytes,
          .register_steps = 3,
          .registers = {{L::softmax_warp, L::softmax_registers},
                        {L::correction_warp, L::correction_registers},
                        {L::mma_warp, L::other_registers}},
          .barriers_offset = L::barriers_offset,
          .barrier_rows = BarrierTable::kinds,
          .barriers = kBarriers<config>.row,
          .names = kNames<config>.record};
}

#define FA4_KERNEL(entry, element, mask, qk_dim, v_dim) \
  make_kernel<make_config(ElementType::element, MaskKind::mask, qk_dim, v_dim, Exp2::mufu)>(#entry),
#define FA4_POLYNOMIAL_KERNEL(entry, element, mask, qk_dim, v_dim) \
  make_kernel<make_config(ElementType::element, MaskKind::mask, qk_dim, v_dim, Exp2::polynomial)>(#entry "_polynomial"),
inline constexpr Kernel kKernelRows[] = {FA4_SPECIALISATIONS(FA4_KERNEL)};
inline constexpr Kernel kPolynomialKernelRows[] = {FA4_SPECIALISATIONS(FA4_POLYNOMIAL_KERNEL)};
#undef FA4_POLYNOMIAL_KERNEL
#undef FA4_KERNEL

// Compute capability 10.0 has one MUFU exponential for two of 10.3, so that a share by polynomial pays there.
extern const KernelList kPolynomialKernels;
inline constexpr KernelList kKernels{"Blackwell", "sm_100f", 10, KernelList::kAnyMinor, kKernelRows,
                                     sizeof(kKernelRows) / sizeof(kKernelRows[0]), Exp2::mufu, &kPolynomialKernels};
inline constexpr KernelList kPolynomialKernels{
    "Blackwell 10.0", "sm_100f", 10, 0, kPolynomialKernelRows,
    sizeof(kPolynomialKernelRows) / sizeof(kPolynomialKernelRows[0]), Exp2::polynomial, &kKernels};

}  // namespace fa4::blackwell
