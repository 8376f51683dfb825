// SPDX-License-Identifier: Apache-2.0
// Marks a function that host and device share, and that the device inlines.
#pragma once

#ifdef __CUDACC__
#define FA4_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define FA4_HOST_DEVICE inline
#endif
