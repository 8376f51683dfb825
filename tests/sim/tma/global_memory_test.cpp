// SPDX-License-Identifier: Apache-2.0
// Device memory against a plain map of what should be live.
#include <cstring>
#include <map>
#include <random>

#include "support/catch.h"
#include "tools/sim/core/global_memory.h"

using fa4::sim::GlobalMemory;

TEST_CASE("addresses begin at the base, are aligned, and end where asked") {
  GlobalMemory memory(1 << 20);
  CHECK(memory.allocate(0) == 0);
  CHECK(memory.allocate((1 << 20) + 1) == 0);
  const uint64_t a = memory.allocate(1);
  CHECK(a == GlobalMemory::base_address);
  const uint64_t b = memory.allocate(300);
  CHECK(b == a + 256);
  CHECK(memory.in_use() == 301);
  CHECK(memory.at(a, 1) != nullptr);
  CHECK(memory.at(a, 2) == nullptr);
  CHECK(memory.at(a + 1, 1) == nullptr);
  CHECK(memory.at(b + 299, 1) == memory.at(b, 300) + 299);
  CHECK(memory.at(b + 299, UINT64_MAX) == nullptr);
  CHECK(memory.at(0, 1) == nullptr);
  CHECK(memory.at(UINT64_MAX, 1) == nullptr);
  CHECK_FALSE(memory.release(b + 1));
  CHECK(memory.release(b));
  CHECK_FALSE(memory.release(b));
  CHECK(memory.at(b, 1) == nullptr);
}

TEST_CASE("an address is described by its nearest allocation") {
  GlobalMemory memory(1 << 20);
  CHECK(memory.describe(16) == "0x10, and there is no live allocation");
  const uint64_t a = memory.allocate(4096);
  CHECK(memory.describe(a + 5) == "byte 5 of the 4096-byte allocation at 0x70000000000");
  CHECK(memory.describe(a + 4096) == "just past the end of the 4096-byte allocation at 0x70000000000");
  CHECK(memory.describe(a + 4096 + 17) ==
        "17 bytes past the end of the 4096-byte allocation at 0x70000000000");
  CHECK(memory.describe(a - 1) == "1 byte before the start of the 4096-byte allocation at 0x70000000000");
  const uint64_t b = memory.allocate(256);
  memory.release(a);
  CHECK(memory.describe(a + 5) == "byte 5 of the 4096-byte allocation at 0x70000000000, which was freed");
  CHECK(memory.describe(b + 256) == "just past the end of the 256-byte allocation at 0x70000001000");
}

TEST_CASE("random allocations never overlap, keep their content, and the range can be filled again") {
  constexpr uint64_t capacity = 1 << 22;
  GlobalMemory memory(capacity);
  std::mt19937 rng(5);
  std::map<uint64_t, std::pair<uint64_t, unsigned char>> live;
  uint64_t in_use = 0;
  int refused = 0;
  for (int n = 0; n < 20000; ++n) {
    if (live.empty() || rng() % 2 == 0) {
      const uint64_t bytes = 1 + rng() % (rng() % 16 == 0 ? 400000 : 9000);
      const uint64_t address = memory.allocate(bytes);
      if (address == 0) {
        ++refused;
        continue;
      }
      REQUIRE(address % 256 == 0);
      auto next = live.lower_bound(address);
      REQUIRE((next == live.end() || address + bytes <= next->first));
      if (next != live.begin()) REQUIRE(std::prev(next)->first + std::prev(next)->second.first <= address);
      REQUIRE(address + bytes <= GlobalMemory::base_address + capacity);
      const auto mark = static_cast<unsigned char>(rng());
      std::memset(memory.at(address, bytes), mark, bytes);
      live[address] = {bytes, mark};
      in_use += bytes;
    } else {
      auto victim = std::next(live.begin(), rng() % live.size());
      const auto [bytes, mark] = victim->second;
      uint64_t start, size;
      REQUIRE(memory.find(victim->first + bytes - 1, &start, &size));
      REQUIRE((start == victim->first && size == bytes));
      const auto* content = reinterpret_cast<unsigned char*>(memory.at(start, size));
      REQUIRE((content[0] == mark && content[bytes / 2] == mark && content[bytes - 1] == mark));
      REQUIRE(memory.release(victim->first));
      in_use -= bytes;
      live.erase(victim);
    }
    REQUIRE(memory.in_use() == in_use);
  }
  CHECK(refused > 0);
  for (const auto& [address, block] : live) REQUIRE(memory.release(address));
  CHECK(memory.allocate(capacity) == GlobalMemory::base_address);
}
