// SPDX-License-Identifier: Apache-2.0
// The argument checks of cuTensorMapEncodeTiled, one row each, the oddities that the driver accepts among
// them; and that what is encoded is what is decoded.
#include <cstring>
#include <functional>
#include <random>

#include "support/catch.h"
#include "tools/sim/core/tensor_map.h"

using namespace fa4::sim;

namespace {

struct Arguments {
  alignas(128) unsigned char storage[256];
  CUtensorMap* map = reinterpret_cast<CUtensorMap*>(storage);
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 3;
  uint64_t address = 0x1000;
  cuuint64_t extents[5] = {128, 64, 4, 1, 1};
  cuuint64_t strides[4] = {256, 16384, 65536, 65536};
  cuuint32_t box[5] = {64, 8, 1, 1, 1};
  cuuint32_t element_strides[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapL2promotion l2 = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  bool null_extents = false, null_strides = false, null_box = false, null_element_strides = false;

  CUresult encode() {
    return encode_tiled(map, type, rank, reinterpret_cast<void*>(address), null_extents ? nullptr : extents,
                        null_strides ? nullptr : strides, null_box ? nullptr : box,
                        null_element_strides ? nullptr : element_strides, interleave, swizzle, l2, fill);
  }
};

struct Row {
  const char* what;
  bool accepted;
  std::function<void(Arguments&)> change;
};

template <typename T>
T as(int value) {
  return static_cast<T>(value);
}

}  // namespace

TEST_CASE("encode accepts and refuses as the driver does") {
  using A = Arguments;
  const Row rows[] = {
      {"the plain map", true, [](A&) {}},
      {"null map", false, [](A& a) { a.map = nullptr; }},
      {"map aligned to 32 bytes", true, [](A& a) { a.map = reinterpret_cast<CUtensorMap*>(a.storage + 32); }},
      {"map aligned to 4 bytes", true, [](A& a) { a.map = reinterpret_cast<CUtensorMap*>(a.storage + 4); }},
      {"data type -1", false, [](A& a) { a.type = as<CUtensorMapDataType>(-1); }},
      {"data type 16", false, [](A& a) { a.type = as<CUtensorMapDataType>(16); }},
      {"rank 0", false, [](A& a) { a.rank = 0; }},
      {"rank 1", true, [](A& a) { a.rank = 1; }},
      {"rank 1, null strides", false, [](A& a) { a.rank = 1, a.null_strides = true; }},
      {"rank 5", true, [](A& a) { a.rank = 5; }},
      {"rank 6", false, [](A& a) { a.rank = 6; }},
      {"null address", true, [](A& a) { a.address = 0; }},
      {"address aligned to 8 bytes", false, [](A& a) { a.address = 0x1008; }},
      {"null extents", false, [](A& a) { a.null_extents = true; }},
      {"null strides", false, [](A& a) { a.null_strides = true; }},
      {"null box", false, [](A& a) { a.null_box = true; }},
      {"null element strides", false, [](A& a) { a.null_element_strides = true; }},
      {"extent 0", false, [](A& a) { a.extents[1] = 0; }},
      {"extent 2^32", true, [](A& a) { a.extents[1] = 1ull << 32; }},
      {"extent 2^32 + 1", false, [](A& a) { a.extents[1] = (1ull << 32) + 1; }},
      {"stride 0", true, [](A& a) { a.strides[0] = 0; }},
      {"stride smaller than the row", true, [](A& a) { a.strides[0] = 16; }},
      {"stride 8", false, [](A& a) { a.strides[0] = 8; }},
      {"stride 2^40 - 16", true, [](A& a) { a.strides[1] = (1ull << 40) - 16; }},
      {"stride 2^40", false, [](A& a) { a.strides[1] = 1ull << 40; }},
      {"negative stride", false, [](A& a) { a.strides[1] = -256ull; }},
      {"negative stride of a dimension of extent 1", false,
       [](A& a) { a.extents[2] = 1, a.strides[1] = -256ull; }},
      {"odd stride of a dimension of extent 1", false, [](A& a) { a.extents[2] = 1, a.strides[1] = 7; }},
      {"stride beyond the rank is not looked at", true, [](A& a) { a.strides[2] = 7; }},
      {"box 0", false, [](A& a) { a.box[1] = 0; }},
      {"box 256", true, [](A& a) { a.box[1] = 256; }},
      {"box 257", false, [](A& a) { a.box[1] = 257; }},
      {"box larger than the tensor", true, [](A& a) { a.extents[1] = 2; }},
      {"inner box of 8 bytes", false, [](A& a) { a.box[0] = 4; }},
      {"inner box of 24 bytes", false, [](A& a) { a.box[0] = 12; }},
      {"inner box of 144 bytes under 128B", false, [](A& a) { a.box[0] = 72; }},
      {"inner box of 64 bytes under 64B", true,
       [](A& a) { a.box[0] = 32, a.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }},
      {"inner box of 80 bytes under 64B", false,
       [](A& a) { a.box[0] = 40, a.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }},
      {"inner box of 32 bytes under 32B", true,
       [](A& a) { a.box[0] = 16, a.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; }},
      {"inner box of 48 bytes under 32B", false,
       [](A& a) { a.box[0] = 24, a.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; }},
      {"inner box of 512 bytes, no swizzle", true,
       [](A& a) { a.box[0] = 256, a.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE; }},
      {"inner box of 24 bytes, interleaved", false,
       [](A& a) { a.box[0] = 12, a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; }},
      {"box of 228 KiB", true, [](A& a) { a.box[1] = 228, a.box[2] = 8; }},
      {"box of 228 KiB and 1152 bytes", false, [](A& a) { a.box[1] = 229, a.box[2] = 8; }},
      {"box of 256 KiB at every second element", true,
       [](A& a) { a.box[1] = 256, a.box[2] = 8, a.element_strides[1] = 2; }},
      {"box smaller than its element stride, which counts for nothing", true,
       [](A& a) { a.rank = 4, a.box[1] = 256, a.box[2] = 16, a.element_strides[3] = 2; }},
      {"element stride 0 of dimension 0", false, [](A& a) { a.element_strides[0] = 0; }},
      {"element stride 9 of dimension 0", false, [](A& a) { a.element_strides[0] = 9; }},
      {"element stride 3 of dimension 0", true, [](A& a) { a.element_strides[0] = 3; }},
      {"element stride 0", false, [](A& a) { a.element_strides[1] = 0; }},
      {"element stride 8", true, [](A& a) { a.element_strides[1] = 8; }},
      {"element stride 9", false, [](A& a) { a.element_strides[1] = 9; }},
      {"interleave 3", false, [](A& a) { a.interleave = as<CUtensorMapInterleave>(3); }},
      {"interleave 16B", true, [](A& a) { a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; }},
      {"interleave 16B, rank 2", false,
       [](A& a) { a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B, a.rank = 2; }},
      {"interleave 16B, element stride 0 of dimension 0", false,
       [](A& a) { a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B, a.element_strides[0] = 0; }},
      {"interleave 32B, swizzle 32B", true,
       [](A& a) { a.interleave = CU_TENSOR_MAP_INTERLEAVE_32B, a.swizzle = CU_TENSOR_MAP_SWIZZLE_32B; }},
      {"interleave 32B, swizzle 128B", true, [](A& a) { a.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; }},
      {"interleave 32B, address aligned to 16 bytes", false,
       [](A& a) {
         a.interleave = CU_TENSOR_MAP_INTERLEAVE_32B, a.swizzle = CU_TENSOR_MAP_SWIZZLE_32B,
         a.address = 0x1010;
       }},
      {"interleave 32B, stride 16", false,
       [](A& a) {
         a.interleave = CU_TENSOR_MAP_INTERLEAVE_32B, a.swizzle = CU_TENSOR_MAP_SWIZZLE_32B,
         a.strides[0] = 272;
       }},
      {"swizzle 7", false, [](A& a) { a.swizzle = as<CUtensorMapSwizzle>(7); }},
      {"swizzle 128B with 32-byte atoms", true,
       [](A& a) { a.swizzle = CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B; }},
      {"L2 promotion 256B", true, [](A& a) { a.l2 = CU_TENSOR_MAP_L2_PROMOTION_L2_256B; }},
      {"L2 promotion 4", false, [](A& a) { a.l2 = as<CUtensorMapL2promotion>(4); }},
      {"NaN fill of fp16", true, [](A& a) { a.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; }},
      {"NaN fill of integers", false,
       [](A& a) {
         a.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA, a.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
       }},
      {"fill 2", false, [](A& a) { a.fill = as<CUtensorMapFloatOOBfill>(2); }},
      {"16U4_ALIGN8B, 64 elements", true, [](A& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B; }},
      {"16U4_ALIGN8B, 16 elements", false,
       [](A& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, a.box[0] = 16; }},
      {"16U4_ALIGN8B, odd extent", false,
       [](A& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, a.extents[0] = 127; }},
      {"16U6_ALIGN16B, 128 elements", true,
       [](A& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, a.box[0] = 128; }},
      {"16U6_ALIGN16B, 64 elements", false, [](A& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B; }},
      {"16U6_ALIGN16B, extent 192", false,
       [](A& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, a.box[0] = 128, a.extents[0] = 192; }},
      {"16U6_ALIGN16B, swizzle 64B", false,
       [](A& a) {
         a.type = CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B, a.box[0] = 128,
         a.swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
       }},
      {"16U4_ALIGN16B, address aligned to 16 bytes", false,
       [](A& a) { a.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B, a.box[0] = 128, a.address = 0x1010; }},
  };
  for (const Row& row : rows) {
    Arguments arguments;
    std::memset(arguments.storage, 0xa5, sizeof arguments.storage);
    row.change(arguments);
    INFO(row.what);
    CHECK(arguments.encode() == (row.accepted ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    TensorMap map;
    if (row.accepted)
      CHECK(decode(arguments.map, &map));
    else if (arguments.map != nullptr)
      CHECK_FALSE(decode(arguments.map, &map));  // a refused map is left as it was
  }
}

TEST_CASE("what is encoded is decoded, and a damaged map is none") {
  std::mt19937 rng(4);
  for (int n = 0; n < 500; ++n) {
    Arguments a;
    a.rank = 1 + rng() % 5;
    a.address = (rng() * 0x1'0000'0001ull) & ~15ull;
    a.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
    for (int d = 0; d < 5; ++d) {
      a.extents[d] = 1 + rng() % (1ull << 32);
      a.box[d] = d == 0 ? 8 * (1 + rng() % 32) : 1 + rng() % (d < 3 ? 9 : 3);
      a.element_strides[d] = 1 + rng() % 8;
      if (d > 0) a.strides[d - 1] = (rng() * 0x1'0000'0001ull) % (1ull << 40) & ~15ull;
    }
    REQUIRE(a.encode() == CUDA_SUCCESS);
    TensorMap map;
    REQUIRE(decode(a.map, &map));
    CHECK((map.type == a.type && map.rank == a.rank && map.address == a.address && map.swizzle == a.swizzle));
    CHECK((map.strides[0] == 2 && map.box_elements(0) == a.box[0]));
    for (uint32_t d = 0; d < a.rank; ++d) {
      REQUIRE((map.extents[d] == a.extents[d] && map.box[d] == a.box[d]));
      if (d == 0) continue;
      REQUIRE((map.strides[d] == a.strides[d - 1] && map.element_strides[d] == a.element_strides[d]));
      REQUIRE(map.box_elements(d) == (a.box[d] + a.element_strides[d] - 1) / a.element_strides[d]);
    }
    auto* bytes = reinterpret_cast<unsigned char*>(a.map);
    bytes[rng() % 128] ^= static_cast<unsigned char>(1u << rng() % 8);
    CHECK_FALSE(decode(a.map, &map));
  }
}
