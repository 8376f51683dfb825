// SPDX-License-Identifier: Apache-2.0
// Every head dimension that is a multiple of 8. What lies beside a head, in memory or in the box that a copy brings, must not
// matter, and must not be written.
#include <array>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Layout;

constexpr int64_t kMostDim = 128;
constexpr uint16_t kNan = 0x7fff, kInfinity = 0xff80;  // of bf16; of fp16 both are NaN

}  // namespace

TEST_CASE("every multiple of 8", "[head-dims]") {
  uint64_t seed = 900;
  for (int64_t head_dim = 8; head_dim <= kMostDim; head_dim += 8) {
    for (const Dtype dtype : {Dtype::fp16, Dtype::bf16}) {
      for (const bool causal : {false, true}) {
        // Heads end to end, so that the columns behind one are the next one's; and far apart, with NaN or infinities between.
        for (const auto& [layout, beside] : std::array<std::pair<Layout, uint16_t>, 4>{
                 {{Layout::bshd, kNan}, {Layout::bhsd, kNan}, {Layout::padded, kNan}, {Layout::padded, kInfinity}}}) {
          const int64_t seq_q = 1 + int64_t(seed * 37 % 300), seq_kv = 1 + int64_t(seed * 53 % 400);
          test::Case c{{dtype, causal, 2, seq_q, seq_kv, 4, 2, 0, head_dim}, {layout, FA4_SCHEDULER_AUTO, true, 3}, ++seed};
          c.options.beside = beside;
          CHECK(test::verify(c) == "");
        }
      }
    }
  }
}

TEST_CASE("a map without keys ends with the head dimension too", "[head-dims]") {
  for (const int64_t head_dim : {40, 72}) {
    for (const int64_t seq_kv : {0, 1, 60}) {
      const test::Case c{{Dtype::fp16, true, 2, 300, seq_kv, 4, 2, 0, head_dim}, {Layout::padded, FA4_SCHEDULER_AUTO, true, 2}, 1600};
      CHECK(test::verify(c) == "");
    }
  }
}

TEST_CASE("columns that a head has not get nothing from its neighbours", "[head-dims]") {
  // Q, K and V interleaved in one tensor; one head that is repeated; ratios that pack rows of several heads into a tile.
  uint64_t seed = 1700;
  for (const int64_t head_dim : {8, 56, 72, 96, 120}) {
    for (const Layout layout : {Layout::fused_qkv, Layout::broadcast}) {
      for (const auto& [q_heads, kv_heads] : std::array<std::array<int64_t, 2>, 3>{{{1, 1}, {6, 2}, {16, 1}}}) {
        const test::Case c{{Dtype::bf16, true, 2, 197, 197, q_heads, kv_heads, 0, head_dim}, {layout, FA4_SCHEDULER_AUTO, true, 2}, ++seed};
        CHECK(test::verify(c) == "");
      }
    }
  }
}
