// SPDX-License-Identifier: Apache-2.0
// A library as the CUDA toolkit's lib64/stubs/libcuda.so: it has the driver's functions for the linker, and
// each of them, cuGetErrorName included, answers CUDA_ERROR_STUB_LIBRARY.
#include "runtime/driver.h"

// The functions have names of their own, as cuda.h declares the driver's; the linker sees the driver's.
#define STUB_TEXT(symbol) #symbol
#define STUB_SYMBOL(name) STUB_TEXT(name)
#define STUB(name)                                                                                    \
  extern "C" __attribute__((visibility("default"))) CUresult stub_of_##name() asm(STUB_SYMBOL(name)); \
  CUresult stub_of_##name() {                                                                         \
    return CUDA_ERROR_STUB_LIBRARY;                                                                   \
  }

FA4_DRIVER_FUNCTIONS(STUB)
FA4_HOST_DRIVER_FUNCTIONS(STUB)
