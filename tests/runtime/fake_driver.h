// SPDX-License-Identifier: Apache-2.0
// A CUDA driver that computes nothing and writes down what is asked of it: the driver's functions that the
// library calls, and a window into it for tests. Nothing in it allocates.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>

#include "asm/attention/params.h"

namespace fa4::test {

// What its cuTensorMapEncodeTiled leaves in the 128 bytes of a map.
struct FakeMap {
  static constexpr uint32_t kMark = 0xfa4ea4f0;
  uint32_t mark;
  uint32_t type;
  uint64_t address;
  uint64_t strides[4];
  uint32_t extents[5];
  uint16_t box[5];
  uint8_t swizzle, l2, interleave, fill;
};
static_assert(sizeof(FakeMap) <= sizeof(CUtensorMap));

struct FakeLaunch {
  CUfunction function;
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  CUstream stream;
  AttentionParams params;
};

struct FakeDriver {
  static constexpr uint32_t kMaxLaunches = 4096;

  // Knobs.
  int version = 13000, major = 10, minor = 0, sm_count = 148;
  const char* failing_function = "";  // returns `failure` instead of working
  CUresult failure = CUDA_ERROR_UNKNOWN;
  const char* missing_kernel = "";
  const char* jit_log = "";  // what a load writes into the buffer for errors

  // What happened.
  std::atomic<uint32_t> calls, loads, unloads, encodes, launch_count;
  const void* image;
  static constexpr uint32_t kMaxKernels = 64;
  const char* kernel_names[kMaxKernels];  // by handle - 1, of the last load; one too many is refused
  uint32_t kernel_count;
  uint32_t shared_bytes[kMaxKernels];  // granted, by handle - 1
  FakeLaunch launches[kMaxLaunches];
};

}  // namespace fa4::test

// Exported beside the driver's functions. The first thread's current context is set with cuCtxSetCurrent.
extern "C" __attribute__((visibility("default"))) fa4::test::FakeDriver* fake_driver();
