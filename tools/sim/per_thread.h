// SPDX-License-Identifier: Apache-2.0
// A value of each thread that a program's own thread_local and static destructors may still use: it ends with its thread,
// after these, and the main thread's not at all.
#pragma once

#include <pthread.h>

#include <new>

namespace fa4::sim {

template <class T>
class PerThread {
 public:
  PerThread() {
    if (pthread_key_create(&key_, [](void* value) { delete static_cast<T*>(value); }) != 0) throw std::bad_alloc();
  }
  T& get() {
    void* value = pthread_getspecific(key_);
    if (value == nullptr) {
      value = new T;
      if (pthread_setspecific(key_, value) != 0) throw std::bad_alloc();
    }
    return *static_cast<T*>(value);
  }

 private:
  pthread_key_t key_;  // never given back: objects of this class are not destroyed
};

}  // namespace fa4::sim
