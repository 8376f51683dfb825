// SPDX-License-Identifier: Apache-2.0
// Chooses the kernels of ex2, and builds the form without flushing from the one with it.
#include "ex2.h"

#include <stdexcept>
#include <string>

#include "ex2_dispatch.h"

namespace fa4::sim {
namespace {

using Kernel = void (*)(const float*, float*);

Kernel kernel_for(Isa isa) {
#ifdef FA4_SIM_X86_KERNELS
  if (isa == Isa::avx512) return ex2_approx_ftz_avx512;
  if (isa == Isa::avx2) return ex2_approx_ftz_avx2;
#endif
  static_cast<void>(isa);
  return ex2_approx_ftz_portable;
}

Kernel checked_kernel_for(Isa isa) {
  if (!isa_supported(isa)) {
    throw std::invalid_argument(std::string("ex2: this CPU or build has no ") + isa_name(isa) +
                                " kernels; isa_supported() tells which it has");
  }
  return kernel_for(isa);
}

Kernel widest_kernel() {
  static const Kernel kernel = kernel_for(widest_isa());
  return kernel;
}

void without_flushing(Kernel ftz, const float* x, float* y) {
  constexpr int lanes = 32;
  constexpr float smallest = -126;  // below it the result is subnormal
  bool any = false;
  for (int i = 0; i < lanes; ++i) any |= x[i] < smallest;
  if (!any) return ftz(x, y);
  bool halve[lanes];
  float inner[lanes];
  for (int i = 0; i < lanes; ++i) {
    halve[i] = x[i] < smallest;
    inner[i] = halve[i] ? x[i] * 0.5f : x[i];
  }
  ftz(inner, y);
  for (int i = 0; i < lanes; ++i) y[i] = halve[i] ? y[i] * y[i] : y[i];
}

}  // namespace

void ex2_approx_ftz(const float* x, float* y) {
  widest_kernel()(x, y);
}
void ex2_approx_ftz(Isa isa, const float* x, float* y) {
  checked_kernel_for(isa)(x, y);
}
void ex2_approx(const float* x, float* y) {
  without_flushing(widest_kernel(), x, y);
}
void ex2_approx(Isa isa, const float* x, float* y) {
  without_flushing(checked_kernel_for(isa), x, y);
}

}  // namespace fa4::sim
