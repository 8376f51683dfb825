// SPDX-License-Identifier: Apache-2.0
// Conversions between number formats, and the approximate functions.
// For lane_handlers.cpp alone, which is built once for each host instruction set.
#pragma once

#include "approx.h"
#include "lane_formats.h"
#include "machine.h"

namespace fa4::sim::FA4_SIM_ISA {
namespace {

struct Half {
  // Round to nearest even; NaN becomes 0x7FFF; with saturation in Op::size the largest finite number bounds.
  static uint32_t from(float x) {
    const uint32_t u = __builtin_bit_cast(uint32_t, x), sign = u >> 16 & 0x8000, m = u & 0x7FFFFFFF;
    if (m > 0x7F800000) return 0x7FFF;
    if (m >= 0x477FF000) return sign | 0x7C00;  // rounds to 65536 or more
    if (m < 0x38800000) {                       // below 2^-14: subnormal, by adding the number whose ulp is 2^-24
      const float r = __builtin_bit_cast(float, m) + 0.5f;
      return sign | (__builtin_bit_cast(uint32_t, r) - 0x3F000000);
    }
    return sign | (m + 0xFFF + (m >> 13 & 1) - 0x38000000) >> 13;
  }
  // Rounded toward zero, but what is too large for the format is infinite.
  static uint32_t chopped(float x) {
    const uint32_t u = __builtin_bit_cast(uint32_t, x), sign = u >> 16 & 0x8000, m = u & 0x7FFFFFFF;
    if (m > 0x7F800000) return 0x7FFF;
    if (m >= 0x47800000) return sign | 0x7C00;
    if (m < 0x38800000) return sign | uint32_t(__builtin_bit_cast(float, m) * 0x1p24f);
    return sign | (m - 0x38000000) >> 13;
  }
  static float to(uint32_t h) {
    const uint32_t sign = (h & 0x8000) << 16, m = h & 0x7FFF;
    if (m >= 0x7C00) return __builtin_bit_cast(float, m > 0x7C00 ? 0x7FFFFFFFu : sign | 0x7F800000);
    const float magnitude = m < 0x400 ? float(m) * 0x1p-24f : __builtin_bit_cast(float, (m << 13) + 0x38000000);
    return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, magnitude) | sign);
  }
};
struct Brain {
  static uint32_t from(float x) {
    const uint32_t u = __builtin_bit_cast(uint32_t, x);
    return (u & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFF : (u + 0x7FFF + (u >> 16 & 1)) >> 16;
  }
  static uint32_t chopped(float x) {
    const uint32_t u = __builtin_bit_cast(uint32_t, x);
    return (u & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFF : u >> 16;
  }
  static float to(uint32_t h) { return __builtin_bit_cast(float, h << 16); }
};

template <class H>
const Op* narrow(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  each_lane(mask, [=](int i) { d->lane[i] = H::from(Lane<F32>::get(a, i)); });
  return op + 1;
}
template <class H>
const Op* narrow_pair(Warp& w, const Op* op, Mask mask) {  // a to the upper half, b to the lower
  Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b;
  each_lane(mask, [=](int i) { d->lane[i] = H::from(Lane<F32>::get(a, i)) << 16 | H::from(Lane<F32>::get(b, i)); });
  return op + 1;
}
template <class H>
const Op* widen_half(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  each_lane(mask, [=](int i) { Lane<F32>::set(d, i, H::to(a->lane[i] & 0xFFFF)); });
  return op + 1;
}

// Integer to integer: take the source as the type T says, then fit the destination register (Op::size bytes).
template <class T>
const Op* convert(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  const uint8_t size = op->size;
  each_lane(mask, [=](int i) {
    const uint64_t v = uint64_t(int64_t(Lane<T>::get(a, i)));
    d->lane[i] = size == 2 ? uint16_t(v) : size == 1 ? uint8_t(v) : uint32_t(v);
    if (size == 8) d[1].lane[i] = uint32_t(v >> 32);
  });
  return op + 1;
}
template <class T, class F>
const Op* to_float(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  using V = typename Lane<F>::Value;
  rounded(op, [=] { each_lane(mask, [=](int i) { Lane<F>::set(d, i, V(Lane<T>::get(a, i))); }); });
  return op + 1;
}
template <class V>
inline V integral(V x, Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even: return __builtin_nearbyint(double(x));
    case Rounding::toward_zero: return __builtin_trunc(double(x));
    case Rounding::down: return __builtin_floor(double(x));
    default: return __builtin_ceil(double(x));
  }
}
// Out of range saturates; NaN gives 0, or 0x80... from f64 and for 64-bit destinations.
template <class F, class T>
const Op* to_integer(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  const auto rounding = Rounding(op->mode);
  each_lane(mask, [=](int i) {
    const double x = integral(double(Lane<F>::get(a, i)), rounding);
    constexpr bool is_signed = T(-1) < T(0);
    constexpr T highest = is_signed ? T(~0ull >> (65 - 8 * sizeof(T))) : T(~0ull);
    constexpr T lowest = is_signed ? T(~highest) : T(0);
    const double limit = is_signed ? double(1ull << (8 * sizeof(T) - 1)) : double(1ull << (8 * sizeof(T) - 1)) * 2;
    T r;
    if (x != x) r = sizeof(T) == 8 || __is_same(F, F64) ? T(1ull << (8 * sizeof(T) - 1)) : T(0);
    else if (x >= limit) r = highest;
    else if (x < double(lowest)) r = lowest;
    else r = T(x);
    Lane<T>::set(d, i, r);
  });
  return op + 1;
}
// The approximate functions: 32 lanes at once, whatever the mask.
template <void (*function)(const float*, float*)>
const Op* whole_warp(Warp& w, const Op* op, Mask mask) {
  alignas(64) float y[kLanes];
  const Row* a = w.rows + op->a;
  Row* d = w.rows + op->d;
  function(reinterpret_cast<const float*>(a->lane), y);
  each_lane(mask, [=, &y](int i) { d->lane[i] = __builtin_bit_cast(uint32_t, y[i]); });
  return op + 1;
}
template <ApproxFunction function>
void evaluate(const float* x, float* y) { approx(function, x, y); }
template <Division division>
const Op* divide(Warp& w, const Op* op, Mask mask) {
  alignas(64) float y[kLanes];
  const Row *a = w.rows + op->a, *b = w.rows + op->b;
  Row* d = w.rows + op->d;
  divide_approx(division, reinterpret_cast<const float*>(a->lane), reinterpret_cast<const float*>(b->lane), y);
  each_lane(mask, [=, &y](int i) { d->lane[i] = __builtin_bit_cast(uint32_t, y[i]); });
  return op + 1;
}
// The forms of f16 and bf16: the f32 result of the widened input, chopped; `halves` of them in a register.
template <class H, void (*function)(const float*, float*), int halves>
const Op* half_function(Warp& w, const Op* op, Mask mask) {
  alignas(64) float x[kLanes], y[kLanes];
  uint32_t packed[kLanes] = {};
  const Row* a = w.rows + op->a;
  Row* d = w.rows + op->d;
  for (int half = 0; half < halves; ++half) {
    for (int i = 0; i < kLanes; ++i) x[i] = H::to(a->lane[i] >> 16 * half & 0xFFFF);
    function(x, y);
    for (int i = 0; i < kLanes; ++i) packed[i] |= H::chopped(y[i]) << 16 * half;
  }
  each_lane(mask, [=, &packed](int i) { d->lane[i] = packed[i]; });
  return op + 1;
}

}  // namespace
}  // namespace fa4::sim::FA4_SIM_ISA
