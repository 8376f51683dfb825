// SPDX-License-Identifier: Apache-2.0
// A box copy by its definition, one element and one byte at a time, in wide integers: what the fast copies
// are held to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tools/sim/core/tensor_map.h"

namespace tma_oracle {

struct Box {
  uint64_t extents[5] = {1, 1, 1, 1, 1};
  uint64_t strides[5] = {0, 0, 0, 0, 0};  // bytes; [0] is the element size
  uint32_t counts[5] = {1, 1, 1, 1, 1};   // elements of the box
  uint32_t steps[5] = {1, 1, 1, 1, 1};
  int64_t coordinates[5] = {0, 0, 0, 0, 0};
};

// Where the byte at `offset` of the dense image lies, by the table of swizzles: which address bits choose the
// chunk.
inline uint32_t place(int swizzle, uint32_t address) {
  auto bit = [&](int i) { return (address >> i) & 1u; };
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return address ^ (bit(7) << 4);
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return address ^ (bit(7) << 4) ^ (bit(8) << 5);
    case CU_TENSOR_MAP_SWIZZLE_128B:
      return address ^ (bit(7) << 4) ^ (bit(8) << 5) ^ (bit(9) << 6);
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B:
      return address ^ (bit(7) << 5) ^ (bit(8) << 6);
    default:
      return address;
  }
}

// Visits every element of the box in the order of the image: visit(image offset, inside the tensor?, byte
// offset from the tensor's start). Rows of the image are `pitch` bytes apart.
template <typename Visit>
void for_each_element(const Box& box, uint32_t pitch, Visit visit) {
  uint32_t row = 0;
  uint32_t i[5];
  for (i[4] = 0; i[4] < box.counts[4]; ++i[4])
    for (i[3] = 0; i[3] < box.counts[3]; ++i[3])
      for (i[2] = 0; i[2] < box.counts[2]; ++i[2])
        for (i[1] = 0; i[1] < box.counts[1]; ++i[1], row += pitch)
          for (i[0] = 0; i[0] < box.counts[0]; ++i[0]) {
            bool inside = true;
            __int128 where = 0;
            for (int d = 0; d < 5; ++d) {
              const __int128 at = __int128{box.coordinates[d]} + __int128{i[d]} * box.steps[d];
              if (at < 0 || at >= __int128{box.extents[d]}) inside = false;
              where += at * box.strides[d];
            }
            visit(row + i[0] * static_cast<uint32_t>(box.strides[0]), inside, where);
          }
}

}  // namespace tma_oracle
