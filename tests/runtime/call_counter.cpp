// SPDX-License-Identifier: Apache-2.0
// See call_counter.h. operator new reaches malloc, also from other libraries, so malloc alone is replaced.
#include "call_counter.h"

#include <cstdlib>
#include <cstring>

extern char** environ;

namespace {

thread_local bool counting = false;
thread_local uint64_t allocation_count = 0, environment_count = 0;

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FA4_OWN_MALLOC 0
#else
#define FA4_OWN_MALLOC 1
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t size) noexcept {
  allocation_count += counting;
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) noexcept {
  allocation_count += counting;
  return __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) noexcept {
  allocation_count += counting;
  return __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) noexcept {
  allocation_count += counting;
  return __libc_memalign(alignment, size);
}
}
#endif

extern "C" char* getenv(const char* name) noexcept {
  environment_count += counting;
  const size_t length = std::strlen(name);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, name, length) == 0 && (*entry)[length] == '=') return *entry + length + 1;
  }
  return nullptr;
}

namespace fa4::test {

CallCounter::CallCounter() {
  allocation_count = environment_count = 0;
  counting = true;
}
CallCounter::~CallCounter() {
  counting = false;
}
uint64_t CallCounter::allocations() const {
  return allocation_count;
}
uint64_t CallCounter::environment_reads() const {
  return environment_count;
}
bool CallCounter::counts_allocations() {
  return FA4_OWN_MALLOC;
}

}  // namespace fa4::test
