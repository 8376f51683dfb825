// SPDX-License-Identifier: Apache-2.0
// What there is to say about a barrier of a kernel, and the table of all of them. Plain C++, no device code.
#pragma once

#include <stdint.h>

namespace fa4 {

// The three flavours complete on different signals; a wait on the wrong one is how such kernels silently corrupt.
enum class BarrierFlavour : uint32_t {
  tma,      // TMABar: one arrival that announces bytes, and the bytes themselves
  tcgen05,  // TCGen05Bar: one arrival by tcgen05.commit, when the MMAs before it have completed
  counted,  // MBarrier: a counted arrival of threads
};

struct BarrierRow {
  const char* name;
  BarrierFlavour flavour;
  uint32_t stages;      // 0: the specialisation has none
  uint32_t arrivals;    // that complete a phase
  uint32_t bytes;       // that complete a phase, beside the arrivals; TMABar only
  const char* signals;  // who
  const char* waits;    // who
  const char* meaning;
};

// The rows stand in the order of their ids, so an id is an index.
template <uint32_t row_count>
struct BarrierRows {
  static constexpr uint32_t kinds = row_count;
  BarrierRow row[kinds];

  template <class BarrierId>
  constexpr const BarrierRow& operator[](BarrierId id) const {
    return row[static_cast<uint32_t>(id)];
  }

  // Index of the first mbarrier of a row in the array of all of them; with `kinds`, how many there are.
  template <class BarrierId>
  constexpr uint32_t slot(BarrierId id) const {
    uint32_t slot = 0;
    for (uint32_t i = 0; i < static_cast<uint32_t>(id); ++i) slot += row[i].stages;
    return slot;
  }
  constexpr uint32_t slots() const { return slot(kinds); }

  constexpr bool consistent() const {
    for (const BarrierRow& r : row) {
      if (r.arrivals == 0) return false;
      if ((r.flavour == BarrierFlavour::tma) != (r.bytes != 0)) return false;
      if (r.flavour != BarrierFlavour::counted && r.arrivals != 1) return false;
    }
    return true;
  }
};

}  // namespace fa4
