// SPDX-License-Identifier: Apache-2.0
// Clusters: who is where, how CTAs reach each other's shared memory, and what goes wrong. That the values are
// those of a real GPU is for the conformance rows.
#include <bit>

#include "faults.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

// A body for clusters; %rank is the CTA's rank, %peer that of the next one; %base the address of smem.
std::string in_cluster(const std::string& body) {
  return prologue() + R"(
  .reg .b32 %rank, %size, %peer, %base, %remote;
  mov.u32 %rank, %cluster_ctarank;
  mov.u32 %size, %cluster_nctarank;
  add.u32 %peer, %rank, 1;
  rem.u32 %peer, %peer, %size;
  mov.u32 %base, smem;
  mapa.shared::cluster.u32 %remote, %base, %peer;
)" + body +
         "  ret;\n";
}
const std::string kSyncCluster = "  barrier.cluster.arrive;\n  barrier.cluster.wait;\n";

std::string fault_in_cluster(const std::string& body, Fault::Kind kind, const std::vector<std::string>& says,
                             uint32_t ctas = 2) {
  Kernel kernel(entry_of(".param .u64 out", in_cluster(body)), 1, 8, 1 << 20);
  const uint64_t out = kernel.buffer<uint32_t>(16384);
  return fault_of(kernel, {{ctas, 1, 1}, {64, 1, 1}, 8192, {ctas, 1, 1}}, kind, says, out);
}

std::vector<uint32_t> run_cluster(const std::string& body, const Shape& shape, size_t words,
                                  uint32_t threads = 1, uint64_t seed = 0,
                                  const std::string& directives = "") {
  std::string text = entry_of(".param .u64 out", in_cluster(body));
  if (!directives.empty()) text.insert(text.find("\n{\n"), "\n" + directives);
  Kernel kernel(text, threads, 8, 1 << 22);
  kernel.device().set_adversarial(seed);
  const uint64_t out = kernel.buffer<uint32_t>(words);
  kernel.run("kernel", shape, out);
  return kernel.read<uint32_t>(out, words);
}

}  // namespace

TEST_CASE("a CTA knows its place in its cluster") {
  // One word for each register, by linear CTA.
  const char* registers[] = {
      "%ctaid.x",          "%ctaid.y",          "%ctaid.z",          "%clusterid.x",
      "%clusterid.y",      "%clusterid.z",      "%nclusterid.x",     "%nclusterid.y",
      "%nclusterid.z",     "%cluster_ctaid.x",  "%cluster_ctaid.y",  "%cluster_ctaid.z",
      "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z", "%cluster_ctarank"};
  std::string body = R"(
  mov.u32 %r1, %ctaid.z;  mov.u32 %r2, %nctaid.y;  mov.u32 %r3, %ctaid.y;  mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %nctaid.x;  mov.u32 %r3, %ctaid.x;  mad.lo.u32 %r1, %r1, %r2, %r3;
  mad.wide.u32 %out, %r1, 64, %out;
)";
  for (int i = 0; i < 16; ++i)
    body += "  mov.u32 %r4, " + std::string(registers[i]) + ";\n  st.global.u32 [%out+" +
            std::to_string(4 * i) + "], %r4;\n";
  for (uint32_t threads : {1u, 3u}) {
    const auto got = run_cluster(body, {{4, 6, 2}, {1, 1, 1}, 0, {2, 3, 1}}, 48 * 16, threads);
    for (uint32_t z = 0; z < 2; ++z)
      for (uint32_t y = 0; y < 6; ++y)
        for (uint32_t x = 0; x < 4; ++x) {
          const uint32_t at = (z * 24 + y * 4 + x) * 16;
          const std::vector<uint32_t> want = {x, y,     z,     x / 2, y / 3, z, 2, 2,
                                              2, x % 2, y % 3, 0,     2,     3, 1, x % 2 + 2 * (y % 3)};
          CHECK(std::vector<uint32_t>(got.begin() + at, got.begin() + at + 16) == want);
        }
  }
}

TEST_CASE("whether a cluster was asked for, by the launch or the entry") {
  const std::string body =
      "  mov.pred %p3, %is_explicit_cluster;\n  selp.u32 %r1, 1, 2, %p3;\n  mov.u32 %r2, %cluster_nctarank;\n"
      "  st.global.v2.u32 [%out], {%r1, %r2};\n";
  CHECK(run_cluster(body, {{2, 1, 1}, {1, 1, 1}}, 2) == std::vector<uint32_t>{2, 1});
  CHECK(run_cluster(body, {{2, 1, 1}, {1, 1, 1}, 0, {1, 1, 1}}, 2) == std::vector<uint32_t>{1, 1});
  CHECK(run_cluster(body, {{2, 1, 1}, {1, 1, 1}, 0, {2, 1, 1}}, 2) == std::vector<uint32_t>{1, 2});
  CHECK(run_cluster(body, {{2, 1, 1}, {1, 1, 1}}, 2, 1, 0, ".reqnctapercluster 2, 1, 1") ==
        std::vector<uint32_t>{1, 2});
  CHECK_THROWS_AS(
      run_cluster(body, {{2, 1, 1}, {1, 1, 1}, 0, {1, 1, 1}}, 2, 1, 0, ".reqnctapercluster 2, 1, 1"), Fault);
  CHECK_THROWS_AS(run_cluster(body, {{3, 1, 1}, {1, 1, 1}, 0, {2, 1, 1}}, 2), Fault);
  CHECK_THROWS_AS(run_cluster(body, {{32, 1, 1}, {1, 1, 1}, 0, {32, 1, 1}}, 2), Fault);
  CHECK_THROWS_AS(run_cluster(body, {{4, 1, 1}, {1, 1, 1}, 0, {4, 1, 1}}, 2, 1, 0, ".maxclusterrank 2"),
                  Fault);
}

TEST_CASE("CTAs read, write and count in each other's shared memory, by either kind of address") {
  // Each thread leaves a number with the next CTA, by a generic address, and adds to a counter of rank 0.
  const std::string body = R"(
  setp.eq.u32 %p2, %tid32, 0;
  @%p2 st.shared.u32 [smem+4096], 0;
)" + kSyncCluster + R"(
  mad.lo.u32 %r1, %rank, 1000, %tid32;
  shl.b32 %r2, %tid32, 2;
  cvt.u64.u32 %d1, %base;
  cvta.shared.u64 %d1, %d1;
  mapa.u64 %d2, %d1, %peer;
  cvt.u64.u32 %d3, %r2;
  add.u64 %d2, %d2, %d3;
  st.u32 [%d2], %r1;
  mov.u32 %r7, 0;
  mapa.shared::cluster.u32 %r3, %base, %r7;
  atom.shared::cluster.add.u32 %r4, [%r3+4096], 1;
)" + kSyncCluster + R"(
  add.u32 %r5, %base, %r2;
  ld.shared.u32 %r6, [%r5];
  add.u32 %r5, %remote, %r2;
  ld.shared::cluster.u32 %r8, [%r5];
  ld.shared::cluster.u32 %r9, [%r3+4096];
  isspacep.shared %p3, %d2;
  isspacep.shared::cluster %p4, %d2;
  selp.u32 %r10, 1, 0, %p3;
  selp.u32 %r11, 2, 0, %p4;
  add.u32 %r10, %r10, %r11;
  getctarank.shared::cluster.u32 %r12, %remote;
  getctarank.u64 %r13, %d2;
)" + kSyncCluster + R"(
  mov.u32 %r14, %ctaid.x;
  mad.lo.u32 %r14, %r14, 64, %tid32;
  mad.wide.u32 %out, %r14, 32, %out;
  st.global.v4.u32 [%out], {%r6, %r8, %r9, %r10};
  st.global.v2.u32 [%out+16], {%r12, %r13};
)";
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const auto got =
        run_cluster(body, {{8, 1, 1}, {64, 1, 1}, 8192, {4, 1, 1}}, 8 * 64 * 8, 1 + uint32_t(seed % 2), seed);
    size_t wrong = 0;
    for (uint32_t cta = 0; cta < 8; ++cta)
      for (uint32_t t = 0; t < 64; ++t) {
        const uint32_t rank = cta % 4, next = (rank + 1) % 4, before = (rank + 3) % 4;
        const std::vector<uint32_t> want = {before * 1000 + t, rank * 1000 + t, 256, 2, next, next};
        const auto at = got.begin() + (cta * 64 + t) * 8;
        wrong += !std::equal(want.begin(), want.end(), at);
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("threads that have exited are not waited for at the cluster's barrier") {
  const std::string body = "  setp.eq.u32 %p2, %warp, 1;\n  @%p2 ret;\n" + kSyncCluster +
                           "  setp.eq.u32 %p2, %rank, 1;\n  @%p2 ret;\n" + kSyncCluster +
                           "  st.global.u32 [%out], 7;\n";
  CHECK(run_cluster(body, {{2, 1, 1}, {64, 1, 1}, 0, {2, 1, 1}}, 1)[0] == 7);
}

TEST_CASE("a CTA without a cluster is one of its own") {
  const std::string body =
      kSyncCluster +
      "  st.shared::cluster.u32 [%remote], 5;\n  ld.shared.u32 %r1, [smem];\n  st.global.u32 [%out], %r1;\n";
  CHECK(run_cluster(body, {{2, 1, 1}, {32, 1, 1}, 64}, 1)[0] == 5);
}

namespace {

// CTAs of four. Ranks 0 to 2 multiply A = rank + 1 by B = 1, of depth 16. Ranks 0 and 1 commit to both
// (`together`) or to themselves, rank 2 to itself, and nobody to rank 3. Who has waited spoils the operand of
// the other of ranks 0 and 1. Word 128 * rank + thread of `out` is then the row of D; of rank 3, whether its
// barrier's phase is complete.
std::string commits(bool together) {
  return R"(
  .reg .b16 %h<4>;
  setp.lt.u32 %p2, %rank, 2;
  setp.eq.u32 %p3, %rank, 3;
)" + std::string(together ? "  selp.u32 %r1, 2, 1, %p2;\n" : "  mov.u32 %r1, 1;\n") +
         R"(
  @%p0 mbarrier.init.shared::cta.b64 [smem], %r1;
  add.u32 %r2, %rank, 1;
  cvt.rn.f32.u32 %r2, %r2;
  cvt.rn.f16x2.f32 %v0, %r2, %r2;
  mov.b32 %v1, 0x3C003C00;
  shl.b32 %r3, %tid32, 5;
  add.u32 %r4, %base, %r3;
  st.shared.v4.b32 [%r4+1024], {%v0, %v0, %v0, %v0};
  st.shared.v4.b32 [%r4+1040], {%v0, %v0, %v0, %v0};
  setp.lt.u32 %p5, %tid32, 16;
  @%p5 st.shared.v4.b32 [%r4+8192], {%v1, %v1, %v1, %v1};
  @%p5 st.shared.v4.b32 [%r4+8208], {%v1, %v1, %v1, %v1};
  fence.proxy.async.shared::cta;
)" + allocate_tmem(16, 32) +
         kSyncCluster + "  @%p3 bra OUTSIDE;\n  mov.b64 %d5, " +
         std::to_string(matrix_descriptor(kSmem + 1024, 2048, 128, 0)) + ";\n  mov.b64 %d6, " +
         std::to_string(matrix_descriptor(kSmem + 8192, 256, 128, 0)) + ";\n  mov.u32 %r5, " +
         std::to_string(instruction_descriptor(false, false, false, 128, 16)) + R"(;
  @%p0 tcgen05.mma.cta_group::1.kind::f16 [%tm], %d5, %d6, %r5, 0;
  mov.u32 %r6, 1;
  shl.b32 %r6, %r6, %rank;
)" + (together ? "  selp.u32 %r6, 3, %r6, %p2;\n" : "") +
         R"(
  cvt.u16.u32 %h0, %r6;
  @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%base], %h0;
)" + wait_barrier(0, 0) +
         R"(
  xor.b32 %r7, %rank, 1;
  mapa.shared::cluster.u32 %r8, %r4, %r7;
  mov.b32 %v2, 0x7C007C00;
  @%p2 st.shared::cluster.v4.b32 [%r8+1024], {%v2, %v2, %v2, %v2};
  @%p2 st.shared::cluster.v4.b32 [%r8+1040], {%v2, %v2, %v2, %v2};
  tcgen05.fence::after_thread_sync;
  shl.b32 %r9, %warp, 21;
  add.u32 %r9, %r9, %tm;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v3}, [%r9];
  tcgen05.wait::ld.sync.aligned;
  bra DONE;
OUTSIDE:
  nanosleep.u32 200000;
  mbarrier.test_wait.parity.shared::cta.b64 %p6, [smem], 0;
  selp.u32 %v3, 1, 0, %p6;
DONE:
  mad.lo.u32 %r10, %rank, 128, %tid32;
  mad.wide.u32 %out, %r10, 4, %out;
  st.global.b32 [%out], %v3;
)" + free_tmem(32) +
         kSyncCluster;
}
constexpr Shape kFourCtas{{4, 1, 1}, {128, 1, 1}, 16384, {4, 1, 1}};

}  // namespace

TEST_CASE("a commit arrives in each CTA of its mask when the MMAs are complete, and in no other") {
  std::vector<uint32_t> expected(4 * 128, 0);
  for (uint32_t i = 0; i < 3 * 128; ++i) expected[i] = std::bit_cast<uint32_t>(16.0f * float(i / 128 + 1));
  uint32_t wrong_alone = 0;
  for (uint64_t seed = 0; seed <= 16; ++seed) {
    INFO("seed " << seed);
    CHECK(run_cluster(commits(true), kFourCtas, 512, 1, seed) == expected);
    wrong_alone += run_cluster(commits(false), kFourCtas, 512, 1, seed) != expected;
  }
  CHECK(wrong_alone > 0);  // without the other's commit its operand is spoilt too early under some seeds
}

TEST_CASE("mistakes in a cluster are faults that say what is wrong") {
  using Kind = Fault::Kind;
  // exited CTAs
  CHECK(fault_in_cluster("  st.shared.u32 [smem], 1;\n" + kSyncCluster +
                             "  setp.eq.u32 %p2, %rank, 1;\n  @%p2 ret;\n  nanosleep.u32 100000;\n  "
                             "ld.shared::cluster.u32 %r1, [%remote];\n",
                         Kind::no_cta, {"CTA 1 (rank 1", "has exited"}) == "");
  CHECK(fault_in_cluster(kSyncCluster +
                             "  setp.eq.u32 %p2, %rank, 1;\n  @%p2 ret;\n  nanosleep.u32 100000;\n"
                             "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%remote];\n",
                         Kind::no_cta, {"has exited"}) == "");
  // addresses
  CHECK(fault_in_cluster("  add.u32 %r1, %base, 0x5000000;\n  ld.shared::cluster.u32 %r2, [%r1];\n",
                         Kind::no_cta, {"names no CTA of the cluster, which has 2 CTAs"}) == "");
  CHECK(fault_in_cluster("  st.shared.u32 [smem], 1;\n" + kSyncCluster + "  ld.shared.u32 %r2, [%remote];\n",
                         Kind::illegal_instruction, {".shared::cluster does"}) == "");
  CHECK(fault_in_cluster("  add.u32 %r1, %remote, 0x10000;\n  st.shared::cluster.u32 [%r1], 1;\n",
                         Kind::illegal_address, {"is outside the CTA's shared memory"}) == "");
  CHECK(fault_in_cluster(kSyncCluster + "  ld.shared::cluster.u32 %r2, [%remote];\n  st.global.u32 [%out], %r2;\n" + kSyncCluster,
                         Kind::poison, {" of the cluster)", "nobody has written"}) == "");
  CHECK(fault_in_cluster("  mapa.shared::cluster.u32 %r1, %base, %size;\n", Kind::illegal_instruction,
                         {"rank 2"}) == "");
  // the barrier
  CHECK(fault_in_cluster("  barrier.cluster.arrive;\n  barrier.cluster.arrive;\n", Kind::illegal_instruction,
                         {"arrive again"}) == "");
  CHECK(fault_in_cluster("  barrier.cluster.wait;\n", Kind::illegal_instruction,
                         {"without having arrived"}) == "");
  CHECK(fault_in_cluster("  setp.eq.u32 %p2, %rank, 1;\n  @%p2 bar.sync 1, 128;\n" + kSyncCluster,
                         Kind::deadlock,
                         {"waits at the barrier of the cluster: 64 of 128 threads came", "CTA 1"}) == "");
  CHECK(fault_in_cluster("  @%p0 barrier.cluster.arrive.aligned;\n", Kind::illegal_instruction,
                         {".aligned"}) == "");
  // barriers and copies
  const std::string init = init_barrier(0, 1) + "  fence.mbarrier_init.release.cluster;\n" + kSyncCluster;
  CHECK(
      fault_in_cluster(kSyncCluster + "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%remote];\n",
                       Kind::poison, {"no mbarrier is initialised", " of the cluster)"}) == "");
  CHECK(fault_in_cluster(init + "  @%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
                                "[%remote+64], %r0, [%base];\n",
                         Kind::illegal_address, {"they must be in one"}) == "");
  CHECK(fault_in_cluster(
            init +
                "  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                "[%base+1024], [%out], 16, [%base], 5;\n",
            Kind::illegal_instruction, {"mask 0x5 in a cluster of 2"}) == "");
  const std::string commit_to =
      "  @%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 ";
  CHECK(fault_in_cluster(init + commit_to + "[%base], 5;\n", Kind::illegal_instruction,
                         {"mask 0x5 in a cluster of 2"}) == "");
  CHECK(fault_in_cluster(init + commit_to + "[%base+8], 3;\n", Kind::poison,
                         {"no mbarrier is initialised at"}) == "");
  CHECK(fault_in_cluster(init + "  @%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 "
                                "[%remote+64], %r0, [%remote];\n",
                         Kind::poison, {"asynchronous store"}) == "");
  CHECK(fault_in_cluster(
            init +
                "  setp.eq.u32 %p2, %rank, 0;\n  setp.eq.u32 %p3, %tid32, 0;\n  and.pred %p3, %p2, %p3;\n"
                "  st.shared.u32 [smem+64], 0;\n" +
                kSyncCluster +
                "  @%p3 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%remote+64], %r0, "
                "[%remote];\n" +
                kSyncCluster + "  @%p2 nanosleep.u32 100000;\n  ld.shared.u32 %r1, [smem+64];\n",
            Kind::poison, {"in flight"}) == "");
}
