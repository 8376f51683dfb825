// SPDX-License-Identifier: Apache-2.0
// Makes h200_fixture.h on a GPU: hashes of what mma.sync.m16n8k16 returns for the seeded cases of mma_cases.h
// and of what ex2.approx returns for all 2^32 inputs. Needs compute capability 8.0 or more; run in this
// folder:
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

// One block of four warps per case; warp w computes rows 16 w .. 16 w + 15 and writes over c.
__global__ void mma(cases::Case* all) {
  cases::Case& c = all[blockIdx.x];
  const uint32_t lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4, pair = lane % 4 * 2;
  auto a2 = [&](uint32_t m, uint32_t k) { return c.a[k * 128 + m] | uint32_t(c.a[(k + 1) * 128 + m]) << 16; };
  auto b2 = [&](uint32_t n, uint32_t k) { return c.b[n * 16 + k] | uint32_t(c.b[n * 16 + k + 1]) << 16; };
  const uint32_t a[4] = {a2(row, pair), a2(row + 8, pair), a2(row, pair + 8), a2(row + 8, pair + 8)};
  const uint32_t b[2] = {b2(lane / 4, pair), b2(lane / 4, pair + 8)};
  uint32_t* d[4] = {&c.c[pair * 64 + row], &c.c[(pair + 1) * 64 + row], &c.c[pair * 64 + row + 8],
                    &c.c[(pair + 1) * 64 + row + 8]};
  float x[4], y[4];
  for (int i = 0; i < 4; ++i) x[i] = __uint_as_float(*d[i]);
  if (c.type == MmaInput::bf16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(y[0]), "=f"(y[1]), "=f"(y[2]), "=f"(y[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(x[0]), "f"(x[1]), "f"(x[2]),
          "f"(x[3]));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%10,%11,%12,%13};"
        : "=f"(y[0]), "=f"(y[1]), "=f"(y[2]), "=f"(y[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(x[0]), "f"(x[1]), "f"(x[2]),
          "f"(x[3]));
  }
  for (int i = 0; i < 4; ++i) *d[i] = __float_as_uint(y[i]);
}

static uint64_t hash_of(const uint32_t* bits, size_t count) {
  uint64_t h = cases::hash_start;
  for (size_t i = 0; i < count; ++i) h = cases::hash(h, bits[i]);
  return h;
}

static void print_mma() {
  constexpr uint32_t count = 256;
  cases::Case* device;
  check(cudaMalloc(&device, count * sizeof(cases::Case)));
  std::vector<cases::Case> host(count);
  std::printf("// Per kind: f16, bf16.\ninline constexpr uint32_t mma_cases_per_kind = %u;\n", count);
  std::printf("inline constexpr uint64_t mma_hashes[%d][2] = {\n", cases::kind_count);
  for (int kind = 0; kind < cases::kind_count; ++kind) {
    uint64_t hashes[2];
    for (int type = 0; type < 2; ++type) {
      for (uint32_t i = 0; i < count; ++i) cases::generate(cases::Kind(kind), MmaInput(type), i, &host[i]);
      check(cudaMemcpy(device, host.data(), count * sizeof(cases::Case), cudaMemcpyHostToDevice));
      mma<<<count, 128>>>(device);
      check(cudaMemcpy(host.data(), device, count * sizeof(cases::Case), cudaMemcpyDeviceToHost));
      uint64_t h = cases::hash_start;
      for (const cases::Case& c : host) {
        for (uint32_t bits : c.c) h = cases::hash(h, bits);
      }
      hashes[type] = h;
    }
    std::printf("    {0x%016llx, 0x%016llx},  // %s\n", (unsigned long long)hashes[0],
                (unsigned long long)hashes[1], cases::kind_name(cases::Kind(kind)));
  }
  std::printf("};\n\n");
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
  print_mma();
  print_ex2();
  std::printf("}  // namespace fa4::sim::fixture\n");
}
