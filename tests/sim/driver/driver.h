// SPDX-License-Identifier: Apache-2.0
// The built libfa4sim.so, opened as a program opens libcuda: names are looked up, nothing is linked.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "support/catch.h"
#include "tools/sim/driver/fa4sim.h"

class Driver {
 public:
  static Driver& get() {
    static Driver driver;
    return driver;
  }
  void* find(const char* name) const { return dlsym(handle_, name); }
  template <typename Function>
  Function* as(const char* name) const {
    void* function = find(name);
    if (function == nullptr) throw std::runtime_error(std::string(name) + " is not exported");
    return reinterpret_cast<Function*>(function);
  }

 private:
  Driver() : handle_(dlopen(FA4SIM_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
  }
  void* handle_;
};

#define FA4SIM_STRING_OF(x) #x
#define FA4SIM_STRING(x) FA4SIM_STRING_OF(x)
// Calls the function under the name that a program gets by including cuda.h, macros and all.
#define CALL(function, ...) (Driver::get().as<decltype(function)>(FA4SIM_STRING(function))(__VA_ARGS__))
#define SUCCEEDS(...) REQUIRE(CALL(__VA_ARGS__) == CUDA_SUCCESS)
#define FAILS(code, ...) CHECK(CALL(__VA_ARGS__) == (code))

inline std::string last_error() {
  return CALL(fa4sim_last_error);
}
inline bool says(const char* part) {
  INFO(last_error());
  const bool found = last_error().find(part) != std::string::npos;
  CHECK(found);
  return found;
}

// A fresh context for one test; a kernel's fault ends with it.
struct TestContext {
  CUcontext handle = nullptr;
  TestContext() {
    SUCCEEDS(cuInit, 0);
    SUCCEEDS(cuCtxCreate, &handle, nullptr, 0, 0);
  }
  ~TestContext() { CALL(cuCtxDestroy, handle); }
};
