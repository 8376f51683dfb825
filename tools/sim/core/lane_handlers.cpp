// SPDX-License-Identifier: Apache-2.0
// What the lane-by-lane instructions mean. Built once for each host instruction set, in a namespace of its own
// (FA4_SIM_ISA); nothing here may call an inline function of the standard library that another file also instantiates,
// since the linker would keep one copy for all CPUs.
#include "lane_handlers.h"

#include "approx.h"
#include "ex2.h"
#include "lane_conversions.h"
#include "lane_formats.h"
#include "lane_operations.h"
#include "machine.h"

namespace fa4::sim::FA4_SIM_ISA {
namespace {

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

}  // namespace

extern const Handler handlers[] = {
#define LANE(name, ...) __VA_ARGS__,
#include "lane_codes.inc"
#undef LANE
};

}  // namespace fa4::sim::FA4_SIM_ISA
