// SPDX-License-Identifier: Apache-2.0
// Device memory, page-locked host memory, copies and fills. Every range is checked against the live
// allocations, so a copy past an end is refused where a real device might overwrite a neighbour.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "state.h"

using namespace fa4::sim;
using namespace fa4::sim::driver;

namespace {

constexpr uint64_t page = 4096;

CUresult null_result() {
  return fail(CUDA_ERROR_INVALID_VALUE, "the pointer for the result is null");
}

bool is_device_address(uint64_t address) {
  return address >= GlobalMemory::base_address &&
         address - GlobalMemory::base_address < state().device->memory().capacity();
}

// Host pointer to a device range, or the error in *result. Call with device_lock held.
std::byte* device_range(CUdeviceptr address, uint64_t bytes, const char* what, CUresult* result) {
  const GlobalMemory& memory = state().device->memory();
  std::byte* pointer = memory.at(address, bytes);
  if (pointer == nullptr)
    *result = fail(CUDA_ERROR_INVALID_VALUE,
                   std::string(what) + " of " + std::to_string(bytes) + " bytes at " + hex(address) +
                       " is not inside one allocation: it begins at " + memory.describe(address));
  return pointer;
}

// The same for a host range, of which only what is certainly wrong is refused.
std::byte* host_range(const void* pointer, const char* what, CUresult* result) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (pointer == nullptr || is_device_address(address)) {
    *result = fail(CUDA_ERROR_INVALID_VALUE, std::string(what) + " pointer " + hex(address) + " is " +
                                                 (pointer ? "a device address" : "null"));
    return nullptr;
  }
  return static_cast<std::byte*>(const_cast<void*>(pointer));
}

enum class Where { host, device, inferred };

CUresult copy(Where to, uint64_t target, Where from, uint64_t source, size_t bytes,
              CUstream stream = nullptr) {
  return in_context([&](CUcontext current) -> CUresult {
    if (CUresult r = check_stream(stream, current)) return r;
    if (bytes == 0) return CUDA_SUCCESS;
    std::lock_guard guard(state().device_lock);
    CUresult result = CUDA_SUCCESS;
    auto resolve = [&](Where where, uint64_t address, const char* what) {
      if (where == Where::inferred) where = is_device_address(address) ? Where::device : Where::host;
      return where == Where::device ? device_range(address, bytes, what, &result)
                                    : host_range(reinterpret_cast<void*>(address), what, &result);
    };
    const std::byte* read = resolve(from, source, "copy source");
    if (read == nullptr) return result;
    std::byte* write = resolve(to, target, "copy destination");
    if (write == nullptr) return result;
    std::memmove(write, read, bytes);
    return CUDA_SUCCESS;
  });
}

template <typename T>
CUresult fill(CUdeviceptr address, T value, size_t count, CUstream stream = nullptr) {
  return in_context([&](CUcontext current) -> CUresult {
    if (CUresult r = check_stream(stream, current)) return r;
    if (count == 0) return CUDA_SUCCESS;
    if (address % sizeof(T) != 0)
      return fail(
          CUDA_ERROR_INVALID_VALUE,
          "fill at " + hex(address) + ": the address must be a multiple of " + std::to_string(sizeof(T)));
    if (count > SIZE_MAX / sizeof(T))
      return fail(CUDA_ERROR_INVALID_VALUE, text("fill count too large: ", count));
    std::lock_guard guard(state().device_lock);
    CUresult result = CUDA_SUCCESS;
    std::byte* pointer = device_range(address, count * sizeof(T), "fill", &result);
    if (pointer == nullptr) return result;
    std::fill_n(reinterpret_cast<T*>(pointer), count, value);
    return CUDA_SUCCESS;
  });
}

CUresult allocate_host(void** result, size_t bytes) {
  return in_context([&](CUcontext) -> CUresult {
    if (result == nullptr) return null_result();
    if (bytes == 0) return fail(CUDA_ERROR_INVALID_VALUE, "a host allocation of 0 bytes");
    void* pointer;
    if (posix_memalign(&pointer, page, bytes) != 0)
      return fail(CUDA_ERROR_OUT_OF_MEMORY, text("no host memory for an allocation of bytes: ", bytes));
    State& s = state();
    std::lock_guard guard(s.lock);
    s.host_allocations[reinterpret_cast<uintptr_t>(pointer)] = bytes;
    *result = pointer;
    return CUDA_SUCCESS;
  });
}

uint64_t address_of(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

template <typename T>
CUresult answer(void* data, T value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

CUresult device_pointer_attribute(void* data, CUpointer_attribute attribute, uint64_t address, uint64_t start,
                                  uint64_t size) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      State& s = state();
      std::lock_guard guard(s.lock);
      auto owner = s.allocations.find(start);
      return answer(data, owner == s.allocations.end() ? nullptr : owner->second);
    }
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return answer<unsigned>(data, CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return answer<CUdeviceptr>(data, address);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return answer<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return answer<int>(data, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return answer<CUdeviceptr>(data, start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return answer<size_t>(data, size);
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return answer<int>(data, 1);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return fail(CUDA_ERROR_INVALID_VALUE, "device memory has no host pointer");
    default:
      return fail(CUDA_ERROR_NOT_SUPPORTED, text("pointer attribute is not simulated: ", attribute));
  }
}

CUresult host_pointer_attribute(void* data, CUpointer_attribute attribute, uint64_t address, uint64_t start,
                                uint64_t size) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return answer<unsigned>(data, CU_MEMORYTYPE_HOST);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return answer<uint64_t>(data, address);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return answer<unsigned>(data, 0);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return answer<int>(data, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return answer<CUdeviceptr>(data, start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return answer<size_t>(data, size);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return fail(CUDA_ERROR_INVALID_VALUE, "host memory is not mapped to the simulated device");
    default:
      return fail(CUDA_ERROR_NOT_SUPPORTED, text("pointer attribute is not simulated: ", attribute));
  }
}

}  // namespace

FA4SIM_EXPORT CUresult CUDAAPI cuMemAlloc(CUdeviceptr* result, size_t bytes) {
  return in_context([&](CUcontext current) -> CUresult {
    if (result == nullptr) return null_result();
    if (bytes == 0) return fail(CUDA_ERROR_INVALID_VALUE, "a device allocation of 0 bytes");
    State& s = state();
    uint64_t address;
    {
      std::lock_guard guard(s.device_lock);
      address = s.device->memory().allocate(bytes);
    }
    if (address == 0)
      return fail(CUDA_ERROR_OUT_OF_MEMORY, "no room for " + std::to_string(bytes) +
                                                " bytes in a device memory of " +
                                                std::to_string(s.device->memory().capacity()));
    std::lock_guard guard(s.lock);
    s.allocations[address] = current;
    *result = address;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuMemFree(CUdeviceptr address) {
  return in_context([&](CUcontext) -> CUresult {
    State& s = state();
    {
      std::lock_guard guard(s.lock);
      if (address == 0) return CUDA_SUCCESS;
      if (s.allocations.erase(address) == 0)
        return fail(CUDA_ERROR_INVALID_VALUE,
                    "free of " + hex(address) + ", which cuMemAlloc did not return");
    }
    std::lock_guard guard(s.device_lock);
    s.device->memory().release(address);
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return in_context([&](CUcontext) -> CUresult {
    if (free_bytes == nullptr || total_bytes == nullptr) return null_result();
    State& s = state();
    std::lock_guard guard(s.device_lock);
    *total_bytes = s.device->memory().capacity();
    *free_bytes = *total_bytes - s.device->memory().in_use();
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr* start, size_t* size, CUdeviceptr address) {
  return in_context([&](CUcontext) -> CUresult {
    State& s = state();
    std::lock_guard guard(s.device_lock);
    uint64_t begin, bytes;
    if (!s.device->memory().find(address, &begin, &bytes))
      return fail(CUDA_ERROR_NOT_FOUND, "no allocation at " + s.device->memory().describe(address));
    if (start != nullptr) *start = begin;
    if (size != nullptr) *size = bytes;
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuMemAllocHost(void** result, size_t bytes) {
  return allocate_host(result, bytes);
}

FA4SIM_EXPORT CUresult CUDAAPI cuMemHostAlloc(void** result, size_t bytes, unsigned int flags) {
  return api([&]() -> CUresult {
    if (flags & CU_MEMHOSTALLOC_DEVICEMAP)
      return fail(CUDA_ERROR_NOT_SUPPORTED, "host memory mapped to the device is not simulated");
    if (flags & ~unsigned{CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_WRITECOMBINED})
      return fail(CUDA_ERROR_INVALID_VALUE, "unknown host allocation flags " + hex(flags));
    return allocate_host(result, bytes);
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuMemFreeHost(void* pointer) {
  return in_context([&](CUcontext) -> CUresult {
    State& s = state();
    std::lock_guard guard(s.lock);
    if (s.host_allocations.erase(reinterpret_cast<uintptr_t>(pointer)) == 0)
      return fail(CUDA_ERROR_INVALID_VALUE, "free of host pointer " + hex(address_of(pointer)) +
                                                ", which cuMemHostAlloc did not return");
    std::free(pointer);
    return CUDA_SUCCESS;
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                                     CUdeviceptr address) {
  return in_context([&](CUcontext) -> CUresult {
    if (data == nullptr) return null_result();
    State& s = state();
    uint64_t start = 0, size = 0;
    bool on_device;
    {
      std::lock_guard guard(s.device_lock);
      on_device = s.device->memory().find(address, &start, &size);
    }
    if (on_device) return device_pointer_attribute(data, attribute, address, start, size);
    {
      std::lock_guard guard(s.lock);
      auto it = s.host_allocations.upper_bound(address);
      if (it != s.host_allocations.begin() && address < std::prev(it)->first + std::prev(it)->second) {
        start = std::prev(it)->first;
        size = std::prev(it)->second;
      }
    }
    if (size != 0) return host_pointer_attribute(data, attribute, address, start, size);
    return fail(CUDA_ERROR_INVALID_VALUE, hex(address) + " was not allocated by this driver");
  });
}

FA4SIM_EXPORT CUresult CUDAAPI cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(Where::inferred, to, Where::inferred, from, bytes);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                             CUstream stream) {
  return copy(Where::inferred, to, Where::inferred, from, bytes, stream);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes) {
  return copy(Where::device, to, Where::host, address_of(from), bytes);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes,
                                                 CUstream stream) {
  return copy(Where::device, to, Where::host, address_of(from), bytes, stream);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemcpyDtoH(void* to, CUdeviceptr from, size_t bytes) {
  return copy(Where::host, address_of(to), Where::device, from, bytes);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return copy(Where::host, address_of(to), Where::device, from, bytes, stream);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return copy(Where::device, to, Where::device, from, bytes);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                                 CUstream stream) {
  return copy(Where::device, to, Where::device, from, bytes, stream);
}

FA4SIM_EXPORT CUresult CUDAAPI cuMemsetD8(CUdeviceptr address, unsigned char value, size_t count) {
  return fill<uint8_t>(address, value, count);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemsetD16(CUdeviceptr address, unsigned short value, size_t count) {
  return fill<uint16_t>(address, value, count);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemsetD32(CUdeviceptr address, unsigned int value, size_t count) {
  return fill<uint32_t>(address, value, count);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count,
                                               CUstream stream) {
  return fill<uint8_t>(address, value, count, stream);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr address, unsigned short value, size_t count,
                                                CUstream stream) {
  return fill<uint16_t>(address, value, count, stream);
}
FA4SIM_EXPORT CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr address, unsigned int value, size_t count,
                                                CUstream stream) {
  return fill<uint32_t>(address, value, count, stream);
}
