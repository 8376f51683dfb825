// SPDX-License-Identifier: Apache-2.0
// CTAs that may talk to each other run together under one clock.
#include <time.h>

#include <algorithm>

#include "kernel.h"
#include "support/catch.h"
#include "tools/sim/engine/group.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

TEST_CASE("a race knows its first two") {
  Random random(1);
  for (size_t entrants : {1u, 2u, 3u, 7u, 8u, 100u}) {
    Race race(entrants);
    std::vector<Race::Times> times(entrants);
    for (int i = 0; i < 2000; ++i) {
      const size_t changed = size_t(random.next() % entrants);
      uint64_t a = random.next() % 50, b = random.next() % 50;
      if (random.next() % 4 == 0) a = Race::kNever;
      if (a == Race::kNever || random.next() % 3 == 0) b = Race::kNever;
      times[changed] = {std::min(a, b), std::max(a, b)};
      race.set(changed, times[changed]);
      const auto first = std::min_element(times.begin(), times.end(),
                                          [](const auto& x, const auto& y) { return x.first < y.first; });
      uint64_t second = first->second;
      for (const auto& t : times) {
        if (&t != &*first) second = std::min(second, t.first);
      }
      REQUIRE(race.winner() == size_t(first - times.begin()));
      REQUIRE(race.second() == second);
    }
  }
}

// Seconds of this thread's CPU for a launch of CTAs whose warps take turns at barriers, all resident.
static double seconds_of(uint32_t ctas) {
  Kernel kernel(entry_of(".param .u64 out", R"(
  .reg .pred %p;
  .reg .b32 %r<3>;
  .reg .b64 %d;
  ld.param.u64 %d, [out];
  atom.global.add.u32 %r0, [%d], 1;
  mov.u32 %r1, 0;
AGAIN:
  bar.sync 0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p, %r1, 200;
  @%p bra AGAIN;
  ret;)"),
                1, ctas);
  const uint64_t out = kernel.buffer<uint32_t>(1);
  timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  kernel.run("kernel", {{ctas, 1, 1}, {64, 1, 1}}, out);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  CHECK(kernel.read<uint32_t>(out, 1)[0] == ctas * 64);
  return double(end.tv_sec - begin.tv_sec) + 1e-9 * double(end.tv_nsec - begin.tv_nsec);
}

TEST_CASE("the time of a launch is proportional to the CTAs that are resident together") {
  double few = 1e9, many = 1e9;
  for (int i = 0; i < 3; ++i) {
    few = std::min(few, seconds_of(16));
    many = std::min(many, seconds_of(512));
  }
  INFO("16 CTAs: " << few << " s, 512: " << many << " s");
  CHECK(many <
        4 * 32 *
            few);  // 32 times as many; if each step looked at all of them, it would be 1000 times as long
}
