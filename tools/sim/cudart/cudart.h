// SPDX-License-Identifier: Apache-2.0
// The CUDA runtime over the simulated GPU, for programs that nvcc built with `-cudart shared`: a stand-in for
// libcudart.so.13 made of nothing but calls of the driver. What these files share.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>

#define FA4SIM_CUDART extern "C" __attribute__((visibility("default")))

namespace fa4::sim::cudart {

// Keeps the error for cudaGetLastError and returns it.
cudaError_t keep(cudaError_t error);
// Most codes of the driver have the same number in the runtime.
inline cudaError_t keep(CUresult result) {
  return keep(static_cast<cudaError_t>(result));
}
// Says on stderr what no code can say, under the stand-in's name.
void say(const char* what, const char* name);

// cuInit, and a current context for the calling thread: its own, or the device's primary one.
CUresult enter();

// body() in a context; what it returns is kept.
template <typename Body>
cudaError_t in_context(Body body) {
  const CUresult entered = enter();
  return keep(entered != CUDA_SUCCESS ? static_cast<cudaError_t>(entered) : static_cast<cudaError_t>(body()));
}

// The kernel that stands behind a host function, or that is a kernel already. Loads the module on first use.
cudaError_t find_kernel(const void* function, CUfunction* kernel);
// The device's copy of a variable.
cudaError_t find_variable(const void* symbol, CUdeviceptr* address, size_t* bytes);

}  // namespace fa4::sim::cudart
