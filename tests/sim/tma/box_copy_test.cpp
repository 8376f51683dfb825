// SPDX-License-Identifier: Apache-2.0
// Box loads and stores against the per-element oracle, over random maps of every rank, element size, swizzle
// and side of the tensor; and what a copy refuses.
#include <array>
#include <cstring>
#include <random>

#include "oracle.h"
#include "support/catch.h"

using namespace fa4::sim;

namespace {

constexpr uint32_t shared_base = 0x400;
constexpr uint32_t shared_end = shared_base + 48 * 1024;

struct Case {
  CUtensorMap map;
  tma_oracle::Box box;
  CUtensorMapDataType type;
  CUtensorMapSwizzle swizzle;
  CUtensorMapFloatOOBfill fill;
  uint32_t rank;
  uint64_t bytes;  // of the tensor's memory
  uint32_t pitch;  // bytes from row to row of the image
  uint32_t shared_address;
  std::vector<int32_t> coordinates;
};

const std::vector<CUtensorMapDataType> plain_types = {
    CU_TENSOR_MAP_DATA_TYPE_UINT8,    CU_TENSOR_MAP_DATA_TYPE_UINT16,     CU_TENSOR_MAP_DATA_TYPE_UINT32,
    CU_TENSOR_MAP_DATA_TYPE_INT32,    CU_TENSOR_MAP_DATA_TYPE_UINT64,     CU_TENSOR_MAP_DATA_TYPE_INT64,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16,  CU_TENSOR_MAP_DATA_TYPE_FLOAT32,    CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ};
const uint32_t plain_sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4};

constexpr uint32_t spans[] = {2048, 32, 64, 128, 128};  // bytes, by swizzle

// A random map that fits, allocated in memory. Strides are sometimes 0, sometimes padded.
Case make_case(std::mt19937& rng, GlobalMemory& memory, bool store, uint64_t* address) {
  auto pick = [&](uint32_t low, uint32_t high) { return low + rng() % (high - low + 1); };
  for (;;) {
    Case c{};
    const uint32_t t = pick(0, static_cast<uint32_t>(plain_types.size()) - 1);
    c.type = plain_types[t];
    const uint32_t size = plain_sizes[t];
    c.swizzle = static_cast<CUtensorMapSwizzle>(pick(0, 4));
    c.rank = pick(1, 5);
    const bool is_float = t >= 6;
    c.fill = static_cast<CUtensorMapFloatOOBfill>(is_float ? pick(0, 1) : 0);
    const uint32_t span = std::min(spans[c.swizzle], 256 * size);
    uint32_t inner = 16 * pick(1, span / 16);
    if (c.swizzle != CU_TENSOR_MAP_SWIZZLE_NONE && pick(0, 1)) inner = std::min(span, 256 * size) / 16 * 16;
    cuuint32_t box[5], steps[5];
    cuuint64_t extents[5], strides[4];
    box[0] = inner / size;
    steps[0] = pick(1, 8);  // has no effect
    c.pitch = c.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? inner : spans[c.swizzle];
    uint32_t image = c.pitch;
    uint64_t below = 0;  // bytes that the lower dimensions span
    for (uint32_t d = 0; d < c.rank; ++d) {
      extents[d] = d == 0 ? pick(1, 2 * box[0]) : pick(1, 9);
      if (d > 0) {
        steps[d] = pick(0, 3) == 0 ? pick(1, 8) : 1;
        box[d] = std::min<uint32_t>(pick(1, 8) * steps[d], 256);
        strides[d - 1] = pick(0, 7) == 0 ? 0 : (below + 15) / 16 * 16 + 16 * pick(0, 2);
        c.box.strides[d] = strides[d - 1];
        c.box.steps[d] = steps[d];
        c.box.counts[d] = (box[d] + steps[d] - 1) / steps[d];
        image *= c.box.counts[d];
      }
      below =
          std::max<uint64_t>(below, d == 0 ? extents[0] * size : strides[d - 1] * (extents[d] - 1) + below);
      c.box.extents[d] = extents[d];
    }
    c.box.strides[0] = size;
    c.box.counts[0] = box[0];
    c.bytes = (below + 15) / 16 * 16;
    const uint32_t room = shared_end - shared_base;
    if (image + 128 > room) continue;
    c.shared_address = shared_base + 128 * pick(0, (room - image - 127) / 128);
    for (uint32_t d = 0; d < c.rank; ++d) {
      int32_t at = static_cast<int32_t>(pick(0, static_cast<uint32_t>(extents[d]) + 1)) - 2;
      if (!store && pick(0, 99) == 0) at = pick(0, 1) ? INT32_MAX : INT32_MIN;
      const auto unit = static_cast<int32_t>(16 / size);
      if (d == 0) at = at / unit * unit;
      if (store) at = std::max(at, 0);
      c.coordinates.push_back(at);
      c.box.coordinates[d] = at;
    }
    *address = memory.allocate(c.bytes);
    REQUIRE(*address != 0);
    REQUIRE(encode_tiled(&c.map, c.type, c.rank, reinterpret_cast<void*>(*address), extents, strides, box,
                         steps, CU_TENSOR_MAP_INTERLEAVE_NONE, c.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                         c.fill) == CUDA_SUCCESS);
    return c;
  }
}

std::vector<std::byte> random_bytes(std::mt19937& rng, size_t count) {
  std::vector<std::byte> bytes(count);
  for (auto& b : bytes) b = std::byte(rng());
  return bytes;
}

}  // namespace

TEST_CASE("a box load fills exactly the image, every element where the swizzle puts it") {
  std::mt19937 rng(1);
  GlobalMemory memory(1 << 24);
  int outside = 0, partial = 0;
  for (int n = 0; n < 3000; ++n) {
    uint64_t address;
    const Case c = make_case(rng, memory, false, &address);
    const auto content = random_bytes(rng, c.bytes);
    std::memcpy(memory.at(address, c.bytes), content.data(), c.bytes);
    TensorMap map;
    REQUIRE(decode(&c.map, &map));

    auto shared = random_bytes(rng, shared_end);
    auto expected = shared;
    const uint32_t size = map.element_bytes();
    uint32_t image_bytes = 0;
    bool any_outside = false, any_inside = false;
    tma_oracle::for_each_element(c.box, c.pitch, [&](uint32_t offset, bool inside, __int128 where) {
      (inside ? any_inside : any_outside) = true;
      for (uint32_t b = 0; b < size; ++b) {
        const uint8_t nan = b % 2 == 0 ? 0xf7 : 0x7f;
        const std::byte fill{c.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE ? uint8_t{0} : nan};
        expected[tma_oracle::place(c.swizzle, c.shared_address + offset + b)] =
            inside ? content[static_cast<size_t>(where) + b] : fill;
      }
      image_bytes += size;
    });
    outside += !any_inside;
    partial += any_inside && any_outside;
    REQUIRE(map.box_bytes() == image_bytes);
    REQUIRE(load_box(map, memory, c.coordinates, shared, c.shared_address).text == "");
    REQUIRE(shared == expected);
    REQUIRE(memory.release(address));
  }
  CHECK(outside > 100);
  CHECK(partial > 1000);
}

// Where a row of the tensor ends within 16 bytes, hardware writes the rest of them as well.
TEST_CASE("a box store writes the 16-byte chunks that hold elements of the tensor and nothing else") {
  std::mt19937 rng(2);
  GlobalMemory memory(1 << 24);
  for (int n = 0; n < 3000; ++n) {
    uint64_t address;
    const Case c = make_case(rng, memory, true, &address);
    const auto before = random_bytes(rng, c.bytes);
    std::byte* const content = memory.at(address, c.bytes);
    std::memcpy(content, before.data(), c.bytes);
    TensorMap map;
    REQUIRE(decode(&c.map, &map));

    const auto shared = random_bytes(rng, shared_end);
    auto expected = before;  // elements that overlap (stride 0) take the last value in the order of the image
    tma_oracle::Box rounded = c.box;
    const uint64_t unit = 16 / map.element_bytes();
    rounded.extents[0] = (rounded.extents[0] + unit - 1) / unit * unit;
    tma_oracle::for_each_element(rounded, c.pitch, [&](uint32_t offset, bool inside, __int128 where) {
      for (uint32_t b = 0; inside && b < map.element_bytes(); ++b)
        expected[static_cast<size_t>(where) + b] =
            shared[tma_oracle::place(c.swizzle, c.shared_address + offset + b)];
    });
    REQUIRE(store_box(map, memory, c.coordinates, shared, c.shared_address).text == "");
    REQUIRE(std::memcmp(content, expected.data(), c.bytes) == 0);
    REQUIRE(memory.release(address));
  }
}

TEST_CASE("the rank-5 view of packed query heads, forward and back") {
  // (64, heads, seq, 2, batch) over a fused QKV row, box (64, p, 128 / p, 2, 1), 128B swizzle.
  GlobalMemory memory(1ull << 28);
  const cuuint64_t heads = 32, sequence = 200, batch = 2;
  const cuuint64_t row = (heads + 16) * 256;  // bytes of one token, K and V behind Q
  const uint64_t address = memory.allocate(batch * sequence * row);
  std::mt19937 rng(3);
  auto content = random_bytes(rng, batch * sequence * row);
  std::memcpy(memory.at(address, content.size()), content.data(), content.size());
  for (uint32_t p = 1; p <= 32; p *= 2) {
    const cuuint64_t extents[] = {64, heads, sequence, 2, batch};
    const cuuint64_t strides[] = {256, row, 128, sequence * row};
    const cuuint32_t box[] = {64, p, 128 / p, 2, 1}, ones[] = {1, 1, 1, 1, 1};
    CUtensorMap encoded;
    REQUIRE(encode_tiled(&encoded, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 5, reinterpret_cast<void*>(address),
                         extents, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    TensorMap map;
    REQUIRE(decode(&encoded, &map));
    REQUIRE(map.box_bytes() == 32768);
    std::vector<std::byte> shared(shared_end);
    const int32_t last_tile = static_cast<int32_t>(sequence - sequence % (128 / p));
    for (int32_t s : {0, last_tile}) {
      REQUIRE(load_box(map, memory, std::vector<int32_t>{0, 32 - static_cast<int32_t>(p), s, 0, 1}, shared,
                       0x800)
                  .text == "");
      bool equal = true;
      for (uint32_t half = 0; half < 2; ++half)
        for (uint32_t m = 0; m < 128; ++m) {
          const uint32_t token = s + m / p, head = 32 - p + m % p;
          for (uint32_t byte = 0; byte < 128; ++byte) {
            const std::byte want = token < sequence
                                       ? content[(sequence + token) * row + head * 256 + half * 128 + byte]
                                       : std::byte{0};
            equal &= shared[tma_oracle::place(3, 0x800 + half * 16384 + m * 128 + byte)] == want;
          }
        }
      REQUIRE(equal);
    }
  }
}

TEST_CASE("a copy refuses what the hardware faults on, in words") {
  GlobalMemory memory(1 << 24);
  const uint64_t address = memory.allocate(64 * 256);
  std::vector<std::byte> shared(0x400 + 64 * 1024);
  auto make = [&](cuuint64_t rows, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16) {
    const cuuint64_t extents[] = {128, rows, 1}, strides[] = {256, 256 * rows};
    const cuuint32_t box[] = {64, 64, 1}, ones[] = {1, 1, 1};
    CUtensorMap encoded;
    REQUIRE(encode_tiled(&encoded, type, 3, reinterpret_cast<void*>(address), extents, strides, box, ones,
                         interleave, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    TensorMap map;
    REQUIRE(decode(&encoded, &map));
    return map;
  };
  const auto none = CU_TENSOR_MAP_INTERLEAVE_NONE;
  const auto plain = make(64, none, CU_TENSOR_MAP_SWIZZLE_128B);
  auto load = [&](const TensorMap& map, std::vector<int32_t> at, uint32_t to) {
    return load_box(map, memory, at, shared, to).text;
  };
  auto has = [](const std::string& text, const char* part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  CHECK(load(plain, {0, 0, 0}, 0x400) == "");
  CHECK(has(load(plain, {1, 0, 0}, 0x400), "coordinate 0 is 1"));
  CHECK(has(load(plain, {-4, 0, 0}, 0x400), "coordinate 0 is -4"));
  CHECK(has(load(plain, {1, 9999, 0}, 0x400), "coordinate 0 is 1"));  // also where the whole box lies outside
  CHECK(has(load(plain, {0, 0, 0}, 0x440), "multiple of 128"));
  CHECK(has(load(plain, {0, 0, 0}, static_cast<uint32_t>(shared.size()) - 8192 + 128),
            "beyond the CTA's shared memory"));
  CHECK(has(load(plain, {0, 0, 0}, 0xffff'ff80), "beyond the CTA's shared memory"));
  CHECK(has(load(make(64, CU_TENSOR_MAP_INTERLEAVE_16B, CU_TENSOR_MAP_SWIZZLE_NONE), {0, 0, 0}, 0x400),
            "interleaved"));
  CHECK(has(load(make(64, none, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B), {0, 0, 0}, 0x400), "swizzle 6"));
  CHECK(
      has(load(make(64, none, CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B), {0, 0, 0}, 0x400), "swizzle 5"));
  // A map that claims one row more than the allocation has.
  const auto tall = make(65, none, CU_TENSOR_MAP_SWIZZLE_128B);
  CHECK(load(tall, {0, 0, 0}, 0x400) == "");
  CHECK(has(load(tall, {0, 1, 0}, 0x400), "just past the end of the 16384-byte allocation"));
  CHECK(has(store_box(tall, memory, std::vector<int32_t>{64, 1, 0}, shared, 0x400).text,
            "box store to a row of 128 bytes"));

  // Stores do not begin before the tensor.
  for (std::vector<int32_t> at : {std::vector<int32_t>{-8, 0, 0}, {0, -1, 0}, {0, 0, INT32_MIN}}) {
    CHECK(load(plain, at, 0x400) == "");
    CHECK(has(store_box(plain, memory, at, shared, 0x400).text, "not begin before its start"));
  }
  CHECK(has(
      load(make(64, none, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B), {0, 0, 0}, 0x400),
      "data type 13"));
}

// As an H200 answers (driver 580), asked one by one.
TEST_CASE("addresses wrap at 2^64, and a box wholly outside needs its map's address") {
  constexpr uint64_t row_bytes = 128, rows = 256, far = 1ull << 39;
  GlobalMemory memory(1 << 24);
  const uint64_t address = memory.allocate(rows * row_bytes);
  std::vector<uint16_t> content(rows * 64);
  for (size_t i = 0; i < content.size(); ++i) content[i] = uint16_t(1 + i / 64);
  std::vector<std::byte> shared(shared_end);
  const auto map_of = [&](uint64_t from, std::array<cuuint64_t, 3> extents, std::array<cuuint64_t, 2> strides) {
    const cuuint64_t all_extents[] = {64, extents[0], extents[1], extents[2]}, all_strides[] = {row_bytes, strides[0], strides[1]};
    const cuuint32_t box[] = {64, 8, 1, 1}, ones[] = {1, 1, 1, 1};
    CUtensorMap encoded;
    REQUIRE(encode_tiled(&encoded, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, reinterpret_cast<void*>(from), all_extents, all_strides, box, ones,
                         CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                         CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    TensorMap map;
    REQUIRE(decode(&encoded, &map));
    return map;
  };
  struct Copied {
    std::string load, store;
    std::vector<int> loaded, stored;  // of each row of the box, the row of memory, counted from 1, or 0
  };
  const auto copied = [&](const TensorMap& map, std::vector<int32_t> at) {
    Copied c;
    std::memcpy(memory.at(address, rows * row_bytes), content.data(), rows * row_bytes);
    c.load = load_box(map, memory, at, shared, shared_base).text;
    for (int row = 0; row < 8; ++row) {
      uint16_t value;
      std::memcpy(&value, shared.data() + shared_base + size_t(row) * row_bytes, 2);
      if (c.load.empty()) c.loaded.push_back(value);
    }
    std::memset(shared.data() + shared_base, 0xff, 8 * row_bytes);
    c.store = store_box(map, memory, at, shared, shared_base).text;
    for (size_t row = 0; row < rows; ++row) {
      uint16_t value;
      std::memcpy(&value, memory.at(address + row * row_bytes, 2), 2);
      if (value == 0xffff) c.stored.push_back(int(row + 1));
    }
    return c;
  };
  const auto says = [](const std::string& text) { return text.find("no allocated memory") != std::string::npos; };

  // Rows that end where an entry of three rows does: 2^30 times a stride of 2^34 less a row takes back 2^30 rows.
  constexpr int32_t length = 1 << 30;
  const TensorMap wraps = map_of(address, {length, length + 1, 1000}, {(1ull << 34) - row_bytes, row_bytes});
  const Copied ends = copied(wraps, {0, length - 3, length, 103});
  CHECK((ends.load.empty() && ends.loaded == std::vector<int>{101, 102, 103, 0, 0, 0, 0, 0}));
  CHECK((ends.store.empty() && ends.stored == std::vector<int>{101, 102, 103}));
  const Copied past = copied(wraps, {0, length, length, 103});
  CHECK((past.load.empty() && past.loaded == std::vector<int>(8, 0) && past.store.empty() && past.stored.empty()));
  CHECK(says(copied(wraps, {0, length - 3, length - 1, 103}).load));  // what has not come round is no memory

  // The map's own address lies in no memory.
  const TensorMap begins_before = map_of(address - far, {103, 1, 4}, {row_bytes, far});
  const Copied meets = copied(begins_before, {0, 100, 0, 1});
  CHECK((meets.load.empty() && meets.loaded == std::vector<int>{101, 102, 103, 0, 0, 0, 0, 0}));
  CHECK((meets.store.empty() && meets.stored == std::vector<int>{101, 102, 103}));
  const Copied misses = copied(begins_before, {0, 103, 0, 1});
  CHECK((says(misses.load) && misses.store.empty() && misses.stored.empty()));
}
