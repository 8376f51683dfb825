// SPDX-License-Identifier: Apache-2.0
// Masks against their definition, key by key: the keys of a row, and the regions of a tile's key blocks.
#include <algorithm>
#include <limits>

#include "asm/attention/blackwell/layout.h"
#include "asm/attention/task.h"
#include "support/catch.h"

namespace {

using fa4::BlockRegions;
using fa4::KeyRange;
using fa4::Mask;
using fa4::MaskKind;

// The definition: query i sees key j.
bool sees(MaskKind kind, int64_t left, int64_t right, int64_t i, int64_t j, int64_t seq_q, int64_t seq_kv) {
  if (j < 0 || j >= seq_kv) return false;
  const int64_t diagonal = i + seq_kv - seq_q;
  if (kind == MaskKind::full) return true;
  if (kind == MaskKind::causal) return j <= diagonal;
  return diagonal - left <= j && j <= diagonal + right;
}

template <MaskKind kind>
constexpr fa4::Config kConfig = fa4::blackwell::make_config(fa4::ElementType::f16, kind, 128, 128);

template <MaskKind kind>
void check_regions(const Mask<kind>& mask, int seq_q, int seq_kv, int packed_log2) {
  constexpr const fa4::Config& config = kConfig<kind>;
  const int positions = fa4::blackwell::kTileRows >> packed_log2;
  const int m_blocks = (seq_q + 2 * positions - 1) / (2 * positions);
  const int all_blocks = (seq_kv + config.block_keys - 1) / config.block_keys;
  INFO("mask " << int(kind) << " left " << mask.left << " right " << mask.right << " seq_q " << seq_q
               << " seq_kv " << seq_kv << " packed heads " << (1 << packed_log2));
  const auto row_sees = [&](int i, int64_t j) {
    return sees(kind, mask.left, mask.right, i, j, seq_q, seq_kv);
  };
  fa4::AttentionParams params{};
  params.seq_q = seq_q;
  params.seq_kv = seq_kv;
  params.packed_heads_log2 = packed_log2;
  params.groups_per_kv_head = fa4::make_divisor(1);
  bool good = true;
  for (int m = 0; m < m_blocks; ++m) {
    const fa4::Task task = fa4::make_task<config>(params, {0, 0, m});
    const BlockRegions visited = fa4::visited_blocks<config>(mask, task);
    good = good && 0 <= visited.begin && visited.begin <= visited.end && visited.end <= all_blocks;
    int first_needed = all_blocks, end_needed = 0;  // blocks that a valid row of the task sees
    for (int stage = 0; stage < 2; ++stage) {
      const int first = task.position(stage);
      const BlockRegions r = fa4::stage_blocks<config>(mask, task, stage);
      good = good && r.begin == visited.begin && r.end == visited.end && r.begin <= r.unmasked_begin &&
             r.unmasked_begin <= r.unmasked_end && r.unmasked_end <= r.end;
      for (int block = 0; block < all_blocks; ++block) {
        const int64_t key = int64_t{block} * config.block_keys;
        bool any = false, all = true;
        for (int i = first; i < first + positions && i < seq_q; ++i) {
          // A row sees a range of the keys: it sees the block entirely when it sees its first and last key.
          const KeyRange keys = mask.keys(i, seq_q, seq_kv);
          any = any || (keys.begin < key + config.block_keys && keys.end > key && keys.begin < keys.end);
          all = all && row_sees(i, key) && row_sees(i, key + config.block_keys - 1);
        }
        if (any) first_needed = std::min(first_needed, block), end_needed = std::max(end_needed, block + 1);
        // The mask runs exactly where it is needed.
        if (first < seq_q && block >= r.begin && block < r.end)
          good = good && (block >= r.unmasked_begin && block < r.unmasked_end) == all;
      }
      for (int i = first; i < first + positions && i < seq_q; ++i) {
        const KeyRange keys = mask.keys(i, seq_q, seq_kv);
        const bool empty = keys.end <= keys.begin;
        good = good && (empty || (row_sees(i, keys.begin) && row_sees(i, keys.end - 1)));
        good = good && !row_sees(i, int64_t{keys.begin} - 1) && !row_sees(i, std::max(keys.begin, keys.end));
        good = good && (!empty || !row_sees(i, std::clamp(i + seq_kv - seq_q, 0, std::max(seq_kv - 1, 0))));
      }
    }
    // A window of rows that see nothing may leave blocks between; what is visited must hold all that is
    // needed, and for prefixes nothing else.
    good = good && (end_needed == 0 || (visited.begin <= first_needed && visited.end >= end_needed));
    if (!Mask<kind>::bounded_below) good = good && visited.begin == 0 && visited.end == end_needed;
  }
  CHECK(good);
}

}  // namespace

TEST_CASE("skipped, masked and unmasked blocks follow from the mask", "[mask]") {
  constexpr int unbounded = std::numeric_limits<int>::max();
  for (const int seq_q : {1, 2, 31, 127, 128, 129, 255, 256, 257, 383, 1000}) {
    for (const int seq_kv : {0, 1, 2, 127, 128, 129, 255, 256, 257, 383, 1000}) {
      for (int packed_log2 = 0; packed_log2 <= 7; ++packed_log2) {
        check_regions(Mask<MaskKind::full>{}, seq_q, seq_kv, packed_log2);
        check_regions(Mask<MaskKind::causal>{}, seq_q, seq_kv, packed_log2);
        for (const int left : {0, 1, 100, 128, 300, unbounded}) {
          for (const int right : {0, 1, 129, unbounded})
            check_regions(Mask<MaskKind::window>{left, right}, seq_q, seq_kv, packed_log2);
        }
      }
    }
  }
}

TEST_CASE("a window without bounds is the full mask, and one of right 0 the causal one", "[mask]") {
  constexpr int unbounded = std::numeric_limits<int>::max();
  for (const int seq_q : {1, 200, fa4::kMaxSequence}) {
    for (const int seq_kv : {1, 130, fa4::kMaxSequence}) {
      for (const int position : {0, seq_q / 2, seq_q - 1, seq_q}) {
        const KeyRange all = Mask<MaskKind::window>{unbounded, unbounded}.keys(position, seq_q, seq_kv);
        CHECK((all.begin == 0 && all.end == seq_kv));
        const KeyRange causal = Mask<MaskKind::window>{unbounded, 0}.keys(position, seq_q, seq_kv);
        CHECK(
            (causal.begin == 0 && causal.end == Mask<MaskKind::causal>{}.keys(position, seq_q, seq_kv).end));
      }
    }
  }
}

TEST_CASE("the longest sequences stay within 32 bits", "[mask]") {
  constexpr const fa4::Config& config = kConfig<MaskKind::causal>;
  const Mask<MaskKind::causal> mask;
  const int longest = fa4::kMaxSequence;
  for (int packed_log2 = 0; packed_log2 <= 7; ++packed_log2) {
    const int positions = fa4::blackwell::kTileRows >> packed_log2;
    const int last_m = (longest - 1) / (2 * positions);
    fa4::AttentionParams params{};
    params.packed_heads_log2 = packed_log2;
    params.groups_per_kv_head = fa4::make_divisor(1);
    params.seq_q = params.seq_kv = longest;
    const fa4::Task first = fa4::make_task<config>(params, {0, 0, 0});
    const fa4::Task last = fa4::make_task<config>(params, {0, 0, last_m});
    CHECK(int64_t{last.position(1)} == (2LL * last_m + 1) * positions);
    CHECK(fa4::visited_blocks<config>(mask, last).end == (longest + 127LL) / 128);
    CHECK(fa4::visited_blocks<config>(mask, first).end == (2 * positions + 127) / 128);
    CHECK(fa4::stage_blocks<config>(mask, last, 0).unmasked_end == (2LL * last_m * positions + 1) / 128);
    params.seq_kv = 1;
    CHECK(fa4::visited_blocks<config>(mask, fa4::make_task<config>(params, {0, 0, 0})).end ==
          (2 * positions >= longest ? 1 : 0));
  }
}
