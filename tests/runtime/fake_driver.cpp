// SPDX-License-Identifier: Apache-2.0
// See fake_driver.h. FA4_FAKE_WITHOUT_LAUNCH builds a driver that lacks cuLaunchKernel.
#include "fake_driver.h"

#include <cstring>

namespace {

fa4::test::FakeDriver state;
thread_local CUcontext current_context = nullptr;

// Counts the call; the code to return when this function is told to fail.
CUresult enter(const char* function) {
  ++state.calls;
  return std::strcmp(function, state.failing_function) == 0 ? state.failure : CUDA_SUCCESS;
}

uintptr_t number(CUfunction function) {
  return reinterpret_cast<uintptr_t>(function);
}

}  // namespace

#define FAKE extern "C" __attribute__((visibility("default"))) CUresult
#define ENTER \
  if (CUresult result = enter(__func__); result != CUDA_SUCCESS) return result

extern "C" fa4::test::FakeDriver* fake_driver() {
  return &state;
}

FAKE cuInit(unsigned flags) {
  ENTER;
  return flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE cuDriverGetVersion(int* version) {
  ENTER;
  *version = state.version;
  return CUDA_SUCCESS;
}

FAKE cuGetErrorName(CUresult error, const char** text) {
  ENTER;
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : nullptr;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE cuGetErrorString(CUresult error, const char** text) {
  ENTER;
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : nullptr;
  return *text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

FAKE cuCtxGetCurrent(CUcontext* context) {
  ENTER;
  *context = current_context;
  return CUDA_SUCCESS;
}

FAKE cuCtxSetCurrent(CUcontext context) {
  ENTER;
  current_context = context;
  return CUDA_SUCCESS;
}

FAKE cuCtxGetDevice(CUdevice* device) {
  ENTER;
  *device = 3;
  return CUDA_SUCCESS;
}

FAKE cuDeviceGetName(char* name, int bytes, CUdevice device) {
  ENTER;
  if (device != 3) return CUDA_ERROR_INVALID_DEVICE;
  std::strncpy(name, "Fake GPU", static_cast<size_t>(bytes));
  return CUDA_SUCCESS;
}

FAKE cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  ENTER;
  if (device != 3) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = state.major;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = state.minor;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = state.sm_count;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

FAKE cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, CUjit_option* options,
                        void** values) {
  char* log = nullptr;
  std::size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) bytes = reinterpret_cast<uintptr_t>(values[i]);
  }
  if (log != nullptr && bytes != 0)
    std::strncpy(log, state.jit_log, bytes);  // no NUL behind a log that fills it
  ENTER;
  state.image = image;
  ++state.loads;
  state.kernel_count = 0;
  *module = reinterpret_cast<CUmodule>(0x300);
  return CUDA_SUCCESS;
}

FAKE cuModuleUnload(CUmodule module) {
  ENTER;
  ++state.unloads;
  return module == reinterpret_cast<CUmodule>(0x300) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

FAKE cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  ENTER;
  if (std::strcmp(name, state.missing_kernel) == 0) return CUDA_ERROR_NOT_FOUND;
  if (state.kernel_count == fa4::test::FakeDriver::kMaxKernels) return CUDA_ERROR_OUT_OF_MEMORY;
  state.kernel_names[state.kernel_count++] = name;
  *function = reinterpret_cast<CUfunction>(uintptr_t{state.kernel_count});
  return CUDA_SUCCESS;
}

FAKE cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  ENTER;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
  state.shared_bytes[number(function) - 1] = static_cast<uint32_t>(value);
  return CUDA_SUCCESS;
}

FAKE cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                            const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                            const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                            CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2,
                            CUtensorMapFloatOOBfill fill) {
  ENTER;
  if (current_context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || rank != 5) return CUDA_ERROR_INVALID_VALUE;
  fa4::test::FakeMap fake{};
  fake.mark = fa4::test::FakeMap::kMark;
  fake.type = type;
  fake.address = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < 5; ++i) {
    if (element_strides[i] != 1) return CUDA_ERROR_INVALID_VALUE;
    fake.extents[i] = static_cast<uint32_t>(extents[i]);
    fake.box[i] = static_cast<uint16_t>(box[i]);
    if (i < 4) fake.strides[i] = strides[i];
  }
  fake.swizzle = static_cast<uint8_t>(swizzle);
  fake.l2 = static_cast<uint8_t>(l2);
  fake.interleave = static_cast<uint8_t>(interleave);
  fake.fill = static_cast<uint8_t>(fill);
  std::memcpy(map, &fake, sizeof fake);
  ++state.encodes;
  return CUDA_SUCCESS;
}

#ifndef FA4_FAKE_WITHOUT_LAUNCH
FAKE cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                    unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream,
                    void** arguments, void** extra) {
  ENTER;
  if (extra != nullptr || arguments == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const uint32_t index = state.launch_count++;
  if (index >= fa4::test::FakeDriver::kMaxLaunches) return CUDA_ERROR_LAUNCH_FAILED;
  fa4::test::FakeLaunch& launch = state.launches[index];
  launch.function = function;
  const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
  std::memcpy(launch.grid, grid, sizeof grid);
  std::memcpy(launch.block, block, sizeof block);
  launch.shared_bytes = shared_bytes;
  launch.stream = stream;
  std::memcpy(&launch.params, arguments[0], sizeof launch.params);
  return CUDA_SUCCESS;
}
#endif
