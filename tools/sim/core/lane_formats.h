// SPDX-License-Identifier: Apache-2.0
// Number formats of a lane: how its values are read from and written to rows, with flushing, saturation and NaNs.
// For lane_handlers.cpp alone, which is built once for each host instruction set.
#pragma once

#include <immintrin.h>

#include "lane_handlers.h"

namespace fa4::sim::FA4_SIM_ISA {
namespace {

template <class F>
inline __attribute__((always_inline)) void each_lane(Mask mask, F body) {
  if (mask == kAllLanes) {
#pragma GCC ivdep
    for (int i = 0; i < kLanes; ++i) body(i);
  } else {
    for (; mask; mask &= mask - 1) body(__builtin_ctz(mask));
  }
}

// Number formats: how a lane's value is read from and written to rows.
template <class T>
struct Lane {
  using Value = T;
  static T get(const Row* r, int i) {
    if constexpr (sizeof(T) == 8) {
      return T(uint64_t(r[0].lane[i]) | uint64_t(r[1].lane[i]) << 32);
    } else {
      return T(r->lane[i]);
    }
  }
  static void set(Row* r, int i, T v) {
    if constexpr (sizeof(T) == 8) {
      r[0].lane[i] = uint32_t(uint64_t(v));
      r[1].lane[i] = uint32_t(uint64_t(v) >> 32);
    } else if constexpr (sizeof(T) == 2) {
      r->lane[i] = uint16_t(v);
    } else {
      r->lane[i] = uint32_t(v);
    }
  }
};

inline float flushed(float x) {
  uint32_t u = __builtin_bit_cast(uint32_t, x);
  return __builtin_bit_cast(float, (u & 0x7F800000) == 0 ? u & 0x80000000 : u);
}
// NVIDIA's canonical NaN: every arithmetic result that is a NaN is this one.
inline uint32_t canonical(float x) { return x != x ? 0x7FFFFFFFu : __builtin_bit_cast(uint32_t, x); }

struct F32 {};
template <>
struct Lane<F32> {
  using Value = float;
  static float get(const Row* r, int i) { return __builtin_bit_cast(float, r->lane[i]); }
  static void set(Row* r, int i, float v) { r->lane[i] = canonical(v); }
};
struct F32Ftz {};
template <>
struct Lane<F32Ftz> {
  using Value = float;
  static float get(const Row* r, int i) { return flushed(__builtin_bit_cast(float, r->lane[i])); }
  static void set(Row* r, int i, float v) { r->lane[i] = canonical(flushed(v)); }
};
inline uint32_t saturated(float x) { return x > 0 ? (x < 1 ? __builtin_bit_cast(uint32_t, x) : 0x3F800000u) : 0; }
struct F32Sat {};
template <>
struct Lane<F32Sat> : Lane<F32> {
  static void set(Row* r, int i, float v) { r->lane[i] = saturated(v); }
};
struct F32FtzSat {};
template <>
struct Lane<F32FtzSat> : Lane<F32Ftz> {
  static void set(Row* r, int i, float v) { r->lane[i] = saturated(flushed(v)); }
};
struct F64 {};
template <>
struct Lane<F64> {
  using Value = double;
  static double get(const Row* r, int i) { return __builtin_bit_cast(double, Lane<uint64_t>::get(r, i)); }
  static void set(Row* r, int i, double v) { Lane<uint64_t>::set(r, i, __builtin_bit_cast(uint64_t, v)); }
};
template <>
struct Lane<float> : Lane<F32> {};
template <>
struct Lane<double> : Lane<F64> {};
struct Bits32 {};  // f32 as bits, for instructions that move or select rather than compute
template <>
struct Lane<Bits32> : Lane<uint32_t> {};
struct Bits32Ftz {};
template <>
struct Lane<Bits32Ftz> {
  using Value = uint32_t;
  static uint32_t get(const Row* r, int i) {
    uint32_t u = r->lane[i];
    return (u & 0x7F800000) == 0 ? u & 0x80000000 : u;
  }
  static void set(Row* r, int i, uint32_t v) { r->lane[i] = v; }
};
struct F32Pair {};  // f32x2: low word and high word are two numbers

// Runs `body` with the host rounding as Op::mode asks.
template <class F>
inline void rounded(const Op* op, F body) {
  if (op->mode == uint8_t(Rounding::nearest_even)) {
    body();
    return;
  }
  static constexpr unsigned control[] = {_MM_ROUND_NEAREST, _MM_ROUND_TOWARD_ZERO, _MM_ROUND_DOWN, _MM_ROUND_UP};
  const unsigned saved = _mm_getcsr();
  _mm_setcsr((saved & ~unsigned(_MM_ROUND_MASK)) | control[op->mode]);
  asm volatile("" ::: "memory");  // keeps the arithmetic between the two writes of MXCSR
  body();
  asm volatile("" ::: "memory");
  _mm_setcsr(saved);
}

template <class T>
constexpr bool is_float = false;
template <>
constexpr bool is_float<F32> = true;
template <>
constexpr bool is_float<F32Ftz> = true;
template <>
constexpr bool is_float<F32Sat> = true;
template <>
constexpr bool is_float<F32FtzSat> = true;
template <>
constexpr bool is_float<F64> = true;

// An f64 operation hands on a NaN that it reads, quieted; the canonical one comes of numbers alone. Of several NaNs the
// hardware takes the second operand's, then the third's, then the first's; a division takes the first one's.
inline bool is_nan64(uint64_t u) { return (u & 0x7FFFFFFFFFFFFFFF) > 0x7FF0000000000000; }
inline uint64_t quieted(uint64_t u) { return u | 0x0008000000000000; }
inline uint64_t result_bits(double r, uint64_t first, uint64_t second, uint64_t third) {
  if (r == r) return __builtin_bit_cast(uint64_t, r);
  return is_nan64(first) ? quieted(first) : is_nan64(second) ? quieted(second) : is_nan64(third) ? quieted(third) : 0xFFF8000000000000ull;
}

}  // namespace
}  // namespace fa4::sim::FA4_SIM_ISA
