// SPDX-License-Identifier: Apache-2.0
// Makes mma_fixture.h on a GPU: hashes of what mma.sync and wgmma return for the seeded cases of mma_cases.h.
// Needs compute capability 9.0; run in this folder:
//   nvcc -std=c++20 -O2 -gencode arch=compute_90a,code=sm_90a -I ../../.. mma_fixture.cu -o mma_fixture
//   ./mma_fixture > mma_fixture.h
// With a folder as argument it also writes there what every instruction returned in the first 64 cases of
// each kind, one file each: for each kind, case, column and row 32 bits.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "mma_cases.h"

using namespace fa4::sim;
using cases::Case;

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

// One block of four warps a case; warp w computes rows 16 w .. 16 w + 15 and writes over c. What a lane
// holds: rows g and g + 8; columns or k 2 t and 2 t + 1 of 16-bit values, t of 32-bit ones.
struct Fragment {
  uint32_t row, g, t;
  __device__ Fragment()
      : row(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4), g(threadIdx.x % 32 / 4), t(threadIdx.x % 4) {}
};
__device__ uint32_t pair(uint32_t low, uint32_t high) {
  return low | high << 16;
}
__device__ uint32_t a2(const Case& c, uint32_t m, uint32_t k) {
  return pair(c.a[k * 64 + m], c.a[(k + 1) * 64 + m]);
}
__device__ uint32_t b2(const Case& c, uint32_t n, uint32_t k) {
  return pair(c.b[n * 16 + k], c.b[n * 16 + k + 1]);
}

struct Accumulator {
  uint32_t x[4];
  __device__ void load(const Case& c, const Fragment& f) {
    for (int i = 0; i < 4; ++i) x[i] = c.c[(2 * f.t + i % 2) * 64 + f.row + 8 * (i / 2)];
  }
  __device__ void store(Case& c, const Fragment& f) const {
    for (int i = 0; i < 4; ++i) c.c[(2 * f.t + i % 2) * 64 + f.row + 8 * (i / 2)] = x[i];
  }
  __device__ void load_halves(const Case& c, const Fragment& f) {
    load(c, f);
    x[0] = pair(x[0], x[1]), x[1] = pair(x[2], x[3]);
  }
  __device__ void store_halves(Case& c, const Fragment& f) {
    const uint32_t low = x[0], high = x[1];
    x[0] = low & 0xFFFF, x[1] = low >> 16, x[2] = high & 0xFFFF, x[3] = high >> 16;
    store(c, f);
  }
};

#define MMA_F32_4(text)                                                      \
  asm volatile(text " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
               : "+r"(d.x[0]), "+r"(d.x[1]), "+r"(d.x[2]), "+r"(d.x[3])      \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define MMA_F32_2(text)                                                 \
  asm volatile(text " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"     \
               : "+r"(d.x[0]), "+r"(d.x[1]), "+r"(d.x[2]), "+r"(d.x[3]) \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]))

__global__ void run(int instruction, Case* all) {
  Case& c = all[blockIdx.x];
  const Fragment f;
  Accumulator d;
  const uint32_t k0 = 2 * f.t;
  const uint32_t a[4] = {a2(c, f.row, k0), a2(c, f.row + 8, k0), a2(c, f.row, k0 + 8),
                         a2(c, f.row + 8, k0 + 8)};
  const uint32_t b[2] = {b2(c, f.g, k0), b2(c, f.g, k0 + 8)};
  d.load(c, f);
  switch (instruction) {
    case 0:
      MMA_F32_4("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32");
      break;
    case 1:
      MMA_F32_4("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32");
      break;
    case 2:
      MMA_F32_2("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32");
      break;
    case 3:
      MMA_F32_2("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32");
      break;
    case 4:
    case 5: {
      const uint32_t a[4] = {c.a[f.t * 64 + f.row], c.a[f.t * 64 + f.row + 8], c.a[(f.t + 4) * 64 + f.row],
                             c.a[(f.t + 4) * 64 + f.row + 8]};
      const uint32_t b[2] = {c.b[f.g * 16 + f.t], c.b[f.g * 16 + f.t + 4]};
      if (instruction == 4)
        MMA_F32_2("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32");
      else
        MMA_F32_4("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32");
      break;
    }
    case 6:
      d.load_halves(c, f);
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
          : "+r"(d.x[0]), "+r"(d.x[1])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
      return d.store_halves(c, f);
    case 7:
      d.load_halves(c, f);
      asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3}, {%4}, {%0,%1};"
                   : "+r"(d.x[0]), "+r"(d.x[1])
                   : "r"(a[0]), "r"(a[1]), "r"(b[0]));
      return d.store_halves(c, f);
  }
  d.store(c, f);
}

#define WGMMA(shape_and_types, trailing)                                                   \
  asm volatile("wgmma.fence.sync.aligned;\n wgmma.mma_async.sync.aligned." shape_and_types \
               " {%0,%1,%2,%3}, {%4,%5,%6,%7}, %8, 1, 1, 1" trailing                       \
               ";\n"                                                                       \
               " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;"      \
               : "+r"(d.x[0]), "+r"(d.x[1]), "+r"(d.x[2]), "+r"(d.x[3])                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor)               \
               : "memory")

// A in registers; B K-major without a swizzle: two blocks of 8 rows of 16 bytes.
__global__ void run_wgmma(int instruction, Case* all) {
  __shared__ alignas(128) uint32_t shared[64];
  Case& c = all[blockIdx.x];
  const Fragment f;
  const bool tf32 = instruction == 10;
  if (threadIdx.x < 64) {
    const uint32_t block = threadIdx.x / 32, n = threadIdx.x % 32 / 4, word = threadIdx.x % 4;
    shared[threadIdx.x] = tf32 ? c.b[n * 16 + block * 4 + word] : b2(c, n, block * 8 + word * 2);
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
  const uint64_t descriptor =
      (uint32_t(__cvta_generic_to_shared(shared)) >> 4) | uint64_t(128 >> 4) << 16 | uint64_t(128 >> 4) << 32;
  const uint32_t k0 = 2 * f.t;
  uint32_t a[4] = {a2(c, f.row, k0), a2(c, f.row + 8, k0), a2(c, f.row, k0 + 8), a2(c, f.row + 8, k0 + 8)};
  if (tf32) {
    for (uint32_t i = 0; i < 4; ++i) a[i] = c.a[(f.t + 4 * (i / 2)) * 64 + f.row + 8 * (i % 2)];
  }
  Accumulator d;
  d.load(c, f);
  if (instruction == 8) WGMMA("m64n8k16.f32.f16.f16", ", 0");
  if (instruction == 9) WGMMA("m64n8k16.f32.bf16.bf16", ", 0");
  if (instruction == 10) WGMMA("m64n8k8.f32.tf32.tf32", "");
  if (instruction != 11) return d.store(c, f);
  d.load_halves(c, f);
  asm volatile(
      "wgmma.fence.sync.aligned;\n wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, "
      "%6, 1, 1, 1, 0;\n"
      " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;"
      : "+r"(d.x[0]), "+r"(d.x[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor)
      : "memory");
  d.store_halves(c, f);
}

int main(int argc, char** argv) {
  cudaDeviceProp properties;
  int driver = 0;
  check(cudaGetDeviceProperties(&properties, 0));
  check(cudaDriverGetVersion(&driver));
  constexpr uint32_t count = 256;
  std::printf("// SPDX-License-Identifier: Apache-2.0\n");
  std::printf("// Results of an %s (CUDA driver API %d), as hashes; written by mma_fixture.cu.\n",
              properties.name, driver);
  std::printf("#pragma once\n\n#include <cstdint>\n\nnamespace fa4::sim::fixture {\n\n");
  std::printf("inline constexpr uint32_t mma_cases_per_kind = %u;\n", count);
  std::printf(
      "// By instruction of mma_cases.h, and kind.\ninline constexpr uint64_t mma_hashes[%d][%d] = {\n",
      cases::instruction_count, cases::kind_count);
  Case* device;
  check(cudaMalloc(&device, count * sizeof(Case)));
  std::vector<Case> host(count);
  for (int i = 0; i < cases::instruction_count; ++i) {
    const cases::Instruction& instruction = cases::instructions[i];
    std::FILE* const file =
        argc > 1 ? std::fopen((std::string(argv[1]) + "/" + std::to_string(i)).c_str(), "wb") : nullptr;
    std::printf("    {  // %s\n", instruction.name);
    for (int kind = 0; kind < cases::kind_count; ++kind) {
      for (uint32_t n = 0; n < count; ++n) cases::generate(cases::Kind(kind), instruction, n, &host[n]);
      check(cudaMemcpy(device, host.data(), count * sizeof(Case), cudaMemcpyHostToDevice));
      if (instruction.form == cases::Form::wgmma)
        run_wgmma<<<count, 128>>>(i, device);
      else
        run<<<count, 128>>>(i, device);
      check(cudaMemcpy(host.data(), device, count * sizeof(Case), cudaMemcpyDeviceToHost));
      uint64_t h = cases::hash_start;
      for (uint32_t n = 0; n < count; ++n) {
        for (uint32_t bits : host[n].c) h = cases::hash(h, bits);
        if (file && n < 64) std::fwrite(host[n].c, 1, sizeof host[n].c, file);
      }
      std::printf("     0x%016llx,  // %s\n", (unsigned long long)h, cases::kind_name(cases::Kind(kind)));
    }
    std::printf("    },\n");
    if (file) std::fclose(file);
  }
  std::printf("};\n\n}  // namespace fa4::sim::fixture\n");
}
