// SPDX-License-Identifier: Apache-2.0
// The CUDA driver, opened at run time: every function is a member with the driver's own name and type,
// resolved once.
#pragma once

#include <cuda.h>

#include <string>

#include "message.h"

// What the library calls.
#define FA4_DRIVER_FUNCTIONS(X) \
  X(cuInit)                     \
  X(cuDriverGetVersion)         \
  X(cuGetErrorName)             \
  X(cuGetErrorString)           \
  X(cuCtxGetCurrent)            \
  X(cuCtxGetDevice)             \
  X(cuDeviceGetName)            \
  X(cuDeviceGetAttribute)       \
  X(cuModuleLoadDataEx)         \
  X(cuModuleUnload)             \
  X(cuModuleGetFunction)        \
  X(cuFuncSetAttribute)         \
  X(cuTensorMapEncodeTiled)     \
  X(cuLaunchKernel)

// What a program around the library calls besides: devices, contexts, memory, streams, events, queries.
#define FA4_HOST_DRIVER_FUNCTIONS(X) \
  X(cuDeviceGetCount)                \
  X(cuDeviceGet)                     \
  X(cuDeviceTotalMem)                \
  X(cuDevicePrimaryCtxRetain)        \
  X(cuDevicePrimaryCtxRelease)       \
  X(cuCtxSetCurrent)                 \
  X(cuCtxSynchronize)                \
  X(cuMemGetInfo)                    \
  X(cuMemAlloc)                      \
  X(cuMemFree)                       \
  X(cuMemcpyHtoD)                    \
  X(cuMemcpyDtoH)                    \
  X(cuMemsetD8)                      \
  X(cuModuleLoadData)                \
  X(cuModuleGetGlobal)               \
  X(cuFuncGetAttribute)              \
  X(cuLaunchKernelEx)                \
  X(cuOccupancyMaxActiveClusters)    \
  X(cuOccupancyMaxPotentialClusterSize) \
  X(cuStreamCreate)                  \
  X(cuStreamDestroy)                 \
  X(cuStreamSynchronize)             \
  X(cuEventCreate)                   \
  X(cuEventDestroy)                  \
  X(cuEventRecord)                   \
  X(cuEventSynchronize)              \
  X(cuEventElapsedTime)

namespace fa4 {

inline constexpr const char* kDefaultDriverLibrary = "libcuda.so.1";

// cuda.h maps some names to versioned symbols (cuMemAlloc to cuMemAlloc_v2); members follow it, so
// driver.cuMemAlloc(...) is spelled as in any driver program.
#define FA4_DRIVER_MEMBER(name) decltype(&::name) name = nullptr;

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  ~Driver();

  // Opens `library` (a path or soname; null: libcuda.so.1) and resolves the functions. Once per object.
  fa4_status open(const char* library, Message& message);

  // FA4_OK for CUDA_SUCCESS; otherwise a sentence with function, library, code, meaning and, where one is known, the
  // remedy. A driver without a device is FA4_ERROR_NO_DEVICE, the toolkit's stub FA4_ERROR_NO_DRIVER, everything
  // else FA4_ERROR_DRIVER.
  fa4_status check(CUresult result, const char* function, Message& message) const;

  // Address of one function, or null after a sentence in `message`.
  void* resolve(const char* symbol, Message& message) const;

  FA4_DRIVER_FUNCTIONS(FA4_DRIVER_MEMBER)

 private:
  void* handle_ = nullptr;
  std::string library_;  // as named by the caller, for messages
};

// For the command line and tests; the library itself does without it.
class HostDriver : public Driver {
 public:
  fa4_status open(const char* library, Message& message);

  FA4_HOST_DRIVER_FUNCTIONS(FA4_DRIVER_MEMBER)
};

#undef FA4_DRIVER_MEMBER

}  // namespace fa4
