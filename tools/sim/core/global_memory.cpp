// SPDX-License-Identifier: Apache-2.0
// Device memory: an address range reserved once, made accessible as the allocations grow into it. Allocations
// go upward through the range before freed space is used again, so that a stale address is found to be one
// for as long as possible.
#include "global_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <vector>

namespace fa4::sim {

namespace {

constexpr uint64_t alignment = 256;     // bytes, of every allocation
constexpr uint64_t page = 4096;         // bytes, granule of what is given back to the host
constexpr size_t remembered = 4096;     // freed allocations
constexpr uint64_t step = 64ull << 20;  // bytes, granule in which the reserved range is made accessible

uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

std::string hex(uint64_t value) {
  char text[2 + 16 + 1];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string count_of_bytes(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

}  // namespace

struct GlobalMemory::State {
  struct Block {
    uint64_t begin, size;  // offset into the range; bytes as asked for
    uint64_t end() const { return begin + size; }
    uint64_t reserved_end() const { return round_up(end(), alignment); }
  };

  std::byte* range = nullptr;
  uint64_t capacity = 0;
  uint64_t accessible = 0;  // bytes from the start of the range that may be touched
  uint64_t next = 0;        // where the search for room starts
  uint64_t in_use = 0;
  std::vector<Block> blocks;  // sorted by begin
  std::deque<Block> freed;    // newest first, the last few: for messages

  // The first block that begins after offset.
  std::vector<Block>::const_iterator after(uint64_t offset) const {
    return std::upper_bound(blocks.begin(), blocks.end(), offset,
                            [](uint64_t value, const Block& block) { return value < block.begin; });
  }

  const Block* holding(uint64_t address) const {
    if (address < base_address) return nullptr;
    const uint64_t offset = address - base_address;
    auto it = after(offset);
    if (it == blocks.begin()) return nullptr;
    --it;
    return offset < it->end() ? &*it : nullptr;
  }

  bool make_accessible(uint64_t end) {
    if (end <= accessible) return true;
    const uint64_t wanted = std::min(round_up(end, step), round_up(capacity, page));
    if (mprotect(range + accessible, wanted - accessible, PROT_READ | PROT_WRITE) != 0) return false;
    accessible = wanted;
    return true;
  }

  // Places a block at or after `from`, in the first gap that is large enough.
  bool place(uint64_t from, uint64_t bytes, uint64_t* offset) {
    auto it = after(from);
    uint64_t begin = it == blocks.begin() ? from : std::max(from, std::prev(it)->reserved_end());
    for (;; ++it) {
      const uint64_t limit = it == blocks.end() ? capacity : it->begin;
      if (begin <= limit && bytes <= limit - begin) break;
      if (it == blocks.end()) return false;
      begin = it->reserved_end();
    }
    if (!make_accessible(begin + bytes)) return false;
    blocks.insert(it, Block{begin, bytes});
    *offset = begin;
    return true;
  }
};

GlobalMemory::GlobalMemory(uint64_t capacity_bytes) : state_(std::make_unique<State>()) {
  if (capacity_bytes == 0) throw std::invalid_argument("device memory of 0 bytes; at least 1 is needed");
  state_->capacity = capacity_bytes;
  void* range = mmap(nullptr, round_up(capacity_bytes, page), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED)
    throw std::runtime_error("cannot reserve " + count_of_bytes(capacity_bytes) +
                             " of address space for device memory: " + std::strerror(errno));
  state_->range = static_cast<std::byte*>(range);
}

GlobalMemory::~GlobalMemory() {
  munmap(state_->range, round_up(state_->capacity, page));
}

uint64_t GlobalMemory::allocate(uint64_t bytes) {
  State& s = *state_;
  if (bytes == 0 || bytes > s.capacity) return 0;
  uint64_t offset;
  if (!s.place(s.next, bytes, &offset) && !s.place(0, bytes, &offset)) return 0;
  s.next = round_up(offset + bytes, alignment);
  s.in_use += bytes;
  return base_address + offset;
}

bool GlobalMemory::release(uint64_t address) {
  State& s = *state_;
  const State::Block* block = s.holding(address);
  if (block == nullptr || base_address + block->begin != address) return false;
  // Whole pages go back to the host; a page shared with a neighbour stays as it is.
  const uint64_t first = round_up(block->begin, page);
  const uint64_t last = block->end() / page * page;
  if (first < last) madvise(s.range + first, last - first, MADV_DONTNEED);
  s.in_use -= block->size;
  s.freed.push_front(*block);
  if (s.freed.size() > remembered) s.freed.pop_back();
  s.blocks.erase(s.blocks.begin() + (block - s.blocks.data()));
  return true;
}

std::byte* GlobalMemory::at(uint64_t address, uint64_t bytes) const {
  const State::Block* block = state_->holding(address);
  if (block == nullptr) return nullptr;
  const uint64_t offset = address - base_address;
  return bytes <= block->end() - offset ? state_->range + offset : nullptr;
}

bool GlobalMemory::find(uint64_t address, uint64_t* start, uint64_t* size) const {
  const State::Block* block = state_->holding(address);
  if (block == nullptr) return false;
  *start = base_address + block->begin;
  *size = block->size;
  return true;
}

std::string GlobalMemory::describe(uint64_t address) const {
  const State& s = *state_;
  auto name = [](const State::Block& block) {
    return "the " + std::to_string(block.size) + "-byte allocation at " + hex(base_address + block.begin);
  };
  if (const State::Block* block = s.holding(address))
    return "byte " + std::to_string(address - base_address - block->begin) + " of " + name(*block);
  for (const State::Block& block : s.freed) {
    const uint64_t begin = base_address + block.begin;
    if (address >= begin && address - begin < block.size) return "byte " + std::to_string(address - begin) + " of " + name(block) + ", which was freed";
  }
  if (s.blocks.empty()) return hex(address) + ", and there is no live allocation";
  // The nearer of the two neighbours is the one that the program most likely meant.
  const State::Block* below = nullptr;
  const State::Block* above = nullptr;
  if (address < base_address) {
    above = &s.blocks.front();
  } else {
    auto it = s.after(address - base_address);
    if (it != s.blocks.end()) above = &*it;
    if (it != s.blocks.begin()) below = &*std::prev(it);
  }
  const uint64_t past = below ? address - base_address - below->end() : UINT64_MAX;
  const uint64_t before = above ? base_address + above->begin - address : UINT64_MAX;
  if (past == 0) return "just past the end of " + name(*below);
  if (past <= before) return count_of_bytes(past) + " past the end of " + name(*below);
  return count_of_bytes(before) + " before the start of " + name(*above);
}

uint64_t GlobalMemory::capacity() const {
  return state_->capacity;
}
uint64_t GlobalMemory::in_use() const {
  return state_->in_use;
}

}  // namespace fa4::sim
