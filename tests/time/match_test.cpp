// SPDX-License-Identifier: Apache-2.0
// PTX and machine code of the same program, matched by their synchronising instructions alone.
#include "tools/time/match.h"
#include "support/catch.h"
#include "text.h"
#include "tools/time/way.h"

using namespace fa4::time;
using test::contains;
using test::Disassembly;

namespace {

fa4::sim::ptx::Module parse(const std::string& body) {
  return fa4::sim::ptx::parse(
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %p<4>;\n.reg .b32 "
      "%r<9>;\n.reg .f32 %f<9>;\n.reg .b64 %d<9>;\n" +
      body + "\n}\n");
}

std::vector<Sync> kinds(const SyncGraph& graph) {
  std::vector<Sync> all;
  for (const SyncNode& node : graph.nodes) all.push_back(node.sync);
  return all;
}

// Two loops that synchronise alike, one after the other: masked blocks, then the others.
constexpr const char* kTwoLoops = R"(
LOOP1:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;
  @!%p1 bra LOOP1;
  mbarrier.arrive.shared::cta.b64 _, [%r3];
  @%p2 bra LOOP1;
LOOP2:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;
  @!%p1 bra LOOP2;
  mbarrier.arrive.shared::cta.b64 _, [%r3];
  @%p3 bra LOOP2;
  bar.sync 0;
  ret;)";

}  // namespace

TEST_CASE("synchronising instructions of both sides have the same names") {
  const auto module = parse(R"(
  mbarrier.init.shared::cta.b64 [%r1], %r2;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], %r2;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r2, %r3}], [%r4];
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r5}, [%r1];
  tcgen05.st.sync.aligned.32x32b.x2.b32 [%r1], {%r5, %r6};
  tcgen05.mma.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1;
  tcgen05.mma.cta_group::1.kind::f16 [%r1], [%r2], %d2, %r2, %p1;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];
  cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r2, %r3}], [%r4];
  ret;)");
  Disassembly d("k");
  d.add("SYNCS.EXCH.64 URZ, [UR10], UR4")
      .add("SYNCS.ARRIVE.TRANS64 RZ, [R13+URZ], R20")
      .add("UTMALDG.2D [UR8], [UR6]")
      .add("LDTM R5, tmem[UR1]");
  d.add("STTM.x2 tmem[UR1], R6")
      .add("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], UPT")
      .add("FADD R1, R2, R3");
  d.add("UTCHMMA tmem[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], UPT")
      .add("UTCBAR [UR8], URZ")
      .add("UTMASTG.2D [UR8], [UR6]")
      .add("EXIT");
  const SyncGraph ptx = sync_graph(module.functions[0]), sass = sync_graph(parse_disassembly(d.text())[0]);
  CHECK(kinds(ptx) == kinds(sass));
  CHECK(ptx.nodes.size() == 10);  // without the init
  CHECK(sass.nodes[5].size == 2);
  const Matching m = match(ptx, sass);
  CHECK(m.ambiguous == 0);
  for (uint32_t n = 0; n < sass.nodes.size(); ++n) CHECK(m.originals[n] == std::vector<uint32_t>{n});
}

TEST_CASE("loops that look alike are told apart by what may follow them, in any order of the code") {
  const auto module = parse(kTwoLoops);
  const SyncGraph ptx = sync_graph(module.functions[0]);
  // ptxas put the second loop first.
  Disassembly d("k");
  d.add("BRA `(.L_first)")
      .label(".L_second")
      .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1+URZ], R2")
      .add("@!P0 BRA `(.L_second)");
  d.add("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ], RZ")
      .add("@P3 BRA `(.L_second)")
      .add("BAR.SYNC.DEFER_BLOCKING 0x0")
      .add("EXIT");
  d.label(".L_first")
      .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1+URZ], R2")
      .add("@!P0 BRA `(.L_first)")
      .add("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ], RZ");
  d.add("@P2 BRA `(.L_first)").add("BRA `(.L_second)");
  const SyncGraph sass = sync_graph(parse_disassembly(d.text())[0]);
  const Matching m = match(ptx, sass);
  CHECK(m.ambiguous == 0);
  // Nodes of the PTX: wait 2, arrive 3, wait 4, arrive 5, bar 6. Of the machine code: the second loop is 2
  // and 3.
  CHECK(m.originals[2] == std::vector<uint32_t>{4});
  CHECK(m.originals[3] == std::vector<uint32_t>{5});
  CHECK(m.originals[5] == std::vector<uint32_t>{2});
  CHECK(m.originals[6] == std::vector<uint32_t>{3});
  const std::vector<uint32_t> executed{2, 3, 2, 3, 4, 5, 6};
  CHECK(follow(ptx, sass, m, executed) == std::vector<uint32_t>{5, 6, 5, 6, 2, 3, 4});
}

TEST_CASE("a peeled loop has two copies of an instruction, and a retry out of the way is none") {
  const auto module = parse(R"(
LOOP:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;
  @!%p1 bra LOOP;
  mbarrier.arrive.shared::cta.b64 _, [%r3];
  @%p2 bra LOOP;
  bar.sync 0;
  ret;)");
  const SyncGraph ptx = sync_graph(module.functions[0]);
  Disassembly d("k");
  d.add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1+URZ], R2")
      .add("@!P0 BRA `(.L_retry)")
      .label(".L_back")
      .add("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ], RZ");
  d.add("@!P2 BRA `(.L_end)")
      .label(".L_loop")
      .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1+URZ], R2")
      .add("@!P0 BRA `(.L_loop)");
  d.add("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ], RZ")
      .add("@P2 BRA `(.L_loop)")
      .label(".L_end")
      .add("BAR.SYNC.DEFER_BLOCKING 0x0")
      .add("EXIT");
  d.label(".L_retry")
      .add("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1+URZ], R2")
      .add("@!P0 BRA `(.L_retry)")
      .add("BRA `(.L_back)");
  const SyncGraph sass = sync_graph(parse_disassembly(d.text())[0]);
  CHECK(sass.nodes.size() == 2 + 5);
  CHECK(sass.retries[10]);
  const Matching m = match(ptx, sass);
  CHECK(m.ambiguous == 0);
  CHECK(follow(ptx, sass, m, std::vector<uint32_t>{2, 3, 2, 3, 2, 3, 4}) ==
        std::vector<uint32_t>{2, 3, 4, 5, 4, 5, 6});
  CHECK(follow(ptx, sass, m, std::vector<uint32_t>{2, 3, 4}) == std::vector<uint32_t>{2, 3, 6});
}

TEST_CASE("a branch that became a guard may be passed by") {
  const auto module = parse(R"(
  bar.sync 0;
  @%p1 bra SKIP;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];
SKIP:
  bar.sync 0;
  ret;)");
  Disassembly d("k");
  d.add("BAR.SYNC.DEFER_BLOCKING 0x0")
      .add("@!UP0 UTCBAR [UR8], URZ")
      .add("BAR.SYNC.DEFER_BLOCKING 0x0")
      .add("EXIT");
  const SyncGraph ptx = sync_graph(module.functions[0]), sass = sync_graph(parse_disassembly(d.text())[0]);
  const Matching m = match(ptx, sass);
  CHECK(follow(ptx, sass, m, std::vector<uint32_t>{2, 3, 4}) == std::vector<uint32_t>{2, 3, 4});
  CHECK(follow(ptx, sass, m, std::vector<uint32_t>{2, 4}) == std::vector<uint32_t>{2, 4});
}

TEST_CASE("what does not match is an error that shows both lists") {
  const auto module = parse("bar.sync 0;\nmbarrier.arrive.shared::cta.b64 _, [%r3];\nret;");
  const SyncGraph ptx = sync_graph(module.functions[0]);
  Disassembly other("k");
  other.add("BAR.SYNC.DEFER_BLOCKING 0x0").add("UTCBAR [UR8], URZ").add("EXIT");
  CHECK_THROWS_WITH(match(ptx, sync_graph(parse_disassembly(other.text())[0])),
                    contains("can be the commit at instruction 1") && contains("bar.sync (instruction 0)"));
  Disassembly same("k");
  same.add("BAR.SYNC.DEFER_BLOCKING 0x0").add("SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R3+URZ], RZ").add("EXIT");
  const SyncGraph sass = sync_graph(parse_disassembly(same.text())[0]);
  const Matching m = match(ptx, sass);
  CHECK_THROWS_WITH(
      follow(ptx, sass, m, std::vector<uint32_t>{2, 2}),
      contains("the warp executed") && contains("could go on with") && contains("arrive (instruction 1)"));
}

TEST_CASE(
    "of several ways between two synchronising instructions a warp took the one like what it computed") {
  // A loop of additions that a warp may pass, and behind it the exponential that it may pass.
  const auto module = parse(R"(
  bar.sync 0;
  @%p1 bra JOIN;
LOOP:
  add.f32 %f1, %f1, %f2;
  @%p2 bra LOOP;
JOIN:
  @%p3 bra SKIP;
  ex2.approx.f32 %f1, %f1;
SKIP:
  bar.sync 0;
  ret;)");
  Disassembly d("k");
  d.add("BAR.SYNC.DEFER_BLOCKING 0x0").add("@P0 BRA `(.L_join)").label(".L_loop").add("FADD R1, R1, R2");
  d.add("@P1 BRA `(.L_loop)").label(".L_join").add("@P2 BRA `(.L_skip)");
  d.add("MUFU.EX2 R1, R1").label(".L_skip").add("BAR.SYNC.DEFER_BLOCKING 0x0").add("EXIT");
  enum : uint32_t { first, to_join, add, to_loop, to_skip, ex2, second };  // in both programs
  const auto sync = [](uint32_t instruction, int32_t phase) {
    fa4sim_sync r{};
    r.kind = FA4SIM_SYNC_CTA_BARRIER;
    r.instruction = instruction;
    r.lanes = r.together = ~0u;
    r.phase = phase;
    return r;
  };
  const auto branch = [](uint32_t instruction, uint32_t target, uint32_t together = ~0u,
                         uint32_t taken = ~0u) {
    fa4sim_sync r{};
    r.kind = FA4SIM_SYNC_BRANCH;
    r.instruction = instruction;
    r.together = together;
    r.taken = taken;
    r.address = target;
    return r;
  };
  const auto way = [&](const std::vector<fa4sim_sync>& branches) {
    std::vector<fa4sim_sync> records{sync(first, 0)};
    records.insert(records.end(), branches.begin(), branches.end());
    records.push_back(sync(second, 1));
    const Replay replay =
        make_replay(parse_disassembly(d.text())[0], module.functions[0], records, gpu_of("b200"));
    CHECK(replay.stretches == 3);
    CHECK(replay.stretches_with_choice == 1);
    REQUIRE(replay.program.segments.size() == 3);
    CHECK(replay.program.segments[0].code == std::vector<uint32_t>{first});
    return replay.program.segments[1];
  };
  CHECK(way({branch(to_join, to_skip), branch(to_skip, second)}).code ==
        std::vector<uint32_t>{to_join, to_skip, second});
  CHECK(way({branch(to_join, to_skip), branch(to_skip, second)}).jumps ==
        std::vector<bool>{true, true, false});
  CHECK(way({branch(to_join, to_skip)}).code == std::vector<uint32_t>{to_join, to_skip, ex2, second});
  CHECK(way({branch(to_loop, add), branch(to_loop, add), branch(to_skip, second)}).code ==
        std::vector<uint32_t>{to_join, add, to_loop, add, to_loop, add, to_loop, to_skip, second});
  CHECK(way({}).code == std::vector<uint32_t>{to_join, add, to_loop, to_skip, ex2, second});
  // Half of the lanes pass the loop: the warp does not.
  CHECK(way({branch(to_join, to_skip, ~0u, 0xffff), branch(to_skip, second)}).code ==
        std::vector<uint32_t>{to_join, add, to_loop, to_skip, second});

  std::vector<fa4sim_sync> records{sync(first, 0), sync(second, 1)};
  records[1].kind = FA4SIM_SYNC_CLUSTER_WAIT;
  CHECK_THROWS_WITH(make_replay(parse_disassembly(d.text())[0], module.functions[0], records, gpu_of("b200")),
                    contains("another CTA of a cluster"));
}
