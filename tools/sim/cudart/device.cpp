// SPDX-License-Identifier: Apache-2.0
// The device, its properties, versions and errors.
#include <cstdio>
#include <cstring>
#include <mutex>

#include "cudart.h"

using namespace fa4::sim::cudart;

namespace {

thread_local cudaError_t last_error = cudaSuccess;

struct IntProperty {
  int cudaDeviceProp::*field;
  CUdevice_attribute attribute;
};
constexpr IntProperty int_properties[] = {
    {&cudaDeviceProp::regsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK},
    {&cudaDeviceProp::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&cudaDeviceProp::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&cudaDeviceProp::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&cudaDeviceProp::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&cudaDeviceProp::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&cudaDeviceProp::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&cudaDeviceProp::memoryBusWidth, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH},
    {&cudaDeviceProp::l2CacheSize, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {&cudaDeviceProp::maxThreadsPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::globalL1CacheSupported, CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED},
    {&cudaDeviceProp::localL1CacheSupported, CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED},
    {&cudaDeviceProp::regsPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::cooperativeLaunch, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH},
    {&cudaDeviceProp::clusterLaunch, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH},
    {&cudaDeviceProp::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&cudaDeviceProp::maxBlocksPerMultiProcessor, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
};

struct SizeProperty {
  size_t cudaDeviceProp::*field;
  CUdevice_attribute attribute;
};
constexpr SizeProperty size_properties[] = {
    {&cudaDeviceProp::sharedMemPerBlock, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {&cudaDeviceProp::memPitch, CU_DEVICE_ATTRIBUTE_MAX_PITCH},
    {&cudaDeviceProp::totalConstMem, CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY},
    {&cudaDeviceProp::textureAlignment, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT},
    {&cudaDeviceProp::sharedMemPerMultiprocessor, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {&cudaDeviceProp::sharedMemPerBlockOptin, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN},
    {&cudaDeviceProp::reservedSharedMemPerBlock, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK},
};

// Errors that only the runtime has.
struct RuntimeError {
  cudaError_t code;
  const char *name, *text;
};
constexpr RuntimeError runtime_errors[] = {
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorMissingConfiguration, "cudaErrorMissingConfiguration",
     "__global__ function call is not configured"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
};

cudaError_t check_device(int device) {
  return keep(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

}  // namespace

namespace fa4::sim::cudart {

cudaError_t keep(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

void say(const char* what, const char* name) {
  std::fprintf(stderr, "libcudart of the simulated GPU: %s: %s\n", name, what);
}

CUresult enter() {
  static std::mutex lock;
  static CUcontext primary = nullptr;
  CUcontext current = nullptr;
  if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != nullptr) return CUDA_SUCCESS;
  std::lock_guard guard(lock);
  if (primary == nullptr) {
    if (const CUresult r = cuInit(0)) return r;
    if (const CUresult r = cuDevicePrimaryCtxRetain(&primary, 0)) return r;
  }
  return cuCtxSetCurrent(primary);
}

}  // namespace fa4::sim::cudart

FA4SIM_CUDART cudaError_t cudaGetDeviceCount(int* count) {
  return in_context([&] { return cuDeviceGetCount(count); });
}

FA4SIM_CUDART cudaError_t cudaGetDevice(int* device) {
  return in_context([&] { return cuCtxGetDevice(device); });
}

FA4SIM_CUDART cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = check_device(device)) return error;
  return in_context([] { return CUDA_SUCCESS; });
}

FA4SIM_CUDART cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return cudaSetDevice(device);
}

FA4SIM_CUDART cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return in_context([&] { return cuDevicePrimaryCtxSetFlags(0, flags); });
}

FA4SIM_CUDART cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) {
  return cudaGetDevice(device);
}

FA4SIM_CUDART cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return in_context(
      [&] { return cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device); });
}

FA4SIM_CUDART cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (properties == nullptr) return keep(cudaErrorInvalidValue);
  if (const cudaError_t error = check_device(device)) return error;
  return in_context([&] {
    cudaDeviceProp& p = *properties;
    std::memset(&p, 0, sizeof p);
    if (const CUresult r = cuDeviceGetName(p.name, sizeof p.name, device)) return r;
    if (const CUresult r = cuDeviceGetUuid(reinterpret_cast<CUuuid*>(&p.uuid), device)) return r;
    if (const CUresult r = cuDeviceTotalMem(&p.totalGlobalMem, device)) return r;
    const auto get = [&](CUdevice_attribute attribute) {
      int value = 0;
      cuDeviceGetAttribute(&value, attribute, device);
      return value;
    };
    for (const IntProperty& property : int_properties) p.*property.field = get(property.attribute);
    for (const SizeProperty& property : size_properties)
      p.*property.field = static_cast<size_t>(get(property.attribute));
    for (int d = 0; d < 3; ++d) {
      p.maxThreadsDim[d] = get(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + d));
      p.maxGridSize[d] = get(static_cast<CUdevice_attribute>(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + d));
    }
    return CUDA_SUCCESS;
  });
}

FA4SIM_CUDART cudaError_t cudaDeviceSynchronize() {
  return in_context([] { return cuCtxSynchronize(); });
}

// Frees all memory and forgets a kernel's fault; loaded modules belong to no context and stay.
FA4SIM_CUDART cudaError_t cudaDeviceReset() {
  CUcontext current, primary;
  if (const CUresult r = enter()) return keep(r);
  if (const CUresult r = cuDevicePrimaryCtxReset(0)) return keep(r);
  if (const CUresult r = cuDevicePrimaryCtxRetain(&primary, 0)) return keep(r);
  last_error = cudaSuccess;
  return keep(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == primary ? CUDA_SUCCESS
                                                                              : cuCtxSetCurrent(primary));
}

FA4SIM_CUDART cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) {
  return in_context([] { return CUDA_SUCCESS; });  // a hint
}

// There is no profiler to tell.
FA4SIM_CUDART cudaError_t cudaProfilerStart() {
  return in_context([] { return CUDA_SUCCESS; });
}

FA4SIM_CUDART cudaError_t cudaProfilerStop() {
  return in_context([] { return CUDA_SUCCESS; });
}

FA4SIM_CUDART cudaError_t cudaDriverGetVersion(int* version) {
  return keep(cuDriverGetVersion(version));
}

FA4SIM_CUDART cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return keep(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// A kernel's fault stays the context's answer, and so comes again with the next call.
FA4SIM_CUDART cudaError_t cudaGetLastError() {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}

FA4SIM_CUDART cudaError_t cudaPeekAtLastError() {
  return last_error;
}

FA4SIM_CUDART const char* cudaGetErrorName(cudaError_t error) {
  for (const RuntimeError& row : runtime_errors)
    if (row.code == error) return row.name;
  const char* name;
  return cuGetErrorName(static_cast<CUresult>(error), &name) == CUDA_SUCCESS ? name
                                                                             : "unrecognized error code";
}

FA4SIM_CUDART const char* cudaGetErrorString(cudaError_t error) {
  for (const RuntimeError& row : runtime_errors)
    if (row.code == error) return row.text;
  const char* text;
  return cuGetErrorString(static_cast<CUresult>(error), &text) == CUDA_SUCCESS ? text
                                                                               : "unrecognized error code";
}
