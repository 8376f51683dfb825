// SPDX-License-Identifier: Apache-2.0
// The tensor core's side of tcgen05: what happens when an MMA or a commit completes, and the matrix descriptors.
#pragma once

#include <cstdint>
#include <string>

#include "machine.h"

namespace fa4::sim {

// A shared-memory matrix descriptor, decoded. Offsets in bytes.
struct MatrixDescriptor {
  uint32_t start, leading, stride;
  uint32_t swizzle_shift;  // log2 of the atom's bytes: 4 none, 5 32B, 6 64B, 7 128B
};
// "" or what is wrong with the 64 bits.
std::string decode_descriptor(uint64_t bits, MatrixDescriptor* descriptor);

// Shared address of the 16-byte chunk that holds element (mn, k) of a 16-bit operand, swizzle applied. K-major: the
// chunk runs along k (k a multiple of 8); MN-major: along mn (mn a multiple of 8).
inline uint32_t chunk_address(const MatrixDescriptor& d, bool mn_major, uint32_t mn, uint32_t k) {
  const uint32_t atom = 1u << d.swizzle_shift;
  uint32_t address;
  if (!mn_major) {
    address = d.start + (mn >> 3) * d.stride + ((mn & 7) << d.swizzle_shift);
    address += atom == 16 ? (k >> 3) * d.leading : k * 2;
  } else if (atom == 16) {
    address = d.start + (mn >> 3) * d.stride + (k & 7) * 16 + (k >> 3) * d.leading;
  } else {
    const uint32_t row_shift = d.swizzle_shift - 1;  // log2 of the atom row's elements
    address = d.start + (mn & ((1u << row_shift) - 1)) * 2 + (mn >> row_shift) * d.leading +
              ((k & 7) << d.swizzle_shift) + (k >> 3) * d.stride;
  }
  const uint32_t period = atom / 16 - 1;
  return address ^ (address >> 7 & period) << 4;
}

constexpr uint32_t kDepth = 16;  // K of an MMA with 16-bit inputs

// Visits the chunks of an operand of `rows` (M or N) x 16: f(mn, k, address).
template <class F>
void each_chunk(const MatrixDescriptor& d, bool mn_major, uint32_t rows, F f) {
  if (mn_major) {
    for (uint32_t k = 0; k < kDepth; ++k) {
      for (uint32_t mn = 0; mn < rows; mn += 8) f(mn, k, chunk_address(d, true, mn, k));
    }
  } else {
    for (uint32_t mn = 0; mn < rows; ++mn) {
      for (uint32_t k = 0; k < kDepth; k += 8) f(mn, k, chunk_address(d, false, mn, k));
    }
  }
}

// "" if every byte of an operand is there to be read.
std::string operand_problem(const Cta& cta, const MatrixDescriptor& d, bool mn_major, uint32_t rows);
// An operand of 16-bit elements as a step of the tensor core takes it: a[k * 128 + m], b[n * 16 + k].
void gather_a(const Cta& cta, MatrixDescriptor d, bool mn_major, uint32_t rows, uint16_t* a);
void gather_b(const Cta& cta, MatrixDescriptor d, bool mn_major, uint32_t rows, uint16_t* b);

void land_mma(const Event& event);
void land_commit(const Event& event);
void read_mma_operand(const Event& event);  // under adversarial timing, between issue and completion

}  // namespace fa4::sim
