// SPDX-License-Identifier: Apache-2.0
// A tensor map in plain numbers, checked against every rule of the driver by name, and its encoding. Encoding
// is host work alone: no allocation, no synchronisation.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "driver.h"
#include "message.h"

namespace fa4 {

// The rank-5 view of Q, K, V or O, innermost dimension first: 64 elements of the head dimension (one 128-byte swizzle span), heads,
// sequence, pieces of 64 elements, batch; or all of the head dimension, and one piece (asm/attention/params.h). Two bytes an element.
struct TensorMapDescription {
  static constexpr uint32_t kRank = 5;
  CUtensorMapDataType type;
  uint64_t address;         // 16-byte aligned; null is accepted by the driver and never read by the kernel
  uint64_t extents[kRank];  // elements, 1..2^32
  uint64_t strides[kRank - 1];  // bytes, of dimensions 1..4: multiples of 16 below 2^40
  uint32_t box[kRank];          // elements, 1..256
};

// FA4_OK, or the rule that the description breaks; `tensor` names it in the sentence.
fa4_status check_tensor_map(const TensorMapDescription& description, const char* tensor, Message& message);

// Checks and encodes: 128-byte swizzle, 128-byte L2 promotion, zeros beyond the extents.
fa4_status encode_tensor_map(const Driver& driver, const TensorMapDescription& description,
                             const char* tensor, CUtensorMap& map, Message& message);

}  // namespace fa4
