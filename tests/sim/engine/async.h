// SPDX-License-Identifier: Apache-2.0
// Pieces of PTX from which the tests of mbarriers, TMA and tensor memory build their kernels.
#pragma once

#include <cstdint>
#include <string>

#include "kernel.h"

namespace fa4::sim::test {

// Registers, %tid in %tid32, its warp in %warp, %p0: thread 0, %p1: warp 0, the parameter `out` in %out.
inline std::string prologue() {
  return R"(
  .reg .pred %p<16>;
  .reg .b32 %r<64>, %v<128>, %tid32, %warp, %tm;
  .reg .b64 %d<32>, %out;
  mov.u32 %tid32, %tid.x;
  shr.u32 %warp, %tid32, 5;
  setp.eq.u32 %p0, %tid32, 0;
  setp.eq.u32 %p1, %warp, 0;
  ld.param.u64 %out, [out];
)";
}

inline std::string at(uint32_t offset) {
  return "[smem+" + std::to_string(offset) + "]";
}

inline std::string init_barrier(uint32_t offset, uint32_t count) {
  return "  @%p0 mbarrier.init.shared::cta.b64 " + at(offset) + ", " + std::to_string(count) + ";\n";
}
inline std::string cta_sync() {
  return "  bar.sync 0;\n";
}

// Waits until the phase of `parity` has completed.
inline std::string wait_barrier(uint32_t offset, uint32_t parity) {
  static int label = 0;
  const std::string n = std::to_string(label++);
  return "WAIT" + n + ":\n  mbarrier.try_wait.parity.shared::cta.b64 %p15, " + at(offset) + ", " +
         std::to_string(parity) + ";\n  @!%p15 bra WAIT" + n + ";\n";
}

// Announces bytes and copies as many from %d<source> to shared memory, both by thread 0.
inline std::string bulk_copy(uint32_t to, const std::string& source, uint32_t bytes, uint32_t barrier) {
  return "  @%p0 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes " + at(to) + ", [" + source +
         "], " + std::to_string(bytes) + ", " + at(barrier) + ";\n";
}
inline std::string expect_bytes(uint32_t barrier, uint32_t bytes) {
  return "  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, " + at(barrier) + ", " + std::to_string(bytes) +
         ";\n";
}

// Warp 0 allocates `columns` of tensor memory; afterwards %tm holds the address in every thread.
inline std::string allocate_tmem(uint32_t offset, uint32_t columns) {
  return "  @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 " + at(offset) + ", " +
         std::to_string(columns) + ";\n  bar.sync 0;\n  ld.shared.u32 %tm, " + at(offset) + ";\n";
}
inline std::string free_tmem(uint32_t columns) {
  return "  bar.sync 0;\n  @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, " +
         std::to_string(columns) + ";\n";
}

inline std::string commit(uint32_t barrier) {
  return "  @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 " + at(barrier) +
         ";\n";
}

// "{%v0, %v1, ...}"
inline std::string registers(uint32_t count) {
  std::string text = "{";
  for (uint32_t i = 0; i < count; ++i) text += (i ? ", %v" : "%v") + std::to_string(i);
  return text + "}";
}

// Matrix descriptor; byte quantities.
inline uint64_t matrix_descriptor(uint32_t start, uint32_t leading, uint32_t stride, uint32_t swizzle_code) {
  return uint64_t(start >> 4) | uint64_t(leading >> 4) << 16 | uint64_t(stride >> 4) << 32 | 1ull << 46 |
         uint64_t(swizzle_code) << 61;
}
inline uint32_t instruction_descriptor(bool bf16, bool a_mn_major, bool b_mn_major, uint32_t m, uint32_t n) {
  return 1u << 4 | uint32_t(bf16) << 7 | uint32_t(bf16) << 10 | uint32_t(a_mn_major) << 15 |
         uint32_t(b_mn_major) << 16 | (n >> 3) << 17 | (m >> 4) << 24;
}

}  // namespace fa4::sim::test
