// SPDX-License-Identifier: Apache-2.0
// Kernels with one mistake each. Every one must end in a report that names the place and the object, never in
// an answer that happens to be right.
#include <cuda.h>

#include "faults.h"
#include "tools/sim/core/tensor_map.h"

using namespace fa4::sim;
using namespace fa4::sim::test;
using Kind = Fault::Kind;

namespace {

const std::string kStoreV0 = "  st.global.b32 [%out], %v0;\n";

// Barriers at 0 (full) and 8 (done), tensor memory whole, descriptors of 128 x 16 (A at 1024) and 16 x 16 (B
// at 8192) K-major SW128 tiles in %d5, %d6, the instruction in %r3, the thread's own lanes of column 0 in
// %r20.
std::string mma_setup(uint32_t columns = 512) {
  return init_barrier(0, 1) + init_barrier(8, 1) + allocate_tmem(16, columns) + "  mov.b64 %d5, " +
         std::to_string(matrix_descriptor(kSmem + 1024, 16, 1024, 2)) + ";\n  mov.b64 %d6, " +
         std::to_string(matrix_descriptor(kSmem + 17408, 16, 1024, 2)) + ";\n  mov.u32 %r3, " +
         std::to_string(instruction_descriptor(false, false, false, 128, 16)) +
         ";\n  shl.b32 %r20, %warp, 21;\n  add.s32 %r20, %r20, %tm;\n";
}
std::string load_operands() {
  return expect_bytes(0, 16384 + 2048) + bulk_copy(1024, "%d1", 16384, 0) + bulk_copy(17408, "%d1", 2048, 0);
}
std::string mma(const std::string& a = "%d5", const std::string& accumulate = "0") {
  return "  @%p0 tcgen05.mma.cta_group::1.kind::f16 [%tm], " + a + ", %d6, %r3, " + accumulate + ";\n";
}
const std::string kLoadD =
    "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r20];\n  tcgen05.wait::ld.sync.aligned;\n" + kStoreV0;
const std::string kStoreA =
    "  mov.b32 %v0, 0;\n  tcgen05.st.sync.aligned.32x32b.x8.b32 [%r20+64], {%v0, %v0, %v0, %v0, %v0, %v0, "
    "%v0, %v0};\n";

}  // namespace

TEST_CASE("a correct kernel of the same pieces runs") {
  const std::string good = mma_setup() + load_operands() + wait_barrier(0, 0) + mma() + commit(8) +
                           wait_barrier(8, 0) + kLoadD + kStoreA +
                           "  tcgen05.wait::st.sync.aligned;\n  bar.sync 0;\n" + mma("[%tm+64]", "1") +
                           commit(8) + wait_barrier(8, 1) + kLoadD + free_tmem(512);
  CHECK(fault_in(good, Kind::poison, {}) == "the kernel ran to its end");
}

TEST_CASE("values that nobody has written") {
  CHECK(fault_in("  ld.shared.u32 %v0, [smem+64];\n" + kStoreV0, Kind::poison,
                 {"PTX line", "ld.shared.u32", "warp 0", "0x440", "written"}) == "");
  // Half of a vector is written.
  CHECK(fault_in("  st.shared.u32 [smem+64], 1;\n  ld.shared.v2.u32 {%v1, %v0}, [smem+64];\n" + kStoreV0,
                 Kind::poison, {"0x444"}) == "");
  CHECK(fault_in(mma_setup() + kLoadD + free_tmem(512), Kind::poison,
                 {"tcgen05.ld", "TMEM column 0", "written"}) == "");
  // Another warp's lanes are written, the own are not.
  CHECK(fault_in(mma_setup() +
                     "  mov.b32 %v0, 1;\n  @%p1 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n  @%p1 "
                     "tcgen05.wait::st.sync.aligned;\n  bar.sync 0;\n" +
                     kLoadD + free_tmem(512),
                 Kind::poison, {"tcgen05.ld", "TMEM column 0"}) == "");
  // Allocated again, the columns hold nothing.
  CHECK(fault_in(allocate_tmem(16, 32) +
                     "  shl.b32 %r20, %warp, 21;\n  mov.b32 %v0, 1;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 "
                     "[%r20], {%v0};\n  tcgen05.wait::st.sync.aligned;\n" +
                     free_tmem(32) + "  bar.sync 0;\n" + allocate_tmem(16, 32) + kLoadD + free_tmem(32),
                 Kind::poison, {"TMEM column 0"}) == "");
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + mma("%d5", "1") + commit(8) +
                     wait_barrier(8, 0) + free_tmem(512),
                 Kind::poison, {"tcgen05.mma", "accumulator", "TMEM column 0"}) == "");
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + mma("[%tm+64]") + free_tmem(512),
                 Kind::poison, {"tcgen05.mma", "A", "TMEM column 64"}) == "");
  CHECK(fault_in(mma_setup() + mma() + free_tmem(512), Kind::poison, {"tcgen05.mma", "A:", "0x800"}) == "");
}

TEST_CASE("work that is in flight") {
  CHECK(fault_in(init_barrier(0, 1) + cta_sync() + expect_bytes(0, 64) + bulk_copy(1024, "%d1", 64, 0) +
                     "  ld.shared.u32 %v0, [smem+1024];\n" + kStoreV0 + wait_barrier(0, 0),
                 Kind::poison, {"ld.shared.u32", "0x800", "in flight"}) == "");
  // Old bytes do not count once a copy is under way.
  CHECK(fault_in(init_barrier(0, 1) + "  st.shared.u32 [smem+1024], 1;\n" + cta_sync() + expect_bytes(0, 64) +
                     bulk_copy(1024, "%d1", 64, 0) + "  ld.shared.u32 %v0, [smem+1024];\n" + kStoreV0 +
                     wait_barrier(0, 0),
                 Kind::poison, {"ld.shared.u32", "0x800"}) == "");
  CHECK(fault_in(mma_setup() + load_operands() + mma() + commit(8) + wait_barrier(8, 0) + free_tmem(512),
                 Kind::poison, {"tcgen05.mma", "A:", "in flight"}) == "");
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + mma() + commit(8) + kLoadD +
                     wait_barrier(8, 0) + free_tmem(512),
                 Kind::poison, {"tcgen05.ld", "TMEM column 0", "MMA in flight"}) == "");
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + mma() +
                     "  mov.b32 %v0, 0;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n" +
                     free_tmem(512),
                 Kind::poison, {"tcgen05.st", "TMEM column 0"}) == "");
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + kStoreA + "  bar.sync 0;\n" +
                     mma("[%tm+64]") + free_tmem(512),
                 Kind::poison, {"tcgen05.mma", "TMEM column 64", "wait::st"}) == "");
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + kStoreA +
                     "  tcgen05.wait::st.sync.aligned;\n  bar.sync 0;\n" + mma("[%tm+64]") + kStoreA +
                     free_tmem(512),
                 Kind::poison, {"tcgen05.st", "TMEM column 64", "in flight"}) == "");
  CHECK(fault_in(mma_setup() + "  mov.b32 %v0, 0;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n" +
                     kLoadD + free_tmem(512),
                 Kind::poison, {"tcgen05.ld", "wait::st"}) == "");
  // A register that tcgen05.ld has not delivered may be moved, not used.
  const std::string delivered =
      mma_setup() +
      "  mov.b32 %v0, 0;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n  "
      "tcgen05.wait::st.sync.aligned;\n  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v0}, [%r20];\n";
  CHECK(fault_in(delivered + kStoreV0 + "  tcgen05.wait::ld.sync.aligned;\n" + free_tmem(512), Kind::poison,
                 {"st.global", "wait::ld"}) == "");
  CHECK(fault_in(delivered +
                     "  mov.b32 %v1, %v0;\n  add.s32 %v1, %v1, 1;\n  tcgen05.wait::ld.sync.aligned;\n" +
                     free_tmem(512),
                 Kind::poison, {"add.s32", "wait::ld"}) == "");
  CHECK(fault_in(delivered +
                     "  mov.b32 %v1, %v0;\n  tcgen05.wait::ld.sync.aligned;\n  add.s32 %v1, %v1, 1;\n" +
                     free_tmem(512),
                 Kind::poison, {}) == "the kernel ran to its end");
  // The refill does not wait for the MMA that reads the tile.
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + mma() + expect_bytes(0, 2048) +
                     bulk_copy(17408, "%d1", 2048, 0) + commit(8) + wait_barrier(8, 0) + wait_barrier(0, 1) +
                     free_tmem(512),
                 Kind::poison, {"tcgen05.mma", "B was overwritten", "in flight"}) == "");
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + mma() + free_tmem(512), Kind::poison,
                 {"tcgen05.dealloc", "in flight"}) == "");
}

TEST_CASE("a CTA ends while something of it is in flight") {
  CHECK(fault_in(init_barrier(0, 1) + cta_sync() + expect_bytes(0, 64) + bulk_copy(1024, "%d1", 64, 0),
                 Kind::poison, {"cp.async.bulk", "CTA ended", "load"}) == "");
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + mma() + commit(8) + wait_barrier(8, 0) +
                     commit(0) + free_tmem(512),
                 Kind::poison, {}) == "the kernel ran to its end");
  CHECK(fault_in(mma_setup() + load_operands() + wait_barrier(0, 0) + mma() + commit(8) + commit(0) +
                     wait_barrier(8, 0) + kLoadD + free_tmem(512),
                 Kind::poison, {}) == "the kernel ran to its end");
}

TEST_CASE("tensor memory: what is allocated") {
  CHECK(fault_in(mma_setup(32) +
                     "  mov.b32 %v0, 0;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20+40], {%v0};\n" +
                     free_tmem(32),
                 Kind::illegal_address, {"tcgen05.st", "TMEM column 40", "not allocated"}) == "");
  CHECK(fault_in(mma_setup() +
                     "  mov.b32 %v0, 0;\n  tcgen05.st.sync.aligned.32x32b.x2.b32 [%r20+511], {%v0, %v0};\n" +
                     free_tmem(512),
                 Kind::illegal_address, {"tcgen05.st", "511"}) == "");
  CHECK(fault_in(mma_setup(32) + load_operands() + wait_barrier(0, 0) +
                     "  @%p0 tcgen05.mma.cta_group::1.kind::f16 [%tm+24], %d5, %d6, %r3, 0;\n" +
                     free_tmem(32),
                 Kind::illegal_address, {"tcgen05.mma", "TMEM column 32", "not allocated"}) == "");
  CHECK(fault_in(allocate_tmem(16, 64), Kind::illegal_instruction, {"64", "dealloc"}) == "");
  CHECK(fault_in(allocate_tmem(16, 64) + free_tmem(32), Kind::illegal_instruction,
                 {"tcgen05.dealloc", "32 columns"}) == "");
  CHECK(fault_in(allocate_tmem(16, 64) + free_tmem(64) + "  bar.sync 0;\n" + free_tmem(64),
                 Kind::illegal_instruction, {"tcgen05.dealloc", "64 columns"}) == "");
  CHECK(fault_in(allocate_tmem(16, 512) + allocate_tmem(20, 32), Kind::illegal_instruction,
                 {"tcgen05.alloc", "32 columns"}) == "");
  CHECK(
      fault_in(
          "  mov.u32 %r1, 48;\n  @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], %r1;\n",
          Kind::illegal_instruction, {"tcgen05.alloc", "48", "power of two"}) == "");
  CHECK(
      fault_in("  @%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" + allocate_tmem(16, 32),
               Kind::illegal_instruction, {"tcgen05.alloc", "relinquish"}) == "");
  // Lanes of another warp.
  CHECK(fault_in(mma_setup() +
                     "  mov.b32 %v0, 0;\n  add.s32 %r20, %tm, 2097152;\n  "
                     "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n" +
                     free_tmem(512),
                 Kind::illegal_address, {"tcgen05.st", "lane 32", "partition"}) == "");
}

TEST_CASE("mbarriers") {
  const std::string ready = init_barrier(0, 1) + cta_sync();
  CHECK(fault_in(ready + expect_bytes(0, 16) + "  @%p0 mbarrier.arrive.shared::cta.b64 _, [smem];\n",
                 Kind::poison, {"mbarrier.arrive", "mbarrier 0x400", "phase 0", "0 of 1"}) == "");
  CHECK(fault_in(init_barrier(0, 64) + cta_sync() + "  mbarrier.arrive.shared::cta.b64 _, [smem], 3;\n",
                 Kind::poison, {"mbarrier.arrive", "mbarrier 0x400", "64"}) == "");
  CHECK(fault_in("  mbarrier.arrive.shared::cta.b64 _, [smem+8];\n", Kind::poison,
                 {"mbarrier.arrive", "0x408", "initialised"}) == "");
  CHECK(fault_in(wait_barrier(8, 0), Kind::poison, {"mbarrier.try_wait", "0x408", "initialised"}) == "");
  CHECK(fault_in(ready + "  @%p0 mbarrier.inval.shared::cta.b64 [smem];\n" + cta_sync() + wait_barrier(0, 0),
                 Kind::poison, {"mbarrier.try_wait", "0x400"}) == "");
  CHECK(fault_in(ready + init_barrier(0, 1), Kind::poison, {"mbarrier.init", "0x400", "live"}) == "");
  CHECK(fault_in("  mbarrier.init.shared::cta.b64 [smem+4], 1;\n", Kind::misaligned_address,
                 {"mbarrier.init"}) == "");
  CHECK(fault_in("  mov.u32 %r1, 0;\n  mbarrier.init.shared::cta.b64 [smem], %r1;\n",
                 Kind::illegal_instruction, {"mbarrier.init", "count of 0"}) == "");
  CHECK(fault_in(ready + "  st.shared.u32 [smem+4], 1;\n", Kind::poison,
                 {"st.shared", "mbarrier 0x400", "as data"}) == "");
  CHECK(fault_in(ready + "  ld.shared.u64 %d2, [smem];\n  st.global.u64 [%out], %d2;\n", Kind::poison,
                 {"ld.shared", "mbarrier 0x400"}) == "");
  CHECK(fault_in(init_barrier(1032, 1) + ready + expect_bytes(0, 64) + bulk_copy(1024, "%d1", 64, 0) +
                     wait_barrier(0, 0),
                 Kind::poison, {"cp.async.bulk", "0x808"}) == "");
  // The wait is satisfied by the phase before: what it should guard is still on its way.
  CHECK(fault_in(ready + expect_bytes(0, 64) + bulk_copy(1024, "%d1", 64, 0) + wait_barrier(0, 1) +
                     "  ld.shared.u32 %v0, [smem+1024];\n" + kStoreV0,
                 Kind::poison, {"ld.shared", "in flight"}) == "");
  CHECK(fault_in(ready + "  @%p0 mbarrier.inval.shared::cta.b64 [smem];\n  @%p0 "
                         "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [smem+1024], [%d1], "
                         "64, [smem];\n",
                 Kind::poison, {"cp.async.bulk", "0x400"}) == "");
  CHECK(fault_in(init_barrier(8, 1) + ready + expect_bytes(0, 64) + bulk_copy(1024, "%d1", 64, 0) +
                     "  @%p0 mbarrier.inval.shared::cta.b64 [smem];\n" + wait_barrier(8, 0),
                 Kind::poison, {"cp.async.bulk", "gone"}) == "");
  CHECK(fault_in(ready + "  @%p0 mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [smem], 1048576;\n",
                 Kind::poison, {"expect_tx", "1048576"}) == "");
}

TEST_CASE("deadlocks end in a report") {
  const std::string ready = init_barrier(0, 1) + cta_sync();
  CHECK(fault_in(ready + expect_bytes(0, 96) + bulk_copy(1024, "%d1", 64, 0) + wait_barrier(0, 0),
                 Kind::deadlock,
                 {"deadlock", "warp 3", "mbarrier 0x400", "parity 0", "phase 0", "0 of 1 arrivals pending",
                  "32 bytes missing", "mbarrier.try_wait"}) == "");
  CHECK(fault_in(ready + expect_bytes(0, 32) + bulk_copy(1024, "%d1", 48, 0) + wait_barrier(0, 0),
                 Kind::deadlock, {"16 bytes more than expected"}) == "");
  CHECK(fault_in(init_barrier(0, 3) + cta_sync() + "  @%p0 mbarrier.arrive.shared::cta.b64 _, [smem];\n" +
                     wait_barrier(0, 0),
                 Kind::deadlock, {"2 of 3 arrivals pending"}) == "");
  CHECK(fault_in("  @%p1 bra LEAVE;\n  bar.sync 1, 128;\nLEAVE:\n", Kind::deadlock,
                 {"barrier 1", "96 of 128 threads", "warp 0: has exited"}) == "");
  // Half of a warp waits for the other half, which has left for a barrier of the CTA.
  CHECK(fault_in("  and.b32 %r1, %tid32, 16;\n  setp.eq.s32 %p2, %r1, 0;\n  @%p2 bra LOW;\n  bar.warp.sync "
                 "0xffffffff;\n  bra DONE;\nLOW:\n  barrier.sync 1, 32;\nDONE:\n",
                 Kind::deadlock,
                 {"lanes 0xffff0000: waits for lanes 0xffffffff", "lanes 0x0000ffff: waits at barrier 1"},
                 32) == "");
  // Registers: 128 threads at 504 would be needed beside the others' 128 each.
  CHECK(fault_in("  setmaxnreg.inc.sync.aligned.u32 192;\n", Kind::deadlock,
                 {"setmaxnreg", "registers", "pool has"}, 512) == "");
  CHECK(fault_in("  setmaxnreg.dec.sync.aligned.u32 96;\n  setmaxnreg.inc.sync.aligned.u32 128;\n",
                 Kind::deadlock, {}, 512) == "the kernel ran to its end");
  // 384 threads have 168 each at launch, 64,512 together: 128 times 24 and 256 times 240. The 1,024 that the SM has besides, of which
  // a multiple of 8 for each thread could not be made, do not count (an H200 hangs with 32 in place of 24).
  const auto parts = [](const std::string& few) {
    return "  setp.lt.u32 %p2, %tid32, 128;\n  @%p2 bra FEW;\n  setmaxnreg.inc.sync.aligned.u32 240;\n  bra OUT;\nFEW:\n"
           "  setmaxnreg.dec.sync.aligned.u32 " + few + ";\nOUT:\n";
  };
  CHECK(fault_in(parts("24"), Kind::deadlock, {}, 384) == "the kernel ran to its end");
  CHECK(fault_in(parts("32"), Kind::deadlock, {"setmaxnreg", "waits for 2304 registers; the pool has 1280"}, 384) == "");
}

TEST_CASE("deadlock reports use the module's names") {
  // <entry>_names: records of kind, begin, end and 36 bytes of name; roles by warp, barriers by byte of dynamic
  // shared memory.
  const auto record = [](uint32_t kind, uint32_t begin, uint32_t end, const std::string& name) {
    std::string text;
    for (uint32_t word : {kind, begin, end}) {
      for (int i = 0; i < 4; ++i) text += std::to_string(word >> (8 * i) & 255) + ", ";
    }
    for (size_t i = 0; i < 36; ++i)
      text += std::to_string(i < name.size() ? int(name[i]) : 0) + (i < 35 ? ", " : "");
    return text;
  };
  const std::string names = ".global .align 4 .b8 kernel_names[240] = {" + record(1, 0, 1, "driver") + ", " +
                            record(2, 0, 8, "tile.full[0]") + ", " + record(3, 1024, 2048, "tile 0") + ", " +
                            record(4, 0, 128, "score") + ", " + record(0, 0, 0, "") + "};\n";
  const auto named = [&](const std::string& body, Kind kind, const std::vector<std::string>& says) {
    std::string text = entry_of(".param .u64 out, .param .u64 from",
                                prologue() + "  ld.param.u64 %d1, [from];\n" + body + "  ret;\n", 64);
    text.insert(text.find(".extern"), names);
    Kernel kernel(text);
    const uint64_t out = kernel.buffer<uint32_t>(1024), from = kernel.buffer<uint32_t>(16384);
    return fault_of(kernel, {{1, 1, 1}, {64, 1, 1}, 8192}, kind, says, out, from);
  };
  const std::string ready = init_barrier(0, 1) + cta_sync();
  CHECK(named(ready + expect_bytes(0, 96) + bulk_copy(1024, "%d1", 64, 0) + wait_barrier(0, 0),
              Kind::deadlock, {"warp 0 (driver)", "tile.full[0]", "32 bytes missing", "parity 0"}) == "");
  CHECK(named("  ld.shared.u32 %v0, [smem+1028];\n" + kStoreV0, Kind::poison,
              {"warp 0 (driver)", "tile 0"}) == "");
  CHECK(named(allocate_tmem(16, 32) + "  shl.b32 %r20, %warp, 21;\n" + kLoadD, Kind::poison, {"score"}) ==
        "");
  CHECK(named(ready + expect_bytes(0, 16) + "  @%p0 mbarrier.arrive.shared::cta.b64 _, [smem];\n",
              Kind::poison, {"tile.full[0]"}) == "");
}

TEST_CASE("instructions of a whole warp, executed by part of it") {
  CHECK(fault_in("  @%p0 bar.sync 0;\n", Kind::illegal_instruction, {"bar.sync", "lanes 0x1"}) == "");
  CHECK(fault_in("  @%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [smem], 32;\n",
                 Kind::illegal_instruction, {"tcgen05.alloc", "all lanes"}) == "");
  CHECK(fault_in(mma_setup() + "  @%p0 tcgen05.wait::st.sync.aligned;\n" + free_tmem(512),
                 Kind::illegal_instruction, {"tcgen05.wait::st", "all lanes"}) == "");
  CHECK(fault_in(mma_setup() +
                     "  mov.b32 %v0, 0;\n  @%p0 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n" +
                     free_tmem(512),
                 Kind::illegal_instruction, {"tcgen05.st"}) == "");
  CHECK(fault_in("  @%p0 setmaxnreg.dec.sync.aligned.u32 24;\n", Kind::illegal_instruction, {"setmaxnreg"}) ==
        "");
  CHECK(fault_in(mma_setup() +
                     "  mov.b32 %v0, 0;\n  add.s32 %r20, %r20, %tid32;\n  "
                     "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r20], {%v0};\n" +
                     free_tmem(512),
                 Kind::illegal_instruction, {"tcgen05.st", "differs"}) == "");
  CHECK(fault_in("  and.b32 %r1, %tid32, 1;\n  setp.eq.s32 %p2, %r1, 1;\n  @%p2 bra.uni AWAY;\nAWAY:\n",
                 Kind::illegal_instruction, {"bra.uni"}) == "");
  CHECK(fault_in("  shfl.sync.idx.b32 %v0, %tid32, 0, 31, 0xfffffffe;\n" + kStoreV0,
                 Kind::illegal_instruction, {"shfl.sync", "member mask"}) == "");
  CHECK(fault_in("  bar.sync 16;\n", Kind::illegal_instruction, {"barrier 16"}) == "");
  CHECK(fault_in("  mov.u32 %r1, 48;\n  bar.sync 1, %r1;\n", Kind::illegal_instruction, {"48 threads"}) ==
        "");
  // Warps of one warpgroup that ask for different register counts.
  CHECK(fault_in("  @%p1 setmaxnreg.dec.sync.aligned.u32 96;\n  @!%p1 setmaxnreg.dec.sync.aligned.u32 64;\n",
                 Kind::illegal_instruction, {"setmaxnreg", "warpgroup"}, 512) == "");
}

TEST_CASE("addresses") {
  CHECK(fault_in("  ld.global.u32 %v0, [%d1+65552];\n" + kStoreV0, Kind::illegal_address,
                 {"ld.global.u32", "lane 0", "16 bytes past", "65536-byte allocation"}) == "");
  CHECK(fault_in("  st.global.u32 [%out+-4], %tid32;\n", Kind::illegal_address,
                 {"st.global.u32", "writes 4 bytes", "before"}) == "");
  CHECK(fault_in("  ld.global.v4.u32 {%v0, %v1, %v2, %v3}, [%out+4088];\n" + kStoreV0,
                 Kind::misaligned_address, {"ld.global.v4.u32", "16 bytes"}) == "");
  CHECK(fault_in("  mov.u64 %d2, 64;\n  ld.u32 %v0, [%d2];\n" + kStoreV0, Kind::illegal_address, {"0x40"}) ==
        "");
  CHECK(fault_in("  ld.shared.u32 %v0, [smem+65536];\n" + kStoreV0, Kind::illegal_address,
                 {"ld.shared", "0x10400", "outside"}) == "");
  CHECK(fault_in("  mov.u32 %r1, 16;\n  st.shared.u32 [%r1], %r1;\n", Kind::illegal_address, {"0x10"}) == "");
  CHECK(fault_in("  st.shared.u32 [smem+2], %tid32;\n", Kind::misaligned_address, {"st.shared"}) == "");
  CHECK(fault_in("  atom.global.add.u32 %v0, [%d1+65536], 1;\n", Kind::illegal_address,
                 {"atom.global", "65536-byte allocation"}) == "");
  const std::string ready = init_barrier(0, 1) + cta_sync();
  CHECK(fault_in(ready + bulk_copy(1024, "%d1+8", 64, 0), Kind::misaligned_address,
                 {"cp.async.bulk", "16"}) == "");
  CHECK(fault_in(ready + bulk_copy(1024, "%d1", 40, 0), Kind::misaligned_address, {"cp.async.bulk", "16"}) ==
        "");
  CHECK(fault_in(ready + bulk_copy(65536 - 32, "%d1", 64, 0), Kind::illegal_address,
                 {"cp.async.bulk", "outside"}) == "");
  CHECK(fault_in(ready + bulk_copy(1024, "%d1+65520", 32, 0), Kind::illegal_address,
                 {"cp.async.bulk", "65536-byte allocation"}) == "");
  CHECK(fault_in("  trap;\n", Kind::trap, {"trap"}) == "");
  CHECK(fault_in("FOREVER:\n  add.s32 %r1, %r1, 1;\n  bra FOREVER;\n", Kind::budget,
                 {"10000", "warp 3", "PTX line"}, 128, 10000) == "");
}

TEST_CASE("boxes that the hardware refuses") {
  const auto box = [](const std::string& instruction, Kind kind, const std::vector<std::string>& says) {
    Kernel kernel(entry_of(".param .u64 out, .param .align 64 .b8 map[128]",
                           prologue() + init_barrier(0, 1) + cta_sync() +
                               "  mov.b64 %d1, map;\n  cvta.param.u64 %d1, %d1;\n" + expect_bytes(0, 2048) +
                               "  @%p0 " + instruction + "\n" + wait_barrier(0, 0) + "  ret;\n",
                           128));
    const uint64_t out = kernel.buffer<uint32_t>(1024), tensor = kernel.buffer<uint16_t>(4096);
    CUtensorMap map;
    const cuuint64_t extents[2] = {64, 64}, strides[1] = {128};
    const cuuint32_t sizes[2] = {64, 16}, ones[2] = {1, 1};
    REQUIRE(encode_tiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, reinterpret_cast<void*>(tensor), extents,
                         strides, sizes, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                         CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    return fault_of(kernel, {{1, 1, 1}, {128, 1, 1}, 16384}, kind, says, out, map);
  };
  const std::string load = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes ";
  CHECK(box(load + "[smem+1024], [%d1, {0, 3}], [smem];", Kind::poison, {}) == "the kernel ran to its end");
  CHECK(box(load + "[smem+1024], [%d1, {1, 0}], [smem];", Kind::illegal_instruction,
            {"cp.async.bulk.tensor", "coordinate"}) == "");
  CHECK(box(load + "[smem+1040], [%d1, {0, 0}], [smem];", Kind::misaligned_address,
            {"cp.async.bulk.tensor", "128"}) == "");
  CHECK(box(load + "[smem+15360], [%d1, {0, 0}], [smem];", Kind::illegal_address,
            {"cp.async.bulk.tensor", "outside"}) == "");
  CHECK(box("cp.async.bulk.tensor.3d.shared::cta.global.tile.mbarrier::complete_tx::bytes [smem+1024], [%d1, "
            "{0, 0, 0}], [smem];",
            Kind::illegal_instruction, {"3 coordinates", "rank 2"}) == "");
  CHECK(box("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d1, {0, 0}], [smem+1024];",
            Kind::poison, {"cp.async.bulk.tensor", "0x800", "written"}) == "");
  CHECK(box(load + "[smem+1024], [%out, {0, 0}], [smem];", Kind::illegal_instruction, {"tensor map"}) == "");
}
