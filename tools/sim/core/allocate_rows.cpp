// SPDX-License-Identifier: Apache-2.0
// Virtual registers to rows of a warp.
#include <algorithm>
#include <bit>

#include "builder.h"

namespace fa4::sim {

// Linear scan over live intervals. A register's interval covers every op where some lane may still need it, so that
// fragments of a warp, which run different ops on different lanes of the same rows, do not disturb each other.
void Builder::allocate_rows() {
  const size_t virtuals = virtual_rows_.size(), words = (virtuals + 63) / 64, blocks = blocks_.size();
  std::vector<std::vector<uint32_t>> slots_of_op(code_.ops.size());
  for (uint32_t s = 0; s < slots_.size(); ++s) slots_of_op[slots_[s].op].push_back(s);
  using Bits = std::vector<uint64_t>;
  std::vector<Bits> live_in(blocks, Bits(words)), exposed(blocks, Bits(words)), killed(blocks, Bits(words));
  const auto set = [](Bits& bits, Virtual v) { bits[v / 64] |= 1ull << (v % 64); };
  const auto has = [](const Bits& bits, Virtual v) { return bits[v / 64] >> (v % 64) & 1; };
  const auto fixed = [&](Virtual v) { return !fixed_words_[v].empty(); };
  for (size_t b = 0; b < blocks; ++b) {
    for (uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
      const bool conditional = code_.ops[i].guard != 0;
      for (uint32_t s : slots_of_op[i]) {
        const Slot& slot = slots_[s];
        if (fixed(slot.v)) continue;
        if ((slot.is_use || conditional) && !has(killed[b], slot.v)) set(exposed[b], slot.v);
      }
      for (uint32_t s : slots_of_op[i]) {
        const Slot& slot = slots_[s];
        if (slot.is_def && !slot.is_use && !conditional && !fixed(slot.v)) set(killed[b], slot.v);
      }
    }
  }
  Bits out(words);
  const auto live_out = [&](size_t b) -> const Bits& {
    std::fill(out.begin(), out.end(), 0);
    for (uint32_t s : blocks_[b].successors) {
      for (size_t w = 0; w < words; ++w) out[w] |= live_in[s][w];
    }
    return out;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks; b-- > 0;) {
      const Bits& o = live_out(b);
      for (size_t w = 0; w < words; ++w) {
        const uint64_t in = exposed[b][w] | (o[w] & ~killed[b][w]);
        if (in != live_in[b][w]) {
          live_in[b][w] = in;
          changed = true;
        }
      }
    }
  }
  struct Interval {
    Virtual v;
    uint32_t first = ~0u, last = 0;
  };
  std::vector<Interval> intervals(virtuals);
  for (size_t v = 0; v < virtuals; ++v) intervals[v].v = Virtual(v);
  const auto cover = [&](Virtual v, uint32_t at) {
    intervals[v].first = std::min(intervals[v].first, at);
    intervals[v].last = std::max(intervals[v].last, at);
  };
  // Sources are read (2 * op) before results are written (2 * op + 1).
  for (const Slot& slot : slots_) {
    if (slot.is_use || code_.ops[slot.op].guard != 0) cover(slot.v, 2 * slot.op);
    if (slot.is_def) cover(slot.v, 2 * slot.op + 1);
  }
  // What an asynchronous instruction will write, or reads, is held until a wait.
  for (size_t v = 0; v < virtuals; ++v) {
    if (sharing_ == Rows::own && intervals[v].first != ~0u) held_[v] = {0, uint32_t(code_.ops.size() - 1)};
    if (held_[v].first == ~0u) continue;
    cover(Virtual(v), 2 * held_[v].first);
    cover(Virtual(v), 2 * held_[v].second + 1);
  }
  for (size_t b = 0; b < blocks; ++b) {
    for (int side = 0; side < 2; ++side) {
      const Bits& bits = side == 0 ? live_in[b] : live_out(b);
      for (size_t w = 0; w < words; ++w) {
        for (uint64_t rest = bits[w]; rest; rest &= rest - 1) {
          cover(Virtual(w * 64 + size_t(std::countr_zero(rest))), side == 0 ? 2 * blocks_[b].begin : 2 * blocks_[b].end - 1);
        }
      }
    }
  }
  std::vector<uint16_t> row_of(virtuals, 0);
  uint32_t rows = 0;
  std::vector<uint32_t> free_rows[5];  // by width
  std::vector<Interval> sorted;
  for (const Interval& i : intervals) {
    if (i.first != ~0u && !fixed(i.v)) sorted.push_back(i);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Interval& x, const Interval& y) { return x.first < y.first; });
  std::vector<Interval> active;  // a heap by last
  const auto later = [](const Interval& x, const Interval& y) { return x.last > y.last; };
  for (const Interval& interval : sorted) {
    while (!active.empty() && active.front().last < interval.first) {
      std::pop_heap(active.begin(), active.end(), later);
      free_rows[virtual_rows_[active.back().v]].push_back(row_of[active.back().v]);
      active.pop_back();
    }
    const uint32_t width = virtual_rows_[interval.v];
    uint32_t row;
    if (!free_rows[width].empty()) {
      row = free_rows[width].back();
      free_rows[width].pop_back();
    } else {
      row = rows;
      rows += width;
    }
    if (rows > 60000) refuse("the function needs more registers than the simulated GPU can hold");
    row_of[interval.v] = uint16_t(row);
    active.push_back(interval);
    std::push_heap(active.begin(), active.end(), later);
  }
  for (size_t v = 0; v < virtuals; ++v) {
    if (!fixed(Virtual(v)) || intervals[v].first == ~0u) continue;
    row_of[v] = uint16_t(rows);
    for (FixedRow word : fixed_words_[v]) {
      word.row = uint16_t(rows++);
      code_.fixed.push_back(word);
    }
    if (rows > 65000) refuse("the function needs more constants than the simulated GPU can hold");
  }
  code_.rows = rows;
  for (const Slot& slot : slots_) {
    const uint16_t row = uint16_t(row_of[slot.v] + slot.row);
    Op& op = code_.ops[slot.op];
    switch (slot.field) {
      case Field::d: op.d = row; break;
      case Field::a: op.a = row; break;
      case Field::b: op.b = row; break;
      case Field::c: op.c = row; break;
      case Field::aux: code_.aux[slot.aux] = row; break;
    }
  }
}

}  // namespace fa4::sim
