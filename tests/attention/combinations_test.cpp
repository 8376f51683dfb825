// SPDX-License-Identifier: Apache-2.0
// What a problem may ask for, in combination: every three values of three factors meet in some problem. The
// covering is made here, greedily, and judged by counting.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "harness.h"

namespace {

using namespace fa4;
using support::Dtype;
using support::Layout;
using test::Ragged;
using Rows = std::vector<int64_t>;

enum Factor { kQ, kKv, kMask, kScore, kDim, kDtype, kLengths, kRatio, kLayout, kExp2, kFactors };
constexpr std::array<const char*, kFactors> kNames{"Q's lengths",    "K's lengths", "mask",         "score",
                                                   "head dimension", "dtype",       "length class", "ratio",
                                                   "layout",         "exp2"};
enum Mask { kFull, kCausal, kWindow, kTopLeftCausal, kMasks };
enum Score { kPlain, kSoftcap, kSink, kSoftcapSink, kAlibi, kAlibiSink, kScores };
enum LengthClass { kTiny, kAtEdges, kMedium, kWithZeros, kFewQueries, kFewKeys, kLengthClasses };
constexpr std::array<test::HeadDims, 6> kDims{{{64, 64}, {128, 128}, {96, 96}, {192, 128}, {256, 256}, {72, 104}}};
constexpr std::array<int64_t, 4> kRatios{1, 4, 6, 16};
constexpr std::array<Layout, 5> kLayouts{Layout::bshd, Layout::bhsd, Layout::padded, Layout::broadcast,
                                         Layout::fused_qkv};
constexpr std::array<uint32_t, 4> kSms{1, 2, 3, 148};

constexpr int64_t kLeastProblems = 400;
constexpr int64_t kMaxStageBlocks = 48;  // bounds what one problem costs to simulate

using Choice = std::array<int, kFactors>;  // a value of each factor, or -1

std::array<int, kFactors> counts() {
  const int exp2_ways = test::kernels().other_exp2 ? 2 : 1;
  return {4,
          4,
          kMasks,
          kScores,
          int(kDims.size()),
          2,
          kLengthClasses,
          int(kRatios.size()),
          int(kLayouts.size()),
          exp2_ways};
}

bool is_packed(int ragged) {
  return ragged >= 0 &&
         (test::kRagged[size_t(ragged)] == Ragged::packed || test::kRagged[size_t(ragged)] == Ragged::both);
}
// A fused tensor has as many rows of Q as of K and V.
bool possible(const Choice& c) {
  const bool fused = c[kLayout] >= 0 && kLayouts[size_t(c[kLayout])] == Layout::fused_qkv;
  return !fused || c[kQ] < 0 || c[kKv] < 0 || is_packed(c[kQ]) == is_packed(c[kKv]);
}

// Every value of factors a < b < c, as one number.
struct Triple {
  int a, b, c;
};
std::vector<Triple> triples() {
  std::vector<Triple> all;
  for (int a = 0; a < kFactors; ++a)
    for (int b = a + 1; b < kFactors; ++b)
      for (int c = b + 1; c < kFactors; ++c) all.push_back({a, b, c});
  return all;
}
constexpr int kMostValues = 8;
int key_of(const Choice& choice, const Triple& t, size_t index) {
  return ((int(index) * kMostValues + choice[size_t(t.a)]) * kMostValues + choice[size_t(t.b)]) *
             kMostValues +
         choice[size_t(t.c)];
}

// From each triple that is not met yet a problem grows factor by factor, each with the value that meets most
// others.
std::vector<Choice> make_covering() {
  const std::array<int, kFactors> count = counts();
  const std::vector<Triple> all = triples();
  std::vector<char> met(all.size() * kMostValues * kMostValues * kMostValues, 0);
  std::vector<Choice> covering;
  test::Picker pick{2024};
  const auto fresh = [&](const Choice& choice,
                         int factor) {  // triples that `factor` completes and that are new
    int result = 0;
    for (size_t t = 0; t < all.size(); ++t) {
      const Triple& of = all[t];
      if (of.a != factor && of.b != factor && of.c != factor) continue;
      if (choice[size_t(of.a)] < 0 || choice[size_t(of.b)] < 0 || choice[size_t(of.c)] < 0) continue;
      result += !met[size_t(key_of(choice, of, t))];
    }
    return result;
  };
  const auto grow = [&](Choice choice) {
    for (int factor = 0; factor < kFactors; ++factor) {
      if (choice[size_t(factor)] >= 0) continue;
      int best = -1, best_fresh = -1;
      const int first = int(pick(size_t(count[size_t(factor)])));
      for (int i = 0; i < count[size_t(factor)]; ++i) {
        choice[size_t(factor)] = (first + i) % count[size_t(factor)];
        if (!possible(choice)) continue;
        if (const int f = fresh(choice, factor); f > best_fresh)
          best = choice[size_t(factor)], best_fresh = f;
      }
      choice[size_t(factor)] = best;
    }
    for (size_t t = 0; t < all.size(); ++t) met[size_t(key_of(choice, all[t], t))] = 1;
    covering.push_back(choice);
  };
  for (size_t t = 0; t < all.size(); ++t)
    for (int a = 0; a < count[size_t(all[t].a)]; ++a)
      for (int b = 0; b < count[size_t(all[t].b)]; ++b)
        for (int c = 0; c < count[size_t(all[t].c)]; ++c) {
          Choice seed;
          seed.fill(-1);
          seed[size_t(all[t].a)] = a, seed[size_t(all[t].b)] = b, seed[size_t(all[t].c)] = c;
          if (possible(seed) && !met[size_t(key_of(seed, all[t], t))]) grow(seed);
        }
  while (int64_t(covering.size()) < kLeastProblems) {
    Choice open;
    open.fill(-1);
    grow(open);
  }
  return covering;
}

int64_t length_of(int length_class, bool of_q, test::Picker& pick) {
  constexpr std::array<int64_t, 9> edges{63, 64, 65, 127, 128, 129, 191, 193, 257};
  switch (length_class) {
    case kTiny:
      return int64_t(1 + pick(16));
    case kAtEdges:
      return edges[pick(edges.size())];
    case kMedium:
      return int64_t(100 + pick(200));
    case kWithZeros:
      return pick(2) ? 0 : int64_t(1 + pick(140));
    case kFewQueries:
      return of_q ? int64_t(1 + pick(5)) : int64_t(200 + pick(300));
    default:
      return of_q ? int64_t(150 + pick(150)) : int64_t(1 + pick(50));
  }
}

test::Case make_case(const Choice& choice, uint64_t seed) {
  test::Picker pick{seed * 977 + 5};
  test::Case c;
  c.seed = seed;
  support::Problem& p = c.problem;
  p.dtype = choice[kDtype] ? Dtype::bf16 : Dtype::fp16;
  p.head_dim = kDims[size_t(choice[kDim])].qk;
  p.head_dim_v = kDims[size_t(choice[kDim])].v;
  p.kv_heads = int64_t(1 + pick(2));
  p.q_heads = p.kv_heads * kRatios[size_t(choice[kRatio])];
  const size_t batch = 2 + pick(3);
  c.options.layout = kLayouts[size_t(choice[kLayout])];
  c.options.scheduler = pick(2) ? FA4_SCHEDULER_LPT : FA4_SCHEDULER_LINEAR;
  c.options.sm_count = kSms[pick(kSms.size())];
  c.options.lse = pick(6) != 0;
  if (choice[kExp2])
    c.options.exp2 = test::kernels().exp2 == Exp2::mufu ? FA4_EXP2_POLYNOMIAL : FA4_EXP2_MUFU;

  Rows q, kv;
  for (size_t b = 0; b < batch; ++b) {
    q.push_back(length_of(choice[kLengths], true, pick));
    kv.push_back(length_of(choice[kLengths], false, pick));
  }
  if (c.options.layout == Layout::fused_qkv) kv = q;
  const auto set_rows = [&] {
    p.batch = int64_t(q.size());
    test::set_q_rows(p, test::kRagged[size_t(choice[kQ])], q);
    test::set_kv_rows(p, test::kRagged[size_t(choice[kKv])], kv);
    if (c.options.layout != Layout::fused_qkv || choice[kQ] == choice[kKv] || !is_packed(choice[kQ])) return;
    p.q_lengths.packed = p.kv_lengths.packed = q;  // as many rows: those that do not count too
  };
  set_rows();
  // Cheaper, if it must be: one KV head, then two entries.
  if (test::stage_blocks(p) > kMaxStageBlocks) {
    p.q_heads /= p.kv_heads;
    p.kv_heads = 1;
  }
  for (; test::stage_blocks(p) > kMaxStageBlocks && q.size() > 2; set_rows()) {
    q.pop_back();
    kv.pop_back();
  }

  switch (choice[kMask]) {
    case kWindow: {
      constexpr std::array<int64_t, 8> bounds{-1, 0, 1, 5, 64, 127, 129, 200};
      p.window = true;
      p.window_left = bounds[pick(bounds.size())];
      p.window_right = bounds[p.window_left < 0 ? 1 + pick(bounds.size() - 1)
                                                : pick(bounds.size())];  // not both without bound
      p.top_left = pick(3) == 0;
      break;
    }
    case kTopLeftCausal:
      p.top_left = true;
      [[fallthrough]];
    case kCausal:
      p.causal = true;
      break;
    default:
      break;
  }
  const int score = choice[kScore];
  if (score == kSoftcap || score == kSoftcapSink) p.softcap = pick(2) ? 2 : 30;
  p.sinks = score == kSink || score == kSoftcapSink || score == kAlibiSink;
  p.alibi = score == kAlibi || score == kAlibiSink;
  p.slopes_by_entry = p.alibi && pick(2);
  return c;
}

// Every so-many-th problem of the covering.
void run_part(size_t part, size_t parts) {
  const std::vector<Choice> covering = make_covering();
  for (size_t i = part; i < covering.size(); i += parts)
    CHECK(test::verify(make_case(covering[i], 5000 + i)) == "");
}

}  // namespace

TEST_CASE("every three values meet, and problems are what was chosen", "[combinations-a]") {
  const std::vector<Choice> covering = make_covering();
  CHECK(int64_t(covering.size()) >= kLeastProblems);
  const std::array<int, kFactors> count = counts();
  // Two factors at a time, counted by themselves; then three.
  for (size_t a = 0; a < kFactors; ++a)
    for (size_t b = a + 1; b < kFactors; ++b) {
      std::set<std::pair<int, int>> met;
      for (const Choice& choice : covering) met.insert({choice[a], choice[b]});
      INFO(kNames[a] << " and " << kNames[b]);
      CHECK(met.size() == size_t(count[a] * count[b]));
      for (size_t c = b + 1; c < kFactors; ++c) {
        std::set<std::array<int, 3>> three;
        for (const Choice& choice : covering) three.insert({choice[a], choice[b], choice[c]});
        // Of the 16 pairs of lengths, those 8 that are packed on one side alone have no fused tensor.
        const size_t missing = a == kQ && b == kKv && c == kLayout ? 8 : 0;
        INFO("and " << kNames[c]);
        CHECK(three.size() == size_t(count[a] * count[b] * count[c]) - missing);
      }
    }
  std::map<std::string, int> seen;
  for (size_t i = 0; i < covering.size(); ++i) {
    const test::Case c = make_case(covering[i], 5000 + i);
    const support::Problem& p = c.problem;
    seen["softcap"] += p.softcap != 0;
    seen["sinks"] += p.sinks;
    seen["alibi"] += p.alibi;
    seen["window"] += p.window;
    seen["packed"] += !p.q_lengths.packed.empty();
    seen["used"] += !p.kv_lengths.used.empty();
    seen["entries without keys"] += p.length_kv(0) == 0;
    seen["entries without queries"] += p.length_q(0) == 0;
    seen["one SM"] += c.options.sm_count == 1;
    CHECK(test::stage_blocks(p) <= 5 * kMaxStageBlocks);  // two entries of queries for 16 heads
  }
  for (const auto& [what, times] : seen) {
    INFO(what);
    CHECK(times > 20);
  }
}

TEST_CASE("combinations, first part", "[combinations-a]") {
  run_part(0, 2);
}
TEST_CASE("combinations, second part", "[combinations-b]") {
  run_part(1, 2);
}
