// SPDX-License-Identifier: Apache-2.0
// The three regions of a task's key blocks against the definition of the mask, key by key.
#include <algorithm>

#include "asm/attention/blocks.h"
#include "support/catch.h"

namespace {

// The definition: query i sees key k.
bool sees(bool causal, int64_t i, int64_t k, int64_t seq_q, int64_t seq_kv) {
  return k < seq_kv && (!causal || k <= i + seq_kv - seq_q);
}

template <bool causal>
void check_regions(int seq_q, int seq_kv, int packed_log2) {
  const int positions = fa4::kTileRows >> packed_log2;
  const int m_blocks = (seq_q + 2 * positions - 1) / (2 * positions);
  const int all_blocks = (seq_kv + fa4::kBlockKeys - 1) / fa4::kBlockKeys;
  INFO("causal " << causal << " seq_q " << seq_q << " seq_kv " << seq_kv << " packed heads "
                 << (1 << packed_log2));
  bool good = true;
  for (int m = 0; m < m_blocks; ++m) {
    const int blocks = fa4::block_count<causal>(m, packed_log2, seq_q, seq_kv);
    good = good && blocks >= 0 && blocks <= all_blocks;
    int needed = 0;  // one more than the last block that a valid row of the task sees
    for (int stage = 0; stage < 2; ++stage) {
      const int first = fa4::first_position(m, stage, packed_log2);
      const int unmasked = fa4::unmasked_block_count<causal>(m, stage, packed_log2, seq_q, seq_kv);
      good = good && unmasked <= blocks;
      for (int block = 0; block < all_blocks; ++block) {
        bool any = false, all = true;
        for (int i = first; i < first + positions && i < seq_q; ++i) {
          // A row sees a prefix of the keys, so its first and last key of the block tell.
          any = any || sees(causal, i, 128LL * block, seq_q, seq_kv);
          all = all && sees(causal, i, 128LL * block + 127, seq_q, seq_kv);
        }
        if (any) needed = std::max(needed, block + 1);
        if (first < seq_q && (block < unmasked) != all)
          good = false;  // the mask runs exactly where it is needed
      }
      for (int i = first; i < first + positions && i < seq_q; ++i) {
        const int visible = fa4::visible_keys<causal>(i, seq_q, seq_kv);
        good = good && (visible <= 0 || sees(causal, i, visible - 1, seq_q, seq_kv)) &&
               !sees(causal, i, std::max(visible, 0), seq_q, seq_kv);
      }
    }
    good = good && blocks == needed;
  }
  CHECK(good);
}

}  // namespace

TEST_CASE("skipped, masked and unmasked blocks follow from the mask", "[blocks]") {
  for (const int seq_q : {1, 2, 31, 127, 128, 129, 255, 256, 257, 383, 1000}) {
    for (const int seq_kv : {0, 1, 2, 127, 128, 129, 255, 256, 257, 383, 1000}) {
      for (int packed_log2 = 0; packed_log2 <= 7; ++packed_log2) {
        check_regions<false>(seq_q, seq_kv, packed_log2);
        check_regions<true>(seq_q, seq_kv, packed_log2);
      }
    }
  }
}

TEST_CASE("the longest sequences stay within 32 bits", "[blocks]") {
  const int longest = fa4::kMaxSequence;
  for (int packed_log2 = 0; packed_log2 <= 7; ++packed_log2) {
    const int positions = fa4::kTileRows >> packed_log2;
    const int last_m = (longest - 1) / (2 * positions);
    CHECK(static_cast<int64_t>(fa4::first_position(last_m, 1, packed_log2)) ==
          (2LL * last_m + 1) * positions);
    CHECK(fa4::block_count<true>(last_m, packed_log2, longest, longest) == (longest + 127LL) / 128);
    CHECK(fa4::block_count<true>(0, packed_log2, longest, longest) == (2 * positions + 127) / 128);
    CHECK(fa4::block_count<true>(0, packed_log2, longest, 1) == (2 * positions >= longest ? 1 : 0));
    CHECK(fa4::unmasked_block_count<true>(last_m, 0, packed_log2, longest, longest) ==
          (2LL * last_m * positions + 1) / 128);
  }
}
