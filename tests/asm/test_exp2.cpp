// SPDX-License-Identifier: Apache-2.0
// 2^x by polynomial, for every float that softmax can ask for, against double precision: on the host, in the kernel's own
// operations, which are held to the kernel's on the simulated GPU bit for bit.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "asm/attention/blackwell/exp2_polynomial.h"
#include "asm/attention/config.h"
#include "support/catch.h"
#include "tests/sim/engine/kernel.h"

namespace {

using namespace fa4::blackwell;

// What exp2_polynomial of row.cuh computes, operation by operation.
inline float by_hand(float x) {
  x = x > kLeastExponent ? x : kLeastExponent;
  const float whole = std::floor(x);  // the sum with kWholeMagic, rounded down, less kWholeMagic
  const float f = x - whole;
  float power = std::fma(f, kExp2C5, kExp2C4);
  power = std::fma(power, f, kExp2C3);
  power = std::fma(power, f, kExp2C2);
  power = std::fma(power, f, kExp2C1);
  power = std::fma(power, f, 1.0f);
  const uint32_t shifted = std::bit_cast<uint32_t>(kWholeMagic) + static_cast<uint32_t>(static_cast<int32_t>(whole));
  return std::bit_cast<float>((shifted << 23) + std::bit_cast<uint32_t>(power));
}

struct Worst {
  double relative = 0;   // where the result is no smaller than the smallest normal number
  uint64_t wrong = 0;    // of what must hold exactly
  uint64_t numbers = 0;
};

constexpr float kLargest = fa4::kRescaleThreshold;  // of an exponent: a maximum that moved by less is kept

// Floats whose bits are from `begin` on, every `stride`th, up to `end`.
#ifdef __x86_64__
__attribute__((target_clones("arch=haswell", "default")))  // which has fused multiply-adds
#endif
void measure(uint32_t begin, uint32_t end, uint32_t stride, Worst& worst) {
  for (uint64_t bits = begin; bits <= end; bits += stride) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
    const float y = by_hand(x);
    ++worst.numbers;
    if (std::fabs(x) < 0x1p-30f) {
      worst.wrong += y != 1.0f;
    } else if (x <= -127.0f) {
      worst.wrong += std::bit_cast<uint32_t>(y) != 0;
    } else if (x < -126.0f) {  // a subnormal, which ex2.approx.ftz would give as 0
      worst.wrong += !(y >= 0.0f && y <= 0x1p-126f);
    } else {
      const double exact = std::exp2(static_cast<double>(x));
      worst.relative = std::max(worst.relative, std::fabs(y / exact - 1));
      worst.wrong += !(y <= 256.0f);
    }
  }
}

}  // namespace

TEST_CASE("2^x by polynomial, every float up to the largest exponent", "[exp2]") {
  const auto bits = [](float x) { return std::bit_cast<uint32_t>(x); };
  constexpr uint32_t threads = 2;
  std::vector<Worst> all(threads);
  std::vector<std::thread> workers;
  for (uint32_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      measure(bits(0.0f) + i, bits(kLargest), threads, all[i]);
      measure(bits(-0.0f) + i, bits(-std::numeric_limits<float>::infinity()), threads, all[i]);
    });
  }
  for (std::thread& worker : workers) worker.join();
  double relative = 0;
  uint64_t wrong = 0, numbers = 0;
  for (const Worst& w : all) relative = std::max(relative, w.relative), wrong += w.wrong, numbers += w.numbers;
  INFO("off by " << relative);
  CHECK(relative < 2.4e-7);  // ex2.approx: 2 ulp
  CHECK(wrong == 0);
  CHECK(numbers == uint64_t{bits(kLargest)} + 1 + 0x7f800001u);
  CHECK(by_hand(0.0f) == 1.0f);
  CHECK(by_hand(-0.0f) == 1.0f);
  CHECK(std::bit_cast<uint32_t>(by_hand(-std::numeric_limits<float>::infinity())) == 0);
  CHECK(by_hand(kLargest) == 256.0f);
}

TEST_CASE("the kernel's polynomial is the one that was measured", "[exp2]") {
  std::mt19937 random(11);
  std::vector<float> x = {0.0f, -0.0f, 1.0f, -1.0f, 8.0f, -126.0f, -127.0f, -128.0f, -std::numeric_limits<float>::infinity(), -1e30f};
  for (int whole = -128; whole <= 8; ++whole) {  // beside whole numbers
    x.push_back(std::nextafter(static_cast<float>(whole), -1000.0f));
    x.push_back(static_cast<float>(whole));
    x.push_back(std::nextafter(static_cast<float>(whole), 1000.0f));
  }
  while (x.size() < 1 << 16) {
    const float any = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (any <= kLargest) x.push_back(any);
    x.push_back(std::ldexp(static_cast<float>(random()), -32) * -140.0f + 8.0f);
  }
  x.resize(1 << 16);
  fa4::sim::test::Kernel kernel(fa4::sim::test::read_text(FA4_EXP2_PTX));
  const uint64_t from = kernel.upload(x), to = kernel.buffer<float>(x.size());
  kernel.run("exp2_of_pairs", {.grid = {static_cast<uint32_t>(x.size() / 256), 1, 1}, .block = {128, 1, 1}}, from, to);
  const std::vector<float> y = kernel.read<float>(to, x.size());
  uint64_t different = 0;
  for (size_t i = 0; i < x.size(); ++i) different += std::bit_cast<uint32_t>(y[i]) != std::bit_cast<uint32_t>(by_hand(x[i]));
  CHECK(different == 0);
}
