// SPDX-License-Identifier: Apache-2.0
// The warpgroup MMA of Hopper (sm_90a): D[64 x N] += A[64 x 16] B[16 x N], D in the registers of four warps,
// B in shared memory, A in shared memory or in registers. One function per instruction form; all are executed
// by the 128 threads of a warpgroup together.
//
// Order. Registers that a wgmma reads or accumulates into are written before wgmma.fence, which comes before
// the first wgmma that touches them; a chain of wgmma of one shape into the same registers needs no fence
// between its links. Completion: commit_group closes a group, wait_group<n> returns when at most the n newest
// groups are incomplete. Until then nobody may touch D, nor write A in registers. tied() keeps the compiler
// from moving the users of a register across that wait, or its writers across the fence.
#pragma once

#include <stdint.h>

namespace fa4::ptx {

// wgmma.fence.sync.aligned;                                              PTX ISA 8.0, 9.7.15.7.1
__device__ __forceinline__ void wgmma_fence() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// wgmma.commit_group.sync.aligned;                                       PTX ISA 8.0, 9.7.15.7.2
__device__ __forceinline__ void wgmma_commit_group() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wgmma.wait_group.sync.aligned N;                                       PTX ISA 8.0, 9.7.15.7.3
template <int pending>
__device__ __forceinline__ void wgmma_wait_group() {
  static_assert(pending >= 0 && pending < 8);
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// No instruction: ties the values of `r` to this point of the program.
template <int count>
__device__ __forceinline__ void tied(float (&r)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+f"(r[i])::"memory");
}
template <int count>
__device__ __forceinline__ void tied(uint32_t (&r)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) asm volatile("" : "+r"(r[i])::"memory");
}

// No instruction: `x` as if it were a new value each time, so that what follows from it is computed where it is used.
__device__ __forceinline__ void renewed(uint32_t& x) {
  asm volatile("" : "+r"(x)::"memory");
}

// The registers of D in the text of an instruction, in groups of eight, and as operands.
#define FA4_D32                                                                                          \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define FA4_D40 FA4_D32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define FA4_D48 FA4_D40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define FA4_D56 FA4_D48 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define FA4_D64 FA4_D56 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define FA4_D72 FA4_D64 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define FA4_D80 FA4_D72 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define FA4_D128                                                                                                                 \
  FA4_D80 ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, "   \
          "%102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, "   \
          "%121, %122, %123, %124, %125, %126, %127"
#define FA4_IO8(i)                                                                            \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define FA4_IO32 FA4_IO8(0), FA4_IO8(8), FA4_IO8(16), FA4_IO8(24)
#define FA4_IO40 FA4_IO32, FA4_IO8(32)
#define FA4_IO48 FA4_IO40, FA4_IO8(40)
#define FA4_IO56 FA4_IO48, FA4_IO8(48)
#define FA4_IO64 FA4_IO56, FA4_IO8(56)
#define FA4_IO72 FA4_IO64, FA4_IO8(64)
#define FA4_IO80 FA4_IO72, FA4_IO8(72)
#define FA4_IO128 FA4_IO80, FA4_IO8(80), FA4_IO8(88), FA4_IO8(96), FA4_IO8(104), FA4_IO8(112), FA4_IO8(120)

// Element types by their PTX name.
enum class MmaType { f16, bf16 };

// wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T {d...}, a-desc, b-desc, scale-d, 1, 1, 0, 0;
//                                                                                     PTX ISA 8.0, 9.7.15.5.2
// A and B K-major in shared memory. D is not read unless `accumulate`.
template <MmaType type, int registers>
__device__ __forceinline__ void wgmma_ss(float (&d)[registers], uint64_t a, uint64_t b, bool accumulate);

// wgmma.mma_async.sync.aligned.m64nNk16.f32.T.T {d...}, {a0..a3}, b-desc, scale-d, 1, 1, 1;
//                                                                                     PTX ISA 8.0, 9.7.15.5.2
// A in registers: a0 (row l/4, k 2(l%4)), a1 (row + 8), a2 (k + 8), a3 (both). B MN-major.
template <MmaType type, int registers>
__device__ __forceinline__ void wgmma_rs(float (&d)[registers], const uint32_t* a, uint64_t b,
                                         bool accumulate);

#define FA4_WGMMA_SS(T, N, R, A, B, P)                                                                     \
  template <>                                                                                              \
  __device__ __forceinline__ void wgmma_ss<MmaType::T, N / 2>(float(&d)[N / 2], uint64_t a, uint64_t b,    \
                                                              bool accumulate) {                           \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" P ", 0;\n\twgmma.mma_async.sync.aligned.m64n" #N \
                 "k16.f32." #T "." #T " {" FA4_D##R "}, %" A ", %" B ", p, 1, 1, 0, 0;\n\t}"               \
                 : FA4_IO##R                                                                               \
                 : "l"(a), "l"(b), "r"(static_cast<uint32_t>(accumulate))                                  \
                 : "memory");                                                                              \
  }
#define FA4_WGMMA_RS(T, N, R, A, B, P)                                                                     \
  template <>                                                                                              \
  __device__ __forceinline__ void wgmma_rs<MmaType::T, N / 2>(float(&d)[N / 2], const uint32_t* a,         \
                                                              uint64_t b, bool accumulate) {               \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" P ", 0;\n\twgmma.mma_async.sync.aligned.m64n" #N \
                 "k16.f32." #T "." #T " {" FA4_D##R "}, {" A "}, %" B ", p, 1, 1, 1;\n\t}"                 \
                 : FA4_IO##R                                                                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b),                                     \
                   "r"(static_cast<uint32_t>(accumulate))                                                  \
                 : "memory");                                                                              \
  }
#define FA4_WGMMA_BOTH(FORM, N, R, A, B, P) FORM(f16, N, R, A, B, P) FORM(bf16, N, R, A, B, P)

FA4_WGMMA_BOTH(FA4_WGMMA_SS, 80, 40, "40", "41", "42")
FA4_WGMMA_BOTH(FA4_WGMMA_SS, 96, 48, "48", "49", "50")
FA4_WGMMA_BOTH(FA4_WGMMA_SS, 128, 64, "64", "65", "66")
FA4_WGMMA_BOTH(FA4_WGMMA_RS, 64, 32, "%32, %33, %34, %35", "36", "37")
FA4_WGMMA_BOTH(FA4_WGMMA_RS, 96, 48, "%48, %49, %50, %51", "52", "53")
FA4_WGMMA_BOTH(FA4_WGMMA_RS, 128, 64, "%64, %65, %66, %67", "68", "69")
FA4_WGMMA_BOTH(FA4_WGMMA_RS, 256, 128, "%128, %129, %130, %131", "132", "133")

#undef FA4_D32
#undef FA4_D40
#undef FA4_D48
#undef FA4_D56
#undef FA4_D64
#undef FA4_D72
#undef FA4_D80
#undef FA4_D128
#undef FA4_IO8
#undef FA4_IO32
#undef FA4_IO40
#undef FA4_IO48
#undef FA4_IO56
#undef FA4_IO64
#undef FA4_IO72
#undef FA4_IO80
#undef FA4_IO128
#undef FA4_WGMMA_SS
#undef FA4_WGMMA_RS
#undef FA4_WGMMA_BOTH

}  // namespace fa4::ptx
