// SPDX-License-Identifier: Apache-2.0
// What the simulated GPU does not know is refused when a kernel that has it is taken, with the line and its text: one
// bad line for each family, all of which are near something that is accepted. What is no PTX is refused with its module.
#include <algorithm>

#include "async.h"
#include "support/catch.h"
#include "tools/sim/core/builder.h"
#include "tools/sim/ptx/module.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

struct BadLine {
  const char* line;
  const char* says;
};
const BadLine kBadLines[] = {
    {"frobnicate.b32 %r1, %r2;", "frobnicate"},
    {"add.sat.u32 %r1, %r2, %r3;", ".sat"},
    {"add.rz.f16x2 %r1, %r2, %r3;", "rz"},
    {"add.rq.f32 %r1, %r2, %r3;", "rq"},
    {"mul.s32 %r1, %r2, %r3;", ".lo, .hi or .wide"},
    {"mul.wide.s64 %d1, %d2, %d3;", "type"},
    {"mad24.s32 %r1, %r2, %r3, %r4;", ".lo or .hi"},
    {"fma.f32 %r1, %r2, %r3, %r4;", "rounds"},
    {"div.full.f64 %d1, %d2, %d3;", "approximate"},
    {"rcp.approx.ftz.f64 %d1, %d2;", "approximate"},
    {"sqrt.full.f32 %r1, %r2;", "approximate"},
    {"rsqrt.approx.ftz.f64 %d1, %d2;", "rsqrt.approx.ftz.f32, rsqrt.approx.f32"},
    {"lg2.approx.f16 %h1, %h2;", "lg2.approx.f32"},
    {"sin.f32 %r1, %r2;", "sin.approx.f32"},
    {"tanh.approx.ftz.f32 %r1, %r2;", "tanh.approx.f32"},
    {"ex2.approx.ftz.f16x2 %r1, %r2;", "ex2.approx.f16x2"},
    {"max.xorsign.f32 %r1, %r2, %r3;", "xorsign"},
    {"cvt.rn.e4m3x2.f32 %h1, %r1, %r2;", "conversion"},
    {"cvt.f16.f32 %h1, %r1;", "says how"},
    {"cvt.s32.f32 %r1, %r2;", ".rni"},
    {"cvt.rn.sat.u8.s32 %h1, %r1;", "conversion"},
    {"setp.lt.ftz.bf16 %p1, %h1, %h2;", ".ftz"},
    {"setp.ltu.s32 %p1, %r1, %r2;", "unordered"},
    {"setp.below.u32 %p1, %r1, %r2;", "comparison"},
    {"set.lt.b32.s32 %r1, %r2, %r3;", "set gives"},
    {"prmt.b32.f5e %r1, %r2, %r3, %r4;", "f5e"},
    {"lop3.b32 %r1, %r2, %r3, %r4, %r5;", "immediate"},
    {"shf.l.b32 %r1, %r2, %r3, %r4;", ".wrap or .clamp"},
    {"bfi.b16 %h1, %h2, %h3, %r4, %r5;", "type"},
    {"dp4a.s16.s32 %r1, %r2, %r3, %r4;", "dp4a"},
    {"mov.b32 %r1, %clusterid_of_mine;", "clusterid_of_mine"},
    {"mov.b64 %r1, %d1;", "width"},
    {"ld.global.v3.u32 {%r1, %r2, %r3}, [%d1];", "v3"},
    {"ld.global.fancy.u32 %r1, [%d1];", "fancy"},
    {"st.async.shared::cluster.mbarrier::complete_tx::bytes.b16 [%r1], %h2, [%r3];", "4 or 8 bytes"},
    {"st.async.global.mbarrier::complete_tx::bytes.u32 [%d1], %r2, [%r3];", "shared memory"},
    {"red.async.relaxed.cluster.mbarrier::complete_tx::bytes.min.u64 [%d1], %d2, [%d3];", "red.async is .add"},
    {"red.async.relaxed.gpu.global.add.u32 [%d1], %r2;", "red.async.relaxed.cluster"},
    {"mapa.u32 %r1, %r2, %r3;", "64 bits"},
    {"getctarank.shared.u32 %r1, %r2;", "shared"},
    {"mov.u32 %r1, %is_explicit_cluster;", "predicate"},
    {"st.param.u32 [out], %r1;", "parameters"},
    {"atom.global.add.f16x2 %r1, [%d1], %r2;", "atomic"},
    {"atom.global.sub.u32 %r1, [%d1], %r2;", "atomic"},
    {"isspacep %p1, %d1;", "names a space"},
    {"shfl.idx.b32 %r1, %r2, %r3, %r4;", "shfl.sync"},
    {"vote.sync.most.pred %p1, %p2, -1;", "vote"},
    {"match.some.sync.b32 %r1, %r2, -1;", "match"},
    {"redux.sync.min.f32 %r1, %r2, -1;", "redux"},
    {"bar.red.sum.u32 %r1, 0, %p1;", "bar.red"},
    {"barrier.cluster.arrive.acquire;", "release"},
    {"barrier.cluster.sync;", ".arrive or .wait"},
    {"bar.cluster.arrive;", "operands"},
    {"elect.sync %p1, -1;", "elect"},
    {"setmaxnreg.inc.sync.aligned.u32 28;", "multiple of 8"},
    {"setmaxnreg.inc.sync.aligned.u32 264;", "256"},
    {"brx.idx %r1, LIST;", ""},
    {"bra NOWHERE;", "NOWHERE"},
    {"call.uni f;", ""},
    {"mbarrier.init.noComplete.shared::cta.b64 [%r1], 1;", "noComplete"},
    {"mbarrier.test_wait.parity.shared::cluster.b64 %p1, [%r1], 0;", "own CTA"},
    {"mbarrier.toggle.shared::cta.b64 [%r1];", "mbarrier"},
    {"mbarrier.init.shared::cta.b32 [%r1], 1;", ".b64"},
    {"cp.async.ca.shared.global [%r1], [%d1], 12;", "4, 8 or 16 bytes"},
    {"cp.async.cg.shared.global [%r1], [%d1], 8;", "cp.async.cg 16"},
    {"cp.async.ca.shared.global [%r1], [%d1], 4, 8;", "at most"},
    {"cp.async.ca.global.global [%r1], [%d1], 4;", ".global to .shared"},
    {"cp.async.wait_group %r1;", "constant"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1, %r2};",
     "m16n8k16 f32.f16.f16.f32"},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r1, %r2, %r3, %r4}, {%r1, %r2}, {%r1}, {%r1, %r2, %r3, %r4};",
     "A is a vector of 4"},
    {"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1, %r2, %r3}, [%r4];", ".x1, .x2 or .x4"},
    {"stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r4], {%r1};", "2 registers"},
    {"wgmma.fence.sync.aligned;", "sm_90a"},
    {"atom.shared.add.v2.f32 {%r1, %r2}, [%r3], {%r1, %r2};", "global memory"},
    {"atom.global.min.v2.f32 {%r1, %r2}, [%d1], {%r1, %r2};", "vector atomic"},
    {"add.u32 %r1, %d1, %r2;", "64 bits"},
    {"add.u32 %r1, %h1, %r2;", "16 bits"},
    {"add.u32 %h1, %r1, %r2;", "16 bits"},
    {"add.u16 %r1, %h1, %h2;", "32 bits"},
    {"mov.b32 %r1, %d1;", "64 bits"},
    {"mov.u32 %r1, %h1;", "16 bits"},
    {"mov.b32 %r1, {%h1, %r2};", "32 bits"},
    {"shl.b32 %r1, %r2, %d1;", "64 bits"},
    {"setp.eq.u32 %p1, %d1, %r1;", "64 bits"},
    {"selp.b32 %r1, %d1, %r2, %p1;", "64 bits"},
    {"bar.sync %d1;", "64 bits"},
    {"st.global.b32 [%d1], %h1;", "16 bits"},
    {"cp.async.bulk.tensor.6d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%d1, {%r2}], "
     "[%r3];",
     ".1d to .5d"},
    {"cp.async.bulk.tensor.2d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%r1], [%d1, {%r2, "
     "%r3}], [%r4];",
     "im2col"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
     "[%r1], [%d1, {%r2, %r3}], [%r4];",
     "operands"},
    {"cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster [%r1], [%d1], 16, "
     "[%r4], %h1;",
     "multicast"},
    {"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.min.u64 [%r1], [%r2], 16, "
     "[%r4];",
     "cp.reduce.async.bulk"},
    {"mbarrier.arrive.shared::cluster.b64 %d1, [%r1];", "destination is _"},
    {"mbarrier.init.shared::cluster.b64 [%r1], 1;", "own CTA"},
    {"cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%r1], [%d1, {%r2}], "
     "[%r3];",
     "coordinates"},
    {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.mul.tile.bulk_group [%d1, {%r2, %r3}], [%r1];", "reduction"},
    {"fence.proxy.texture;", "proxy"},
    {"fence.acq_rel;", "scope"},
    {"tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 48;", "power of two"},
    {"tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r1], 32;", "cta_group::2"},
    {"tcgen05.alloc.cta_group::1.shared::cta.b32 [%r1], 32;", ".sync.aligned"},
    {"tcgen05.mma.cta_group::1.kind::tf32 [%r1], %d1, %d2, %r2, %p1;", "kind::f16"},
    {"tcgen05.mma.cta_group::1.kind::f16.ashift [%r1], [%r3], %d2, %r2, %p1;", "ashift"},
    {"tcgen05.mma.ws.cta_group::1.kind::f16 [%r1], %d1, %d2, %r2, %p1;", "form"},
    {"tcgen05.ld.sync.aligned.32x32b.x3.b32 {%r1, %r2, %r3}, [%r4];", "repetitions"},
    {"tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2, %r3}, [%r4];", "2 registers"},
    {"tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r4], 1;", "shapes"},
    {"tcgen05.ld.sync.aligned.32x32b.x1.pack::16b.b32 {%r1}, [%r4];", "pack::16b"},
    {"tcgen05.ld.sync.aligned.32x32b.x1.b32 {_}, [%r4];", "_"},
    {"tcgen05.cp.cta_group::1.128x256b [%r1], %d1;", "tcgen05"},
    {"tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cta.b64 [%r1];", "shared::cta"},
    {"tcgen05.wait::mma.sync.aligned;", "tcgen05"},
    {"tcgen05.fence::before_thread_sync.cluster;", "cluster"},
    {"createpolicy.range.L2::evict_last.b64 %d1, %r1, %r2;", ""},
};

}  // namespace

TEST_CASE("all that a kernel lacks is named at once, when it is taken, and the others of its module run") {
  Kernel kernel(module_of(R"(
.visible .entry lacking(.param .u64 out)
{
  .reg .b32 %r<4>;
  pmevent 3;
  add.u32 %r1, %r1, 1;
  vadd.s32.s32.s32 %r1, %r1, %r1;
  pmevent 3;
  add.later.u32 %r2, %r1, 1;
  ret;
}
.visible .entry whole(.param .u64 out)
{
  .reg .b64 %d;
  ld.param.u64 %d, [out];
  st.global.u32 [%d], 7;
  ret;
}
)"));
  const uint64_t out = kernel.buffer<uint32_t>(1);
  kernel.run("whole", {}, out);
  CHECK(kernel.read<uint32_t>(out, 1)[0] == 7);
  for (int i = 0; i < 2; ++i) {
    try {
      kernel.run("lacking", {}, out);
      FAIL_CHECK("was accepted");
    } catch (const fa4::sim::ptx::Error& error) {
      const std::string report = error.what();
      INFO(report);
      CHECK(report.starts_with("3 instructions of lacking: line 8, column 3: "));
      CHECK(error.line == 8);
      for (const char* part : {"'pmevent 3;'; line 10", "'vadd.s32.s32.s32 %r1, %r1, %r1;'; line 12", "unknown modifier '.later'"})
        CHECK(report.find(part) != std::string::npos);
      CHECK(report.find("line 11") == std::string::npos);  // the second pmevent
    }
  }
}

TEST_CASE("what is no PTX is refused with its module, wherever it stands") {
  // "" or why a module with `lines` in an entry, at its line 12, is refused.
  const auto refusal = [](const std::string& lines) -> std::string {
    try {
      build_program(module_of(".visible .entry good()\n{\n  ret;\n}\n.extern .func missing();\n.visible .entry bad()\n{\n"
                              "  .reg .b32 %r;\n" + lines + "\n  ret;\n}\n"));
    } catch (const fa4::sim::ptx::Error& error) {
      return error.what();
    }
    return "";
  };
  const auto says = [&](const std::string& lines, const std::string& part) {
    const std::string report = refusal(lines);
    INFO(lines << " -> " << report);
    CHECK((report.find("line 12") != std::string::npos && report.find(part) != std::string::npos));
  };
  CHECK(refusal("  pmevent 3;") == "");
  says("  frobnicate.u32 %r, %r;", "unknown instruction 'frobnicate.u32'");
  says("  add.u32 %r, %r;", "'add.u32' has 2 operands; more are needed");
  says("  call missing;", "the function 'missing' has no body here");
  // Whatever is simulated is an opcode of PTX.
  for (std::string_view opcode : known_opcodes()) {
    INFO(opcode);
    CHECK(refusal("  " + std::string(opcode) + ";").find("unknown instruction") == std::string::npos);
  }
}

TEST_CASE("unknown instructions, modifiers and types are refused, with line and text") {
  for (const BadLine& bad : kBadLines) {
    // The bad line is line 20.
    std::string text = module_of(
        ".extern .shared .align 1024 .b8 smem[];\n.visible .entry kernel(.param .u32 out)\n{\n"
        "  .reg .pred %p<4>;\n  .reg .b16 %h<4>;\n  .reg .b32 %r<8>;\n  .reg .b64 %d<4>;\n");
    while (std::count(text.begin(), text.end(), '\n') < 19) text += "  mov.u32 %r0, 1;\n";
    text += std::string("  ") + bad.line + "\n  ret;\n}\n";
    INFO(bad.line);
    try {
      build_program(text)->take(0);
      FAIL_CHECK("was accepted");
    } catch (const fa4::sim::ptx::Error& error) {
      const std::string report = error.what();
      CHECK(error.line == 20);
      CHECK(report.find("line 20") != std::string::npos);
      CHECK(report.find(bad.says) != std::string::npos);
      CHECK(report.find(std::string(bad.line).substr(0, 12)) != std::string::npos);
    }
  }
}
