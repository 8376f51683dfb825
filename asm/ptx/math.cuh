// SPDX-License-Identifier: Apache-2.0
// Arithmetic that C++ does not spell: ex2, lg2, rcp, pairs of fp32, the 3-input maximum, packed conversions, the
// clamped shift. None of these touches memory, and none is volatile: the compiler may move, merge and drop
// them.
#pragma once

#include <stdint.h>

namespace fa4::ptx {

// ex2.approx.ftz.f32 d, a;                                                              PTX ISA 1.4, 9.7.3.21
// 2^a within 2 ulp; -inf gives +0.
__device__ __forceinline__ float ex2_approx_ftz(float a) {
  float d;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

// lg2.approx.ftz.f32 d, a;                                                              PTX ISA 1.4, 9.7.3.20
// log2(a), off by 2^-22 at most for a in [1/2, 2], relatively elsewhere.
__device__ __forceinline__ float lg2_approx_ftz(float a) {
  float d;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

// rcp.approx.ftz.f32 d, a;                                                              PTX ISA 1.4, 9.7.3.13
// 1 / a within 1 ulp; a subnormal counts as 0, whose reciprocal is infinite, and a result below 2^-126 is 0.
__device__ __forceinline__ float rcp_approx_ftz(float a) {
  float d;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(a));
  return d;
}

// max.NaN.f32 d, a, b, c;                                                               PTX ISA 8.8, 9.7.3.12
// NaN if one of them is.
__device__ __forceinline__ float max_nan(float a, float b, float c) {
  float d;
  asm("max.NaN.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
  return d;
}

// Two fp32 in a 64-bit register, as the f32x2 instructions take them.
using f32x2 = uint64_t;

// mov.b64 d, {low, high};                                                                PTX ISA 1.0, 9.7.9.4
__device__ __forceinline__ f32x2 mov_pack_f32x2(float low, float high) {
  f32x2 d;
  asm("mov.b64 %0, {%1, %2};" : "=l"(d) : "f"(low), "f"(high));
  return d;
}

// mov.b64 {low, high}, a;                                                                PTX ISA 1.0, 9.7.9.4
__device__ __forceinline__ void mov_unpack_f32x2(float& low, float& high, f32x2 a) {
  asm("mov.b64 {%0, %1}, %2;" : "=f"(low), "=f"(high) : "l"(a));
}

// add.rn.f32x2 d, a, b;                                                                  PTX ISA 8.6, 9.7.3.3
__device__ __forceinline__ f32x2 add_rn_f32x2(f32x2 a, f32x2 b) {
  f32x2 d;
  asm("add.rn.f32x2 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  return d;
}

// add.rm.f32x2 d, a, b;                                                                  PTX ISA 8.6, 9.7.3.3
// Rounds towards minus infinity.
__device__ __forceinline__ f32x2 add_rm_f32x2(f32x2 a, f32x2 b) {
  f32x2 d;
  asm("add.rm.f32x2 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  return d;
}

// mul.rn.f32x2 d, a, b;                                                                  PTX ISA 8.6, 9.7.3.5
__device__ __forceinline__ f32x2 mul_rn_f32x2(f32x2 a, f32x2 b) {
  f32x2 d;
  asm("mul.rn.f32x2 %0, %1, %2;" : "=l"(d) : "l"(a), "l"(b));
  return d;
}

// fma.rn.f32x2 d, a, b, c;                                                               PTX ISA 8.6, 9.7.3.6
__device__ __forceinline__ f32x2 fma_rn_f32x2(f32x2 a, f32x2 b, f32x2 c) {
  f32x2 d;
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(d) : "l"(a), "l"(b), "l"(c));
  return d;
}

// cvt.rn.f16x2.f32 d, high, low;                                                        PTX ISA 7.0, 9.7.9.21
__device__ __forceinline__ uint32_t cvt_rn_f16x2(float low, float high) {
  uint32_t d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

// cvt.rn.bf16x2.f32 d, high, low;                                                       PTX ISA 7.0, 9.7.9.21
__device__ __forceinline__ uint32_t cvt_rn_bf16x2(float low, float high) {
  uint32_t d;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
}

// shr.u32 d, a, bits;                                                                    PTX ISA 1.0, 9.7.8.9
// Shifts by more than 31 give 0, which C++ leaves undefined.
__device__ __forceinline__ uint32_t shr_u32(uint32_t a, uint32_t bits) {
  uint32_t d;
  asm("shr.u32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(bits));
  return d;
}

// shl.b32 d, a, bits;                                                                    PTX ISA 1.0, 9.7.8.8
// As shr_u32.
__device__ __forceinline__ uint32_t shl_b32(uint32_t a, uint32_t bits) {
  uint32_t d;
  asm("shl.b32 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(bits));
  return d;
}

}  // namespace fa4::ptx
