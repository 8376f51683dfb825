// SPDX-License-Identifier: Apache-2.0
// Attention of one tile: what the other rows test one by one, together.
#include <cuda.h>

#include <cstring>

#include "row.h"

namespace fa4::conformance {
namespace {

constexpr uint32_t kRows = 64, kRowBytes = 128;  // of a tile

Map rows_of_tiles(bool over_output, bool bf16, uint32_t rows) {
  Map map;
  map.over_output = over_output;
  map.type = bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  map.rank = 2;
  map.extents[0] = 64, map.extents[1] = rows;
  map.strides[0] = kRowBytes;
  map.box[0] = 64, map.box[1] = kRows;
  map.swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  return map;
}

}  // namespace

void add_attention_rows(Table& t) {
  t.needs(Needs::hopper);
  t.family({"attention of one tile", "9.7.15", ""});
  struct Mask {
    const char* name;
    uint32_t blocks, keys, own;
  };
  constexpr uint32_t kFull = 0x7FFFFFFF;
  for (bool bf16 : {false, true}) {
    for (const Mask& m : {Mask{"64 keys", 1, 64, kFull},
                          {"320 keys", 5, 320, kFull},
                          {"203 keys", 4, 203, kFull},
                          {"256 keys, causal", 4, 256, 192},
                          {"130 keys, causal, the first queries see none", 3, 130, uint32_t(-20)}}) {
      for (uint32_t seed = 0; seed < 3; ++seed) {
        Row& row = t.kernel("attention", bf16 ? "attention_bf16" : "attention_f16",
                            std::string("attention of one tile, ") + (bf16 ? "bf16, " : "f16, ") + m.name +
                                ", inputs " + std::to_string(seed),
                            "box loads and stores, mbarriers, wgmma, ex2.approx, exact division and "
                            "conversions, as the rows of each say");
        const uint32_t rows = kRows * (1 + 2 * m.blocks);
        row.words[0] = m.blocks;
        row.words[1] = m.keys;
        row.words[2] = m.own;
        const float scale = 0.03125f * 1.44269504f;
        std::memcpy(&row.words[3], &scale, sizeof scale);
        row.inputs = {{bf16 ? Values::small_bf16x2 : Values::small_f16x2, 4}};
        row.elements = rows * kRowBytes / 4;
        row.output_elements = kRows * kRowBytes / 4 + 2 * kRows;  // then maximum and sum of every row
        row.dynamic_shared = kRows * kRowBytes * 5;
        row.map = rows_of_tiles(false, bf16, rows);
        row.output_map = rows_of_tiles(true, bf16, kRows);
      }
    }
  }
}

}  // namespace fa4::conformance
