// SPDX-License-Identifier: Apache-2.0
// The tensor-core step with AVX-512 (F, BW, DQ, VL).
#include <immintrin.h>

#include "mma_dispatch.h"
#include "mma_kernel.h"

namespace fa4::sim {
namespace {

struct Avx512 {
  static constexpr int lanes = 16;
  using F = __m512;
  using I = __m512i;
  using H = __m512i;
  using Mask = __mmask16;

  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static I load_bits(const float* p) { return _mm512_loadu_si512(p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static F set(float x) { return _mm512_set1_ps(x); }
  static F mul(F x, F y) { return _mm512_mul_ps(x, y); }
  static F as_float(I x) { return _mm512_castsi512_ps(x); }
  static I truncate(F x) { return _mm512_cvttps_epi32(x); }
  static F to_float_toward_zero(I x) {
    return _mm512_cvt_roundepi32_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  }

  static I set32(int x) { return _mm512_set1_epi32(x); }
  static I add32(I x, I y) { return _mm512_add_epi32(x, y); }
  static I sub32(I x, I y) { return _mm512_sub_epi32(x, y); }
  static I max32(I x, I y) { return _mm512_max_epi32(x, y); }
  static I and32(I x, I y) { return _mm512_and_si512(x, y); }
  template <int n>
  static I shift_left(I x) {
    return _mm512_slli_epi32(x, n);
  }
  template <int n>
  static I shift_right(I x) {
    return _mm512_srli_epi32(x, n);
  }

  static Mask equal32(I x, I y) { return _mm512_cmpeq_epi32_mask(x, y); }
  static Mask greater32(I x, I y) { return _mm512_cmpgt_epi32_mask(x, y); }
  static Mask add_overflowed(I x, I y, I sum) {  // sign of (x ^ sum) & (y ^ sum)
    return _mm512_movepi32_mask(_mm512_ternarylogic_epi32(x, y, sum, 0x42));
  }
  static Mask mask_or(Mask x, Mask y) { return x | y; }
  static Mask mask_and(Mask x, Mask y) { return x & y; }
  static I select(Mask mask, I yes, I no) { return _mm512_mask_blend_epi32(mask, no, yes); }
  static uint32_t bits(Mask mask) { return mask; }

  static H set16(int16_t x) { return _mm512_set1_epi16(x); }
  static H load16(const int16_t* p) { return _mm512_loadu_si512(p); }
  static H add16(H x, H y) { return _mm512_add_epi16(x, y); }
  static H max16(H x, H y) { return _mm512_max_epi16(x, y); }
  static I widen_low(H x) { return _mm512_cvtepi16_epi32(_mm512_castsi512_si256(x)); }
  static I widen_high(H x) { return _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(x, 1)); }
};

}  // namespace

void mma_step_avx512(const MmaStep& step) {
  if (step.m == max_m) {
    run_step<Avx512, 8>(step);
  } else {
    run_step<Avx512, 4>(step);
  }
}

}  // namespace fa4::sim
