// SPDX-License-Identifier: Apache-2.0
// The approximate functions against results of a GPU (hashes over the inputs that share a top byte: two
// exponents of one sign), against values that can be written down and against the C library.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <iterator>
#include <thread>
#include <vector>

#include "approx_cases.h"
#include "approx_fixture.h"
#include "mma_cases.h"
#include "support/catch.h"
#include "tools/sim/core/approx_dispatch.h"

using namespace fa4::sim;

namespace {

// In the order of the fixture's rows.
constexpr ApproxFunction functions[] = {
    ApproxFunction::rcp_ftz,  ApproxFunction::rcp,  ApproxFunction::rsqrt_ftz, ApproxFunction::rsqrt,
    ApproxFunction::sqrt_ftz, ApproxFunction::sqrt, ApproxFunction::lg2_ftz,   ApproxFunction::lg2,
    ApproxFunction::sin,      ApproxFunction::sin,  ApproxFunction::cos,       ApproxFunction::cos,
    ApproxFunction::tanh};
static_assert(std::size(functions) == std::size(fixture::approx_hashes));

uint32_t hash_of_top_byte(Isa isa, ApproxFunction function, uint32_t top) {
  float x[32], y[32];
  uint64_t sum = 0;
  for (uint32_t low = 0; low < 1u << 24; low += 32) {
    for (uint32_t i = 0; i < 32; ++i) x[i] = std::bit_cast<float>(top << 24 | (low + i));
    approx(isa, function, x, y);
    for (uint32_t i = 0; i < 32; ++i) {
      sum += cases::hash_term(std::bit_cast<uint32_t>(x[i]), std::bit_cast<uint32_t>(y[i]));
    }
  }
  return cases::folded(sum);
}

struct Block {
  Isa isa;
  size_t row;  // of the fixture
  uint32_t top;
};

void check_blocks(const std::vector<Block>& blocks) {
  std::vector<uint32_t> hashes(blocks.size());
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::max(1u, std::thread::hardware_concurrency()); ++t) {
    threads.emplace_back([&] {
      for (size_t i; (i = next++) < blocks.size();) {
        hashes[i] = hash_of_top_byte(blocks[i].isa, functions[blocks[i].row], blocks[i].top);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < blocks.size(); ++i) {
    const fixture::Hashes<256>& expected = fixture::approx_hashes[blocks[i].row];
    INFO(expected.opcode << ", " << isa_name(blocks[i].isa) << ", inputs 0x" << std::hex << blocks[i].top
                         << "000000 to 0x" << blocks[i].top << "ffffff");
    CHECK(hashes[i] == expected.hash[blocks[i].top]);
  }
}

uint32_t bits_of(Isa isa, ApproxFunction function, float x) {
  float in[32], out[32];
  std::fill(in, in + 32, x);
  approx(isa, function, in, out);
  CHECK(std::all_of(out, out + 32,
                    [&](float y) { return std::bit_cast<uint32_t>(y) == std::bit_cast<uint32_t>(out[0]); }));
  return std::bit_cast<uint32_t>(out[0]);
}

}  // namespace

TEST_CASE("approx: results of a GPU are reproduced bit for bit", "[approx]") {
  // 3f: [0.5, 2), every fraction of both parities.
  std::vector<Block> blocks;
  for (size_t row = 0; row < std::size(functions); ++row) {
    const bool twice = row > 0 && functions[row] == functions[row - 1];
    if (twice) continue;
    for (Isa isa : all_isas) {
      if (isa_supported(isa)) blocks.push_back({isa, row, 0x3F});
    }
    // 00 and 80: zeros and subnormal inputs; 7e: subnormal results of rcp; 7f and ff: infinities and NaN.
    std::vector<uint32_t> tops = {0x00, 0x80, 0x7E, 0x7F, 0xFF};
    switch (functions[row]) {
      case ApproxFunction::sin:
      case ApproxFunction::cos:
        tops.insert(tops.end(), {0x3E, 0x40, 0xC0, 0x41, 0x45, 0x4B});
        break;
      case ApproxFunction::tanh:
        tops.insert(tops.end(), {0x3B, 0x3C, 0x3D, 0x3E, 0x40, 0xC0, 0x41});
        break;
      default:
        tops.insert(tops.end(), {0x40, 0xBF, 0x01, 0x7D});
    }
    for (uint32_t top : tops) blocks.push_back({widest_isa(), row, top});
  }
  check_blocks(blocks);
}

// One instruction set alone: -c AVX-512, say.
TEST_CASE("approx: all inputs, every form, every instruction set", "[.][approx][exhaustive]") {
  for (Isa isa : all_isas) {
    if (!isa_supported(isa)) continue;
    SECTION(isa_name(isa)) {
      std::vector<Block> blocks;
      for (size_t row = 0; row < std::size(functions); ++row) {
        for (uint32_t top = 0; top < 256; ++top) blocks.push_back({isa, row, top});
      }
      check_blocks(blocks);
    }
  }
}

TEST_CASE("approx: divisions reproduce results of a GPU", "[approx]") {
  constexpr Division divisions[] = {Division::approx_ftz, Division::approx, Division::full_ftz,
                                    Division::full};
  static_assert(std::size(divisions) == std::size(fixture::division_hashes));
  for (size_t row = 0; row < std::size(divisions); ++row) {
    for (uint32_t kind = 0; kind < cases::pairs_count; ++kind) {
      uint64_t sum = 0;
      for (uint32_t i = 0; i < cases::pairs_per_kind; i += 32) {
        float a[32], b[32], y[32];
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const cases::Pair p = cases::pair(static_cast<cases::Pairs>(kind), i + lane);
          a[lane] = std::bit_cast<float>(p.a), b[lane] = std::bit_cast<float>(p.b);
        }
        divide_approx(divisions[row], a, b, y);
        for (uint32_t lane = 0; lane < 32; ++lane) {
          sum += cases::hash_term(kind * cases::pairs_per_kind + i + lane, std::bit_cast<uint32_t>(y[lane]));
        }
      }
      INFO(fixture::division_hashes[row].opcode << ", pairs of kind " << kind);
      CHECK(cases::folded(sum) == fixture::division_hashes[row].hash[kind]);
    }
  }
}

TEST_CASE("approx: errors against the C library", "[approx]") {
  // Every 61st fraction of [1, 4), in units of the result's last place; lg2, sin and cos in units of 2^-23.
  struct Bound {
    ApproxFunction function;
    long double (*exact)(long double);
    bool absolute;
    double bound;
  };
  const Bound bounds[] = {
      {ApproxFunction::rcp_ftz, [](long double x) { return 1 / x; }, false, 1},
      {ApproxFunction::rsqrt_ftz, [](long double x) { return 1 / sqrtl(x); }, false, 2},
      {ApproxFunction::sqrt_ftz, [](long double x) { return sqrtl(x); }, false, 1},
      {ApproxFunction::lg2_ftz, [](long double x) { return log2l(x); }, true, 1.5},
      {ApproxFunction::sin, [](long double x) { return sinl(x); }, true, 6},
      {ApproxFunction::cos, [](long double x) { return cosl(x); }, true, 6},
      {ApproxFunction::tanh, [](long double x) { return tanhl(x); }, false, 256},
  };
  for (const Bound& b : bounds) {
    double worst = 0;
    uint32_t beyond = 0;
    for (float scale : {1.0f, 2.0f}) {
      for (uint32_t i = 0; i + 32 * 61 < 1u << 23; i += 32 * 61) {
        float x[32], y[32];
        for (uint32_t lane = 0; lane < 32; ++lane) {
          x[lane] = scale * (1 + static_cast<float>(i + lane * 61) * 0x1p-23f);
        }
        approx(b.function, x, y);
        for (uint32_t lane = 0; lane < 32; ++lane) {
          const long double exact = b.exact(x[lane]);
          const long double unit = b.absolute ? 0x1p-23L : ldexpl(1, ilogbl(exact) - 23);
          const auto error = static_cast<double>(fabsl(y[lane] - exact) / unit);
          worst = std::max(worst, error);  // drops a NaN, which counts below
          beyond += !(error <= b.bound);
        }
      }
    }
    INFO("function " << static_cast<int>(b.function) << ", off by " << worst);
    CHECK(beyond == 0);
    CHECK(worst > b.bound / 4);  // the bound says something
  }
}

TEST_CASE("approx: values written out", "[approx]") {
  const float subnormal = std::bit_cast<float>(0x0030'0000u);
  const uint32_t nan = 0x7FFF'FFFF, infinity = 0x7F80'0000, minus = 0x8000'0000, one = 0x3F80'0000;
  for (Isa isa : all_isas) {
    if (!isa_supported(isa)) continue;
    INFO(isa_name(isa));
    const auto bits = [isa](ApproxFunction function, float x) { return bits_of(isa, function, x); };
    for (ApproxFunction f : functions) {
      CHECK(bits(f, NAN) == nan);
      CHECK(bits(f, std::bit_cast<float>(0xFF80'0001u)) == nan);
    }
    for (ApproxFunction f : {ApproxFunction::rcp_ftz, ApproxFunction::rcp}) {
      CHECK(bits(f, 0.0f) == infinity);
      CHECK(bits(f, -0.0f) == (minus | infinity));
      CHECK(bits(f, INFINITY) == 0);
      CHECK(bits(f, -INFINITY) == minus);
      for (int n = -126; n <= 126; ++n)
        CHECK(bits(f, std::ldexp(-1.0f, n)) == (minus | static_cast<uint32_t>(127 - n) << 23));
    }
    CHECK(bits(ApproxFunction::rcp_ftz, subnormal) == infinity);
    CHECK(bits(ApproxFunction::rcp_ftz, -0x1p127f) == minus);
    CHECK(bits(ApproxFunction::rcp, 0x1p-127f) == 0x7F00'0000);
    CHECK(bits(ApproxFunction::rcp, 0x1p-128f) == infinity);
    CHECK(bits(ApproxFunction::rcp, 0x1p127f) == 0x0040'0000);
    for (ApproxFunction f : {ApproxFunction::rsqrt_ftz, ApproxFunction::rsqrt}) {
      CHECK(bits(f, 0.0f) == infinity);
      CHECK(bits(f, -0.0f) == (minus | infinity));
      CHECK(bits(f, INFINITY) == 0);
      CHECK(bits(f, -1.0f) == nan);
      for (int n = -63; n <= 63; ++n)
        CHECK(bits(f, std::ldexp(1.0f, 2 * n)) == static_cast<uint32_t>(127 - n) << 23);
    }
    CHECK(bits(ApproxFunction::rsqrt_ftz, -subnormal) == (minus | infinity));
    CHECK(bits(ApproxFunction::rsqrt, -subnormal) == nan);
    CHECK(bits(ApproxFunction::rsqrt, 0x1p-148f) == 0x6480'0000);
    for (ApproxFunction f : {ApproxFunction::sqrt_ftz, ApproxFunction::sqrt}) {
      CHECK(bits(f, -0.0f) == minus);
      CHECK(bits(f, INFINITY) == infinity);
      CHECK(bits(f, -1.0f) == nan);
      CHECK(bits(f, 9.0f) == 0x4040'0000);
    }
    CHECK(bits(ApproxFunction::sqrt_ftz, -subnormal) == minus);
    CHECK(bits(ApproxFunction::sqrt, -subnormal) == nan);
    CHECK(bits(ApproxFunction::sqrt, 0x1p-148f) == 0x1A80'0000);
    for (ApproxFunction f : {ApproxFunction::lg2_ftz, ApproxFunction::lg2}) {
      CHECK(bits(f, -0.0f) == (minus | infinity));
      CHECK(bits(f, INFINITY) == infinity);
      CHECK(bits(f, -1.0f) == nan);
      CHECK(bits(f, 1.0f) == 0);
      for (int n = 1; n <= 127; ++n)
        CHECK(bits(f, std::ldexp(1.0f, n)) == std::bit_cast<uint32_t>(static_cast<float>(n)));
      CHECK(bits(f, 0.25f) == 0xBFFF'FFFF);
    }
    CHECK(bits(ApproxFunction::lg2_ftz, subnormal) == (minus | infinity));
    CHECK(bits(ApproxFunction::lg2_ftz, -subnormal) == (minus | infinity));
    CHECK(bits(ApproxFunction::lg2, -subnormal) == nan);
    CHECK(bits(ApproxFunction::lg2, 0x1p-149f) == std::bit_cast<uint32_t>(-149.0f));
    CHECK(bits(ApproxFunction::sin, 0.0f) == 0);
    CHECK(bits(ApproxFunction::sin, -0.0f) == minus);
    CHECK(bits(ApproxFunction::sin, -0x1p-30f) == minus);
    CHECK(bits(ApproxFunction::sin, INFINITY) == nan);
    CHECK(bits(ApproxFunction::cos, -0x1p-30f) == one);
    CHECK(bits(ApproxFunction::cos, -INFINITY) == nan);
    CHECK(bits(ApproxFunction::tanh, -subnormal) == std::bit_cast<uint32_t>(-subnormal));
    CHECK(bits(ApproxFunction::tanh, 8.0f) == one);
    CHECK(bits(ApproxFunction::tanh, -INFINITY) == (minus | one));
  }
}

TEST_CASE("approx: lanes are independent and the arrays may be the same", "[approx]") {
  cases::Random random(7);
  for (Isa isa : all_isas) {
    if (!isa_supported(isa)) continue;
    for (int round = 0; round < 20; ++round) {
      float x[32], y[32], same[32];
      for (float& value : x) value = std::bit_cast<float>(random.bits());
      for (ApproxFunction f : functions) {
        approx(isa, f, x, y);
        std::copy(x, x + 32, same);
        approx(isa, f, same, same);
        for (int i = 0; i < 32; ++i) {
          const uint32_t alone = bits_of(isa, f, x[i]);
          CHECK(std::bit_cast<uint32_t>(y[i]) == alone);
          CHECK(std::bit_cast<uint32_t>(same[i]) == alone);
        }
      }
    }
  }
}
