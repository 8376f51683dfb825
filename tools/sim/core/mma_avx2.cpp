// SPDX-License-Identifier: Apache-2.0
// The tensor-core step with AVX2.
#include <immintrin.h>

#include "mma_dispatch.h"
#include "mma_kernel.h"

namespace fa4::sim {
namespace {

struct Avx2 {
  static constexpr int lanes = 8;
  using F = __m256;
  using I = __m256i;
  using H = __m256i;
  using Mask = __m256i;

  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static I load_bits(const float* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  static F set(float x) { return _mm256_set1_ps(x); }
  static F mul(F x, F y) { return _mm256_mul_ps(x, y); }
  static F as_float(I x) { return _mm256_castsi256_ps(x); }
  static I truncate(F x) { return _mm256_cvttps_epi32(x); }
  // The conversion rounds to nearest; where that went away from zero, one unit in the last place is taken
  // back.
  static F to_float_toward_zero(I x) {
    const I magnitude = _mm256_abs_epi32(x);
    const F nearest = _mm256_cvtepi32_ps(magnitude);
    const I excess = _mm256_srai_epi32(_mm256_sub_epi32(magnitude, _mm256_cvttps_epi32(nearest)), 31);
    const I toward_zero = _mm256_add_epi32(_mm256_castps_si256(nearest), excess);
    return as_float(_mm256_or_si256(toward_zero, _mm256_and_si256(x, set32(INT32_MIN))));
  }

  static I set32(int x) { return _mm256_set1_epi32(x); }
  static I add32(I x, I y) { return _mm256_add_epi32(x, y); }
  static I sub32(I x, I y) { return _mm256_sub_epi32(x, y); }
  static I max32(I x, I y) { return _mm256_max_epi32(x, y); }
  static I and32(I x, I y) { return _mm256_and_si256(x, y); }
  template <int n>
  static I shift_left(I x) {
    return _mm256_slli_epi32(x, n);
  }
  template <int n>
  static I shift_right(I x) {
    return _mm256_srli_epi32(x, n);
  }

  static Mask equal32(I x, I y) { return _mm256_cmpeq_epi32(x, y); }
  static Mask greater32(I x, I y) { return _mm256_cmpgt_epi32(x, y); }
  static Mask add_overflowed(I x, I y,
                             I sum) {  // in the sign of each lane; bits() and select() look no further
    return _mm256_and_si256(_mm256_xor_si256(x, sum), _mm256_xor_si256(y, sum));
  }
  static Mask mask_or(Mask x, Mask y) { return _mm256_or_si256(x, y); }
  static Mask mask_and(Mask x, Mask y) { return _mm256_and_si256(x, y); }
  static I select(Mask mask, I yes, I no) {
    return _mm256_castps_si256(_mm256_blendv_ps(as_float(no), as_float(yes), as_float(mask)));
  }
  static uint32_t bits(Mask mask) { return static_cast<uint32_t>(_mm256_movemask_ps(as_float(mask))); }

  static H set16(int16_t x) { return _mm256_set1_epi16(x); }
  static H load16(const int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static H add16(H x, H y) { return _mm256_add_epi16(x, y); }
  static H max16(H x, H y) { return _mm256_max_epi16(x, y); }
  static I widen_low(H x) { return _mm256_cvtepi16_epi32(_mm256_castsi256_si128(x)); }
  static I widen_high(H x) { return _mm256_cvtepi16_epi32(_mm256_extracti128_si256(x, 1)); }
};

}  // namespace

void mma_step_avx2(const MmaStep& step) {
  run_step<Avx2, 4>(step);
}

}  // namespace fa4::sim
