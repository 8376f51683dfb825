// SPDX-License-Identifier: Apache-2.0
// The tensor-core step in the compiler's own vectors of 16 bytes: any processor, no intrinsics.
#include "mma_dispatch.h"
#include "mma_kernel.h"

namespace fa4::sim {
namespace {

struct Portable {
  static constexpr int lanes = 4;
  typedef float F __attribute__((vector_size(16)));
  typedef int32_t I __attribute__((vector_size(16)));
  typedef uint32_t U __attribute__((vector_size(16)));
  typedef int16_t H __attribute__((vector_size(16)));
  typedef int16_t Half __attribute__((vector_size(8)));
  using Mask = I;

  template <class T>
  static T load_as(const void* p) {
    T x;
    std::memcpy(&x, p, sizeof x);
    return x;
  }
  static F load(const float* p) { return load_as<F>(p); }
  static I load_bits(const float* p) { return load_as<I>(p); }
  static void store(float* p, F x) { std::memcpy(p, &x, sizeof x); }
  static F set(float x) { return F{x, x, x, x}; }
  static F mul(F x, F y) { return x * y; }
  static F as_float(I x) { return (F)x; }
  static I truncate(F x) { return __builtin_convertvector(x, I); }
  // The conversion rounds to nearest; where that went away from zero, one unit in the last place is taken
  // back.
  static F to_float_toward_zero(I x) {
    const I sign = x >> 31;
    const I magnitude = sub32(x ^ sign, sign);
    const F nearest = __builtin_convertvector(magnitude, F);
    const I back = truncate(nearest);
    // 2^31 does not convert back to int32: it can only come from rounding up.
    const I excess = (sub32(magnitude, back) >> 31) | (nearest >= set(0x1p31f));
    return as_float(add32((I)nearest, excess) | (x & set32(INT32_MIN)));
  }

  static I set32(int x) { return I{x, x, x, x}; }
  static I add32(I x, I y) { return (I)((U)x + (U)y); }  // wraps
  static I sub32(I x, I y) { return (I)((U)x - (U)y); }
  static I max32(I x, I y) { return x > y ? x : y; }
  static I and32(I x, I y) { return x & y; }
  template <int n>
  static I shift_left(I x) {
    return (I)((U)x << n);
  }
  template <int n>
  static I shift_right(I x) {
    return (I)((U)x >> n);
  }

  static Mask equal32(I x, I y) { return x == y; }
  static Mask greater32(I x, I y) { return x > y; }
  static Mask add_overflowed(I x, I y, I sum) { return ((x ^ sum) & (y ^ sum)) < 0; }
  static Mask mask_or(Mask x, Mask y) { return x | y; }
  static Mask mask_and(Mask x, Mask y) { return x & y; }
  static I select(Mask mask, I yes, I no) { return mask ? yes : no; }
  static uint32_t bits(Mask mask) {
    return (mask[0] & 1u) | (mask[1] & 2u) | (mask[2] & 4u) | (mask[3] & 8u);
  }

  static H set16(int16_t x) { return H{x, x, x, x, x, x, x, x}; }
  static H load16(const int16_t* p) { return load_as<H>(p); }
  static H add16(H x, H y) { return x + y; }
  static H max16(H x, H y) { return x > y ? x : y; }
  static I widen_low(H x) { return I{x[0], x[1], x[2], x[3]}; }
  static I widen_high(H x) { return I{x[4], x[5], x[6], x[7]}; }
};

}  // namespace

void mma_step_portable(const MmaStep& step) {
  run_step<Portable, 4>(step);
}

}  // namespace fa4::sim
