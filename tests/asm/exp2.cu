// SPDX-License-Identifier: Apache-2.0
// The polynomial of softmax by itself, for test_exp2.cpp: y[i] = 2^x[i], a pair for each thread.
#include "attention/blackwell/row.cuh"

extern "C" __global__ void exp2_of_pairs(const float* x, float* y) {
  const int i = 2 * static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  fa4::blackwell::exp2_polynomial(y[i], y[i + 1], fa4::ptx::mov_pack_f32x2(x[i], x[i + 1]));
}
