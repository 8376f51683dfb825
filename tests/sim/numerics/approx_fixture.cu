// SPDX-License-Identifier: Apache-2.0
// Makes approx_fixture.h on a GPU: hashes of what the approximate functions return, for the f32 forms of one
// argument over all 2^32 inputs. Needs compute capability 9.0; run in this folder:
//   nvcc -std=c++20 -O2 -arch=sm_90 --expt-relaxed-constexpr -I ../../.. approx_fixture.cu -o approx_fixture
//   &&
//   ./approx_fixture > approx_fixture.h
#include <cstdio>
#include <cstdlib>

#include "approx_cases.h"

using namespace fa4::sim::cases;

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  std::exit(1);
}

#define UNARY(name, opcode)                                                \
  struct name {                                                            \
    static constexpr const char* text = opcode;                            \
    static __device__ uint32_t f(uint32_t x) {                             \
      float y;                                                             \
      asm volatile(opcode " %0, %1;" : "=f"(y) : "f"(__uint_as_float(x))); \
      return __float_as_uint(y);                                           \
    }                                                                      \
  };
UNARY(RcpFtz, "rcp.approx.ftz.f32")
UNARY(Rcp, "rcp.approx.f32")
UNARY(RsqrtFtz, "rsqrt.approx.ftz.f32")
UNARY(Rsqrt, "rsqrt.approx.f32")
UNARY(SqrtFtz, "sqrt.approx.ftz.f32")
UNARY(Sqrt, "sqrt.approx.f32")
UNARY(Lg2Ftz, "lg2.approx.ftz.f32")
UNARY(Lg2, "lg2.approx.f32")
UNARY(SinFtz, "sin.approx.ftz.f32")
UNARY(Sin, "sin.approx.f32")
UNARY(CosFtz, "cos.approx.ftz.f32")
UNARY(Cos, "cos.approx.f32")
UNARY(Tanh, "tanh.approx.f32")

#define BINARY(name, opcode)                                                                            \
  struct name {                                                                                         \
    static constexpr const char* text = opcode;                                                         \
    static __device__ uint32_t f(uint32_t a, uint32_t b) {                                              \
      float y;                                                                                          \
      asm volatile(opcode " %0, %1, %2;" : "=f"(y) : "f"(__uint_as_float(a)), "f"(__uint_as_float(b))); \
      return __float_as_uint(y);                                                                        \
    }                                                                                                   \
  };
BINARY(DivApproxFtz, "div.approx.ftz.f32")
BINARY(DivApprox, "div.approx.f32")
BINARY(DivFullFtz, "div.full.ftz.f32")
BINARY(DivFull, "div.full.f32")

#define HALF(name, opcode)                                                       \
  struct name {                                                                  \
    static constexpr const char* text = opcode;                                  \
    static __device__ uint32_t f(uint32_t x) {                                   \
      uint16_t y;                                                                \
      asm volatile(opcode " %0, %1;" : "=h"(y) : "h"(static_cast<uint16_t>(x))); \
      return y;                                                                  \
    }                                                                            \
  };
#define HALVES(name, opcode)                              \
  struct name {                                           \
    static constexpr const char* text = opcode;           \
    static __device__ uint32_t f(uint32_t x) {            \
      uint32_t y;                                         \
      asm volatile(opcode " %0, %1;" : "=r"(y) : "r"(x)); \
      return y;                                           \
    }                                                     \
  };
HALF(Ex2F16, "ex2.approx.f16")
HALVES(Ex2F16x2, "ex2.approx.f16x2")
HALF(Ex2Bf16, "ex2.approx.ftz.bf16")
HALVES(Ex2Bf16x2, "ex2.approx.ftz.bf16x2")
HALF(TanhF16, "tanh.approx.f16")
HALVES(TanhF16x2, "tanh.approx.f16x2")
HALF(TanhBf16, "tanh.approx.bf16")
HALVES(TanhBf16x2, "tanh.approx.bf16x2")

// The terms of the sums, by the number of the input.
template <class F>
struct EveryFloat {
  static __device__ uint64_t term(uint32_t i) { return hash_term(i, F::f(i)); }
};
template <class F>
struct EveryPair {
  static __device__ uint64_t term(uint32_t i) {
    const Pair p = pair(static_cast<Pairs>(i / pairs_per_kind), i % pairs_per_kind);
    return hash_term(i, F::f(p.a, p.b));
  }
};
template <class F>
struct EveryHalf {
  static __device__ uint64_t term(uint32_t i) { return hash_term(i, F::f(half_pair(i))); }
};

// Each block adds up 2^16 terms and adds its sum to sums[blockIdx.x >> shift].
template <class Terms>
__global__ void add_up(unsigned long long* sums, int shift) {
  uint64_t sum = 0;
  for (uint32_t i = threadIdx.x; i < 1u << 16; i += blockDim.x) sum += Terms::term(blockIdx.x << 16 | i);
  atomicAdd(&sums[blockIdx.x >> shift], sum);
}

template <class Terms>
static void print(const char* text, uint32_t blocks, int shift) {
  static unsigned long long* device = nullptr;
  if (!device) check(cudaMalloc(&device, 256 * sizeof(uint64_t)));
  check(cudaMemset(device, 0, 256 * sizeof(uint64_t)));
  add_up<Terms><<<blocks, 256>>>(device, shift);
  check(cudaGetLastError());
  unsigned long long sums[256];
  check(cudaMemcpy(sums, device, sizeof sums, cudaMemcpyDeviceToHost));
  const uint32_t count = blocks >> shift;
  std::printf("    {\"%s\",\n     {", text);
  for (uint32_t i = 0; i < count; ++i) {
    std::printf("0x%08x%s", folded(sums[i]), i + 1 == count ? "}},\n" : i % 8 == 7 ? ",\n      " : ", ");
  }
}

template <class... F>
static void print_unary() {
  std::printf("// By the top byte of the input, over its 2^24 inputs.\n");
  std::printf("inline constexpr Hashes<256> approx_hashes[] = {\n");
  (print<EveryFloat<F>>(F::text, 1 << 16, 8), ...);
  std::printf("};\n\n");
}
template <class... F>
static void print_divisions() {
  std::printf("// By the kind of pairs.\n");
  std::printf("inline constexpr Hashes<%d> division_hashes[] = {\n", pairs_count);
  (print<EveryPair<F>>(F::text, pairs_count << 6, 6), ...);
  std::printf("};\n\n");
}
template <class... F>
static void print_halves() {
  std::printf("// Over the 2^16 inputs half_pair(i); the forms of one number take the lower.\n");
  std::printf("inline constexpr Hashes<1> half_hashes[] = {\n");
  (print<EveryHalf<F>>(F::text, 1, 0), ...);
  std::printf("};\n\n");
}

int main() {
  cudaDeviceProp device;
  int driver = 0;
  check(cudaGetDeviceProperties(&device, 0));
  check(cudaDriverGetVersion(&driver));
  std::printf("// SPDX-License-Identifier: Apache-2.0\n");
  std::printf("// Results of an %s (CUDA driver API %d), as hashes; written by approx_fixture.cu.\n",
              device.name, driver);
  std::printf("#pragma once\n\n#include <cstdint>\n\nnamespace fa4::sim::fixture {\n\n");
  std::printf("template <int n>\nstruct Hashes {\n  const char* opcode;\n  uint32_t hash[n];\n};\n\n");
  print_unary<RcpFtz, Rcp, RsqrtFtz, Rsqrt, SqrtFtz, Sqrt, Lg2Ftz, Lg2, SinFtz, Sin, CosFtz, Cos, Tanh>();
  print_divisions<DivApproxFtz, DivApprox, DivFullFtz, DivFull>();
  print_halves<Ex2F16, Ex2F16x2, Ex2Bf16, Ex2Bf16x2, TanhF16, TanhF16x2, TanhBf16, TanhBf16x2>();
  std::printf("}  // namespace fa4::sim::fixture\n");
}
