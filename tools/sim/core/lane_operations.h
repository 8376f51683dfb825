// SPDX-License-Identifier: Apache-2.0
// What an operation does with the values of one lane.
// For lane_handlers.cpp alone, which is built once for each host instruction set.
#pragma once

#include "lane_formats.h"

namespace fa4::sim::FA4_SIM_ISA {
namespace {

template <class T> struct Wider;
template <> struct Wider<int16_t> { using type = int32_t; };
template <> struct Wider<uint16_t> { using type = uint32_t; };
template <> struct Wider<int32_t> { using type = int64_t; };
template <> struct Wider<uint32_t> { using type = uint64_t; };
template <> struct Wider<int64_t> { using type = __int128; };
template <> struct Wider<uint64_t> { using type = unsigned __int128; };

struct Add { template <class T> static T f(T a, T b) { return T(a + b); } };
struct Sub { template <class T> static T f(T a, T b) { return T(a - b); } };
struct Mul { template <class T> static T f(T a, T b) { return a * b; } };
struct MulLo { template <class T> static T f(T a, T b) { return T(uint64_t(a) * uint64_t(b)); } };
struct MulHi {
  template <class T> static T f(T a, T b) {
    using W = typename Wider<T>::type;
    return T(W(a) * W(b) >> (8 * sizeof(T)));
  }
};
struct MadLo { template <class T> static T f(T a, T b, T c) { return T(uint64_t(a) * uint64_t(b) + uint64_t(c)); } };
struct MadHi { template <class T> static T f(T a, T b, T c) { return T(uint64_t(MulHi::f(a, b)) + uint64_t(c)); } };
// Division by zero is unspecified in PTX; hardware gives all ones, as the remainder too.
struct Div {
  template <class T> static T f(T a, T b) {
    if constexpr (T(0.5) != T(0)) return a / b;
    else if (b == 0) return T(-1);
    else if (T(-1) < T(0) && b == T(-1)) return T(0 - uint64_t(a));
    else return T(a / b);
  }
};
struct Rem {
  template <class T> static T f(T a, T b) {
    if (b == 0) return T(-1);
    if (T(-1) < T(0) && b == T(-1)) return 0;
    return T(a % b);
  }
};
struct Min { template <class T> static T f(T a, T b) { return b < a ? b : a; } };
struct Max { template <class T> static T f(T a, T b) { return a < b ? b : a; } };
struct Neg { template <class T> static T f(T a) { return T(0 - a); } };
struct Abs { template <class T> static T f(T a) { return a < 0 ? T(0 - uint64_t(a)) : a; } };
struct And { template <class T> static T f(T a, T b) { return T(a & b); } };
struct Or { template <class T> static T f(T a, T b) { return T(a | b); } };
struct Xor { template <class T> static T f(T a, T b) { return T(a ^ b); } };
struct Not { template <class T> static T f(T a) { return T(~a); } };
struct Left {
  template <class T> static T f(T a, uint32_t n) { return n >= 8 * sizeof(T) ? T(0) : T(uint64_t(a) << n); }
};
struct Right {  // arithmetic for signed types; amounts beyond the width are clamped
  template <class T> static T f(T a, uint32_t n) {
    if (n >= 8 * sizeof(T)) return T(-1) < T(0) && a < 0 ? T(-1) : T(0);
    return T(a >> n);
  }
};
inline uint64_t joined(uint32_t low, uint32_t high) { return uint64_t(high) << 32 | low; }
struct FunnelLeftWrap {
  template <class T> static T f(T a, T b, T c) { return T(joined(a, b) << (c & 31) >> 32); }
};
struct FunnelLeftClamp {
  template <class T> static T f(T a, T b, T c) { return c >= 32 ? a : T(joined(a, b) << c >> 32); }
};
struct FunnelRightWrap {
  template <class T> static T f(T a, T b, T c) { return T(joined(a, b) >> (c & 31)); }
};
struct FunnelRightClamp {
  template <class T> static T f(T a, T b, T c) { return c >= 32 ? b : T(joined(a, b) >> c); }
};
struct Popc { template <class T> static uint32_t f(T a) { return uint32_t(__builtin_popcountll(a)); } };
struct Clz {
  template <class T> static uint32_t f(T a) {
    return a == 0 ? uint32_t(8 * sizeof(T)) : uint32_t(__builtin_clzll(a)) - (64 - uint32_t(8 * sizeof(T)));
  }
};
struct Brev {
  template <class T> static T f(T a) {
    T r = 0;
    for (unsigned i = 0; i < 8 * sizeof(T); ++i) r = T(r | ((a >> i) & 1) << (8 * sizeof(T) - 1 - i));
    return r;
  }
};
struct Permute {
  template <class T> static T f(T a, T b, T selector) {
    const uint64_t bytes = joined(a, b);
    T r = 0;
    for (int i = 0; i < 4; ++i) {
      const uint32_t s = selector >> (4 * i) & 15;
      uint32_t byte = uint32_t(bytes >> (8 * (s & 7))) & 255;
      if (s & 8) byte = byte & 128 ? 255 : 0;
      r |= byte << (8 * i);
    }
    return r;
  }
};
struct Fma {
  static float f(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static double f(double a, double b, double c) { return __builtin_fma(a, b, c); }
};
struct Rcp { template <class T> static T f(T a) { return T(1) / a; } };
struct Sqrt {
  static float f(float a) { return __builtin_sqrtf(a); }
  static double f(double a) { return __builtin_sqrt(a); }
};
// Total order of floats as integers: -0 below +0.
inline int32_t ordered(uint32_t u) { return int32_t(u) ^ int32_t(uint32_t(int32_t(u) >> 31) >> 1); }
inline bool is_nan(uint32_t u) { return (u & 0x7FFFFFFF) > 0x7F800000; }
template <bool maximum>
inline uint32_t select_float(uint32_t a, uint32_t b) {  // a NaN loses against a number
  const bool take_a = maximum ? ordered(a) >= ordered(b) : ordered(a) <= ordered(b);
  const uint32_t number = take_a ? a : b;
  const uint32_t r = is_nan(a) ? b : is_nan(b) ? a : number;
  return is_nan(r) ? 0x7FFFFFFFu : r;
}
template <bool maximum>
inline uint32_t select_float_nan(uint32_t a, uint32_t b) {
  return is_nan(a) || is_nan(b) ? 0x7FFFFFFFu : select_float<maximum>(a, b);
}
struct FloatMin { static uint32_t f(uint32_t a, uint32_t b) { return select_float<false>(a, b); } };
struct FloatMax { static uint32_t f(uint32_t a, uint32_t b) { return select_float<true>(a, b); } };
struct FloatMinNan { static uint32_t f(uint32_t a, uint32_t b) { return select_float_nan<false>(a, b); } };
struct FloatMaxNan { static uint32_t f(uint32_t a, uint32_t b) { return select_float_nan<true>(a, b); } };
struct FloatMin3 {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) { return select_float<false>(select_float<false>(a, b), c); }
};
struct FloatMax3 {
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) { return select_float<true>(select_float<true>(a, b), c); }
};
// A NaN is no number to negate: f32 gives the canonical one, f64 the same one quieted.
struct FloatNeg {
  static uint32_t f(uint32_t a) { return is_nan(a) ? 0x7FFFFFFFu : a ^ 0x80000000u; }
  static uint64_t f(uint64_t a) { return is_nan64(a) ? quieted(a) : a ^ 0x8000000000000000ull; }
};
struct FloatAbs {
  static uint32_t f(uint32_t a) { return is_nan(a) ? 0x7FFFFFFFu : a & 0x7FFFFFFFu; }
  static uint64_t f(uint64_t a) { return is_nan64(a) ? quieted(a) : a & 0x7FFFFFFFFFFFFFFFull; }
};

}  // namespace
}  // namespace fa4::sim::FA4_SIM_ISA
