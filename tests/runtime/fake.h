// SPDX-License-Identifier: Apache-2.0
// For tests of the C ABI: the recording driver in its initial state, and what a launch that it recorded should be. FA4_FAKE_DRIVER is
// its path.
#pragma once

#include <dlfcn.h>

#include <cstring>

#include "fa4/fa4.hpp"
#include "fake_driver.h"
#include "plans.h"
#include "support/catch.h"

namespace fa4::test {

inline const auto kCurrent = reinterpret_cast<CUcontext>(0xc0de);

// The driver of this process, in its initial state, with a current context for this thread.
class Fake {
 public:
  Fake() : library_(dlopen(FA4_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL)) {
    REQUIRE(library_ != nullptr);
    driver = reinterpret_cast<FakeDriver* (*)()>(dlsym(library_, "fake_driver"))();
    set_current = reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(library_, "cuCtxSetCurrent"));
    driver->version = 13000;
    driver->major = 10;
    driver->minor = 0;
    driver->sm_count = 148;
    driver->failing_function = driver->missing_kernel = driver->jit_log = "";
    driver->loads = driver->unloads = driver->encodes = driver->launch_count = driver->kernel_count = 0;
    set_current(kCurrent);
    driver->calls = 0;
  }
  ~Fake() { dlclose(library_); }

  FakeDriver* driver;
  CUresult (*set_current)(CUcontext);

 private:
  void* library_;
};

inline fa4_create_params create_params(const char* library = FA4_FAKE_DRIVER) {
  fa4_create_params params{};
  params.struct_size = sizeof params;
  params.version = FA4_VERSION;
  params.driver_library = library;
  return params;
}

// Whether the encoded map is the described one, with the swizzle, promotion and fill of the kernel.
inline bool same_map(const CUtensorMap& encoded, const TensorMapDescription& expected) {
  FakeMap map;
  std::memcpy(&map, &encoded, sizeof map);
  bool same = map.mark == FakeMap::kMark && map.type == static_cast<uint32_t>(expected.type) &&
              map.address == expected.address && map.swizzle == CU_TENSOR_MAP_SWIZZLE_128B &&
              map.l2 == CU_TENSOR_MAP_L2_PROMOTION_L2_128B &&
              map.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE &&
              map.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  for (int i = 0; i < 5; ++i) same &= map.extents[i] == expected.extents[i] && map.box[i] == expected.box[i];
  for (int i = 0; i < 4; ++i) same &= map.strides[i] == expected.strides[i];
  return same;
}

// Whether a launch is what the plan of the problem says.
inline bool same_launch(const FakeLaunch& launch, const Problem& problem, const FakeDriver& driver) {
  Plan plan;
  Message message;
  if (plan_forward(problem, {kernels_for(uint32_t(10 * driver.major + driver.minor)), uint32_t(driver.sm_count)}, plan, message) != FA4_OK)
    return false;
  const char* name = driver.kernel_names[reinterpret_cast<uintptr_t>(launch.function) - 1];
  const AttentionParams& got = launch.params;
  const bool maps = same_map(got.q, plan.q) && same_map(got.k, plan.k) && same_map(got.v, plan.v) &&
                    same_map(got.o, plan.o);
  return maps && std::strcmp(name, plan.kernel->entry) == 0 && launch.grid[0] == plan.grid &&
         launch.grid[1] == 1 && launch.grid[2] == 1 && launch.block[0] == plan.kernel->threads &&
         launch.block[1] == 1 && launch.block[2] == 1 && launch.shared_bytes == plan.kernel->shared_bytes &&
         launch.stream == static_cast<CUstream>(problem.stream) && same_params(*plan.kernel, launch.params, plan.params);
}

}  // namespace fa4::test
