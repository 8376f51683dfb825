// SPDX-License-Identifier: Apache-2.0
// Makes h200_fixture.h on a GPU: hashes of what ex2.approx returns for all 2^32 inputs. Run in this folder:
//   nvcc -std=c++20 -O2 -arch=sm_90 -I ../../.. h200_fixture.cu -o h200_fixture && ./h200_fixture >
//   h200_fixture.h
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "mma_cases.h"

using namespace fa4::sim;

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

template <bool Ftz>
__global__ void ex2(uint32_t base, uint32_t* out) {
  const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  float y;
  if (Ftz) {
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(__uint_as_float(base + i)));
  } else {
    asm volatile("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(__uint_as_float(base + i)));
  }
  out[i] = __float_as_uint(y);
}

static uint64_t hash_of(const uint32_t* bits, size_t count) {
  uint64_t h = cases::hash_start;
  for (size_t i = 0; i < count; ++i) h = cases::hash(h, bits[i]);
  return h;
}

static void print_ex2() {
  constexpr uint32_t chunk = 1u << 24;
  uint32_t* device;
  check(cudaMalloc(&device, chunk * sizeof(uint32_t)));
  std::vector<uint64_t> hashes(512);
  std::vector<std::vector<uint32_t>> host(16, std::vector<uint32_t>(chunk));
  for (uint32_t first = 0; first < 512; first += 16) {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 16; ++i) {
      const uint32_t base = (first + i) / 2 << 24;
      if ((first + i) % 2 == 0) {
        ex2<true><<<chunk / 256, 256>>>(base, device);
      } else {
        ex2<false><<<chunk / 256, 256>>>(base, device);
      }
      check(cudaMemcpy(host[i].data(), device, chunk * sizeof(uint32_t), cudaMemcpyDeviceToHost));
      threads.emplace_back([&, i] { hashes[first + i] = hash_of(host[i].data(), chunk); });
    }
    for (std::thread& t : threads) t.join();
  }
  std::printf(
      "// By the top byte of the input, over its 2^24 inputs in order: ex2.approx.ftz.f32, "
      "ex2.approx.f32.\n");
  std::printf("inline constexpr uint64_t ex2_hashes[256][2] = {\n");
  for (int i = 0; i < 256; ++i) {
    std::printf("    {0x%016llx, 0x%016llx},  // 0x%02x\n", (unsigned long long)hashes[2 * i],
                (unsigned long long)hashes[2 * i + 1], i);
  }
  std::printf("};\n\n");
}

int main() {
  cudaDeviceProp device;
  int driver = 0;
  check(cudaGetDeviceProperties(&device, 0));
  check(cudaDriverGetVersion(&driver));
  std::printf("// SPDX-License-Identifier: Apache-2.0\n");
  std::printf("// Results of an %s (CUDA driver API %d), as hashes; written by h200_fixture.cu.\n",
              device.name, driver);
  std::printf("#pragma once\n\n#include <cstdint>\n\nnamespace fa4::sim::fixture {\n\n");
  print_ex2();
  std::printf("}  // namespace fa4::sim::fixture\n");
}
