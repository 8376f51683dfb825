// SPDX-License-Identifier: Apache-2.0
// The driver answers a bad tensor map with "invalid value" alone, hence the checks by name before the call.
#include "tensor_map.h"

#include "../asm/attention/config.h"

namespace fa4 {
namespace {

constexpr uint64_t kSwizzleBytes = kRowBytes;
constexpr uint64_t kMaxExtent = uint64_t{1} << 32;
constexpr uint64_t kMaxStrideBytes = uint64_t{1} << 40;  // exclusive
constexpr uint32_t kMaxBox = 256;

using ull = unsigned long long;

}  // namespace

fa4_status check_tensor_map(const TensorMapDescription& description, const char* tensor, Message& message) {
  if (description.type != CU_TENSOR_MAP_DATA_TYPE_FLOAT16 &&
      description.type != CU_TENSOR_MAP_DATA_TYPE_BFLOAT16) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "the tensor map of %s has type %d; float16 (6) and bfloat16 (9) are "
                        "accepted",
                        tensor, static_cast<int>(description.type));
  }
  if (description.address % 16 != 0) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "the tensor map of %s has address 0x%llx; a multiple of 16 is needed", tensor,
                        static_cast<ull>(description.address));
  }
  for (uint32_t i = 0; i < TensorMapDescription::kRank; ++i) {
    if (description.extents[i] < 1 || description.extents[i] > kMaxExtent) {
      return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                          "the tensor map of %s has extent %llu in dimension %u; 1 to %llu are accepted",
                          tensor, static_cast<ull>(description.extents[i]), i, static_cast<ull>(kMaxExtent));
    }
    if (description.box[i] < 1 || description.box[i] > kMaxBox) {
      return message.fail(
          FA4_ERROR_INVALID_ARGUMENT,
          "the tensor map of %s has a box of %u elements in dimension %u; 1 to %u are accepted", tensor,
          description.box[i], i, kMaxBox);
    }
  }
  for (uint32_t i = 0; i + 1 < TensorMapDescription::kRank; ++i) {
    if (description.strides[i] % 16 != 0 || description.strides[i] >= kMaxStrideBytes) {
      return message.fail(
          FA4_ERROR_INVALID_ARGUMENT,
          "the tensor map of %s has a stride of %llu bytes in dimension %u; a multiple of 16 below 2^40 "
          "is needed",
          tensor, static_cast<ull>(description.strides[i]), i + 1);
    }
  }
  const uint64_t inner_bytes = description.box[0] * kElementBytes;
  if (inner_bytes % 16 != 0 || inner_bytes > kSwizzleBytes) {
    return message.fail(
        FA4_ERROR_INVALID_ARGUMENT,
        "the tensor map of %s has an inner box of %llu bytes; a multiple of 16 up to %llu is needed for "
        "the 128-byte swizzle",
        tensor, static_cast<ull>(inner_bytes), static_cast<ull>(kSwizzleBytes));
  }
  return FA4_OK;
}

fa4_status encode_tensor_map(const Driver& driver, const TensorMapDescription& description,
                             const char* tensor, CUtensorMap& map, Message& message) {
  if (fa4_status status = check_tensor_map(description, tensor, message); status != FA4_OK) return status;
  static_assert(sizeof(cuuint64_t) == sizeof(uint64_t) && sizeof(cuuint32_t) == sizeof(uint32_t));
  cuuint64_t extents[TensorMapDescription::kRank];
  cuuint64_t strides[TensorMapDescription::kRank - 1];
  cuuint32_t element_strides[TensorMapDescription::kRank];
  for (uint32_t i = 0; i < TensorMapDescription::kRank; ++i) {
    extents[i] = description.extents[i];
    element_strides[i] = 1;
    if (i != 0) strides[i - 1] = description.strides[i - 1];
  }
  return driver.check(
      driver.cuTensorMapEncodeTiled(
          &map, description.type, TensorMapDescription::kRank, reinterpret_cast<void*>(description.address),
          extents, strides, description.box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
          CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
      "cuTensorMapEncodeTiled", message);
}

}  // namespace fa4
