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
bool sees(MaskKind kind, int64_t left, int64_t right, bool top_left, int64_t i, int64_t j, int64_t seq_q,
          int64_t seq_kv) {
  if (j < 0 || j >= seq_kv) return false;
  const int64_t diagonal = top_left ? i : i + seq_kv - seq_q;
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
  INFO("mask " << int(kind) << " left " << mask.left << " right " << mask.right << " top left "
               << mask.top_left << " seq_q " << seq_q << " seq_kv " << seq_kv << " packed heads "
               << (1 << packed_log2));
  const auto row_sees = [&](int i, int64_t j) {
    return sees(kind, mask.left, mask.right, mask.top_left, i, j, seq_q, seq_kv);
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
    // A general kernel visits a block in any case, where none is visible one past the last key, and never the first.
    const int past_block = std::max(all_blocks, 1);
    const bool past = config.general() && visited.begin == past_block;
    good = good && 0 <= visited.begin && visited.begin <= visited.end;
    good = good && (past ? visited.end == past_block + 1 : visited.end <= all_blocks);
    good = good && (visited.begin < visited.end || !config.general());
    int first_needed = all_blocks, end_needed = 0;  // blocks that a valid row of the task sees
    for (int stage = 0; stage < 2; ++stage) {
      const int first = task.position(stage);
      const BlockRegions r = fa4::stage_blocks<config>(mask, task, stage);
      // The one past the last key is masked in every stage: no block of the task is unmasked.
      good = good && r.begin == visited.begin && r.end == visited.end &&
             (past ? r.unmasked_end == r.begin : r.begin <= r.unmasked_begin) &&
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
        const int diagonal = mask.top_left ? i : i + seq_kv - seq_q;
        good = good && (!empty || !row_sees(i, std::clamp(diagonal, 0, std::max(seq_kv - 1, 0))));
      }
    }
    // A window of rows that see nothing may leave blocks between; what is visited must hold all that is
    // needed, and for prefixes nothing else.
    good = good && (end_needed == 0 || (visited.begin <= first_needed && visited.end >= end_needed));
    good = good && (!past || end_needed == 0);
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
            for (const bool top_left : {false, true})
              check_regions(Mask<MaskKind::band>{left, right, top_left}, seq_q, seq_kv, packed_log2);
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
        for (const bool top_left : {false, true}) {
          const KeyRange all =
              Mask<MaskKind::band>{unbounded, unbounded, top_left}.keys(position, seq_q, seq_kv);
          CHECK((all.begin == 0 && all.end == seq_kv));
        }
        const KeyRange causal = Mask<MaskKind::band>{unbounded, 0}.keys(position, seq_q, seq_kv);
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

TEST_CASE("bands of the longest sequences, to the last bit of their bounds, are what 64 bits say", "[mask]") {
  constexpr int unbounded = std::numeric_limits<int>::max(), longest = fa4::kMaxSequence;
  int wrong = 0;
  for (const int seq_q : {1, 2, 1000, longest - 1, longest})
    for (const int seq_kv : {0, 1, 1000, longest - 1, longest})
      for (const int left : {0, 1, 1000, longest - 1, longest, unbounded - 1, unbounded})
        for (const int right : {0, 1, 1000, longest - 1, longest, unbounded - 1, unbounded})
          for (const bool top_left : {false, true})
            for (const int64_t at : {int64_t{0}, int64_t{seq_q} / 2, int64_t{seq_q} - 1}) {
              const KeyRange keys = Mask<MaskKind::band>{left, right, top_left}.keys(int(at), seq_q, seq_kv);
              const int64_t diagonal = top_left ? at : at + seq_kv - seq_q;
              const int64_t begin = std::max<int64_t>(diagonal - left, 0);
              const int64_t end = std::min<int64_t>(diagonal + right + 1, seq_kv);
              // An empty range is empty; where it lies is of no matter.
              wrong += begin < end ? keys.begin != begin || keys.end != end : keys.begin < keys.end;
            }
  CHECK(wrong == 0);
}

TEST_CASE("a general task visits blocks within 32 bits, also where it sees no key of the longest", "[mask]") {
  constexpr const fa4::Config& config = kConfig<MaskKind::band>;
  const int longest = fa4::kMaxSequence, all_blocks = int((int64_t{longest} + 127) / 128);
  fa4::AttentionParams params{};
  params.groups_per_kv_head = fa4::make_divisor(1);
  params.seq_q = params.seq_kv = longest;
  const int last_m = (longest - 1) / config.block_rows();
  // Top left, with a query far behind the last key.
  const fa4::Task far = fa4::make_task<config>(params, {0, 0, last_m}, {longest, 1000, 0, 0});
  BlockRegions visited = fa4::visited_blocks<config>(Mask<MaskKind::band>{5, 0, true}, far);
  CHECK((visited.begin == 8 && visited.end == 9));
  // Bottom right, with a query far before the first key.
  const fa4::Task before = fa4::make_task<config>(params, {0, 0, 0}, {longest, 1000, 0, 0});
  visited = fa4::visited_blocks<config>(Mask<MaskKind::band>{5, 0, false}, before);
  CHECK((visited.begin == 8 && visited.end == 9));
  CHECK(int64_t{before.kv_origin} + 128 * visited.begin < std::numeric_limits<int>::max());
  // No keys at all, and the last of the longest.
  const fa4::Task none = fa4::make_task<config>(params, {0, 0, last_m}, {longest, 0, 0, 0});
  visited = fa4::visited_blocks<config>(Mask<MaskKind::band>{5, 5, false}, none);
  CHECK((visited.begin == 1 && visited.end == 2));
  const fa4::Task last = fa4::make_task<config>(params, {0, 0, last_m}, {longest, longest, 0, 0});
  visited = fa4::visited_blocks<config>(Mask<MaskKind::band>{0, 0, false}, last);
  CHECK((visited.begin == int(last_m * int64_t{config.block_rows()} / 128) && visited.end == all_blocks));
}
