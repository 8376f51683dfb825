// SPDX-License-Identifier: Apache-2.0
// Initialisation, the device, contexts, errors and symbol look-up.
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

#include "driver.h"

// First in the file, and this file first in the executable: nothing has called cuInit yet.
TEST_CASE("before cuInit everything but version and errors answers 3") {
  int value;
  CUdevice device;
  CUcontext context;
  CUdeviceptr address;
  CUlibrary library;
  size_t bytes;
  CUtensorMap map;
  FAILS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount, &value);
  FAILS(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGet, &device, 0);
  FAILS(CUDA_ERROR_NOT_INITIALIZED, cuCtxCreate, &context, nullptr, 0, 0);
  FAILS(CUDA_ERROR_NOT_INITIALIZED, cuDevicePrimaryCtxRetain, &context, 0);
  FAILS(CUDA_ERROR_NOT_INITIALIZED, cuCtxGetCurrent, &context);
  FAILS(CUDA_ERROR_NOT_INITIALIZED, cuMemAlloc, &address, 16);
  FAILS(CUDA_ERROR_NOT_INITIALIZED, cuMemGetInfo, &bytes, &bytes);
  FAILS(CUDA_ERROR_NOT_INITIALIZED, cuLibraryLoadData, &library, "", nullptr, nullptr, 0, nullptr, nullptr,
        0);
  FAILS(CUDA_ERROR_NOT_INITIALIZED, cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, nullptr,
        nullptr, nullptr, nullptr, nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  fa4sim_counters counters;
  CHECK(CALL(fa4sim_get_counters, &counters) == CUDA_ERROR_NOT_INITIALIZED);
  SUCCEEDS(cuDriverGetVersion, &value);
  CHECK(value == 13000);

  SECTION("a malformed environment is refused by name") {
    setenv("FA4SIM_SMS", "many", 1);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuInit, 0);
    says("FA4SIM_SMS is 'many'");
    setenv("FA4SIM_SMS", "-1", 1);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuInit, 0);
    setenv("FA4SIM_SMS", "8", 1);
    FAILS(CUDA_ERROR_INVALID_VALUE, cuInit, 1);
    SUCCEEDS(cuInit, 0);
    SUCCEEDS(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    CHECK(value == 8);
    unsetenv("FA4SIM_SMS");
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc, &address, 16);  // initialised, but without a context
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, nullptr,
          nullptr, nullptr, nullptr, nullptr, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
          CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize);
  }
}

TEST_CASE("one device of compute capability 10.0") {
  SUCCEEDS(cuInit, 0);
  int count;
  SUCCEEDS(cuDeviceGetCount, &count);
  CHECK(count == 1);
  CUdevice device;
  SUCCEEDS(cuDeviceGet, &device, 0);
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet, &device, 1);
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet, &device, -1);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGet, nullptr, 0);
  char name[64];
  SUCCEEDS(cuDeviceGetName, name, 64, device);
  CHECK(std::string(name) == "fa4 simulated GPU (sm_100)");
  SUCCEEDS(cuDeviceGetName, name, 4, device);
  CHECK(std::string(name) == "fa4");
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetName, name, 0, device);
  size_t bytes;
  SUCCEEDS(cuDeviceTotalMem, &bytes, device);
  CHECK(bytes >= 1ull << 30);

  const std::pair<CUdevice_attribute, int> expected[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 10},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
      {CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 1},
      {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0},
  };
  for (auto [attribute, want] : expected) {
    int value = -1;
    SUCCEEDS(cuDeviceGetAttribute, &value, attribute, device);
    CHECK(value == want);
  }
  int value;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_MAX, device);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuDeviceGetAttribute, &value, static_cast<CUdevice_attribute>(0), device);
}

TEST_CASE("the number of SMs is a parameter") {
  SUCCEEDS(cuInit, 0);
  fa4sim_config config{};
  CHECK(CALL(fa4sim_get_config, &config) == CUDA_ERROR_INVALID_VALUE);
  says("struct_size is 0");
  config.struct_size = sizeof config;
  config.sm_count = 3;
  CHECK(CALL(fa4sim_configure, &config) == 0);
  int value;
  SUCCEEDS(cuDeviceGetAttribute, &value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
  CHECK(value == 3);
  config.sm_count = 0;
  CHECK(CALL(fa4sim_configure, &config) == 0);
  CHECK(CALL(fa4sim_get_config, &config) == 0);
  CHECK(config.sm_count == 148);
  config.gpu = 1;
  CHECK(CALL(fa4sim_configure, &config) == CUDA_ERROR_INVALID_VALUE);
  config.gpu = 0;
  config.sm_count = 70000;
  CHECK(CALL(fa4sim_configure, &config) == CUDA_ERROR_INVALID_VALUE);
  says("70000");
}

TEST_CASE("contexts are a stack of each thread") {
  SUCCEEDS(cuInit, 0);
  CUcontext a, b, current;
  SUCCEEDS(cuCtxGetCurrent, &current);
  REQUIRE(current == nullptr);
  SUCCEEDS(cuCtxCreate, &a, nullptr, 0, 0);
  SUCCEEDS(cuCtxCreate, &b, nullptr, 0, 0);
  SUCCEEDS(cuCtxGetCurrent, &current);
  CHECK(current == b);
  std::thread([] {
    CUcontext other;
    SUCCEEDS(cuCtxGetCurrent, &other);
    CHECK(other == nullptr);
  }).join();
  SUCCEEDS(cuCtxPopCurrent, &current);
  CHECK(current == b);
  SUCCEEDS(cuCtxPushCurrent, b);
  SUCCEEDS(cuCtxDestroy, b);  // leaves the stack of this thread
  SUCCEEDS(cuCtxGetCurrent, &current);
  CHECK(current == a);
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy, b);
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxSetCurrent, b);
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent, reinterpret_cast<CUcontext>(0x1234));
  SUCCEEDS(cuCtxSetCurrent, nullptr);
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent, &current);
  SUCCEEDS(cuCtxSetCurrent, a);
  CUdevice device;
  SUCCEEDS(cuCtxGetDevice, &device);
  CHECK(device == 0);
  std::thread([&] { SUCCEEDS(cuCtxDestroy, a); }).join();
  FAILS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize);  // destroyed by another thread while current here
  SUCCEEDS(cuCtxPopCurrent, &current);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuCtxCreate, &a, nullptr, 0x100, 0);
  FAILS(CUDA_ERROR_INVALID_DEVICE, cuCtxCreate, &a, nullptr, 0, 1);
}

TEST_CASE("the primary context lives while it is retained, and its memory with it") {
  SUCCEEDS(cuInit, 0);
  CUcontext primary, again;
  unsigned flags;
  int active;
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease, 0);
  SUCCEEDS(cuDevicePrimaryCtxRetain, &primary, 0);
  SUCCEEDS(cuDevicePrimaryCtxRetain, &again, 0);
  CHECK(primary == again);
  FAILS(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy, primary);
  SUCCEEDS(cuCtxSetCurrent, primary);
  CUdeviceptr address;
  size_t free_before, free_after, total;
  SUCCEEDS(cuMemGetInfo, &free_before, &total);
  SUCCEEDS(cuMemAlloc, &address, 1 << 20);
  SUCCEEDS(cuDevicePrimaryCtxRelease, 0);
  SUCCEEDS(cuCtxSynchronize);
  SUCCEEDS(cuDevicePrimaryCtxRelease, 0);
  SUCCEEDS(cuDevicePrimaryCtxGetState, 0, &flags, &active);
  CHECK(active == 0);
  FAILS(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize);
  SUCCEEDS(cuDevicePrimaryCtxRetain, &again, 0);
  SUCCEEDS(cuMemGetInfo, &free_after, &total);
  CHECK(free_after == free_before);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree, address);
  SUCCEEDS(cuCtxSetCurrent, nullptr);
  SUCCEEDS(cuDevicePrimaryCtxRelease, 0);
}

TEST_CASE("every code has a name and a text") {
  const std::pair<CUresult, const char*> names[] = {
      {CUDA_SUCCESS, "CUDA_SUCCESS"},
      {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
      {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN"}};
  for (auto [code, want] : names) {
    const char* text;
    SUCCEEDS(cuGetErrorName, code, &text);
    CHECK(std::string(text) == want);
    SUCCEEDS(cuGetErrorString, code, &text);
    CHECK(std::strlen(text) > 3);
  }
  std::set<std::string> seen;
  for (int code = 0; code <= 1000; ++code) {
    const char* text;
    if (CALL(cuGetErrorName, static_cast<CUresult>(code), &text) == CUDA_SUCCESS)
      CHECK(seen.insert(text).second);
    else
      CHECK(text == nullptr);
  }
  CHECK(seen.size() == 101);
}

TEST_CASE("cuGetProcAddress finds what is exported") {
  auto look_up = [](const char* name, int version, CUdriverProcAddressQueryResult* status) {
    void* function = nullptr;
    SUCCEEDS(cuGetProcAddress, name, &function, version, 0, status);
    return function;
  };
  CUdriverProcAddressQueryResult status;
  const std::pair<const char*, const char*> names[] = {{"cuMemAlloc", "cuMemAlloc_v2"},
                                                       {"cuLaunchKernelEx", "cuLaunchKernelEx"},
                                                       {"cuEventElapsedTime", "cuEventElapsedTime_v2"},
                                                       {"cuCtxCreate", "cuCtxCreate_v4"},
                                                       {"cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2"},
                                                       {"cuStreamBeginCapture", "cuStreamBeginCapture_v2"},
                                                       {"cuGetProcAddress", "cuGetProcAddress_v2"},
                                                       {"cuTensorMapEncodeTiled", "cuTensorMapEncodeTiled"}};
  for (auto [name, symbol] : names) {
    INFO(name);
    CHECK(look_up(name, 13000, &status) == Driver::get().find(symbol));
    CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS);
  }
  CHECK(look_up("cuCtxCreate", 12000, nullptr) == Driver::get().find("cuCtxCreate_v2"));
  CHECK(look_up("cuGraphicsResourceGetMappedEglFrame", 13000, &status) == nullptr);
  CHECK(status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  void* function;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress, "cuInit", &function, 99000, 0, nullptr);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuGetProcAddress, nullptr, &function, 13000, 0, nullptr);
}
