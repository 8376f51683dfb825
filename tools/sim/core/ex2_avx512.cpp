// SPDX-License-Identifier: Apache-2.0
// ex2 with AVX-512 (F, BW, DQ, VL).
#include <immintrin.h>

#include "ex2_dispatch.h"
#include "ex2_kernel.h"

namespace fa4::sim {
namespace {

// A table of 64 words is four registers: two permutations of 32 words each, and the sixth bit of the index
// chooses.
struct PermutedFetch {
  static void fetch(const uint32_t (&table)[64], const uint32_t* index, uint32_t* out) {
    const __m512i* words = reinterpret_cast<const __m512i*>(table);
    for (int i = 0; i < warp_lanes; i += 16) {
      const __m512i at = _mm512_loadu_si512(index + i);
      const __m512i low = _mm512_permutex2var_epi32(words[0], at, words[1]);
      const __m512i high = _mm512_permutex2var_epi32(words[2], at, words[3]);
      const __mmask16 upper = _mm512_test_epi32_mask(at, _mm512_set1_epi32(32));
      _mm512_storeu_si512(out + i, _mm512_mask_blend_epi32(upper, low, high));
    }
  }
};

}  // namespace

void ex2_approx_ftz_avx512(const float* x, float* y) {
  ex2_ftz_warp<PermutedFetch>(x, y);
}

}  // namespace fa4::sim
