// SPDX-License-Identifier: Apache-2.0
// The box copies of the TMA engine. A box is walked row by row (a row is its extent along dimension 0);
// bounds and allocation are checked once a row, and a row moves in 16-byte chunks, which no swizzle splits.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "tensor_map.h"

namespace fa4::sim {

namespace {

constexpr uint32_t chunk = 16;  // bytes
// One dimension other than the innermost, with more than one row.
struct Axis {
  uint32_t count;        // rows
  uint32_t first, last;  // those of [0, count) that lie in the tensor: [first, last)
  int64_t coordinate;    // of row 0
  uint32_t step;         // elements from row to row
  uint64_t stride;       // bytes from element to element
  // Bytes from the tensor's start to row i, which lies in the tensor. Addresses wrap at 2^64.
  uint64_t offset(uint32_t i) const { return static_cast<uint64_t>(coordinate + int64_t{i} * step) * stride; }
};

// The XOR pattern: address ^= ((address >> 7) & mask) << shift.
struct Pattern {
  uint32_t mask, shift;
  uint32_t operator()(uint32_t address) const { return address ^ (((address >> 7) & mask) << shift); }
};

Pattern pattern_of(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return {1, 4};
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return {3, 4};
    case CU_TENSOR_MAP_SWIZZLE_128B:
      return {7, 4};
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B:
      return {3, 5};
    default:
      return {0, 0};
  }
}

// What fills 16 bytes that lie outside the tensor: zeros, or the hardware's NaN, whose 16-bit halves are all
// 0x7ff7, so that it is one in every floating-point type.
std::array<std::byte, chunk> fill_of(const TensorMap& map) {
  std::array<std::byte, chunk> bytes{};
  if (map.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) return bytes;
  for (uint32_t i = 0; i < chunk; ++i) bytes[i] = std::byte{uint8_t(i % 2 == 0 ? 0xf7 : 0x7f)};
  return bytes;
}

std::string hex(uint64_t value) {
  char text[2 + 16 + 1];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

// The part of device memory that the last rows came from.
class Window {
 public:
  explicit Window(const GlobalMemory& memory) : memory_(memory) {}
  // Host pointer to [address, address + bytes), nullptr when it is not inside one allocation.
  std::byte* at(uint64_t address, uint64_t bytes) {
    if (address - start_ >= size_ && !move_to(address)) return nullptr;
    const uint64_t offset = address - start_;
    return bytes <= size_ - offset ? host_ + offset : nullptr;
  }

 private:
  bool move_to(uint64_t address) {
    if (!memory_.find(address, &start_, &size_)) {
      size_ = 0;
      return false;
    }
    host_ = memory_.at(start_, size_);
    return true;
  }
  const GlobalMemory& memory_;
  uint64_t start_ = 0, size_ = 0;
  std::byte* host_ = nullptr;
};

// Everything about one copy that does not change from row to row.
struct Plan {
  uint32_t row;                     // bytes of a row
  uint32_t pitch;                   // bytes from row to row in shared memory
  uint32_t valid_begin, valid_end;  // bytes of a row that lie in the tensor
  uint64_t base = 0;                // device address of byte valid_begin of a row at offset 0 along all axes
  bool outside = false;             // no element of the box lies in the tensor
  uint32_t axis_count = 0;
  Axis axes[4];
  Pattern pattern;
};

std::string check(const TensorMap& map, std::span<const int32_t> coordinates, size_t shared_bytes,
                  uint32_t shared_address) {
  if (map.interleave != CU_TENSOR_MAP_INTERLEAVE_NONE)
    return "tensor map with interleaved layout " + std::to_string(map.interleave) +
           ": only CU_TENSOR_MAP_INTERLEAVE_NONE is simulated";
  if (map.swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B)
    return "tensor map with swizzle " + std::to_string(map.swizzle) +
           ": only NONE, 32B, 64B, 128B and 128B_ATOM_32B (0 to 4) are simulated";
  if (map.type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ)
    return "tensor map of data type " + std::to_string(map.type) +
           ", which unpacks: only types of whole bytes (0 to 12) are simulated";
  const int64_t inner = int64_t{coordinates[0]} * map.element_bytes();
  if (inner % chunk != 0)
    return "coordinate 0 is " + std::to_string(coordinates[0]) + " elements of " +
           std::to_string(map.element_bytes()) + " bytes: the box must start at a multiple of 16 bytes";
  if (shared_address % 128 != 0)
    return "shared address " + hex(shared_address) + " of a box: must be a multiple of 128";
  // A swizzle permutes chunks within their 128-byte line, so the last line counts in full.
  const uint64_t bytes = map.shared_bytes();
  const uint64_t end =
      shared_address + (map.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? bytes : (bytes + 127) / 128 * 128);
  if (end > shared_bytes)
    return "box of " + std::to_string(bytes) + " bytes at shared address " + hex(shared_address) +
           " ends beyond the CTA's shared memory, which ends at " + hex(shared_bytes);
  return "";
}

Plan plan_of(const TensorMap& map, std::span<const int32_t> coordinates) {
  Plan plan;
  const int64_t size = map.element_bytes();
  const int64_t box = map.box_elements(0);
  const int64_t extent = static_cast<int64_t>(map.extents[0]);
  const int64_t c0 = coordinates[0];
  plan.row = static_cast<uint32_t>(box * size);
  plan.pitch = map.row_pitch();
  plan.valid_begin = static_cast<uint32_t>(std::clamp<int64_t>(-c0, 0, box) * size);
  plan.valid_end = static_cast<uint32_t>(std::clamp<int64_t>(extent - c0, 0, box) * size);
  plan.outside = plan.valid_begin >= plan.valid_end;
  plan.base = map.address + static_cast<uint64_t>(std::max<int64_t>(c0, 0) * size);
  plan.pattern = pattern_of(map.swizzle);
  for (uint32_t d = 1; d < map.rank; ++d) {
    const uint32_t count = map.box_elements(d);
    const int64_t step = map.element_strides[d];
    const int64_t c = coordinates[d];
    const int64_t end = static_cast<int64_t>(map.extents[d]);
    const int64_t first = c >= 0 ? 0 : (-c + step - 1) / step;
    const int64_t last = c >= end ? 0 : (end - c + step - 1) / step;
    Axis axis{count, 0, 0, c, static_cast<uint32_t>(step), map.strides[d]};
    axis.first = static_cast<uint32_t>(std::min<int64_t>(first, count));
    axis.last = static_cast<uint32_t>(std::min<int64_t>(last, count));
    if (axis.first >= axis.last) plan.outside = true;
    if (count > 1)
      plan.axes[plan.axis_count++] = axis;
    else if (!plan.outside)
      plan.base += axis.offset(0);
  }
  return plan;
}

// Calls inside(row, device address of byte valid_begin) or outside(row) for the rows of the box in the order
// of its dense image. inside returns "" to go on, or what it could not reach.
template <typename Inside, typename Outside>
CopyError for_each_row(const Plan& plan, Inside inside, Outside outside) {
  uint32_t rows = 1;
  for (uint32_t a = 0; a < plan.axis_count; ++a) rows *= plan.axes[a].count;
  if (plan.outside) {
    for (uint32_t row = 0; row < rows; ++row) outside(row);
    return {};
  }
  const Axis whole{1, 0, 1, 0, 1, 0};
  const Axis& inner = plan.axis_count > 0 ? plan.axes[0] : whole;
  const uint64_t inner_start = inner.offset(inner.first);
  const uint64_t inner_step = inner.step * inner.stride;  // at most 2^43
  uint32_t index[4] = {0, 0, 0, 0};
  for (uint32_t row = 0; row < rows;) {
    uint64_t address = plan.base + inner_start;
    bool valid = true;
    for (uint32_t a = 1; a < plan.axis_count && valid; ++a) {
      valid = index[a] >= plan.axes[a].first && index[a] < plan.axes[a].last;
      if (valid) address += plan.axes[a].offset(index[a]);
    }
    if (valid) {
      uint32_t i = 0;
      for (; i < inner.first; ++i) outside(row++);
      for (; i < inner.last; ++i, address += inner_step) {
        std::string fault = inside(row++, address);
        if (!fault.empty()) [[unlikely]]
          return {fault, true};
      }
      for (; i < inner.count; ++i) outside(row++);
    } else {
      for (uint32_t i = 0; i < inner.count; ++i) outside(row++);
    }
    for (uint32_t a = 1; a < plan.axis_count; ++a) {
      if (++index[a] < plan.axes[a].count) break;
      index[a] = 0;
    }
  }
  return {};
}

std::string unreachable(const char* what, const GlobalMemory& memory, uint64_t address, uint64_t bytes) {
  uint64_t start, size;
  const bool begins_inside = memory.find(address, &start, &size);
  const uint64_t first_bad = begins_inside ? start + size : address;
  return std::string(what) + " a row of " + std::to_string(bytes) + " bytes at device address " +
         hex(address) + ", of which " + hex(first_bad) + " is no allocated memory (" +
         memory.describe(first_bad) + ")";
}

// TF32 in memory is f32; a load rounds it to nearest even, subnormal numbers too, and makes a NaN the canonical one.
uint32_t to_tf32(uint32_t x) {
  const bool nan = (x & 0x7FFFFFFF) > 0x7F800000;
  return nan ? 0x7FFFE000 : (x + 0xFFF + (x >> 13 & 1)) & 0xFFFFE000;
}
bool is_tf32(const TensorMap& map) {
  return map.type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 || map.type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

}  // namespace

CopyError load_box(const TensorMap& map, const GlobalMemory& memory, std::span<const int32_t> coordinates,
                   std::span<std::byte> shared, uint32_t shared_address) {
  if (std::string fault = check(map, coordinates, shared.size(), shared_address); !fault.empty())
    return {fault};
  const Plan plan = plan_of(map, coordinates);
  if (uint64_t start, size; plan.outside && !memory.find(map.address, &start, &size)) {
    // Measured on an H200. Of a box that meets the tensor, and of a store, the map's own address may be anything.
    return {"box load from wholly outside the tensor, whose map's address " + hex(map.address) + " is no allocated memory (" +
                memory.describe(map.address) + "): the copy translates that address",
            true};
  }
  const auto fill = fill_of(map);
  const uint32_t begin = plan.valid_begin, end = plan.valid_end, pitch = plan.pitch;
  const bool whole_line = begin == 0 && end == 128 && pitch == 128;
  std::byte* const image = shared.data();
  Window window(memory);

  auto outside = [&](uint32_t row) {
    const uint32_t address = shared_address + row * pitch;
    for (uint32_t at = 0; at < plan.row; at += chunk)
      std::memcpy(image + plan.pattern(address + at), fill.data(), chunk);
  };
  auto inside = [&](uint32_t row, uint64_t source) -> std::string {
    const std::byte* from = window.at(source, end - begin);
    if (from == nullptr) [[unlikely]]
      return unreachable("box load of", memory, source, end - begin);
    const uint32_t address = shared_address + row * pitch;
    if (whole_line) {
      std::byte* const line = image + address;
      const uint32_t flip = plan.pattern(address) ^ address;
      for (uint32_t at = 0; at < 128; at += chunk) std::memcpy(line + (at ^ flip), from + at, chunk);
      return {};
    }
    for (uint32_t at = 0; at < plan.row; at += chunk) {
      std::byte* to = image + plan.pattern(address + at);
      if (at >= begin && at + chunk <= end) {
        std::memcpy(to, from + (at - begin), chunk);
        continue;
      }
      std::memcpy(to, fill.data(), chunk);
      const uint32_t first = std::max(at, begin), last = std::min(at + chunk, end);
      if (first < last) std::memcpy(to + (first - at), from + (first - begin), last - first);
    }
    return {};
  };
  if (!is_tf32(map)) return for_each_row(plan, inside, outside);
  auto rounded = [&](uint32_t row, uint64_t source) -> std::string {
    std::string fault = inside(row, source);
    for (uint32_t at = begin; at < end; at += 4) {
      std::byte* to = image + plan.pattern(shared_address + row * pitch + at);
      uint32_t word;
      std::memcpy(&word, to, 4);
      word = to_tf32(word);
      std::memcpy(to, &word, 4);
    }
    return fault;
  };
  return for_each_row(plan, rounded, outside);
}

CopyError store_box(const TensorMap& map, const GlobalMemory& memory, std::span<const int32_t> coordinates,
                    std::span<const std::byte> shared, uint32_t shared_address) {
  if (std::string fault = check(map, coordinates, shared.size(), shared_address); !fault.empty())
    return {fault};
  for (size_t d = 0; d < coordinates.size(); ++d)
    if (coordinates[d] < 0)
      return {"box store with coordinate " + std::to_string(d) + " = " + std::to_string(coordinates[d]) +
              ": a store may reach beyond the tensor's end but not begin before its start"};
  const Plan plan = plan_of(map, coordinates);
  // Rows are written in whole chunks: where the tensor ends within one, the bytes behind its end are written
  // as well.
  const uint32_t begin = plan.valid_begin, end = (plan.valid_end + chunk - 1) / chunk * chunk;
  const std::byte* const image = shared.data();
  Window window(memory);

  auto inside = [&](uint32_t row, uint64_t target) -> std::string {
    std::byte* to = window.at(target, end - begin);
    if (to == nullptr) [[unlikely]]
      return unreachable("box store to", memory, target, end - begin);
    const uint32_t address = shared_address + row * plan.pitch;
    for (uint32_t at = begin; at < end; at += chunk, to += chunk)
      std::memcpy(to, image + plan.pattern(address + at), chunk);
    return {};
  };
  return for_each_row(plan, inside, [](uint32_t) {});
}

}  // namespace fa4::sim
