// SPDX-License-Identifier: Apache-2.0
// Memory, copies, fills, streams and events of libfa4sim.so.
#include <cstring>
#include <numeric>
#include <vector>

#include "driver.h"

namespace {

CUdeviceptr as_pointer(const void* host) {
  return reinterpret_cast<CUdeviceptr>(host);
}

}  // namespace

TEST_CASE("copies in all directions, and only inside allocations") {
  TestContext context;
  CUdeviceptr a, b;
  SUCCEEDS(cuMemAlloc, &a, 1000);
  SUCCEEDS(cuMemAlloc, &b, 1000);
  std::vector<unsigned char> in(1000), out(1000);
  std::iota(in.begin(), in.end(), 0);
  SUCCEEDS(cuMemcpyHtoD, a, in.data(), 1000);
  SUCCEEDS(cuMemcpyDtoD, b, a, 1000);
  SUCCEEDS(cuMemcpyDtoH, out.data(), b, 1000);
  CHECK(in == out);
  std::fill(out.begin(), out.end(), 0);
  SUCCEEDS(cuMemcpy, as_pointer(out.data()), a, 1000);
  CHECK(in == out);
  SUCCEEDS(cuMemcpyAsync, b + 10, as_pointer(in.data()), 990, nullptr);
  SUCCEEDS(cuMemcpyDtoHAsync, out.data(), b + 10, 990, nullptr);
  CHECK(std::memcmp(in.data(), out.data(), 990) == 0);
  SUCCEEDS(cuMemcpyDtoD, a + 1, a, 999);  // overlapping
  SUCCEEDS(cuMemcpyDtoH, out.data(), a, 1000);
  CHECK((out[0] == in[0] && std::memcmp(out.data() + 1, in.data(), 999) == 0));

  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD, a, in.data(), 1001);
  says("not inside one allocation");
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH, out.data(), a + 1000, 1);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH, out.data(), 0, 1);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD, a, nullptr, 1);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD, a, reinterpret_cast<void*>(b), 1);
  says("is a device address");
  SUCCEEDS(cuMemcpyHtoD, a, nullptr, 0);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuMemcpyHtoDAsync, a, in.data(), 1, reinterpret_cast<CUstream>(0x4444));

  SUCCEEDS(cuMemsetD8, a, 0x5a, 1000);
  SUCCEEDS(cuMemsetD16, a + 2, 0x1234, 3);
  SUCCEEDS(cuMemsetD32, a + 8, 0xdeadbeef, 1);
  SUCCEEDS(cuMemcpyDtoH, out.data(), a, 16);
  const unsigned char expected[] = {0x5a, 0x5a, 0x34, 0x12, 0x34, 0x12, 0x34, 0x12,
                                    0xef, 0xbe, 0xad, 0xde, 0x5a, 0x5a, 0x5a, 0x5a};
  CHECK(std::memcmp(out.data(), expected, 16) == 0);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32, a + 2, 0, 1);
  says("multiple of 4");
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32, a, 0, 251);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemsetD32, a, 0, SIZE_MAX / 2);

  SUCCEEDS(cuMemFree, a);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree, a);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFree, b + 4);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemcpyHtoD, a, in.data(), 1);
  SUCCEEDS(cuMemFree, 0);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc, &a, 0);
  FAILS(CUDA_ERROR_OUT_OF_MEMORY, cuMemAlloc, &a, 1ull << 50);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemAlloc, nullptr, 4);
}

TEST_CASE("pointers say where they point") {
  TestContext context;
  CUdeviceptr a, start, address;
  size_t size;
  unsigned type;
  CUcontext owner;
  SUCCEEDS(cuMemAlloc, &a, 4096);
  SUCCEEDS(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 5);
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  SUCCEEDS(cuPointerGetAttribute, &owner, CU_POINTER_ATTRIBUTE_CONTEXT, a + 5);
  CHECK(owner == context.handle);
  SUCCEEDS(cuPointerGetAttribute, &address, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a + 5);
  CHECK(address == a + 5);
  SUCCEEDS(cuMemGetAddressRange, &start, &size, a + 5);
  CHECK((start == a && size == 4096));
  FAILS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a + 4096);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        as_pointer(&type));
  void* host;
  SUCCEEDS(cuMemHostAlloc, &host, 100, 0);
  SUCCEEDS(cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, as_pointer(host) + 99);
  CHECK(type == CU_MEMORYTYPE_HOST);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        as_pointer(host) + 100);
  SUCCEEDS(cuMemFreeHost, host);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost, host);
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuMemHostAlloc, &host, 100, CU_MEMHOSTALLOC_DEVICEMAP);
}

TEST_CASE("streams and events") {
  TestContext context;
  CUstream stream;
  CUevent start, end, untimed;
  SUCCEEDS(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  FAILS(CUDA_ERROR_INVALID_VALUE, cuStreamCreate, &stream, 8);
  SUCCEEDS(cuEventCreate, &start, 0);
  SUCCEEDS(cuEventCreate, &end, 0);
  SUCCEEDS(cuEventCreate, &untimed, CU_EVENT_DISABLE_TIMING);
  float ms = -1;
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime, &ms, start, end);
  SUCCEEDS(cuEventRecord, start, stream);
  SUCCEEDS(cuStreamWaitEvent, stream, start, 0);
  SUCCEEDS(cuEventRecord, end, nullptr);
  SUCCEEDS(cuEventSynchronize, end);
  SUCCEEDS(cuEventQuery, end);
  SUCCEEDS(cuEventElapsedTime, &ms, start, end);
  CHECK((ms >= 0 && ms < 60000));
  SUCCEEDS(cuEventRecord, untimed, stream);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime, &ms, start, untimed);
  SUCCEEDS(cuStreamSynchronize, stream);
  SUCCEEDS(cuStreamQuery, CU_STREAM_LEGACY);
  unsigned flags;
  SUCCEEDS(cuStreamGetFlags, stream, &flags);
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  FAILS(CUDA_ERROR_NOT_SUPPORTED, cuStreamBeginCapture, stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
  says("capture is not simulated");
  CUstreamCaptureStatus status;
  SUCCEEDS(cuStreamIsCapturing, stream, &status);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  int called = 0;
  SUCCEEDS(
      cuLaunchHostFunc, stream, [](void* count) { ++*static_cast<int*>(count); }, &called);
  CHECK(called == 1);
  SUCCEEDS(cuStreamDestroy, stream);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize, stream);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy, stream);
  SUCCEEDS(cuEventDestroy, end);
  FAILS(CUDA_ERROR_INVALID_HANDLE, cuEventRecord, end, nullptr);

  SECTION("a stream of another context is refused") {
    CUstream mine;
    SUCCEEDS(cuStreamCreate, &mine, 0);
    TestContext other;
    FAILS(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize, mine);
    says("another context");
  }
}

TEST_CASE("tensor maps through the driver") {
  TestContext context;
  CUtensorMap map;
  const cuuint64_t extents[] = {64, 8}, strides[] = {128};
  const cuuint32_t box[] = {64, 8}, ones[] = {1, 1};
  auto encode = [&](uint64_t address) {
    return CALL(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2,
                reinterpret_cast<void*>(address), extents, strides, box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE,
                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CHECK(encode(0) == CUDA_SUCCESS);
  CHECK(encode(8) == CUDA_ERROR_INVALID_VALUE);
}
