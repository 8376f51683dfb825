// SPDX-License-Identifier: Apache-2.0
// Pieces of litmus programs that use the tensor core: A of 128 x 16 at byte 1024 (4 KiB) and B of 16 x 16 at
// byte 8192 (512 bytes) of shared memory, no swizzle; barriers at bytes 0, 8, 32, 40; tensor memory in %tm,
// the thread's own lanes of its column 0 in %r20.
#pragma once

#include "litmus.h"

namespace fa4::sim::test {

inline std::string mma_registers() {
  return line("mov.b64 %d5, " + std::to_string(matrix_descriptor(kSmem + 1024, 2048, 128, 0))) +
         line("mov.b64 %d6, " + std::to_string(matrix_descriptor(kSmem + 8192, 256, 128, 0))) +
         line("mov.u32 %r3, " + std::to_string(instruction_descriptor(false, false, false, 128, 16))) +
         line("mov.u32 %r21, 0") + line("mov.b32 %v0, 0");
}
// Barriers of one arrival each, visible to everybody; columns of tensor memory.
inline std::string tile_setup(uint32_t columns = 64) {
  return init_barrier(0, 1) + init_barrier(8, 1) + init_barrier(32, 128) + init_barrier(40, 1) +
         "  fence.mbarrier_init.release.cluster;\n" + allocate_tmem(16, columns) + mma_registers() +
         line("shl.b32 %r20, %warp, 21") + line("add.s32 %r20, %r20, %tm");
}
// All threads write both operands with ordinary stores.
inline std::string store_operands() {
  return line("shl.b32 %r22, %tid32, 5") + line("mov.u32 %r23, smem") + line("add.s32 %r22, %r22, %r23") +
         line("st.shared.v4.b32 [%r22+1024], {%v0, %v0, %v0, %v0}") +
         line("st.shared.v4.b32 [%r22+1040], {%v0, %v0, %v0, %v0}") + line("setp.lt.u32 %p5, %tid32, 16") +
         line("@%p5 st.shared.v4.b32 [%r22+8192], {%v0, %v0, %v0, %v0}") +
         line("@%p5 st.shared.v4.b32 [%r22+8208], {%v0, %v0, %v0, %v0}");
}
// Both operands by bulk copies that complete on the barrier at byte 0, waited for by everybody.
inline std::string load_operands() {
  return expect_bytes(0, 4096 + 512) + bulk_copy(1024, "%d1", 4096, 0) + bulk_copy(8192, "%d1", 512, 0) +
         wait_barrier(0, 0);
}
inline std::string mma(const std::string& d = "%tm", const std::string& a = "%d5",
                       const std::string& accumulate = "0", const std::string& thread = "%p0") {
  return line("@" + thread + " tcgen05.mma.cta_group::1.kind::f16 [" + d + "], " + a + ", %d6, %r3, " +
              accumulate);
}
inline std::string finish_mma() {
  return commit(8) + wait_barrier(8, 0);
}
const std::string kAfter = "  tcgen05.fence::after_thread_sync;\n",
                  kBefore = "  tcgen05.fence::before_thread_sync;\n";
const std::string kLoadD = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v1}, [%r20];\n",
                  kWaitLoad = "  tcgen05.wait::ld.sync.aligned;\n";
const std::string kStoreD = "  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n",
                  kWaitStore = "  tcgen05.wait::st.sync.aligned;\n";
const std::string kProxyFence = "  fence.proxy.async.shared::cta;\n";

}  // namespace fa4::sim::test
