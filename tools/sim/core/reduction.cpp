// SPDX-License-Identifier: Apache-2.0
#include "reduction.h"

#include <cstring>

namespace fa4::sim {

using ptx::Type;

namespace {

bool is_float(Type t) {
  return t == Type::f16 || t == Type::f16x2 || t == Type::bf16 || t == Type::bf16x2 || t == Type::f32 ||
         t == Type::f64;
}

template <class T>
T combined(Reduction kind, T old, T x, T y) {
  switch (kind) {
    case Reduction::add:
      return T(uint64_t(old) + uint64_t(x));
    case Reduction::min:
      return x < old ? x : old;
    case Reduction::max:
      return old < x ? x : old;
    case Reduction::inc:
      return old >= x ? T(0) : T(old + 1);
    case Reduction::dec:
      return old == 0 || old > x ? x : T(old - 1);
    case Reduction::and_:
      return old & x;
    case Reduction::or_:
      return old | x;
    case Reduction::xor_:
      return old ^ x;
    case Reduction::exch:
      return x;
    case Reduction::cas:
      return old == x ? y : old;
  }
  return old;
}

}  // namespace

std::optional<Reduction> take_reduction(Modifiers& m) {
  static constexpr std::string_view names[] = {"add", "min", "max", "inc",  "dec",
                                               "and", "or",  "xor", "exch", "cas"};
  for (int i = 0; i < 10; ++i) {
    if (m.take(names[i])) return Reduction(i);
  }
  return std::nullopt;
}

bool can_reduce(Reduction kind, Type t) {
  const bool bits = t == Type::b32 || t == Type::b64,
             plain = t == Type::u32 || t == Type::s32 || t == Type::u64 || t == Type::s64;
  switch (kind) {
    case Reduction::add:
      return plain || is_float(t);
    case Reduction::min:
    case Reduction::max:
      return plain || t == Type::f16 || t == Type::bf16;
    case Reduction::inc:
    case Reduction::dec:
      return t == Type::u32;
    case Reduction::and_:
    case Reduction::or_:
    case Reduction::xor_:
    case Reduction::exch:
      return bits;
    case Reduction::cas:
      return bits || t == Type::b16;
  }
  return false;
}

uint32_t encoded(const Combining& c) {
  return (uint32_t(c.reduction) + 1) | uint32_t(c.type) << 8 | (c.keep_subnormals ? 65536u : 0);
}

std::optional<Combining> combining_of(const Op* op) {
  if (op->target == 0) return std::nullopt;
  return Combining{Reduction((op->target & 255) - 1), ptx::Type(op->target >> 8 & 255), (op->target & 65536) != 0};
}

uint64_t reduced(Reduction kind, Type t, bool by_memory, uint64_t old, uint64_t x, uint64_t y) {
  if (is_float(t))
    return kind == Reduction::add ? add_floats(t, by_memory, old, x)
                                  : extreme_of_floats(t, kind == Reduction::max, old, x);
  switch (t) {
    case Type::s32:
      return uint32_t(combined<int32_t>(kind, int32_t(old), int32_t(x), int32_t(y)));
    case Type::s64:
      return uint64_t(combined<int64_t>(kind, int64_t(old), int64_t(x), int64_t(y)));
    case Type::u64:
    case Type::b64:
      return combined<uint64_t>(kind, old, x, y);
    case Type::b16:
      return combined<uint16_t>(kind, uint16_t(old), uint16_t(x), uint16_t(y));
    default:
      return combined<uint32_t>(kind, uint32_t(old), uint32_t(x), uint32_t(y));
  }
}

namespace {

Type type_of(const TensorMap& map, Reduction kind) {
  const bool bits = kind >= Reduction::and_;
  switch (map.type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
      return bits ? Type::b32 : Type::u32;
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
      return bits ? Type::b32 : Type::s32;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
      return bits ? Type::b64 : Type::u64;
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
      return bits ? Type::b64 : Type::s64;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
      return Type::f16;
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return Type::bf16;
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
      return Type::f32;
    default:
      return Type::none;
  }
}

}  // namespace

CopyError reduce_box(const TensorMap& map, const GlobalMemory& memory, std::span<const int32_t> coordinates,
                     std::span<const std::byte> shared, uint32_t shared_address, Reduction kind, Type type,
                     bool keep_subnormals) {
  if (type == Type::none) type = type_of(map, kind);
  if (type == Type::none || !can_reduce(kind, type))
    return {"a box reduction that its tensor map's type does not have"};
  if (map.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE) return {"interleaved layouts are not simulated"};
  for (uint32_t d = 0; d < map.rank; ++d) {
    if (coordinates[d] < 0) {
      return {"box reduction with coordinate " + std::to_string(d) + " = " + std::to_string(coordinates[d]) +
              ": it may reach beyond the tensor's end but not begin before its start"};
    }
  }
  const uint32_t size = ptx::size_in_bytes(type);
  if (uint64_t(coordinates[0]) * size % 16 != 0)
    return {"box reduction whose inner coordinate is not a multiple of 16 bytes"};
  uint32_t index[5] = {}, row = 0;
  for (;;) {
    uint64_t target = map.address;
    bool inside = true;
    for (uint32_t d = 1; d < map.rank; ++d) {
      const uint64_t at = uint64_t(coordinates[d]) + uint64_t(index[d]) * map.element_strides[d];
      inside = inside && at < map.extents[d];
      target += at * map.strides[d];
    }
    for (uint32_t i = 0; inside && i < map.box_elements(0); ++i) {
      const uint64_t at = uint64_t(coordinates[0]) + i;
      if (at >= map.extents[0]) break;
      std::byte* to = memory.at(target + at * size, size);
      if (!to) return {"box reduction outside any allocation: " + memory.describe(target + at * size), true};
      uint64_t old = 0, x = 0;
      std::memcpy(&old, to, size);
      std::memcpy(
          &x, shared.data() + swizzled(map.swizzle, shared_address + row * map.row_pitch() + i * size), size);
      const uint64_t next = reduced(kind, type, !keep_subnormals, old, x);
      std::memcpy(to, &next, size);
    }
    ++row;
    uint32_t d = 1;
    while (d < map.rank && ++index[d] == map.box_elements(d)) index[d++] = 0;
    if (d >= map.rank) return {};
  }
}

}  // namespace fa4::sim
