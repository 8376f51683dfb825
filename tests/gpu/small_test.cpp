// SPDX-License-Identifier: Apache-2.0
// Small problems that reach every kernel and every path that is worth a sanitizer's time, in one process:
// tests/gpu/sanitize runs them under compute-sanitizer.
#include <cstdio>

#include "attention/harness.h"

using namespace fa4;

TEST_CASE("small problems", "[small]") {
  struct Shape {
    bool causal;
    int64_t batch, seq_q, seq_kv, q_heads, kv_heads;
    support::Layout layout;
  };
  using enum support::Layout;
  const Shape shapes[] = {
      {false, 1, 128, 128, 1, 1, bshd},  // whole tiles
      {true, 1, 256, 256, 2, 2, bhsd},
      {false, 2, 77, 200, 4, 2, padded},  // tails of queries and of keys
      {true, 1, 130, 130, 3, 1, fused_qkv},
      {true, 2, 50, 300, 8, 2, bshd},  // queries behind a cache of keys
      {true, 1, 200, 90, 2, 1, bshd},  // rows that see no key
      {false, 1, 1, 500, 16, 2, broadcast},
      {false, 1, 5, 0, 2, 2, bshd},  // no key at all
  };
  int run = 0;
  for (const test::HeadDims& dims : test::head_dims())
    for (const support::Dtype dtype : {support::Dtype::fp16, support::Dtype::bf16})
      for (const Shape& s : shapes) {
        test::Case c;
        c.problem = {dtype, s.causal, s.batch, s.seq_q, s.seq_kv, s.q_heads, s.kv_heads, 0, dims.qk, dims.v};
        c.options.layout = s.layout;
        c.options.scheduler = run % 2 ? FA4_SCHEDULER_LPT : FA4_SCHEDULER_LINEAR;
        c.options.sm_count = run % 3 ? 3 : 0;  // CTAs with several tasks, and one for each
        c.seed = uint64_t(100 + run);
        CHECK(test::verify(c) == "");
        ++run;
      }
  std::printf("%d small problems\n", run);
}
