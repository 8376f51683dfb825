// SPDX-License-Identifier: Apache-2.0
// Functions of modules and libraries, what a launch refuses, what it runs, and what a faulting kernel leaves
// behind.
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "driver.h"
#include "images.h"

namespace {

struct Loaded : TestContext {
  CUmodule module = nullptr;
  Loaded() { SUCCEEDS(cuModuleLoadData, &module, kernels_ptx().c_str()); }
  CUfunction operator[](const char* name) const {
    CUfunction function;
    SUCCEEDS(cuModuleGetFunction, &function, module, name);
    return function;
  }
};

CUresult launch(CUfunction function, unsigned grid, unsigned block, void** params, void** extra = nullptr,
                unsigned shared = 0) {
  return CALL(cuLaunchKernel, function, grid, 1, 1, block, 1, 1, shared, nullptr, params, extra);
}

bool is_scaled(CUdeviceptr address, size_t count, float factor) {
  std::vector<float> out(count);
  SUCCEEDS(cuMemcpyDtoH, out.data(), address, count * 4);
  for (size_t i = 0; i < count; ++i)
    if (out[i] != factor * static_cast<float>(i)) return false;
  return true;
}

}  // namespace

TEST_CASE("functions are found by name and know their parameters") {
  Loaded loaded;
  CUfunction function;
  FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction, &function, loaded.module, "scales");
  says("the image holds narrow, read_misaligned, read_null, scale, spin");
  FAILS(CUDA_ERROR_INVALID_VALUE, cuModuleGetFunction, &function, loaded.module, nullptr);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleGetFunction, &function, reinterpret_cast<CUmodule>(0x77), "scale");
  unsigned count;
  SUCCEEDS(cuModuleGetFunctionCount, &count, loaded.module);
  CHECK(count == 5);
  const char* name;
  SUCCEEDS(cuFuncGetName, &name, loaded["spin"]);
  CHECK(std::string(name) == "spin");
  size_t offset, size;
  SUCCEEDS(cuFuncGetParamInfo, loaded["scale"], 0, &offset, &size);
  CHECK((offset == 0 && size == 8));
  SUCCEEDS(cuFuncGetParamInfo, loaded["scale"], 1, &offset, &size);
  CHECK((offset == 8 && size == 4));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo, loaded["scale"], 2, &offset, &size);
  SUCCEEDS(cuFuncGetParamInfo, loaded["narrow"], 0, &offset, &size);
  CHECK((offset == 0 && size == 24));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncGetParamInfo, loaded["spin"], 0, &offset, &size);

  const CUfunction scale = loaded["scale"];
  SUCCEEDS(cuModuleUnload, loaded.module);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuFuncGetName, &name, scale);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuModuleUnload, loaded.module);
  CHECK(launch(scale, 1, 1, nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("variables lie in device memory with their first content") {
  Loaded loaded;
  CUdeviceptr address;
  size_t bytes;
  SUCCEEDS(cuModuleGetGlobal, &address, &bytes, loaded.module, "counter");
  REQUIRE(bytes == 4);
  uint32_t value;
  SUCCEEDS(cuMemcpyDtoH, &value, address, 4);
  CHECK(value == 7);
  SUCCEEDS(cuModuleGetGlobal, &address, &bytes, loaded.module, "table");
  CHECK(bytes == 64);
  SUCCEEDS(cuModuleGetGlobal, nullptr, &bytes, loaded.module, "table");
  FAILS(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal, &address, &bytes, loaded.module, "tables");
  says("tables");
}

TEST_CASE("function attributes and occupancy") {
  Loaded loaded;
  auto get = [](CUfunction function, CUfunction_attribute attribute) {
    int value = -2;
    SUCCEEDS(cuFuncGetAttribute, &value, attribute, function);
    return value;
  };
  const CUfunction scale = loaded["scale"], narrow = loaded["narrow"];
  CHECK(get(scale, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024);
  CHECK(get(narrow, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 64);
  CHECK(get(scale, CU_FUNC_ATTRIBUTE_PTX_VERSION) == 90);
  CHECK(get(scale, CU_FUNC_ATTRIBUTE_BINARY_VERSION) == 100);
  CHECK(get(scale, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES) == 0);
  const auto dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CHECK(get(scale, dynamic) == 49152);
  SUCCEEDS(cuFuncSetAttribute, scale, dynamic, 232448);
  CHECK(get(scale, dynamic) == 232448);
  CHECK(get(narrow, dynamic) == 49152);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute, scale, dynamic, 232449);
  says("0 to 232448 are possible");
  FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute, scale, dynamic, -1);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncSetAttribute, scale, CU_FUNC_ATTRIBUTE_NUM_REGS, 32);
  SUCCEEDS(cuFuncSetAttribute, scale, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  CHECK(get(scale, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) == 1);
  int value;
  FAILS(CUDA_ERROR_INVALID_VALUE, cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX, scale);

  auto blocks = [&](CUfunction function, int threads, size_t shared) {
    int result = -1;
    SUCCEEDS(cuOccupancyMaxActiveBlocksPerMultiprocessor, &result, function, threads, shared);
    return result;
  };
  CHECK(blocks(scale, 512, 0) == 4);
  CHECK(blocks(scale, 32, 0) == 32);
  CHECK(blocks(scale, 128, 100 * 1024) == 2);
  CHECK(blocks(scale, 512, 232448) == 1);
  CHECK(blocks(scale, 512, 232449) == 0);
  CHECK(blocks(narrow, 128, 0) == 0);
}

TEST_CASE("a kernel runs from an array of parameters, from a buffer, and from a library") {
  Loaded loaded;
  CUdeviceptr out;
  SUCCEEDS(cuMemAlloc, &out, 4 * 96);
  float factor = 0.5f;
  void* params[] = {&out, &factor};
  REQUIRE(launch(loaded["scale"], 3, 32, params) == CUDA_SUCCESS);
  CHECK(is_scaled(out, 96, 0.5f));
  fa4sim_counters counters;
  REQUIRE(CALL(fa4sim_get_counters, &counters) == 0);
  CHECK(counters.ctas == 3);

  struct {
    CUdeviceptr out;
    float factor;
  } buffer = {out, 3.0f};
  size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  REQUIRE(launch(loaded["scale"], 3, 32, nullptr, extra) == CUDA_SUCCESS);
  CHECK(is_scaled(out, 96, 3.0f));
  size = sizeof buffer;
  CHECK(launch(loaded["scale"], 3, 32, nullptr, extra) == CUDA_SUCCESS);
  size = 8;
  CHECK(launch(loaded["scale"], 3, 32, nullptr, extra) == CUDA_ERROR_INVALID_VALUE);
  says("12");
  CHECK(launch(loaded["scale"], 3, 32, params, extra) == CUDA_ERROR_INVALID_VALUE);
  CHECK(launch(loaded["scale"], 3, 32, nullptr) == CUDA_ERROR_INVALID_VALUE);
  void* missing[] = {&out, nullptr};
  CHECK(launch(loaded["scale"], 3, 32, missing) == CUDA_ERROR_INVALID_VALUE);
  says("kernelParams[1] is null");

  CUlibrary library;
  CUkernel kernel;
  CUfunction function;
  SUCCEEDS(cuLibraryLoadFromFile, &library, KERNELS_FATBINARY, nullptr, nullptr, 0, nullptr, nullptr, 0);
  SUCCEEDS(cuLibraryGetKernel, &kernel, library, "scale");
  SUCCEEDS(cuKernelSetAttribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100000, kernel, 0);
  SUCCEEDS(cuKernelGetFunction, &function, kernel);
  factor = 2.0f;
  CUlaunchAttribute attributes[2] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attributes[0].value.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[1].value.clusterDim = {1, 1, 1};
  CUlaunchConfig config = {3, 1, 1, 32, 1, 1, 100000, nullptr, attributes, 2};
  SUCCEEDS(cuLaunchKernelEx, &config, reinterpret_cast<CUfunction>(kernel), params, nullptr);
  CHECK(is_scaled(out, 96, 2.0f));
  SUCCEEDS(cuLaunchKernelEx, &config, function, params, nullptr);
  attributes[1].value.clusterDim = {2, 1, 1};
  FAILS(CUDA_ERROR_INVALID_CLUSTER_SIZE, cuLaunchKernelEx, &config, function, params, nullptr);
  says("clusters of (2, 1, 1): the grid (3, 1, 1) is no multiple of it");
  attributes[1] = {};
  attributes[1].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attributes[1].value.cooperative = 1;
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuLaunchKernelEx, &config, function, params, nullptr);
  {
    TestContext other;  // a kernel of a library runs in any context, a function of a module in its own
    CUdeviceptr more;
    SUCCEEDS(cuMemAlloc, &more, 4 * 96);
    void* other_params[] = {&more, &factor};
    config.numAttrs = 0;
    SUCCEEDS(cuLaunchKernelEx, &config, function, other_params, nullptr);
    CHECK(is_scaled(more, 96, 2.0f));
  }
  const CUfunction scale = loaded["scale"];
  {
    TestContext other;
    CHECK(launch(scale, 3, 32, params) == CUDA_ERROR_INVALID_HANDLE);
    says("another context");
  }
  SUCCEEDS(cuLibraryUnload, library);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuLaunchKernelEx, &config, function, params, nullptr);
}

TEST_CASE("shapes of a launch are checked") {
  Loaded loaded;
  const CUfunction scale = loaded["scale"], narrow = loaded["narrow"];
  auto shaped = [&](CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                    unsigned bz) {
    char bytes[24] = {};
    void* params[] = {bytes, bytes};
    return CALL(cuLaunchKernel, f, gx, gy, gz, bx, by, bz, 0, nullptr, params, nullptr);
  };
  CHECK(shaped(scale, 0, 1, 1, 32, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  says("grid (0, 1, 1)");
  CHECK(shaped(scale, 1, 65536, 1, 32, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(shaped(scale, 1, 1, 1, 0, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(shaped(scale, 1, 1, 1, 1025, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(shaped(scale, 1, 1, 1, 1, 1, 65) == CUDA_ERROR_INVALID_VALUE);
  CHECK(shaped(scale, 1, 1, 1, 32, 33, 1) == CUDA_ERROR_INVALID_VALUE);
  says("1056 threads");
  CHECK(shaped(narrow, 1, 1, 1, 65, 1, 1) == CUDA_ERROR_INVALID_VALUE);
  CHECK(shaped(narrow, 1, 1, 1, 64, 1, 1) == CUDA_SUCCESS);
  char bytes[24] = {};
  void* params[] = {bytes, bytes};
  CHECK(launch(narrow, 1, 32, params, nullptr, 49153) == CUDA_ERROR_INVALID_VALUE);
  says("49152");
  SUCCEEDS(cuFuncSetAttribute, narrow, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000);
  CHECK(launch(narrow, 1, 32, params, nullptr, 49153) == CUDA_SUCCESS);
  CHECK(launch(nullptr, 1, 32, params) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("threads share a context, each with its stream") {
  Loaded loaded;
  const CUfunction scale = loaded["scale"];
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      // No assertion here: the test framework is not made for threads.
      auto check = [&](bool good) { wrong[t] += !good; };
      check(CALL(cuCtxSetCurrent, loaded.handle) == CUDA_SUCCESS);
      CUstream stream;
      check(CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
      for (int n = 0; n < 40; ++n) {
        CUdeviceptr address;
        float factor = static_cast<float>(100 * t + n), out[64];
        void* params[] = {&address, &factor};
        check(CALL(cuMemAlloc, &address, sizeof out) == CUDA_SUCCESS);
        check(CALL(cuLaunchKernel, scale, 2, 1, 1, 32, 1, 1, 0, stream, params, nullptr) == CUDA_SUCCESS);
        check(CALL(cuMemcpyDtoHAsync, out, address, sizeof out, stream) == CUDA_SUCCESS);
        check(out[1] == factor && out[63] == 63 * factor);
        check(CALL(cuMemFree, address) == CUDA_SUCCESS);
      }
      check(CALL(cuStreamDestroy, stream) == CUDA_SUCCESS);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

TEST_CASE("a kernel's fault stays with its context") {
  struct Row {
    const char* kernel;
    CUresult expected;
  };
  fa4sim_config config{};
  config.struct_size = sizeof config;
  config.instruction_budget = 100000;
  REQUIRE(CALL(fa4sim_configure, &config) == 0);
  for (const Row& row : {Row{"read_null", CUDA_ERROR_ILLEGAL_ADDRESS}, Row{"spin", CUDA_ERROR_LAUNCH_TIMEOUT},
                         Row{"read_misaligned", CUDA_ERROR_MISALIGNED_ADDRESS}}) {
    INFO(row.kernel);
    Loaded loaded;
    CUdeviceptr address;
    SUCCEEDS(cuMemAlloc, &address, 256);
    void* params[] = {&address};
    CHECK(launch(loaded[row.kernel], 2, 32, params) == row.expected);
    says(row.kernel);
    const std::string report = last_error();
    FAILS(row.expected, cuCtxSynchronize);
    FAILS(row.expected, cuStreamSynchronize, nullptr);
    FAILS(row.expected, cuMemFree, address);
    CUfunction function;
    FAILS(row.expected, cuModuleGetFunction, &function, loaded.module, "scale");
    CHECK(last_error() == report);
    std::thread([&] {
      SUCCEEDS(cuCtxSetCurrent, loaded.handle);
      FAILS(row.expected, cuCtxSynchronize);
    }).join();
    TestContext fresh;  // another context is not affected
    SUCCEEDS(cuCtxSynchronize);
    SUCCEEDS(cuMemAlloc, &address, 256);
  }
  config.instruction_budget = 0;
  REQUIRE(CALL(fa4sim_configure, &config) == 0);
}
