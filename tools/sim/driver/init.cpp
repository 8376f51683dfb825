// SPDX-License-Identifier: Apache-2.0
// cuInit, versions, and the one device with its attributes.
#include <algorithm>
#include <cstring>

#include "environment.h"
#include "state.h"

using namespace fa4::sim;
using namespace fa4::sim::driver;

namespace {

// Attributes that are not zero. What is zero is not there: textures, managed memory, pools,
// cooperative launches, mapped host memory.
bool attribute_value(CUdevice_attribute attribute, const GpuKind& gpu, uint32_t sm_count, int* value) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = max_threads_per_block;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
      *value = max_block_dim[0];
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      *value = max_block_dim[1];
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      *value = max_block_dim[2];
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      *value = max_grid_dim[0];
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
      *value = max_grid_dim[1];
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      *value = max_grid_dim[2];
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      *value = shared_default;
      break;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      *value = 65536;
      break;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      *value = warp_size;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      *value = 0x7fff'ffff;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      *value = registers_per_sm;
      break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      *value = gpu.clock_khz;
      break;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      *value = 512;
      break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = static_cast<int>(sm_count);
      break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      *value = gpu.memory_clock_khz;
      break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      *value = gpu.memory_bus_bits;
      break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = gpu.l2_bytes;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      *value = max_threads_per_sm;
      break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = static_cast<int>(gpu.number / 10);
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = static_cast<int>(gpu.number % 10);
      break;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      *value = shared_per_sm;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      *value = registers_per_sm;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = shared_opt_in;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      *value = max_blocks_per_sm;
      break;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      *value = shared_reserved_per_block;
      break;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
      *value = 1;
      break;
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
      *value = 1;
      break;
    default:
      if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return false;
      *value = 0;
  }
  return true;
}

// For queries of a device by its ordinal.
template <typename Body>
CUresult of_device(CUdevice device, const void* result, Body body) {
  return api([&]() -> CUresult {
    if (CUresult r = check_initialised()) return r;
    if (device != 0)
      return fail(CUDA_ERROR_INVALID_DEVICE, "device " + std::to_string(device) + ": there is only 0");
    if (result == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the result is null");
    return body();
  });
}

}  // namespace

FA4SIM_EXPORT CUresult CUDAAPI cuInit(unsigned int flags) {
  return api([&]() -> CUresult {
    if (flags != 0) return fail(CUDA_ERROR_INVALID_VALUE, text("cuInit flags must be 0, not ", flags));
    State& s = state();
    std::lock_guard guard(s.lock);
    if (s.initialised) return CUDA_SUCCESS;
    if (!s.configured)
      if (CUresult r = configure_from_environment(&s.config, &s.gpu)) return r;
    try {
      s.device = std::make_unique<Device>(s.config);
    } catch (const std::exception& error) {
      return fail(CUDA_ERROR_OUT_OF_MEMORY, error.what());
    }
    if (CUresult r = watch_from_environment(s)) {
      s.device = nullptr;
      return r;
    }
    s.device->set_progress(s.progress);
    s.device->trace_cta(s.traced_cta);
    auto context = std::make_shared<Context>();
    context->primary = true;
    context->alive = false;
    context->id = s.next_id++;
    s.primary = s.contexts.add(std::move(context));
    s.initialised = true;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDriverGetVersion(int* version) {
  if (version == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the version is null");
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

FA4SIM_EXPORT CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return of_device(0, count, [&] { return *count = 1, CUDA_SUCCESS; });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return of_device(ordinal, device, [&] { return *device = 0, CUDA_SUCCESS; });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDeviceGetName(char* name, int length, CUdevice device) {
  return of_device(device, name, [&]() -> CUresult {
    if (length <= 0)
      return fail(CUDA_ERROR_INVALID_VALUE, "the length of the name buffer must be at least 1");
    const size_t room = static_cast<size_t>(length) - 1;
    const std::string device_name = state().gpu->name();
    const size_t used = std::min(room, device_name.size());
    std::memcpy(name, device_name.data(), used);
    name[used] = '\0';
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  return of_device(device, uuid, [&] {
    std::memset(uuid->bytes, 0, sizeof uuid->bytes);
    std::memcpy(uuid->bytes, "fa4sim", 6);
    const std::string target = state().gpu->target();
    std::memcpy(uuid->bytes + 8, target.data(), target.size());
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return of_device(device, bytes, [&] { return *bytes = state().device->memory().capacity(), CUDA_SUCCESS; });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute,
                                                    CUdevice device) {
  return of_device(device, value, [&]() -> CUresult {
    State& s = state();
    std::lock_guard guard(s.lock);
    if (!attribute_value(attribute, *s.gpu, s.config.sm_count, value))
      return fail(CUDA_ERROR_INVALID_VALUE, text("unknown device attribute ", attribute));
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return of_device(device, major, [&]() -> CUresult {
    if (minor == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the minor number is null");
    *major = static_cast<int>(state().gpu->number / 10);
    *minor = static_cast<int>(state().gpu->number % 10);
    return CUDA_SUCCESS;
  });
}
