// SPDX-License-Identifier: Apache-2.0
#include "match.h"

#include <algorithm>
#include <bit>
#include <deque>

namespace fa4::time {

namespace {

// A set of nodes of the PTX.
class Set {
 public:
  explicit Set(size_t size) : words_((size + 63) / 64) {}
  void add(uint32_t n) { words_[n / 64] |= 1ull << n % 64; }
  bool has(uint32_t n) const { return words_[n / 64] >> n % 64 & 1; }
  void add(const Set& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool meets(const Set& other) const {
    for (size_t i = 0; i < words_.size(); ++i)
      if (words_[i] & other.words_[i]) return true;
    return false;
  }
  // Keeps what `other` has, too; true if that took something away.
  bool keep(const Set& other) {
    bool changed = false;
    for (size_t i = 0; i < words_.size(); ++i) {
      const uint64_t kept = words_[i] & other.words_[i];
      changed |= kept != words_[i];
      words_[i] = kept;
    }
    return changed;
  }
  void keep_only(uint32_t n) {
    std::fill(words_.begin(), words_.end(), 0);
    add(n);
  }
  size_t count() const {
    size_t n = 0;
    for (uint64_t word : words_) n += size_t(std::popcount(word));
    return n;
  }
  template <class F>
  void each(F f) const {
    for (size_t i = 0; i < words_.size(); ++i)
      for (uint64_t word = words_[i]; word; word &= word - 1)
        f(uint32_t(i * 64 + size_t(std::countr_zero(word))));
  }

 private:
  std::vector<uint64_t> words_;
};

std::string list(const SyncGraph& graph, const std::vector<uint32_t>& nodes) {
  std::string text;
  for (uint32_t n : nodes)
    text += "    " + describe(graph.nodes[n]) +
            (n > 1 ? " (instruction " + std::to_string(graph.nodes[n].instruction) + ")" : "") + "\n";
  return text.empty() ? "    nothing\n" : text;
}

// The homomorphisms, as domains that shrink.
class Search {
 public:
  Search(const SyncGraph& ptx, const SyncGraph& sass) : ptx_(ptx), sass_(sass) {
    for (const SyncNode& node : ptx.nodes) {
      next_.emplace_back(ptx.nodes.size());
      for (uint32_t k : node.next) next_.back().add(k);
    }
    previous_.resize(sass.nodes.size());
    std::vector<bool> reached(sass.nodes.size());
    std::deque<uint32_t> queue{0};
    reached[0] = true;
    while (!queue.empty()) {
      const uint32_t s = queue.front();
      queue.pop_front();
      for (uint32_t k : sass.nodes[s].next) {
        if (!reached[k]) queue.push_back(k);
        reached[k] = true;
      }
      for (uint32_t k : sass.nodes[s].next_directly) previous_[k].push_back(s);
    }
    for (uint32_t s = 0; s < sass.nodes.size(); ++s) {
      domains_.emplace_back(ptx.nodes.size());
      for (uint32_t p = 0; p < ptx.nodes.size() && reached[s]; ++p)
        if (sass.nodes[s].sync == ptx.nodes[p].sync && sass.nodes[s].size == ptx.nodes[p].size)
          domains_[s].add(p);
    }
    reached_ = std::move(reached);
  }

  void run() {
    std::vector<uint32_t> all;
    for (uint32_t s = 0; s < sass_.nodes.size(); ++s) all.push_back(s);
    uint32_t failed = 0;
    if (!propagate(all, &failed)) complain(failed);
    cover();
  }

  Matching result() const {
    Matching m;
    for (const Set& domain : domains_) {
      m.originals.emplace_back();
      domain.each([&](uint32_t p) { m.originals.back().push_back(p); });
      m.ambiguous += m.originals.back().size() > 1;
    }
    return m;
  }

 private:
  // Shrinks the domains until every edge of the machine code has one of the PTX behind it. False when one is
  // empty.
  bool propagate(const std::vector<uint32_t>& from, uint32_t* failed) {
    std::deque<uint32_t> queue(from.begin(), from.end());
    std::vector<bool> queued(sass_.nodes.size());
    for (uint32_t s : from) queued[s] = true;
    const auto changed = [&](uint32_t s) {
      if (!queued[s]) queue.push_back(s);
      queued[s] = true;
    };
    while (!queue.empty()) {
      const uint32_t s = queue.front();
      queue.pop_front();
      queued[s] = false;
      if (!reached_[s]) continue;
      if (domains_[s].count() == 0) {
        *failed = s;
        return false;
      }
      Set after(ptx_.nodes.size());
      domains_[s].each([&](uint32_t p) { after.add(next_[p]); });
      for (uint32_t k : sass_.nodes[s].next_directly) {
        if (domains_[k].keep(after)) changed(k);
        // What may stand before k.
        Set before(ptx_.nodes.size());
        domains_[s].each([&](uint32_t p) {
          if (next_[p].meets(domains_[k])) before.add(p);
        });
        if (domains_[s].keep(before)) {
          changed(s);
          for (uint32_t b : previous_[s]) changed(b);
        }
      }
      for (uint32_t b : previous_[s]) {
        Set before(ptx_.nodes.size());
        domains_[b].each([&](uint32_t p) {
          if (next_[p].meets(domains_[s])) before.add(p);
        });
        if (domains_[b].keep(before)) changed(b);
      }
    }
    return true;
  }

  // Gives each node of the PTX a copy of its own, where one is possible: the nodes that have the fewest
  // candidates first.
  bool cover() {
    for (;;) {
      std::vector<std::vector<uint32_t>> candidates(ptx_.nodes.size());
      std::vector<bool> covered(ptx_.nodes.size());
      for (uint32_t s = 0; s < domains_.size(); ++s) {
        const bool one = domains_[s].count() == 1;
        domains_[s].each([&](uint32_t p) {
          if (one) covered[p] = true;
          candidates[p].push_back(s);
        });
      }
      uint32_t best = ~0u;
      for (uint32_t p = 0; p < ptx_.nodes.size(); ++p)
        if (!covered[p] && !candidates[p].empty() &&
            (best == ~0u || candidates[p].size() < candidates[best].size()))
          best = p;
      if (best == ~0u) return true;
      bool placed = false;
      for (uint32_t s : candidates[best]) {
        const std::vector<Set> before = domains_;
        domains_[s].keep_only(best);
        std::vector<uint32_t> around{s};
        around.insert(around.end(), previous_[s].begin(), previous_[s].end());
        uint32_t failed;
        if (propagate(around, &failed) && --steps_ > 0 && cover()) return true;
        domains_ = before;
        placed = true;
        if (steps_ <= 0) return true;
      }
      return !placed;
    }
  }

  [[noreturn]] void complain(uint32_t s) const {
    std::vector<uint32_t> alike;
    for (uint32_t p = 0; p < ptx_.nodes.size(); ++p)
      if (ptx_.nodes[p].sync == sass_.nodes[s].sync && ptx_.nodes[p].size == sass_.nodes[s].size)
        alike.push_back(p);
    throw Error("the machine code does not match the PTX: no instruction of the PTX can be the " +
                describe(sass_.nodes[s]) + " at instruction " + std::to_string(sass_.nodes[s].instruction) +
                " of the machine code\n  of that kind the PTX has\n" + list(ptx_, alike) +
                "  before it, the machine code has\n" + list(sass_, previous_[s]) + "  behind it\n" +
                list(sass_, sass_.nodes[s].next));
  }

  const SyncGraph &ptx_, &sass_;
  std::vector<Set> next_;                        // [node of the PTX]
  std::vector<std::vector<uint32_t>> previous_;  // [node of the machine code]
  std::vector<Set> domains_;                     // [node of the machine code]
  std::vector<bool> reached_;
  int steps_ = 2000;
};

}  // namespace

Matching match(const SyncGraph& ptx, const SyncGraph& sass) {
  Search search(ptx, sass);
  search.run();
  return search.result();
}

std::vector<uint32_t> follow(const SyncGraph& ptx, const SyncGraph& sass, const Matching& matching,
                             std::span<const uint32_t> executed) {
  // copies[p]: nodes of the machine code.
  std::vector<std::vector<uint32_t>> copies(ptx.nodes.size());
  for (uint32_t s = 0; s < matching.originals.size(); ++s)
    for (uint32_t p : matching.originals[s]) copies[p].push_back(s);
  // A repeated attempt of a wait stands behind the first one: its cost keeps it out of ways that need it not.
  struct Place {
    uint32_t node, cost;
    int32_t before;  // index into the column before
  };
  std::vector<std::vector<Place>> columns(executed.size() + 1);
  columns[0] = {{0, 0, -1}};
  for (size_t i = 0; i < executed.size(); ++i) {
    for (uint32_t s : copies[executed[i]]) {
      Place best{s, ~0u, -1};
      for (size_t b = 0; b < columns[i].size(); ++b) {
        const Place& from = columns[i][b];
        const std::vector<uint32_t>& next = sass.nodes[from.node].next;
        if (!std::binary_search(next.begin(), next.end(), s)) continue;
        if (from.cost < best.cost) best = {s, from.cost, int32_t(b)};
      }
      if (best.before < 0) continue;
      // Of a wait's attempts, those that are reached from another attempt of the same wait are no first ones.
      best.cost += sass.nodes[s].sync == Sync::wait &&
                           std::binary_search(sass.nodes[s].next.begin(), sass.nodes[s].next.end(), s)
                       ? 1
                       : 0;
      columns[i + 1].push_back(best);
    }
    if (columns[i + 1].empty()) {
      std::vector<uint32_t> wanted, possible;
      for (size_t k = i < 6 ? 0 : i - 6; k < std::min(executed.size(), i + 3); ++k)
        wanted.push_back(executed[k]);
      for (const Place& place : columns[i])
        possible.insert(possible.end(), sass.nodes[place.node].next.begin(),
                        sass.nodes[place.node].next.end());
      throw Error("the machine code has no way that matches step " + std::to_string(i) +
                  " of a warp\n  the warp executed\n" + list(ptx, wanted) +
                  "  the machine code could go on with\n" + list(sass, possible));
    }
  }
  std::vector<uint32_t> way(executed.size());
  int32_t at = 0;
  for (size_t b = 0; b < columns.back().size(); ++b)
    if (columns.back()[b].cost < columns.back()[size_t(at)].cost) at = int32_t(b);
  for (size_t i = executed.size(); i > 0; --i) {
    way[i - 1] = columns[i][size_t(at)].node;
    at = columns[i][size_t(at)].before;
  }
  return way;
}

}  // namespace fa4::time
