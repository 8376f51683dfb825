// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"

#include <algorithm>

namespace fa4::sim::driver {

namespace {
constexpr GpuKind kKinds[] = {
    {90, 132, 1'980'000, 3'201'000, 6144, 60 << 20},
    {100, 148, 1'965'000, 3'996'000, 8192, 126 << 20},
    {103, 148, 1'920'000, 3'996'000, 8192, 126 << 20},
};
}  // namespace

std::span<const GpuKind> gpu_kinds() { return kKinds; }

const GpuKind* find_gpu(uint32_t number) {
  const auto found = std::ranges::find(kKinds, number, &GpuKind::number);
  return found == std::end(kKinds) ? nullptr : found;
}

const GpuKind* find_gpu(std::string_view target) {
  const auto found = std::ranges::find_if(kKinds, [&](const GpuKind& kind) { return kind.target() == target; });
  return found == std::end(kKinds) ? nullptr : found;
}

std::string GpuKind::accepts() const {
  std::string families;
  for (const GpuKind& kind : kKinds) {
    const bool runs = kind.number >= 100 && kind.number <= number && kind.number / 10 == number / 10;
    if (runs) families += (families.empty() ? "" : " and ") + kind.target() + "f";
  }
  return "the simulated GPU, " + target() + ", runs PTX for " + target() + "a" + (families.empty() ? "" : ", " + families) +
         ", and without a letter for " + target() + " and older";
}

}  // namespace fa4::sim::driver
