// SPDX-License-Identifier: Apache-2.0
// Counts what a thread asks of the heap and of the environment: the executable's own malloc, operator new and
// getenv stand in front of the system's.
#pragma once

#include <cstdint>

namespace fa4::test {

// Counting is on for the calling thread while an object lives.
class CallCounter {
 public:
  CallCounter();
  ~CallCounter();
  CallCounter(const CallCounter&) = delete;
  CallCounter& operator=(const CallCounter&) = delete;

  uint64_t allocations() const;  // malloc, calloc, realloc, aligned_alloc, operator new
  uint64_t environment_reads() const;

  // Sanitizers bring a malloc of their own; only getenv is counted then.
  static bool counts_allocations();
};

}  // namespace fa4::test
