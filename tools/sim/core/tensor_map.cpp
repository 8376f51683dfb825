// SPDX-License-Identifier: Apache-2.0
// Tensor maps: the checks of cuTensorMapEncodeTiled and the private encoding. The copies are in box_copy.cpp.
#include "tensor_map.h"

#include <cstring>
#include <iterator>

namespace fa4::sim {

namespace {

// What stands in the 128 bytes of a CUtensorMap. The hardware's layout is not public; nothing outside this
// file reads this one.
struct Encoding {
  static constexpr uint64_t expected_mark = 0x6d73'3461'6673'6d74;
  uint64_t mark;
  uint64_t address;
  uint64_t strides[4];  // bytes, of dimensions 1 to 4
  uint32_t last[5];     // extent - 1: an extent may be 2^32
  uint8_t box_last[5];  // box - 1
  uint8_t element_strides[5];
  uint8_t type, rank, interleave, swizzle, l2, fill;
  uint8_t unused[36];
  uint64_t checksum;  // of all words before it
};
static_assert(sizeof(Encoding) == sizeof(CUtensorMap) && offsetof(Encoding, checksum) == 120);

uint64_t checksum(const Encoding& encoding) {
  uint64_t words[sizeof(Encoding) / 8];
  std::memcpy(words, &encoding, sizeof words);
  uint64_t sum = 0x9e37'79b9'7f4a'7c15;
  for (size_t i = 0; i + 1 < std::size(words); ++i) sum = (sum ^ words[i]) * 0x100'0000'01b3 + (sum >> 29);
  return sum;
}

bool is_packed(CUtensorMapDataType type) {
  return type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B || type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B ||
         type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B;
}

// The packed types that lie in memory at 16-byte granularity.
bool is_padded(CUtensorMapDataType type) {
  return is_packed(type) && type != CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
}

bool is_floating_point(CUtensorMapDataType type) {
  return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ;
}

uint32_t bytes_of(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8:
      return 1;
    case CU_TENSOR_MAP_DATA_TYPE_UINT16:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT16:
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16:
      return 2;
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32:
    case CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ:
      return 4;
    case CU_TENSOR_MAP_DATA_TYPE_UINT64:
    case CU_TENSOR_MAP_DATA_TYPE_INT64:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT64:
      return 8;
    default:
      return 0;
  }
}

// Bytes of `count` elements along the innermost dimension, in shared memory.
uint64_t inner_bytes(CUtensorMapDataType type, uint64_t count) {
  if (type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B) return count / 2;
  if (is_padded(type)) return count;  // 16 elements in 16 bytes
  return count * bytes_of(type);
}

uint32_t swizzle_span(CUtensorMapSwizzle swizzle) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return 32;
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return 64;
    default:
      return 128;
  }
}

// Bytes of all rows of the box at so many each, clamped to 32 bits.
uint32_t rows_of(const TensorMap& map, uint64_t bytes) {
  for (uint32_t d = 1; d < map.rank; ++d) bytes *= map.box_elements(d);  // at most 2^11 * 2^32
  return bytes > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(bytes);
}

bool in_range(int value, int last) {
  return value >= 0 && value <= last;
}

bool swizzle_suits_padded_type(CUtensorMapDataType type, CUtensorMapSwizzle swizzle) {
  return swizzle == CU_TENSOR_MAP_SWIZZLE_NONE || swizzle == CU_TENSOR_MAP_SWIZZLE_128B ||
         swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B ||
         (swizzle == CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B && type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
}

}  // namespace

uint32_t TensorMap::element_bytes() const {
  return bytes_of(type);
}

uint32_t TensorMap::box_elements(uint32_t dim) const {
  if (dim >= rank) return 1;
  // The hardware has no stride along the innermost dimension unless it is interleaved.
  if (dim == 0 && interleave == CU_TENSOR_MAP_INTERLEAVE_NONE) return box[0];
  return (box[dim] + element_strides[dim] - 1) / element_strides[dim];
}

uint32_t TensorMap::box_bytes() const {
  return rows_of(*this, inner_bytes(type, box_elements(0)));
}

uint32_t TensorMap::row_pitch() const {
  if (swizzle != CU_TENSOR_MAP_SWIZZLE_NONE) return swizzle_span(swizzle);
  return static_cast<uint32_t>(inner_bytes(type, box_elements(0)));
}

uint32_t TensorMap::shared_bytes() const {
  return rows_of(*this, row_pitch());
}

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                      CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2, CUtensorMapFloatOOBfill fill) {
  const uint64_t base = reinterpret_cast<uint64_t>(address);
  auto refused = CUDA_ERROR_INVALID_VALUE;
  // The checks are those that a driver was seen to make (1,000,000 random argument lists on an H200), which
  // are not quite the documented ones: it takes a map at any address, and any swizzle with 32-byte
  // interleave.
  if (map == nullptr) return refused;
  if (!in_range(type, CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B)) return refused;
  if (!in_range(interleave, CU_TENSOR_MAP_INTERLEAVE_32B)) return refused;
  if (!in_range(swizzle, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B)) return refused;
  if (!in_range(l2, CU_TENSOR_MAP_L2_PROMOTION_L2_256B)) return refused;
  if (!in_range(fill, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)) return refused;

  const bool interleaved = interleave != CU_TENSOR_MAP_INTERLEAVE_NONE;
  const bool wide = interleave == CU_TENSOR_MAP_INTERLEAVE_32B || is_padded(type);
  const uint64_t granule = wide ? 32 : 16;  // bytes, of the address and of the strides
  if (rank < (interleaved ? 3u : 1u) || rank > 5) return refused;
  if (extents == nullptr || strides == nullptr || box == nullptr || element_strides == nullptr)
    return refused;
  if (base % granule != 0) return refused;
  if (fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE && !is_floating_point(type)) return refused;
  if (type == CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B && interleaved) return refused;
  if (is_padded(type) && !swizzle_suits_padded_type(type, swizzle)) return refused;

  for (uint32_t d = 0; d < rank; ++d) {
    if (extents[d] == 0 || extents[d] > 1ull << 32) return refused;
    if (box[d] == 0 || box[d] > 256) return refused;
    if (element_strides[d] == 0 || element_strides[d] > 8) return refused;
    if (d > 0 && (strides[d - 1] % granule != 0 || strides[d - 1] >= 1ull << 40)) return refused;
  }
  if (is_padded(type) && (extents[0] % 128 != 0 || box[0] != 128)) return refused;
  if (type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B && (extents[0] % 2 != 0 || box[0] % 2 != 0))
    return refused;
  const uint64_t inner = inner_bytes(type, box[0]);
  if (inner % 16 != 0) return refused;
  if (!interleaved && swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && inner > swizzle_span(swizzle)) return refused;
  // The box must fit into an SM's shared memory. The driver counts rounded-down elements, and where a box is
  // smaller than its stride none at all.
  uint64_t counted = inner_bytes(type, box[0] / element_strides[0]);
  for (uint32_t d = 1; d < rank; ++d) counted *= box[d] / element_strides[d];
  if (counted > 228 * 1024) return refused;

  Encoding encoding{};
  encoding.mark = Encoding::expected_mark;
  encoding.address = base;
  for (uint32_t d = 0; d < rank; ++d) {
    encoding.last[d] = static_cast<uint32_t>(extents[d] - 1);
    encoding.box_last[d] = static_cast<uint8_t>(box[d] - 1);
    encoding.element_strides[d] = static_cast<uint8_t>(element_strides[d]);
    if (d > 0) encoding.strides[d - 1] = strides[d - 1];
  }
  encoding.type = static_cast<uint8_t>(type);
  encoding.rank = static_cast<uint8_t>(rank);
  encoding.interleave = static_cast<uint8_t>(interleave);
  encoding.swizzle = static_cast<uint8_t>(swizzle);
  encoding.l2 = static_cast<uint8_t>(l2);
  encoding.fill = static_cast<uint8_t>(fill);
  encoding.checksum = checksum(encoding);
  std::memcpy(static_cast<void*>(map), &encoding, sizeof encoding);
  return CUDA_SUCCESS;
}

bool decode(const void* bytes, TensorMap* map) {
  Encoding encoding;
  std::memcpy(&encoding, bytes, sizeof encoding);
  if (encoding.mark != Encoding::expected_mark || encoding.checksum != checksum(encoding)) return false;
  TensorMap decoded{};
  decoded.type = static_cast<CUtensorMapDataType>(encoding.type);
  decoded.rank = encoding.rank;
  decoded.address = encoding.address;
  decoded.interleave = static_cast<CUtensorMapInterleave>(encoding.interleave);
  decoded.swizzle = static_cast<CUtensorMapSwizzle>(encoding.swizzle);
  decoded.fill = static_cast<CUtensorMapFloatOOBfill>(encoding.fill);
  for (uint32_t d = 0; d < 5; ++d) {
    const bool used = d < decoded.rank;
    decoded.extents[d] = used ? encoding.last[d] + 1ull : 1;
    decoded.box[d] = used ? encoding.box_last[d] + 1u : 1;
    decoded.element_strides[d] = used ? encoding.element_strides[d] : 1;
    decoded.strides[d] = d == 0 ? bytes_of(decoded.type) : encoding.strides[d - 1];
  }
  *map = decoded;
  return true;
}

uint32_t swizzled(CUtensorMapSwizzle swizzle, uint32_t address) {
  switch (swizzle) {
    case CU_TENSOR_MAP_SWIZZLE_32B:
      return address ^ (((address >> 7) & 1) << 4);
    case CU_TENSOR_MAP_SWIZZLE_64B:
      return address ^ (((address >> 7) & 3) << 4);
    case CU_TENSOR_MAP_SWIZZLE_128B:
      return address ^ (((address >> 7) & 7) << 4);
    case CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B:
      return address ^ (((address >> 7) & 3) << 5);
    default:
      return address;
  }
}

}  // namespace fa4::sim
