// SPDX-License-Identifier: Apache-2.0
// Patterns of asynchronous kernels that are right and that other tools report: the checker must say nothing
// about them, and must say something as soon as one instruction of theirs is missing.
#include <cuda.h>

#include "support/catch.h"
#include "tests/sim/engine/async.h"
#include "tools/sim/check/collector.h"
#include "tools/sim/core/tensor_map.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

constexpr uint64_t kSeeds = 20;

// What is said about it, with nominal timing and with every seed; "" for nothing.
std::string said_about(const std::string& body, uint32_t threads) {
  Kernel kernel(
      entry_of(".param .u64 out, .param .u64 from, .param .align 64 .b8 map[128]",
               prologue() + "  ld.param.u64 %d1, [from];\n  mov.b64 %d2, map;\n  cvta.param.u64 %d2, %d2;\n" +
                   body + "  ret;\n",
               threads),
      1, 4, 1 << 18);
  const uint64_t out = kernel.buffer<uint32_t>(1024), from = kernel.buffer<uint32_t>(16384);
  CUtensorMap map;
  const cuuint64_t extents[1] = {16384}, strides[1] = {};  // a tensor of rank 1 has none
  const cuuint32_t box[1] = {256}, one[1] = {1};
  REQUIRE(encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 1, reinterpret_cast<void*>(from), extents,
                       strides, box, one, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                       CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
  Collector collector;
  kernel.device().set_observers([&](uint32_t thread) { return collector.observer(thread); });
  std::string said;
  for (uint64_t seed = 0; seed <= kSeeds && said.empty(); ++seed) {
    kernel.device().set_adversarial(seed);
    try {
      kernel.run("kernel", {{1, 1, 1}, {threads, 1, 1}, 65536}, out, from, map);
    } catch (const Fault& fault) {
      said += fault.what();
    }
    for (const Finding& f : collector.take()) said += describe(f);
  }
  return said;
}

// Silent about the text, and not about the text without any one line that holds one of `needed`.
void silent_unless_missing(const std::string& body, uint32_t threads,
                           const std::vector<std::string>& needed) {
  CHECK(said_about(body, threads) == "");
  for (const std::string& part : needed) {
    const size_t at = body.find(part);
    REQUIRE(at != std::string::npos);
    const size_t begin = body.rfind('\n', at) + 1, end = body.find('\n', at);
    std::string without = body;
    without.erase(begin, end - begin);
    INFO("without " << body.substr(begin, end - begin));
    CHECK(said_about(without, threads) != "");
  }
}

// A ring of two slots of 1024 bytes, filled by one lane of warp 1 and read by the 32 lanes of warp 0, seven
// times round a loop whose bounds are in registers. Barriers: full at 0 and 8, empty at 16 and 24. `copy`
// fills [%r5], signals [%r4].
std::string ring(const std::string& copy) {
  return init_barrier(0, 1) + init_barrier(8, 1) + init_barrier(16, 32) + init_barrier(24, 32) + R"(
  @%p0 fence.mbarrier_init.release.cluster;
  bar.warp.sync 0xffffffff;
  bar.sync 0;
  mov.u32 %r10, smem;
  mov.u32 %r1, 0;
  mov.u32 %r2, 0;
  mov.u32 %r20, 7;
  mov.u32 %v1, 0;
  setp.ne.u32 %p2, %warp, 0;
  @%p2 bra PRODUCER;
  mov.u32 %r3, 0;
CONSUMER:
  shl.b32 %r4, %r2, 3;
  add.u32 %r4, %r4, %r10;
WAIT_FULL:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4], %r3;
  @!%p3 bra WAIT_FULL;
  shl.b32 %r5, %r2, 10;
  add.u32 %r5, %r5, %r10;
  shl.b32 %r6, %tid32, 2;
  add.u32 %r5, %r5, %r6;
  ld.shared.u32 %v0, [%r5+1024];
  add.u32 %v1, %v1, %v0;
  mbarrier.arrive.shared::cta.b64 _, [%r4+16];
  xor.b32 %r2, %r2, 1;
  setp.eq.u32 %p4, %r2, 0;
  @%p4 xor.b32 %r3, %r3, 1;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p4, %r1, %r20;
  @%p4 bra CONSUMER;
  mul.wide.u32 %d3, %tid32, 4;
  add.u64 %out, %out, %d3;
  st.global.u32 [%out], %v1;
  bra DONE;
PRODUCER:
  setp.ne.u32 %p5, %tid32, 32;
  @%p5 bra DONE;
  mov.u32 %r3, 1;
FILL:
  shl.b32 %r4, %r2, 3;
  add.u32 %r4, %r4, %r10;
WAIT_EMPTY:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r4+16], %r3;  // empty
  @!%p3 bra WAIT_EMPTY;
  shl.b32 %r5, %r2, 10;
  add.u32 %r5, %r5, %r10;
  add.u32 %r5, %r5, 1024;
  shl.b32 %r7, %r1, 8;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 1024;
)" + copy +
         R"(
  xor.b32 %r2, %r2, 1;
  setp.eq.u32 %p4, %r2, 0;
  @%p4 xor.b32 %r3, %r3, 1;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p4, %r1, %r20;
  @%p4 bra FILL;
DONE:
)";
}

// Barriers at 0, 8, 24 and 32 (one arrival), 40 and 48 (128 arrivals), tensor memory whole, descriptors of
// 128 x 16 (A at 1024) and 16 x 16 (B at 17408) tiles in %d5, %d6, the instruction in %r3, the thread's own
// lanes of column 0 in %r20; A and B are loaded.
std::string mma_setup() {
  std::string text;
  for (uint32_t at : {0, 8, 24, 32}) text += init_barrier(at, 1);
  return text + init_barrier(40, 128) + init_barrier(48, 128) +
         "  @%p0 fence.mbarrier_init.release.cluster;\n  bar.warp.sync 0xffffffff;\n" +
         allocate_tmem(16, 512) + "  mov.b64 %d5, " +
         std::to_string(matrix_descriptor(kSmem + 1024, 16, 1024, 2)) + ";\n  mov.b64 %d6, " +
         std::to_string(matrix_descriptor(kSmem + 17408, 16, 1024, 2)) + ";\n  mov.u32 %r3, " +
         std::to_string(instruction_descriptor(false, false, false, 128, 16)) +
         ";\n  shl.b32 %r20, %warp, 21;\n  add.s32 %r20, %r20, %tm;\n" + expect_bytes(0, 16384 + 2048) +
         bulk_copy(1024, "%d1", 16384, 0) + bulk_copy(17408, "%d1", 2048, 0) + wait_barrier(0, 0);
}
std::string mma(const std::string& a, bool accumulate) {
  return "  @%p0 tcgen05.mma.cta_group::1.kind::f16 [%tm], " + a + ", %d6, %r3, " + (accumulate ? "1" : "0") +
         ";\n";
}
const char kLoadD[] =
    "  bar.warp.sync 0xffffffff;\n  tcgen05.fence::after_thread_sync;\n  "
    "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r20];\n"
    "  tcgen05.wait::ld.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n";
// The columns go back when every warp has read.
std::string finish() {
  return "  mul.wide.u32 %d3, %tid32, 4;\n  add.u64 %out, %out, %d3;\n  st.global.u32 [%out], %v0;\n  "
         "bar.sync 0;\n"
         "  @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 512;\n";
}

// One of four A operands (128 x 16) in tensor memory: eight columns from 64 + 8 * part.
std::string store_part(int part) {
  return "  tcgen05.st.sync.aligned.32x32b.x8.b32 [%r20+" + std::to_string(64 + 8 * part) +
         "], {%v8, %v8, %v8, %v8, %v8, %v8, %v8, %v8};\n";
}
std::string handed_over(uint32_t barrier) {
  return "  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n  "
         "mbarrier.arrive.shared::cta.b64 _, " +
         at(barrier) + ";\n";
}

}  // namespace

TEST_CASE("a ring of cp.async.bulk in a dynamic loop", "[silence]") {
  silent_unless_missing(
      ring("  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%d1], 1024, [%r4];\n"),
      64, {"@!%p3 bra WAIT_FULL", "@!%p3 bra WAIT_EMPTY", "mbarrier.arrive.shared::cta.b64 _, [%r4+16]"});
}

TEST_CASE("a ring of TMA boxes in a dynamic loop", "[silence]") {
  silent_unless_missing(ring("  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes "
                             "[%r5], [%d2, {%r7}], [%r4];\n"),
                        64, {"@!%p3 bra WAIT_FULL", "@!%p3 bra WAIT_EMPTY", "mbarrier.arrive.expect_tx"});
}

TEST_CASE("MMA after MMA on one accumulator, and one commit for all", "[silence]") {
  std::string body = mma_setup();
  for (int i = 0; i < 8; ++i) body += mma("%d5", i > 0);
  silent_unless_missing(body + commit(8) + wait_barrier(8, 0) + kLoadD + finish(), 128,
                        {"tcgen05.commit", "tcgen05.wait::ld",
                         "tcgen05.fence::after_thread_sync;\n  tcgen05.ld", "tcgen05.dealloc"});
}

TEST_CASE("P handed over in two parts", "[silence]") {
  // Four warps store A into tensor memory, three quarters first; thread 0 starts its MMAs on those.
  std::string body = mma_setup() + "  mov.b32 %v8, 0;\n" + store_part(0) + store_part(1) + store_part(2) +
                     handed_over(40) + store_part(3) + handed_over(48);
  body += "  @!%p0 bra DRIVEN;\n" + wait_barrier(40, 0) +
          "  tcgen05.fence::after_thread_sync;  // three quarters\n";
  for (int part = 0; part < 3; ++part) body += mma("[%tm+" + std::to_string(64 + 8 * part) + "]", part > 0);
  body += wait_barrier(48, 0) + "  tcgen05.fence::after_thread_sync;  // the last quarter\n" +
          mma("[%tm+88]", true) + commit(8) + "DRIVEN:\n  bar.warp.sync 0xffffffff;\n";
  silent_unless_missing(body + wait_barrier(8, 0) + kLoadD + finish(), 128,
                        {"tcgen05.wait::st", "tcgen05.fence::before_thread_sync", "// three quarters",
                         "// the last quarter", "tcgen05.commit"});
}
