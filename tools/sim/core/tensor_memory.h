// SPDX-License-Identifier: Apache-2.0
// Tensor memory of a CTA: 512 columns x 128 lanes of 32 bits, and for each cell whether it holds a value.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

namespace fa4::sim {

struct TensorMemory {
  static constexpr uint32_t columns = 512, lanes = 128, partitions = 4;

  struct Cells {
    alignas(64) uint32_t word[columns][lanes];      // column by column: 32 lanes of a warp are contiguous
  };
  std::unique_ptr<Cells> cells{new Cells};
  uint32_t valid[columns][partitions];              // one bit a lane: written since allocation
  uint16_t mma_in_flight[columns];                  // MMAs that will write the column
  uint16_t mma_reading[columns];                    // MMAs that will read the column as A
  uint8_t store_in_flight[columns][partitions];     // tcgen05.st before its wait::st
  bool allocated[columns];

  void reset() {
    std::memset(valid, 0, sizeof valid);
    std::memset(mma_in_flight, 0, sizeof mma_in_flight);
    std::memset(mma_reading, 0, sizeof mma_reading);
    std::memset(store_in_flight, 0, sizeof store_in_flight);
    std::memset(allocated, 0, sizeof allocated);
  }
};

}  // namespace fa4::sim
