// SPDX-License-Identifier: Apache-2.0
// Device memory of the simulated GPU: one reserved range of host address space, handed out in 256-byte aligned
// allocations. Device addresses are not host addresses: a host program that dereferences one faults, as on a real machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace fa4::sim {

class GlobalMemory {
 public:
  static constexpr uint64_t base_address = 0x0700'0000'0000;  // first device address handed out

  explicit GlobalMemory(uint64_t capacity_bytes);
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  // Returns the device address, 256-byte aligned, or 0 when there is no room (bytes > 0).
  uint64_t allocate(uint64_t bytes);
  // False when address is not the start of a live allocation.
  bool release(uint64_t address);
  // Host pointer to [address, address + bytes) if it lies wholly inside one live allocation, else nullptr.
  // Safe to call from many threads; no allocation happens while a kernel runs.
  std::byte* at(uint64_t address, uint64_t bytes) const;
  // The live allocation that holds address: its start and size; false when there is none.
  bool find(uint64_t address, uint64_t* start, uint64_t* size) const;
  // "17 bytes past the end of the 4096-byte allocation at 0x..." for messages.
  std::string describe(uint64_t address) const;
  uint64_t capacity() const;
  uint64_t in_use() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fa4::sim
