// SPDX-License-Identifier: Apache-2.0
// Memory: allocation, copies, fills, and the device's copies of variables.
#include <cstring>

#include "cudart.h"

using namespace fa4::sim::cudart;

namespace {

CUdeviceptr address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

CUresult copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      std::memmove(to, from, bytes);
      return CUDA_SUCCESS;
    case cudaMemcpyHostToDevice:
      return cuMemcpyHtoDAsync(address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return cuMemcpyDtoHAsync(to, address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return cuMemcpyDtoDAsync(address(to), address(from), bytes, stream);
    case cudaMemcpyDefault:
      return cuMemcpyAsync(address(to), address(from), bytes, stream);
  }
  return static_cast<CUresult>(cudaErrorInvalidMemcpyDirection);
}

cudaError_t copy_rows(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                      size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return keep(cudaErrorInvalidPitchValue);
  return in_context([&] {
    for (size_t row = 0; row < height; ++row)
      if (const CUresult r = copy(static_cast<char*>(to) + row * to_pitch,
                                  static_cast<const char*>(from) + row * from_pitch, width, kind, stream))
        return r;
    return CUDA_SUCCESS;
  });
}

// body(address of the byte at `offset` of the variable), after a check that `bytes` from there are within it.
template <typename Body>
cudaError_t of_variable(const void* symbol, size_t bytes, size_t offset, Body body) {
  return in_context([&] {
    CUdeviceptr start;
    size_t size;
    if (const cudaError_t error = find_variable(symbol, &start, &size)) return error;
    if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
    return static_cast<cudaError_t>(body(reinterpret_cast<void*>(start + offset)));
  });
}

}  // namespace

FA4SIM_CUDART cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return keep(cudaErrorInvalidValue);
  return in_context([&] {
    *pointer = nullptr;
    return bytes == 0 ? CUDA_SUCCESS : cuMemAlloc(reinterpret_cast<CUdeviceptr*>(pointer), bytes);
  });
}

FA4SIM_CUDART cudaError_t cudaFree(void* pointer) {
  return in_context([&] { return pointer == nullptr ? CUDA_SUCCESS : cuMemFree(address(pointer)); });
}

// Work ends inside the call that enqueues it, so that memory in the order of a stream is memory.
FA4SIM_CUDART cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  if (const cudaError_t error = in_context([&] { return cuStreamQuery(stream); })) return error;
  return cudaMalloc(pointer, bytes);
}

FA4SIM_CUDART cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  if (const cudaError_t error = in_context([&] { return cuStreamQuery(stream); })) return error;
  return cudaFree(pointer);
}

FA4SIM_CUDART cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  if (pointer == nullptr || pitch == nullptr) return keep(cudaErrorInvalidValue);
  *pitch = (width + 511) / 512 * 512;
  return cudaMalloc(pointer, *pitch * height);
}

FA4SIM_CUDART cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return in_context([&] { return cuMemAllocHost(pointer, bytes); });
}

FA4SIM_CUDART cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return in_context([&] { return cuMemHostAlloc(pointer, bytes, flags); });
}

FA4SIM_CUDART cudaError_t cudaFreeHost(void* pointer) {
  return in_context([&] { return pointer == nullptr ? CUDA_SUCCESS : cuMemFreeHost(pointer); });
}

FA4SIM_CUDART cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return in_context([&] { return cuMemGetInfo(free_bytes, total); });
}

FA4SIM_CUDART cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return in_context([&] { return copy(to, from, bytes, kind, nullptr); });
}

FA4SIM_CUDART cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                          cudaStream_t stream) {
  return in_context([&] { return copy(to, from, bytes, kind, stream); });
}

FA4SIM_CUDART cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                       size_t width, size_t height, cudaMemcpyKind kind) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, nullptr);
}

FA4SIM_CUDART cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                            size_t width, size_t height, cudaMemcpyKind kind,
                                            cudaStream_t stream) {
  return copy_rows(to, to_pitch, from, from_pitch, width, height, kind, stream);
}

FA4SIM_CUDART cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return in_context([&] { return cuMemsetD8(address(pointer), static_cast<unsigned char>(value), bytes); });
}

FA4SIM_CUDART cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return in_context(
      [&] { return cuMemsetD8Async(address(pointer), static_cast<unsigned char>(value), bytes, stream); });
}

FA4SIM_CUDART cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                                  size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return of_variable(symbol, bytes, offset, [&](void* to) { return copy(to, from, bytes, kind, stream); });
}

FA4SIM_CUDART cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind) {
  return cudaMemcpyToSymbolAsync(symbol, from, bytes, offset, kind, nullptr);
}

FA4SIM_CUDART cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                                    cudaMemcpyKind kind, cudaStream_t stream) {
  return of_variable(symbol, bytes, offset, [&](void* from) { return copy(to, from, bytes, kind, stream); });
}

FA4SIM_CUDART cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                               cudaMemcpyKind kind) {
  return cudaMemcpyFromSymbolAsync(to, symbol, bytes, offset, kind, nullptr);
}

FA4SIM_CUDART cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  if (pointer == nullptr) return keep(cudaErrorInvalidValue);
  return of_variable(symbol, 0, 0, [&](void* found) { return *pointer = found, CUDA_SUCCESS; });
}

FA4SIM_CUDART cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  if (bytes == nullptr) return keep(cudaErrorInvalidValue);
  return in_context([&] {
    CUdeviceptr start;
    return find_variable(symbol, &start, bytes);
  });
}

FA4SIM_CUDART cudaError_t cudaMallocManaged(void**, size_t, unsigned) {
  say("managed memory is not simulated", "cudaMallocManaged");
  return keep(cudaErrorNotSupported);
}
