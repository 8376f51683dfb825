// SPDX-License-Identifier: Apache-2.0
// Bulk copies through a whole kernel: boxes of one to five dimensions in and out, swizzle, tensor edges, bulk
// groups, and runs of bytes.
#include <cuda.h>

#include <algorithm>

#include "async.h"
#include "support/catch.h"
#include "tools/sim/core/tensor_map.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

struct Box {
  uint32_t rank;
  std::vector<uint64_t> extents;  // elements of 4 bytes, innermost first
  std::vector<uint32_t> box;
  std::vector<int32_t> coordinates;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  size_t elements() const {
    size_t n = 1;
    for (uint64_t e : extents) n *= e;
    return n;
  }
  // A store may not begin before the tensor's start: such a box is only loaded.
  bool negative() const { return *std::min_element(coordinates.begin(), coordinates.end()) < 0; }
  uint32_t box_elements() const {
    uint32_t n = 1;
    for (uint32_t b : box) n *= b;
    return n;
  }
  // Index in the tensor of box element i, or -1 outside; and the byte of the dense image where the element
  // lies.
  int64_t tensor_index(uint32_t i) const {
    int64_t index = 0, pitch = 1;
    for (uint32_t d = 0; d < rank; ++d) {
      const int64_t c = coordinates[d] + int64_t(i % box[d]);
      i /= box[d];
      if (c < 0 || c >= int64_t(extents[d])) return -1;
      index += c * pitch;
      pitch *= int64_t(extents[d]);
    }
    return index;
  }
  uint32_t image_byte(uint32_t i, uint32_t base) const {
    const uint32_t byte = base + 4 * i, period = swizzle == CU_TENSOR_MAP_SWIZZLE_128B  ? 7
                                                 : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 3
                                                 : swizzle == CU_TENSOR_MAP_SWIZZLE_32B ? 1
                                                                                        : 0;
    return (byte ^ (byte >> 7 & period) << 4) - base;
  }
};

CUtensorMap map_of(const Box& b, uint64_t address) {
  CUtensorMap map;
  uint64_t strides[5];
  uint32_t ones[5] = {1, 1, 1, 1, 1};
  uint64_t bytes = 4;
  for (uint32_t d = 0; d + 1 < b.rank; ++d) strides[d] = bytes *= b.extents[d];
  REQUIRE(encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, b.rank, reinterpret_cast<void*>(address),
                       reinterpret_cast<const cuuint64_t*>(b.extents.data()),
                       reinterpret_cast<const cuuint64_t*>(strides), b.box.data(), ones,
                       CU_TENSOR_MAP_INTERLEAVE_NONE, b.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                       CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  return map;
}

// Loads a box, copies its image to `out` word by word, adds 1000 to every word and stores the box to a second
// tensor.
std::string copy_kernel(const Box& b) {
  const std::string dim = std::to_string(b.rank) + "d", bytes = std::to_string(4 * b.box_elements());
  std::string list;
  for (uint32_t d = 0; d < b.rank; ++d) list += (d ? ", " : "") + std::to_string(b.coordinates[d]);
  return entry_of(".param .u64 out, .param .align 64 .b8 from[128], .param .align 64 .b8 to[128]",
                  prologue() + init_barrier(0, 1) + cta_sync() + R"(
  mov.b64 %d1, from;
  cvta.param.u64 %d1, %d1;
  mov.b64 %d2, to;
  cvta.param.u64 %d2, %d2;
)" + expect_bytes(0, 4 * b.box_elements()) +
                      "  @%p0 cp.async.bulk.tensor." + dim +
                      ".shared::cta.global.tile.mbarrier::complete_tx::bytes [smem+1024], [%d1, {" + list +
                      "}], [smem];\n" + wait_barrier(0, 0) + R"(
  mov.u32 %r1, smem;
  mul.lo.s32 %r2, %tid32, 4;
  add.s32 %r1, %r1, %r2;
  cvt.u64.u32 %d3, %r2;
  add.s64 %out, %out, %d3;
COPY:
  setp.ge.u32 %p2, %r2, )" +
                      bytes + R"(;
  @%p2 bra COPIED;
  ld.shared.u32 %r3, [%r1+1024];
  st.global.u32 [%out], %r3;
  add.s32 %r3, %r3, 1000;
  st.shared.u32 [%r1+1024], %r3;
  add.s32 %r1, %r1, 512;
  add.s32 %r2, %r2, 512;
  add.s64 %out, %out, 512;
  bra COPY;
COPIED:
  fence.proxy.async.shared::cta;
  bar.sync 0;
)" + (b.negative() ? "  ret;\n" : "") +
                      "  @%p0 cp.async.bulk.tensor." + dim + ".global.shared::cta.tile.bulk_group [%d2, {" +
                      list + R"(}], [smem+1024];
  @%p0 cp.async.bulk.commit_group;
  @%p0 cp.async.bulk.wait_group.read 0;
  bar.sync 0;
  st.shared.u32 [smem+1024], 0;
  @%p0 cp.async.bulk.wait_group 0;
  ret;
)",
                  128);
}

}  // namespace

TEST_CASE("boxes of one to five dimensions, in and out") {
  const std::vector<Box> boxes = {{1, {100}, {64}, {20}},
                                  {2, {40, 30}, {32, 8}, {4, 7}},
                                  {2, {40, 30}, {32, 8}, {-8, 26}},  // before the start and beyond the end
                                  {3, {16, 9, 7}, {16, 3, 2}, {0, 5, 4}},
                                  {4, {8, 6, 5, 4}, {8, 2, 3, 2}, {0, 4, 3, 3}},
                                  {5, {8, 4, 3, 3, 2}, {8, 2, 2, 1, 2}, {0, 1, 2, 2, 0}},
                                  {2, {64, 20}, {32, 16}, {32, 2}, CU_TENSOR_MAP_SWIZZLE_128B},
                                  {2, {64, 20}, {16, 16}, {8, 10}, CU_TENSOR_MAP_SWIZZLE_64B},
                                  {2, {64, 20}, {8, 16}, {60, -3}, CU_TENSOR_MAP_SWIZZLE_32B}};
  for (const Box& b : boxes) {
    Kernel kernel(copy_kernel(b));
    std::vector<uint32_t> tensor(b.elements());
    for (size_t i = 0; i < tensor.size(); ++i) tensor[i] = uint32_t(10000 + i);
    const uint64_t from = kernel.upload(tensor), to = kernel.buffer<uint32_t>(tensor.size()),
                   out = kernel.buffer<uint32_t>(b.box_elements());
    const CUtensorMap source = map_of(b, from), target = map_of(b, to);
    kernel.run("kernel", {{1, 1, 1}, {128, 1, 1}, 1024 + 4 * b.box_elements()}, out, source, target);
    std::vector<uint32_t> image(b.box_elements()), stored(tensor.size());
    for (uint32_t i = 0; i < b.box_elements(); ++i) {
      const int64_t at = b.tensor_index(i);
      image[b.image_byte(i, 2048) / 4] = at < 0 ? 0 : tensor[size_t(at)];
      if (at >= 0 && !b.negative()) stored[size_t(at)] = tensor[size_t(at)] + 1000;
    }
    INFO("rank " << b.rank << ", first extent " << b.extents[0] << ", swizzle " << int(b.swizzle));
    CHECK(kernel.read<uint32_t>(out, image.size()) == image);
    CHECK(kernel.read<uint32_t>(to, stored.size()) == stored);
  }
}

TEST_CASE("runs of bytes land on their mbarrier, many at once") {
  // Four copies of different lengths on one barrier, announced together.
  std::string body = prologue() + init_barrier(0, 1) + cta_sync() + "  ld.param.u64 %d1, [from];\n" +
                     expect_bytes(0, 16 + 32 + 512 + 48);
  body += bulk_copy(1024, "%d1", 16, 0) + bulk_copy(1024 + 16, "%d1+16", 32, 0) +
          bulk_copy(1024 + 48, "%d1+48", 512, 0) + bulk_copy(1024 + 560, "%d1+560", 48, 0);
  body += wait_barrier(0, 0) + R"(
  mul.lo.s32 %r2, %tid32, 4;
  setp.ge.u32 %p2, %r2, 608;
  mov.u32 %r1, smem;
  add.s32 %r1, %r1, %r2;
  cvt.u64.u32 %d3, %r2;
  add.s64 %out, %out, %d3;
  @!%p2 ld.shared.u32 %r3, [%r1+1024];
  @!%p2 st.global.u32 [%out], %r3;
  ret;
)";
  Kernel kernel(entry_of(".param .u64 out, .param .u64 from", body, 256));
  std::vector<uint32_t> words(152);
  for (uint32_t i = 0; i < words.size(); ++i) words[i] = i * 7 + 1;
  const uint64_t from = kernel.upload(words), out = kernel.buffer<uint32_t>(words.size());
  kernel.run("kernel", {{1, 1, 1}, {256, 1, 1}, 2048}, out, from);
  CHECK(kernel.read<uint32_t>(out, words.size()) == words);
}
