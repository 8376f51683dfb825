// SPDX-License-Identifier: Apache-2.0
// ex2 against results of a GPU (hashes over the inputs that share a top byte: two exponents of one sign) and
// against values that can be written down.
#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "h200_fixture.h"
#include "mma_cases.h"
#include "support/catch.h"
#include "tools/sim/core/ex2_dispatch.h"

using namespace fa4::sim;

namespace {

uint64_t hash_of_top_byte(Isa isa, uint32_t top, bool ftz) {
  float x[32], y[32];
  uint64_t h = cases::hash_start;
  for (uint32_t low = 0; low < 1u << 24; low += 32) {
    for (uint32_t i = 0; i < 32; ++i) x[i] = std::bit_cast<float>(top << 24 | (low + i));
    ftz ? ex2_approx_ftz(isa, x, y) : ex2_approx(isa, x, y);
    for (float value : y) h = cases::hash(h, std::bit_cast<uint32_t>(value));
  }
  return h;
}

void check_top_byte(Isa isa, uint32_t top, bool ftz) {
  INFO(isa_name(isa) << ", " << (ftz ? "with" : "without") << " ftz, inputs 0x" << std::hex << top
                     << "000000 to 0x" << top << "ffffff");
  CHECK(hash_of_top_byte(isa, top, ftz) == fixture::ex2_hashes[top][ftz ? 0 : 1]);
}

uint32_t ex2_bits(Isa isa, float x, bool ftz) {
  float in[32], out[32];
  std::fill(in, in + 32, x);
  ftz ? ex2_approx_ftz(isa, in, out) : ex2_approx(isa, in, out);
  CHECK(std::all_of(out, out + 32,
                    [&](float y) { return std::bit_cast<uint32_t>(y) == std::bit_cast<uint32_t>(out[0]); }));
  return std::bit_cast<uint32_t>(out[0]);
}

}  // namespace

TEST_CASE("ex2: results of a GPU are reproduced bit for bit", "[ex2]") {
  // 3f: [0.5, 2), every fraction; bf: its negatives; 41 and c1: [8, 32); 42: up to 128 and 43: beyond; c2: to
  // -128, with subnormal results; c3: beyond; b3 and 33: around 2^-24 where the cut starts to matter; 00 and
  // 80: subnormal inputs; 7f and ff: infinities and NaN.
  for (uint32_t top : {0x3Fu, 0xBFu, 0xC2u}) {
    for (Isa isa : all_isas) {
      if (isa_supported(isa)) check_top_byte(isa, top, true);
    }
  }
  for (uint32_t top : {0x00u, 0x80u, 0x33u, 0xB3u, 0x41u, 0xC1u, 0x42u, 0x43u, 0xC3u, 0x7Fu, 0xFFu}) {
    check_top_byte(widest_isa(), top, true);
  }
  for (uint32_t top : {0x42u, 0xC2u, 0xC3u, 0xFFu}) check_top_byte(widest_isa(), top, false);
}

TEST_CASE("ex2: all inputs, both forms, every instruction set", "[.][ex2][exhaustive]") {
  for (Isa isa : all_isas) {
    if (!isa_supported(isa)) continue;
    for (uint32_t top = 0; top < 256; ++top) {
      check_top_byte(isa, top, true);
      check_top_byte(isa, top, false);
    }
  }
}

TEST_CASE("ex2: within one unit in the last place of 2^x", "[ex2]") {
  // Every 61st fraction, against the C library's long double.
  float x[32], y[32];
  uint32_t far = 0;
  for (uint32_t i = 0; i + 32 * 61 < 1u << 23; i += 32 * 61) {
    for (uint32_t lane = 0; lane < 32; ++lane) x[lane] = 1 + static_cast<float>(i + lane * 61) * 0x1p-23f;
    ex2_approx_ftz(x, y);
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const long double exact = exp2l(x[lane]);
      far += !(fabsl(y[lane] - exact) <= 1.5L * 0x1p-22L);
    }
  }
  CHECK(far == 0);
}

TEST_CASE("ex2: values written out", "[ex2]") {
  const float subnormal = std::bit_cast<float>(0x007FFFFFu);
  for (Isa isa : all_isas) {
    if (!isa_supported(isa)) continue;
    INFO(isa_name(isa));
    for (bool ftz : {false, true}) {
      for (int n = -126; n <= 127; ++n) {
        CHECK(ex2_bits(isa, static_cast<float>(n), ftz) == static_cast<uint32_t>(n + 127) << 23);
      }
      for (float one : {0.0f, -0.0f, subnormal, -subnormal, 0x1p-24f, -0x1p-24f}) {
        CHECK(ex2_bits(isa, one, ftz) == 0x3F800000);
      }
      CHECK(ex2_bits(isa, 128.0f, ftz) == 0x7F800000);
      CHECK(ex2_bits(isa, INFINITY, ftz) == 0x7F800000);
      CHECK(ex2_bits(isa, -INFINITY, ftz) == 0);
      CHECK(ex2_bits(isa, -1e30f, ftz) == 0);
      CHECK(ex2_bits(isa, NAN, ftz) == 0x7FFFFFFF);
      CHECK(ex2_bits(isa, std::bit_cast<float>(0xFF800001u), ftz) == 0x7FFFFFFF);
    }
    CHECK(ex2_bits(isa, -126.5f, true) == 0);
    CHECK(ex2_bits(isa, -127.0f, true) == 0);
    CHECK(ex2_bits(isa, -126.5f, false) == 0x005A8279);
    CHECK(ex2_bits(isa, -127.0f, false) == 0x003FFFFF);
  }
}

TEST_CASE("ex2: lanes are independent and the arrays may be the same", "[ex2]") {
  cases::Random random(6);
  for (Isa isa : all_isas) {
    if (!isa_supported(isa)) continue;
    for (int round = 0; round < 100; ++round) {
      float x[32], y[32];
      for (float& value : x) value = std::bit_cast<float>(random.bits());
      for (bool ftz : {false, true}) {
        ftz ? ex2_approx_ftz(isa, x, y) : ex2_approx(isa, x, y);
        float same[32];
        std::copy(x, x + 32, same);
        ftz ? ex2_approx_ftz(isa, same, same) : ex2_approx(isa, same, same);
        for (int i = 0; i < 32; ++i) {
          const uint32_t alone = ex2_bits(isa, x[i], ftz);
          CHECK(std::bit_cast<uint32_t>(y[i]) == alone);
          CHECK(std::bit_cast<uint32_t>(same[i]) == alone);
        }
      }
    }
  }
}
