// SPDX-License-Identifier: Apache-2.0
// Tensor maps of the simulated GPU: the driver's argument checks, a private 128-byte encoding, and the box copies that
// the TMA engine makes with it.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "global_memory.h"

namespace fa4::sim {

// The decoded form. Strides in bytes; strides[0] is the element size.
struct TensorMap {
  CUtensorMapDataType type;
  uint32_t rank;
  uint64_t address;
  uint64_t extents[5];
  uint64_t strides[5];
  uint32_t box[5];             // as encoded
  uint32_t element_strides[5];
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapFloatOOBfill fill;

  uint32_t element_bytes() const;
  uint32_t box_elements(uint32_t dim) const;  // ceil(box / element stride)
  uint32_t box_bytes() const;                 // of the box's elements: what complete_tx counts
  // In shared memory a row (the box's extent along dimension 0) begins every row_pitch() bytes: its own size, or with a
  // swizzle the swizzle's span, even if the row is shorter; what is between the rows is left alone.
  uint32_t row_pitch() const;
  uint32_t shared_bytes() const;              // from the first row's start to the end of the last row's pitch
};

// cuTensorMapEncodeTiled: same checks, same codes. On success *map holds the encoding (128 bytes, starts with a mark).
CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                      CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill);

// Reads the encoding back. False when the 128 bytes are no map of ours.
bool decode(const void* bytes, TensorMap* map);

// XOR of the swizzle on an absolute shared-memory byte address.
uint32_t swizzled(CUtensorMapSwizzle swizzle, uint32_t address);

// What is wrong with a copy; no text: nothing.
struct CopyError {
  std::string text;
  bool unreachable = false;  // it meets memory that is not allocated
};

// Copies one box. `shared` is the CTA's shared memory, indexed by absolute shared::cta address; the box's image starts
// at `shared_address` and each 16-byte chunk lies where the swizzle puts it. Returns nothing or what the hardware would fault
// on (unaligned inner coordinate, misaligned shared address, an element outside any allocation, a store that begins at a
// negative coordinate), or what is not simulated (interleaved layouts, packed types).
// The caller has checked coordinates.size() == rank.
CopyError load_box(const TensorMap& map, const GlobalMemory& memory, std::span<const int32_t> coordinates,
                   std::span<std::byte> shared, uint32_t shared_address);
CopyError store_box(const TensorMap& map, const GlobalMemory& memory, std::span<const int32_t> coordinates,
                    std::span<const std::byte> shared, uint32_t shared_address);

}  // namespace fa4::sim
