// SPDX-License-Identifier: Apache-2.0
// Chooses the kernels of the approximate functions, and builds from the unit's operations what the assembler
// makes of the forms without flushing and of the divisions.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "approx_dispatch.h"

namespace fa4::sim {
namespace {

constexpr int lanes = 32;

const ApproxKernels& kernels_for(Isa isa) {
#ifdef FA4_SIM_X86_KERNELS
  if (isa == Isa::avx512) return approx_avx512;
  if (isa == Isa::avx2) return approx_avx2;
#endif
  static_cast<void>(isa);
  return approx_portable;
}

const ApproxKernels& widest_kernels() {
  static const ApproxKernels& kernels = kernels_for(widest_isa());
  return kernels;
}

float flushed(float x) {
  return std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
}

float canonical(float x) {
  return std::isnan(x) ? __builtin_bit_cast(float, 0x7FFF'FFFFu) : x;
}

bool is_tiny(float x) {
  return std::fabs(x) < 0x1p-126f;
}
bool is_huge(float x) {
  return std::fabs(x) > 0x1p126f;
}

// kernel(x) where nothing is tiny; kernel(x * 2^24), corrected, in the lanes where it is.
template <class Correct>
void tiny_scaled(ApproxKernel kernel, const float* x, float* y, Correct correct) {
  if (std::none_of(x, x + lanes, is_tiny)) return kernel(x, y);
  bool tiny[lanes];
  float inner[lanes];
  for (int i = 0; i < lanes; ++i) {
    tiny[i] = is_tiny(x[i]);
    inner[i] = tiny[i] ? x[i] * 0x1p24f : x[i];
  }
  kernel(inner, y);
  for (int i = 0; i < lanes; ++i) {
    if (tiny[i]) y[i] = canonical(correct(y[i]));
  }
}

void rcp_without_flushing(ApproxKernel kernel, const float* x, float* y) {
  float scale[lanes], inner[lanes];
  for (int i = 0; i < lanes; ++i) {
    scale[i] = is_tiny(x[i]) ? 0x1p24f : is_huge(x[i]) ? 0x1p-2f : 1.0f;
    inner[i] = x[i] * scale[i];
  }
  kernel(inner, y);
  for (int i = 0; i < lanes; ++i) y[i] = canonical(y[i] * scale[i]);
}

void evaluate(const ApproxKernels& unit, ApproxFunction function, const float* x, float* y) {
  switch (function) {
    case ApproxFunction::rcp_ftz:
      return unit.rcp(x, y);
    case ApproxFunction::rcp:
      return rcp_without_flushing(unit.rcp, x, y);
    case ApproxFunction::rsqrt_ftz:
      return unit.rsqrt(x, y);
    case ApproxFunction::rsqrt:
      return tiny_scaled(unit.rsqrt, x, y, [](float r) { return r * 0x1p12f; });
    case ApproxFunction::sqrt_ftz:
      return unit.sqrt(x, y);
    case ApproxFunction::sqrt:
      return tiny_scaled(unit.sqrt, x, y, [](float r) { return r * 0x1p-12f; });
    case ApproxFunction::lg2_ftz:
      return unit.lg2(x, y);
    case ApproxFunction::lg2:
      return tiny_scaled(unit.lg2, x, y, [](float r) { return r - 24; });
    case ApproxFunction::sin:
      return unit.sin(x, y);
    case ApproxFunction::cos:
      return unit.cos(x, y);
    case ApproxFunction::tanh:
      return unit.tanh(x, y);
  }
}

}  // namespace

void approx(ApproxFunction function, const float* x, float* y) {
  evaluate(widest_kernels(), function, x, y);
}

void approx(Isa isa, ApproxFunction function, const float* x, float* y) {
  if (!isa_supported(isa)) {
    throw std::invalid_argument(std::string("approx: this CPU or build has no ") + isa_name(isa) +
                                " kernels; isa_supported() tells which it has");
  }
  evaluate(kernels_for(isa), function, x, y);
}

void divide_approx(Division division, const float* a, const float* b, float* y) {
  const bool ftz = division == Division::approx_ftz || division == Division::full_ftz;
  const bool full = division == Division::full || division == Division::full_ftz;
  const auto product = [ftz](float p, float q) { return ftz ? flushed(flushed(p) * flushed(q)) : p * q; };
  float dividend[lanes], divisor[lanes];
  for (int i = 0; i < lanes; ++i) {
    const float scale = !ftz && is_tiny(b[i]) ? 0x1p24f : full && is_huge(b[i]) ? 0x1p-2f : 1.0f;
    dividend[i] = scale == 1 ? a[i] : product(a[i], scale);
    divisor[i] = scale == 1 ? b[i] : product(b[i], scale);
  }
  widest_kernels().rcp(divisor, divisor);
  for (int i = 0; i < lanes; ++i) y[i] = canonical(product(dividend[i], divisor[i]));
}

}  // namespace fa4::sim
