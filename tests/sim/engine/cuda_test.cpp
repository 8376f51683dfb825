// SPDX-License-Identifier: Apache-2.0
// Kernels that nvcc compiled (kernels.cu) against the same computation on the host, with several numbers of
// host threads.
#include <algorithm>
#include <cmath>

#include "kernel.h"
#include "support/catch.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

std::vector<uint32_t> random_words(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<uint32_t> v(n);
  for (uint32_t& x : v) x = uint32_t(random.next());
  return v;
}

const std::string& compiled() {
  static const std::string text = read_text(ENGINE_KERNELS_PTX);
  return text;
}

// Runs a test body for 1, 2 and 5 host threads.
template <class F>
void for_host_threads(F body) {
  for (uint32_t threads : {1u, 2u, 5u}) {
    INFO(threads << " host threads");
    Kernel kernel(compiled(), threads);
    body(kernel);
  }
}

uint32_t nested_on_host(uint32_t x) {
  uint32_t sum = 0;
  for (uint32_t a = 0; a < (x & 15); ++a) {
    if (a == (x >> 4 & 15)) continue;
    for (uint32_t b = a;; b += 1 + (x & 3)) {
      if (b > (x >> 8 & 31)) break;
      if ((a ^ b) % 3 == 0) continue;
      for (uint32_t c = 0; c < b; ++c) {
        sum = sum * 31 + a + b + c;
        if ((sum & 7) == 3) break;
        if (sum % 97 == 5) return sum;
      }
    }
    if ((sum & 0xF000) == 0x5000) break;
  }
  return sum ^ 0x55;
}

}  // namespace

TEST_CASE("divergent loops") {
  auto in = random_words(1000, 1);
  for (uint32_t& x : in) x = x % 5000 + 1;
  for_host_threads([&](Kernel& k) {
    const uint64_t from = k.upload(in), to = k.buffer<uint32_t>(1000);
    k.run("collatz", {{8, 1, 1}, {128, 1, 1}}, from, to, uint32_t(1000));
    const auto got = k.read<uint32_t>(to, 1000);
    for (size_t i = 0; i < 1000; ++i) {
      uint32_t steps = 0;
      for (uint32_t x = in[i]; x != 1; ++steps) x = x % 2 ? 3 * x + 1 : x / 2;
      if (got[i] != steps) FAIL_CHECK("element " << i << ": " << got[i] << ", not " << steps);
    }
  });
}

TEST_CASE("nested divergent loops with break, continue and return") {
  const auto in = random_words(1024, 2);
  for_host_threads([&](Kernel& k) {
    const uint64_t from = k.upload(in), to = k.buffer<uint32_t>(1024);
    k.run("nested", {{8, 1, 1}, {128, 1, 1}}, from, to);
    const auto got = k.read<uint32_t>(to, 1024);
    for (size_t i = 0; i < 1024; ++i) {
      if (got[i] != nested_on_host(in[i]))
        FAIL_CHECK("element " << i << ": " << got[i] << ", not " << nested_on_host(in[i]));
    }
  });
}

TEST_CASE("reduction in shared memory") {
  const auto words = random_words(256 * 6, 3);
  for_host_threads([&](Kernel& k) {
    const uint64_t from = k.upload(words), to = k.buffer<int32_t>(6);
    k.run("block_sum", {{6, 1, 1}, {256, 1, 1}}, from, to);
    const auto got = k.read<uint32_t>(to, 6);
    for (size_t b = 0; b < 6; ++b) {
      uint32_t sum = 0;
      for (size_t i = 0; i < 256; ++i) sum += words[256 * b + i];
      CHECK(got[b] == sum);
    }
  });
}

TEST_CASE("shuffles, votes and reductions of a warp") {
  const auto in = random_words(256, 4);
  Kernel k(compiled());
  const uint64_t from = k.upload(in), to = k.buffer<uint32_t>(256 * 16);
  k.run("warp_wide", {{2, 1, 1}, {128, 1, 1}}, from, to);
  const auto got = k.read<uint32_t>(to, 256 * 16);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t lane = i % 32, base = i - lane;
    const uint32_t* x = in.data() + base;
    const auto in_segment = [&](int from_lane, uint32_t width) {
      return from_lane >= int(lane / width * width) && from_lane < int((lane / width + 1) * width);
    };
    uint32_t e[16];
    e[0] = x[5];
    e[1] = x[lane * 7 % 32];
    e[2] = x[lane / 8 * 8 + 3];
    e[3] = lane ? x[lane - 1] : x[0];
    e[4] = in_segment(int(lane) - 3, 16) ? x[lane - 3] : x[lane];
    e[5] = lane + 2 < 32 ? x[lane + 2] : x[lane];
    e[6] = in_segment(int(lane) + 5, 8) ? x[lane + 5] : x[lane];
    e[7] = x[lane ^ 16];
    e[8] = x[lane ^ 3];
    e[9] = e[11] = e[14] = e[15] = 0;
    int32_t least = INT32_MAX;
    uint32_t most = 0;
    bool any = false, all = true;
    for (uint32_t l = 0; l < 32; ++l) {
      e[9] |= (x[l] & 1) << l;
      any |= x[l] % 61 == 0;
      all &= x[l] != 77;
      e[11] += x[l];
      least = std::min(least, int32_t(x[l]));
      most = std::max(most, x[l]);
      e[14] ^= x[l];
      if (lane < 16 && l < 16) e[15] |= (x[l] >> 1 & 1) << l;
      if (lane >= 16 && l >= 16) e[15] |= (x[l] >> 2 & 1) << l;
    }
    if (lane < 16) e[15] |= x[lane ^ 1] << 16;
    e[10] = uint32_t(any) * 2 + uint32_t(all);
    e[12] = uint32_t(least);
    e[13] = most;
    for (uint32_t w = 0; w < 16; ++w) {
      if (got[16 * i + w] != e[w])
        FAIL_CHECK("thread " << i << " word " << w << ": " << got[16 * i + w] << ", not " << e[w]);
    }
  }
}

TEST_CASE("local arrays, constant memory and module variables") {
  const uint32_t primes[16] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53},
                 words[8] = {3, 1, 4, 1, 5, 9, 2, 6};
  const auto in = random_words(256, 5);
  for_host_threads([&](Kernel& k) {
    const uint64_t from = k.upload(in), to = k.buffer<uint32_t>(256);
    k.run("arrays", {{4, 1, 1}, {64, 1, 1}}, from, to);
    const auto got = k.read<uint32_t>(to, 256);
    for (size_t i = 0; i < 256; ++i) {
      uint32_t x = in[i], local[24], sum = 0;
      for (uint32_t n = 0; n < 24; ++n) local[n] = x + n * n;
      for (int n = 0; n < 40; ++n) {
        const uint32_t at = x % 24;
        local[at] += primes[x % 16];
        x = x * 1664525u + 1013904223u + local[(at * 5 + 1) % 24];
      }
      for (uint32_t n = 0; n < 24; ++n) sum ^= local[n] * (n + 1);
      if (got[i] != sum + words[x % 8]) FAIL_CHECK("element " << i);
    }
  });
}

TEST_CASE("atomics across CTAs") {
  const auto in = random_words(16 * 128, 6);
  for_host_threads([&](Kernel& k) {
    const uint64_t from = k.upload(in), histogram = k.buffer<uint32_t>(64), sums = k.buffer<uint64_t>(4);
    const uint64_t extremes = k.upload(std::vector<int32_t>{INT32_MIN, INT32_MAX, 0, -1, 0});
    k.run("atomics", {{16, 1, 1}, {128, 1, 1}}, from, histogram, sums, extremes);
    std::vector<uint32_t> count(64);
    std::vector<uint64_t> sum(4);
    std::vector<int32_t> e = {INT32_MIN, INT32_MAX, 0, -1, 0};
    for (uint32_t x : in) {
      ++count[x % 64];
      sum[x % 4] += uint64_t(x) << 20;
      e[0] = std::max(e[0], int32_t(x));
      e[1] = std::min(e[1], int32_t(x));
      e[2] |= int32_t(x);
      e[3] &= int32_t(x | 0xF0);
      e[4] ^= int32_t(x);
    }
    CHECK(k.read<uint32_t>(histogram, 64) == count);
    CHECK(k.read<uint64_t>(sums, 4) == sum);
    CHECK(k.read<int32_t>(extremes, 5) == e);
    CHECK(k.read<uint32_t>(k.global("device_counter"), 1)[0] == 16 * 128);
  });
}

TEST_CASE("locks and flags between lanes and between CTAs") {
  for_host_threads([&](Kernel& k) {
    const uint64_t word = k.buffer<uint32_t>(1), value = k.buffer<uint32_t>(1);
    k.run("lock", {{3, 1, 1}, {64, 1, 1}}, word, value, uint32_t(2));
    CHECK(k.read<uint32_t>(value, 1)[0] == 3 * 64 * 2);
    CHECK(k.read<uint32_t>(word, 1)[0] == 0);

    const uint64_t out = k.buffer<uint32_t>(33);
    k.run("lane_flag", {{1, 1, 1}, {32, 1, 1}}, out);
    CHECK(k.read<uint32_t>(out, 33)[0] == 41);
    CHECK(k.read<uint32_t>(out, 33)[32] == 31);

    // Four SMs hold the four CTAs at once.
    const uint64_t flags = k.buffer<uint32_t>(4), values = k.buffer<uint32_t>(4 * 64);
    k.run("cta_chain", {{4, 1, 1}, {64, 1, 1}}, flags, values);
    const auto got = k.read<uint32_t>(values, 4 * 64);
    for (uint32_t i = 0; i < 4 * 64; ++i) CHECK(got[i] == 4 - i / 64);
  });
}

TEST_CASE("named barriers between two warps") {
  const auto in = random_words(32 * 9, 7);
  for_host_threads([&](Kernel& k) {
    const uint64_t from = k.upload(in), to = k.buffer<uint32_t>(32 * 9);
    k.run("named_barriers", {{1, 1, 1}, {64, 1, 1}}, from, to, int32_t(9));
    const auto got = k.read<uint32_t>(to, 32 * 9);
    for (uint32_t i = 0; i < 32 * 9; ++i) CHECK(got[i] == in[i / 32 * 32 + 31 - i % 32] * 3);
  });
}

TEST_CASE("64-bit addresses, vectors, bytes") {
  const auto in = random_words(4 * 256, 8);
  Kernel k(compiled());
  const uint64_t from = k.upload(in), to = k.buffer<uint32_t>(2 * 128), bytes = k.buffer<int8_t>(3 * 128);
  k.run("wide_addresses", {{2, 1, 1}, {64, 1, 1}}, from, uint64_t(32), int32_t(-24), to, bytes);
  const auto words = k.read<uint32_t>(to, 2 * 128);
  const auto small = k.read<int8_t>(bytes, 3 * 128);
  for (size_t i = 0; i < 128; ++i) {
    const uint32_t* v = in.data() + (64 * 32 - 24 * 32) / 4 + 4 * i;
    CHECK(words[2 * i] == (v[0] ^ v[3]));
    CHECK(words[2 * i + 1] == v[1] + v[2]);
    CHECK(small[3 * i] == int8_t(v[0]));
    CHECK(small[3 * i + 1] == int8_t(int8_t(v[0]) / 3));
    CHECK(small[3 * i + 2] == int8_t(int8_t(v[1] >> 8) < 0));
  }
}

TEST_CASE("three-dimensional grids and blocks, partial warps") {
  for_host_threads([&](Kernel& k) {
    const uint64_t out = k.buffer<uint32_t>(12 * 30);
    k.run("geometry", {{3, 2, 2}, {5, 3, 2}}, out);
    const auto got = k.read<uint32_t>(out, 12 * 30);
    for (uint32_t i = 0; i < 12 * 30; ++i) {
      const uint32_t b = i / 30, t = i % 30;
      CHECK(got[i] ==
            ((b % 3) | (b / 3 % 2) << 4 | (b / 6) << 8 | (t % 5) << 12 | (t / 5 % 3) << 16 | (t / 15) << 20));
    }
  });
}

TEST_CASE("floating-point code as the compiler emits it") {
  Random random(9);
  std::vector<float> in(256);
  for (float& x : in) x = float(int32_t(random.next())) * 0x1p-24f;
  Kernel k(compiled());
  const uint64_t from = k.upload(in), to = k.buffer<float>(256), wide = k.buffer<double>(256);
  k.run("polynomial", {{4, 1, 1}, {64, 1, 1}}, from, to, wide);
  const auto got = k.read<float>(to, 256);
  const auto doubles = k.read<double>(wide, 256);
  for (size_t i = 0; i < 256; ++i) {
    const float x = in[i];
    CHECK(got[i] == std::fma(std::fma(std::fma(0.25f, x, -1.5f), x, 3.0f), x, 0.125f) / std::fma(x, x, 1.0f));
    CHECK(doubles[i] == std::sqrt(std::fma(double(x), double(x), 1.0)) / std::fma(double(x), double(x), 2.0));
  }
}

TEST_CASE("a warp that has left does not count at __syncthreads") {
  Kernel k(compiled());
  const uint64_t out = k.buffer<uint32_t>(96);
  k.run("early_warp", {{1, 1, 1}, {96, 1, 1}}, out);
  const auto got = k.read<uint32_t>(out, 96);
  for (uint32_t i = 0; i < 96; ++i) CHECK(got[i] == (i / 32 == 1 ? 0 : (95 - i) * 5));
}

TEST_CASE("halves of a warp at bar.warp.sync and at barrier.sync") {
  Kernel k(compiled());
  const uint64_t out = k.buffer<uint32_t>(128);
  k.run("split_warps", {{1, 1, 1}, {64, 1, 1}}, out);
  const auto got = k.read<uint32_t>(out, 128);
  for (uint32_t t = 0; t < 64; ++t) {
    CHECK(got[t] == (t % 32 < 16 ? t + 16 + 200 : t - 16 + 100));
    CHECK(got[64 + t] == 7);
  }
}

TEST_CASE("lanes that wait long for one lane are whole again behind bar.warp.sync") {
  Kernel k(compiled());
  const uint64_t in = k.upload(std::vector<uint32_t>{12345}), out = k.buffer<uint32_t>(64);
  k.run("long_lane", {{1, 1, 1}, {64, 1, 1}}, in, out, uint32_t(100000));
  uint32_t x = 12345;
  for (int i = 0; i < 100000; ++i) x = x * 1664525u + (x >> 13);
  const auto got = k.read<uint32_t>(out, 64);
  for (uint32_t t = 0; t < 64; ++t) CHECK(got[t] == x + (t ^ 1));
}

TEST_CASE("groups of lanes that name different member masks") {
  std::vector<uint32_t> sum(64, 0), words(64);
  for (uint32_t size = 2; size <= 16; size *= 2) {
    for (uint32_t t = 0; t < 64; ++t) {
      const uint32_t first = t / size * size;
      uint32_t total = 0, votes = 0;
      for (uint32_t other = first; other < first + size; ++other) {
        total += other;
        votes |= uint32_t(other % 3 == 0) << other % 32;
      }
      words[t] = ((sum[t] + (t ^ 1) * size) * 31 + total) * 31 + votes;
    }
    for (uint32_t t = 0; t < 64; ++t) sum[t] = words[t] + words[t ^ (size - 1)];
  }
  for (uint32_t late : {32u, 0u, 1u}) {
    Kernel k(compiled());
    if (late == 1) k.device().set_adversarial(7, true);  // lanes that part do not come together by themselves
    const uint64_t out = k.buffer<uint32_t>(64);
    k.run("groups_of_lanes", {{1, 1, 1}, {64, 1, 1}}, out, late);
    CHECK(k.read<uint32_t>(out, 64) == sum);
  }
}

TEST_CASE("threads that leave early") {
  const auto in = random_words(256, 9);
  for (uint32_t n : {0u, 2u, 100u, 190u, 254u, 256u}) {
    std::vector<uint32_t> expected(256);
    for (uint32_t i = 0; i < 256; ++i) {
      expected[i] = i;
      if (i >= n) continue;
      uint32_t odd = 0, big = 0;
      for (uint32_t k = i / 64 * 64; k < std::min(n, i / 64 * 64 + 64); ++k) odd += in[k ^ 1] & 1;
      for (uint32_t k = i / 32 * 32; k < std::min(n, i / 32 * 32 + 32); ++k)
        big |= (in[k ^ 1] >> 31) << k % 32;
      const uint32_t v = in[i ^ 1];
      if (v % 3 == 0 && v % 2 == 0)
        expected[i] = v;
      else
        expected[i] = (v + odd + (v % 3 == 0 ? uint32_t(__builtin_popcount(big)) : 0)) ^ big;
    }
    for_host_threads([&](Kernel& k) {
      INFO(n << " elements");
      const uint64_t from = k.upload(in), to = k.buffer<uint32_t>(256);
      k.run("leave_early", {{4, 1, 1}, {64, 1, 1}}, from, to, n);
      CHECK(k.read<uint32_t>(to, 256) == expected);
    });
  }
}
