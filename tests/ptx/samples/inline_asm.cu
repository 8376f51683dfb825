// SPDX-License-Identifier: Apache-2.0
// PTX for the parser's tests: asm scopes with registers and labels of their own, vectors, addresses with coordinates.
#include <cstdint>

__device__ __forceinline__ void wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1, 0x989680;\n"
      "@P1 bra.uni DONE;\n"
      "bra.uni LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ uint32_t elect() {
  uint32_t elected;
  asm volatile(
      "{\n"
      ".reg .pred %%px;\n"
      "elect.sync _|%%px, 0xFFFFFFFF;\n"
      "selp.b32 %0, 1, 0, %%px;\n"
      "}\n" : "=r"(elected));
  return elected;
}

extern "C" __global__ void __launch_bounds__(256) __cluster_dims__(2, 1, 1)
    inline_asm(const __grid_constant__ int4 map[8], uint32_t* out) {
  __shared__ __align__(1024) uint32_t tile[1024];
  __shared__ uint64_t barrier;
  const uint32_t tile_address = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  const uint32_t barrier_address = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  if (elect()) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier_address), "n"(1) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(tile_address), "l"(map), "r"(0), "r"(-3), "r"(out[1]),
        "r"(barrier_address) : "memory");
    wait(barrier_address, 0);
  }
  wait(barrier_address, 1);
  if (elect()) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.b32 p, %4, 0;\n"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, {%5, %5, %5, %5}, p;\n"
        "}\n" ::"r"(tile_address), "l"(uint64_t(tile_address)), "l"(7ull), "r"(0x08200490u), "r"(out[0]), "r"(0));
  }
  uint32_t v[4];
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x4.b32{%0, %1, %2, %3}, [%4+4];"
               : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(tile_address));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  asm volatile("{ .reg .b32 t; { .reg .b32 t; mov.b32 t, 3; add.u32 %0, t, %0; } mov.b32 t, %0; st.shared.b32 [%1+-4], t; }"
               : "+r"(v[0]) : "r"(tile_address + 4));
  out[threadIdx.x] = v[0] ^ v[1] ^ v[2] ^ v[3];
}
