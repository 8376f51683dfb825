// SPDX-License-Identifier: Apache-2.0
// What atomics, red and the reductions of asynchronous copies do with a value in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "builder.h"
#include "global_memory.h"
#include "tensor_map.h"

namespace fa4::sim {

enum class Reduction : uint8_t { add, min, max, inc, dec, and_, or_, xor_, exch, cas };

// Takes the operation's name from the modifiers.
std::optional<Reduction> take_reduction(Modifiers& modifiers);
// Whether values of a type can be combined so.
bool can_reduce(Reduction reduction, ptx::Type type);
// What a bulk copy or an asynchronous store does with the memory it meets, as Op::target holds it: 0 to write, else the
// reduction + 1, and in bits 8.. the type (none: as the tensor map says), in bit 16 whether subnormal numbers are kept.
struct Combining {
  Reduction reduction;
  ptx::Type type;
  bool keep_subnormals = false;
};
uint32_t encoded(const Combining& combining);
std::optional<Combining> combining_of(const Op* op);
// The new value; of .cas, y where old is x. `by_memory`: the memory system adds, which flushes subnormal f32
// numbers and hands an f64 NaN on as it is; else a thread does, as for shared memory.
uint64_t reduced(Reduction reduction, ptx::Type type, bool by_memory, uint64_t old, uint64_t x,
                 uint64_t y = 0);

// As store_box (tensor_map.h), combining each element that lies in the tensor with what is there. Type::none
// stands for the type of the map.
CopyError reduce_box(const TensorMap& map, const GlobalMemory& memory, std::span<const int32_t> coordinates,
                     std::span<const std::byte> shared, uint32_t shared_address, Reduction reduction,
                     ptx::Type type, bool keep_subnormals);

}  // namespace fa4::sim
