// SPDX-License-Identifier: Apache-2.0
// Global memory between CTAs that may talk to each other: who wrote what, and what atomics and fences whose
// scope reaches beyond the CTA pass on. Such CTAs run interleaved on one host thread, so that nothing here is
// locked.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "clock.h"

namespace fa4::sim::check {

class Grid {
 public:
  struct Access {
    uint64_t cta = 0;
    uint32_t lane = 0;  // of the CTA
    Time time = 0;
    uint32_t op = 0;
    uint8_t order = 0;  // MemoryOrder
    uint32_t warp = 0;
  };

  void begin_launch(uint64_t serial) {
    if (serial == serial_) return;
    serial_ = serial;
    cells_.clear();
    published_.clear();
  }

  // Calls conflict(before, before_wrote) for each earlier access of another CTA to the word that the
  // accessing lane, which knows `foreign`, is not ordered after. Then remembers this one.
  template <class F>
  void access(uint64_t word, const Access& now, bool write, const ForeignClocks& foreign, F conflict) {
    Cell& cell = cells_[word];
    const auto check = [&](const Access& before, bool before_wrote) {
      if (before.cta == now.cta || (strong(before) && strong(now))) return;
      const auto known = foreign.find(before.cta);
      if (known == foreign.end() || known->second[before.lane] < before.time) conflict(before, before_wrote);
    };
    if (cell.written) check(cell.write, true);
    if (!write) {
      for (Access& reader : cell.readers) {
        if (reader.cta != now.cta || reader.lane != now.lane) continue;
        reader = now;
        return;
      }
      cell.readers.push_back(now);
      return;
    }
    for (const Access& reader : cell.readers) check(reader, false);
    cell.readers.clear();
    cell.write = now;
    cell.written = true;
  }

  // A write to an atomic location: what a reader of it comes to know. A plain store starts anew.
  void publish(uint64_t word, bool starts_anew, const ForeignClocks& known) {
    if (starts_anew) published_.erase(word);
    if (!known.empty()) join(published_[word], known);
  }
  const ForeignClocks* published(uint64_t word) const {
    const auto it = published_.find(word);
    return it == published_.end() ? nullptr : &it->second;
  }

 private:
  struct Cell {
    Access write;
    bool written = false;
    std::vector<Access> readers;
  };
  // Of two CTAs, only accesses whose scope takes in the other can be strong towards it.
  static bool strong(const Access& a) { return (a.order & kStrong) && (a.order & kBeyondCta); }

  uint64_t serial_ = ~0ull;
  std::unordered_map<uint64_t, Cell> cells_;  // by 4 bytes
  std::unordered_map<uint64_t, ForeignClocks> published_;
};

}  // namespace fa4::sim::check
