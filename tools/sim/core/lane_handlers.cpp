// SPDX-License-Identifier: Apache-2.0
// What the lane-by-lane instructions mean. Built once for each host instruction set, in a namespace of its own
// (FA4_SIM_ISA); nothing here may call an inline function of the standard library that another file also instantiates,
// since the linker would keep one copy for all CPUs.
#include "lane_handlers.h"

#include <immintrin.h>

#include "approx.h"
#include "ex2.h"
#include "machine.h"

namespace fa4::sim::FA4_SIM_ISA {
namespace {

// ---- lanes -----------------------------------------------------------------------------------------------------------

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

// ---- operations ------------------------------------------------------------------------------------------------------

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

// ---- shapes of instructions ------------------------------------------------------------------------------------------

template <class T, class F>
const Op* unary(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  const auto body = [=] {
    each_lane(mask, [=](int i) {
      if constexpr (__is_same(T, F64)) {
        const uint64_t x = Lane<uint64_t>::get(a, i);
        Lane<uint64_t>::set(d, i, result_bits(F::f(Lane<T>::get(a, i)), x, x, x));
      } else {
        Lane<T>::set(d, i, F::f(Lane<T>::get(a, i)));
      }
    });
  };
  if constexpr (is_float<T>) rounded(op, body); else body();
  return op + 1;
}

template <class T, class F>
const Op* binary(Warp& w, const Op* op, Mask mask) {
  if constexpr (__is_same(T, F32Pair)) {
    Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b;
    rounded(op, [=] {
      each_lane(mask, [=](int i) { Lane<F32>::set(d, i, F::f(Lane<F32>::get(a, i), Lane<F32>::get(b, i))); });
      each_lane(mask, [=](int i) {
        Lane<F32>::set(d + 1, i, F::f(Lane<F32>::get(a + 1, i), Lane<F32>::get(b + 1, i)));
      });
    });
  } else {
    Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b;
    const auto body = [=] {
      each_lane(mask, [=](int i) {
        if constexpr (__is_same(T, F64)) {
          const uint64_t x = Lane<uint64_t>::get(a, i), y = Lane<uint64_t>::get(b, i);
          const bool division = __is_same(F, Div);
          Lane<uint64_t>::set(d, i, result_bits(F::f(Lane<T>::get(a, i), Lane<T>::get(b, i)), division ? x : y, division ? y : x, 0));
        } else {
          Lane<T>::set(d, i, F::f(Lane<T>::get(a, i), Lane<T>::get(b, i)));
        }
      });
    };
    if constexpr (is_float<T>) rounded(op, body); else body();
  }
  return op + 1;
}

template <class T, class F>
const Op* ternary(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b, *c = w.rows + op->c;
  if constexpr (__is_same(T, F32Pair)) {
    rounded(op, [=] {
      for (int half = 0; half < 2; ++half) {
        each_lane(mask, [=](int i) {
          Lane<F32>::set(d + half, i,
                         F::f(Lane<F32>::get(a + half, i), Lane<F32>::get(b + half, i), Lane<F32>::get(c + half, i)));
        });
      }
    });
  } else {
    const auto body = [=] {
      each_lane(mask, [=](int i) {
        if constexpr (__is_same(T, F64)) {
          const uint64_t x = Lane<uint64_t>::get(a, i), y = Lane<uint64_t>::get(b, i), z = Lane<uint64_t>::get(c, i);
          Lane<uint64_t>::set(d, i, result_bits(F::f(Lane<T>::get(a, i), Lane<T>::get(b, i), Lane<T>::get(c, i)), y, z, x));
        } else {
          Lane<T>::set(d, i, F::f(Lane<T>::get(a, i), Lane<T>::get(b, i), Lane<T>::get(c, i)));
        }
      });
    };
    if constexpr (is_float<T>) rounded(op, body); else body();
  }
  return op + 1;
}

// Products and quotients with .ftz: flushed by the exact value, so a result of 2^-126 that was rounded up to it is zero.
inline bool below_smallest_normal(float a, float b, float c) {
  const double product = double(a) * double(b), sum = product + double(c);  // the product is exact
  const double part = sum - product, rest = (product - (sum - part)) + (double(c) - part);  // sum + rest is exact
  const double magnitude = sum < 0 ? -sum : sum, toward_zero = sum < 0 ? rest : -rest;
  return magnitude < 0x1p-126 || (magnitude == 0x1p-126 && toward_zero > 0);
}
template <class T, class F>
const Op* flushing(Warp& w, const Op* op, Mask mask) {
  constexpr bool fused = __is_same(F, Fma), division = __is_same(F, Div);
  const auto below = [](float x, float y, float z) {
    if constexpr (division) return __builtin_fabs(double(x)) < 0x1p-126 * __builtin_fabs(double(y));
    else return below_smallest_normal(x, y, z);
  };
  Row a = w.rows[op->a], b = w.rows[op->b], c{}, r{};  // the destination may be one of the sources
  if constexpr (fused) c = w.rows[op->c];
  rounded(op, [&] {
    for (int i = 0; i < kLanes; ++i) {
      const float x = Lane<F32Ftz>::get(&a, i), y = Lane<F32Ftz>::get(&b, i);
      float v;
      if constexpr (fused) v = F::f(x, y, Lane<F32Ftz>::get(&c, i));
      else v = F::f(x, y);
      r.lane[i] = __builtin_bit_cast(uint32_t, v);
    }
  });
  uint32_t suspicious = 0;
  for (int i = 0; i < kLanes; ++i) suspicious |= (r.lane[i] & 0x7FFFFFFF) == 0x00800000;
  if (suspicious) {
    for (int i = 0; i < kLanes; ++i) {
      if ((r.lane[i] & 0x7FFFFFFF) == 0x00800000 && below(Lane<F32Ftz>::get(&a, i), Lane<F32Ftz>::get(&b, i), Lane<F32Ftz>::get(&c, i))) {
        r.lane[i] &= 0x80000000;
      }
    }
  }
  Row* d = w.rows + op->d;
  each_lane(mask, [=, &r](int i) { Lane<T>::set(d, i, __builtin_bit_cast(float, r.lane[i])); });
  return op + 1;
}
// f32x2: the low words, then the high words.
template <Handler half>
const Op* in_pairs(Warp& w, const Op* op, Mask mask) {
  half(w, op, mask);
  Op high = *op;
  ++high.d, ++high.a, ++high.b, ++high.c;
  half(w, &high, mask);
  return op + 1;
}

template <int words>
const Op* copy(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  for (int word = 0; word < words; ++word) each_lane(mask, [=](int i) { d[word].lane[i] = a[word].lane[i]; });
  return op + 1;
}
const Op* copy16(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  each_lane(mask, [=](int i) { d->lane[i] = a->lane[i] & 0xFFFF; });
  return op + 1;
}
const Op* low_half(Warp& w, const Op* op, Mask mask) { return copy16(w, op, mask); }
const Op* high_half(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  each_lane(mask, [=](int i) { d->lane[i] = a->lane[i] >> 16; });
  return op + 1;
}
const Op* pack_halves(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b;
  each_lane(mask, [=](int i) { d->lane[i] = (a->lane[i] & 0xFFFF) | b->lane[i] << 16; });
  return op + 1;
}

inline Mask predicate_value(const Warp& w, uint16_t index, bool negated) {
  return negated ? ~w.predicates[index] : w.predicates[index];
}

template <int words>
const Op* select(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b;
  const Mask p = predicate_value(w, op->pa, op->pa_not);
  for (int word = 0; word < words; ++word) {
    each_lane(mask, [=](int i) { d[word].lane[i] = p >> i & 1 ? a[word].lane[i] : b[word].lane[i]; });
  }
  return op + 1;
}
const Op* predicate_to_01(Warp& w, const Op* op, Mask mask) {
  Row* d = w.rows + op->d;
  const Mask p = predicate_value(w, op->pa, op->pa_not);
  each_lane(mask, [=](int i) { d->lane[i] = p >> i & 1; });
  return op + 1;
}

template <class T, class W>
const Op* widen(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b;
  each_lane(mask, [=](int i) { Lane<W>::set(d, i, W(W(Lane<T>::get(a, i)) * W(Lane<T>::get(b, i)))); });
  return op + 1;
}
template <class T, class W>
const Op* widen_add(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b, *c = w.rows + op->c;
  each_lane(mask, [=](int i) {
    Lane<W>::set(d, i, W(uint64_t(W(Lane<T>::get(a, i)) * W(Lane<T>::get(b, i))) + uint64_t(Lane<W>::get(c, i))));
  });
  return op + 1;
}

template <class T, class F>
const Op* shift(Warp& w, const Op* op, Mask mask) {  // the amount is always 32 bits
  Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b;
  each_lane(mask, [=](int i) { Lane<T>::set(d, i, F::f(Lane<T>::get(a, i), b->lane[i])); });
  return op + 1;
}
template <class T, class F>
const Op* count_bits(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a;
  each_lane(mask, [=](int i) { d->lane[i] = F::f(Lane<T>::get(a, i)); });
  return op + 1;
}

template <class T>
const Op* extract(Warp& w, const Op* op, Mask mask) {  // bfe
  Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b, *c = w.rows + op->c;
  constexpr uint32_t bits = 8 * sizeof(T);
  each_lane(mask, [=](int i) {
    const uint64_t value = uint64_t(Lane<T>::get(a, i));
    // 64-bit fields take all bits of position and length.
    const uint32_t kept = bits == 32 ? 255 : 0xFFFFFFFF, highest = 2 * bits;
    const uint32_t all_position = b->lane[i] & kept, all_length = c->lane[i] & kept;
    const uint32_t position = all_position < highest ? all_position : highest, length = all_length < highest ? all_length : highest;
    const bool is_signed = T(-1) < T(0);
    const uint32_t sign_at = position + length - 1 < bits - 1 ? position + length - 1 : bits - 1;
    const bool sign = is_signed && length != 0 && (value >> sign_at & 1);
    uint64_t r = sign ? ~0ull : 0;
    for (uint32_t k = 0; k < bits; ++k) {
      const uint64_t bit = k < length && position + k < bits ? value >> (position + k) & 1 : uint64_t(sign);
      r = (r & ~(1ull << k)) | bit << k;
    }
    Lane<T>::set(d, i, T(r));
  });
  return op + 1;
}
const Op* lop3(Warp& w, const Op* op, Mask mask) {
  Row *d = w.rows + op->d, *a = w.rows + op->a, *b = w.rows + op->b, *c = w.rows + op->c;
  const uint32_t table = uint32_t(op->imm);
  each_lane(mask, [=](int i) {
    const uint32_t x = a->lane[i], y = b->lane[i], z = c->lane[i];
    uint32_t r = 0;
    for (int k = 0; k < 8; ++k) {
      const uint32_t selected = (k & 4 ? x : ~x) & (k & 2 ? y : ~y) & (k & 1 ? z : ~z);
      r |= table >> k & 1 ? selected : 0;
    }
    d->lane[i] = r;
  });
  return op + 1;
}

template <class T, class F>
inline Mask compared(const Row* a, const Row* b, F f) {
  Mask r = 0;
  for (int i = 0; i < kLanes; ++i) r |= Mask(f(Lane<T>::get(a, i), Lane<T>::get(b, i))) << i;
  return r;
}
template <class T>
const Op* compare(Warp& w, const Op* op, Mask mask) {
  const Row *a = w.rows + op->a, *b = w.rows + op->b;
  using V = typename Lane<T>::Value;
  Mask r = 0;
  switch (Compare(op->mode)) {
    case Compare::eq: r = compared<T>(a, b, [](V x, V y) { return x == y; }); break;
    case Compare::ne: r = compared<T>(a, b, [](V x, V y) { return x < y || x > y; }); break;
    case Compare::lt: r = compared<T>(a, b, [](V x, V y) { return x < y; }); break;
    case Compare::le: r = compared<T>(a, b, [](V x, V y) { return x <= y; }); break;
    case Compare::gt: r = compared<T>(a, b, [](V x, V y) { return x > y; }); break;
    case Compare::ge: r = compared<T>(a, b, [](V x, V y) { return x >= y; }); break;
    case Compare::equ: r = compared<T>(a, b, [](V x, V y) { return !(x < y || x > y); }); break;
    case Compare::neu: r = compared<T>(a, b, [](V x, V y) { return !(x == y); }); break;
    case Compare::ltu: r = compared<T>(a, b, [](V x, V y) { return !(x >= y); }); break;
    case Compare::leu: r = compared<T>(a, b, [](V x, V y) { return !(x > y); }); break;
    case Compare::gtu: r = compared<T>(a, b, [](V x, V y) { return !(x <= y); }); break;
    case Compare::geu: r = compared<T>(a, b, [](V x, V y) { return !(x < y); }); break;
    case Compare::num: r = compared<T>(a, b, [](V x, V y) { return x == x && y == y; }); break;
    case Compare::nan: r = compared<T>(a, b, [](V x, V y) { return x != x || y != y; }); break;
  }
  const Mask third = predicate_value(w, op->pa, op->pa_not);
  const auto combined = [=](Mask comparison) {
    switch (Combine(op->size)) {
      case Combine::with_and: return comparison & third;
      case Combine::with_or: return comparison | third;
      case Combine::with_xor: return comparison ^ third;
      default: return comparison;
    }
  };
  const auto assign = [&](uint16_t index, Mask value) {
    w.predicates[index] = (w.predicates[index] & ~mask) | (value & mask);
  };
  if (op->pd) assign(op->pd, combined(r));
  if (op->pb) assign(op->pb, combined(~r));  // setp p|q: q takes the complement
  return op + 1;
}

template <class F>
const Op* predicate(Warp& w, const Op* op, Mask mask) {
  const Mask r = F::f(predicate_value(w, op->pa, op->pa_not), predicate_value(w, op->pb, op->pb_not));
  w.predicates[op->pd] = (w.predicates[op->pd] & ~mask) | (r & mask);
  return op + 1;
}
const Op* predicate_mov(Warp& w, const Op* op, Mask mask) {
  const Mask r = predicate_value(w, op->pa, op->pa_not);
  w.predicates[op->pd] = (w.predicates[op->pd] & ~mask) | (r & mask);
  return op + 1;
}

// ---- conversions -----------------------------------------------------------------------------------------------------

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

extern const Handler handlers[] = {
#define LANE(name, ...) __VA_ARGS__,
#include "lane_codes.inc"
#undef LANE
};

}  // namespace fa4::sim::FA4_SIM_ISA
