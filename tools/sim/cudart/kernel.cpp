// SPDX-License-Identifier: Apache-2.0
// Kernels: attributes, occupancy, launches with a configuration, and where the driver's own functions are.
#include "cudart.h"

using namespace fa4::sim::cudart;

namespace {

// The runtime's launch attributes are the driver's, number by number and byte by byte.
static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));

// body(kernel) of a host function.
template <typename Body>
cudaError_t of_kernel(const void* function, Body body) {
  return in_context([&] {
    CUfunction kernel;
    if (const cudaError_t error = find_kernel(function, &kernel)) return error;
    return static_cast<cudaError_t>(body(kernel));
  });
}

}  // namespace

FA4SIM_CUDART cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                              void** arguments) {
  if (config == nullptr) return keep(cudaErrorInvalidValue);
  return of_kernel(function, [&](CUfunction kernel) {
    CUlaunchConfig launch{};
    launch.gridDimX = config->gridDim.x, launch.gridDimY = config->gridDim.y,
    launch.gridDimZ = config->gridDim.z;
    launch.blockDimX = config->blockDim.x, launch.blockDimY = config->blockDim.y,
    launch.blockDimZ = config->blockDim.z;
    launch.sharedMemBytes = static_cast<unsigned>(config->dynamicSmemBytes);
    launch.hStream = config->stream;
    launch.attrs = reinterpret_cast<CUlaunchAttribute*>(config->attrs);
    launch.numAttrs = config->numAttrs;
    return cuLaunchKernelEx(&launch, kernel, arguments, nullptr);
  });
}

FA4SIM_CUDART cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                                      void** arguments, size_t shared, cudaStream_t stream) {
  return of_kernel(function, [&](CUfunction kernel) {
    return cuLaunchCooperativeKernel(kernel, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                     static_cast<unsigned>(shared), stream, arguments);
  });
}

FA4SIM_CUDART cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* user) {
  return in_context([&] { return cuLaunchHostFunc(stream, function, user); });
}

FA4SIM_CUDART cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return of_kernel(function, [&](CUfunction kernel) {
    return cuFuncSetAttribute(kernel, static_cast<CUfunction_attribute>(attribute), value);
  });
}

FA4SIM_CUDART cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache) {
  return of_kernel(function, [](CUfunction) { return CUDA_SUCCESS; });  // a hint
}

FA4SIM_CUDART cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  if (attributes == nullptr) return keep(cudaErrorInvalidValue);
  return of_kernel(function, [&](CUfunction kernel) {
    *attributes = {};
    const auto get = [&](CUfunction_attribute attribute) {
      int value = 0;
      cuFuncGetAttribute(&value, attribute, kernel);
      return value;
    };
    attributes->sharedSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    attributes->constSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
    attributes->localSizeBytes = static_cast<size_t>(get(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
    attributes->maxThreadsPerBlock = get(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    attributes->numRegs = get(CU_FUNC_ATTRIBUTE_NUM_REGS);
    attributes->ptxVersion = get(CU_FUNC_ATTRIBUTE_PTX_VERSION);
    attributes->binaryVersion = get(CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    attributes->maxDynamicSharedSizeBytes = get(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    attributes->preferredShmemCarveout = get(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    return CUDA_SUCCESS;
  });
}

FA4SIM_CUDART cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int block_size, size_t shared, unsigned flags) {
  return of_kernel(function, [&](CUfunction kernel) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, block_size, shared, flags);
  });
}

FA4SIM_CUDART cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                                        int block_size, size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size, shared, 0);
}

FA4SIM_CUDART cudaError_t cudaGetFuncBySymbol(cudaFunction_t* kernel, const void* function) {
  if (kernel == nullptr) return keep(cudaErrorInvalidValue);
  return of_kernel(function, [&](CUfunction found) { return *kernel = found, CUDA_SUCCESS; });
}

FA4SIM_CUDART cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  if (kernel == nullptr) return keep(cudaErrorInvalidValue);
  return of_kernel(function, [&](CUfunction found) {
    *kernel = reinterpret_cast<cudaKernel_t>(found);
    return CUDA_SUCCESS;
  });
}

FA4SIM_CUDART cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                           unsigned version, unsigned long long flags,
                                                           cudaDriverEntryPointQueryResult* status) {
  return in_context([&] {
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
    const CUresult result = cuGetProcAddress(symbol, function, static_cast<int>(version), flags, &found);
    if (result == CUDA_SUCCESS && status != nullptr)
      *status = static_cast<cudaDriverEntryPointQueryResult>(found);
    return result;
  });
}

FA4SIM_CUDART cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function,
                                                  unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
  return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}
