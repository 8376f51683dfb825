// SPDX-License-Identifier: Apache-2.0
// What nobody has written may be loaded, worked on and dropped, as compilers do that load early; where it can be seen is
// a fault that names the word it came from.
#include "faults.h"

using namespace fa4::sim;
using namespace fa4::sim::test;

namespace {

constexpr uint32_t kThreads = 64;

std::string line(const std::string& instruction) { return "  " + instruction + ";\n"; }
// %r1: the word at 1024 of smem (0x800), which nobody has written. %r2: 7 and %p2: true, %p3: false, which no tool can know.
const std::string kLoad = line("ld.shared.u32 %r1, [smem+1024]");
const std::string kBegin = line("mov.u32 %r0, %ntid.x") + line("sub.u32 %r2, %r0, 57") + line("setp.eq.u32 %p2, %r2, 7") +
                           line("setp.ne.u32 %p3, %r2, 7") + line("mad.wide.u32 %out, %tid32, 4, %out") + line("mov.u32 %r63, smem");
const std::string kStore = line("st.global.u32 [%out], %r9");

// The word that each thread stores after the body, under both models and with a seed.
std::vector<uint32_t> results(const std::string& body) {
  Kernel kernel(entry_of(".param .u64 out, .param .u64 from", prologue() + line("ld.param.u64 %d1, [from]") + kBegin + body + kStore + line("ret"), kThreads), 1, 4, 1 << 20);
  const uint64_t out = kernel.buffer<uint32_t>(1024), from = kernel.buffer<uint32_t>(1024);
  std::vector<uint32_t> first;
  for (const uint64_t seed : {0, 0, 5}) {
    kernel.device().set_model(first.empty() ? Model::isa : Model::silicon);
    kernel.device().set_adversarial(seed);
    std::memset(kernel.device().memory().at(out, 4096), 0xEE, 4096);
    kernel.run("kernel", {{1, 1, 1}, {kThreads, 1, 1}, 65536}, out, from);
    const std::vector<uint32_t> now = kernel.read<uint32_t>(out, kThreads);
    if (!first.empty()) REQUIRE((now == first));
    first = now;
  }
  return first;
}
void gives(uint32_t value, const std::string& body) {
  INFO(body);
  CHECK((results(body) == std::vector<uint32_t>(kThreads, value)));
}

// The body faults for what comes of the word at 1024, under both models.
void faults(const std::string& what, const std::string& body, const std::string& more = "") {
  for (const Model model : {Model::isa, Model::silicon}) {
    Kernel kernel(entry_of(".param .u64 out, .param .u64 from", prologue() + line("ld.param.u64 %d1, [from]") + kBegin + body + kStore + line("ret"), kThreads), 1, 4, 1 << 20);
    kernel.device().set_model(model);
    const uint64_t out = kernel.buffer<uint32_t>(1024), from = kernel.buffer<uint32_t>(1024);
    INFO(body);
    CHECK(fault_of(kernel, {{1, 1, 1}, {kThreads, 1, 1}, 65536}, Fault::Kind::poison,
                   {what, "it comes from shared memory (0x800), which nobody has written; lane ", " loads it at PTX line ", more}, out, from) == "");
  }
}
const std::string kStored = "undefined data is stored to global memory", kOperand = "an operand is undefined",
                  kDecides = "the predicate that decides about this instruction is undefined", kTakes = "a predicate that it takes is undefined",
                  kAddress = "the address is undefined";
const std::string kUse = line("mov.b32 %r9, %r1");

}  // namespace

TEST_CASE("undefined: a selection drops it") {
  gives(7, kLoad + line("selp.b32 %r9, %r2, %r1, %p2"));
  gives(7, kLoad + line("selp.b32 %r9, %r1, %r2, %p3"));
  gives(7, kLoad + line("mul.lo.u32 %r3, %r1, 5") + line("max.s32 %r3, %r3, %r2") + line("selp.b32 %r9, %r2, %r3, %p2"));
  gives(7, line("ld.shared.f64 %d2, [smem+1024]") + line("mov.b64 %d3, 0x401c000000000000") + line("max.f64 %d4, %d2, %d3") +
               line("selp.f64 %d5, %d3, %d4, %p2") + line("cvt.rzi.u32.f64 %r9, %d5"));
  gives(7, kLoad + line("neg.s32 %r3, %r2") + line("slct.b32.s32 %r9, %r1, %r2, %r3"));
  gives(7, kLoad + line("cvt.rn.f32.s32 %r3, %r1") + line("sqrt.rn.f32 %r3, %r3") + line("ex2.approx.f32 %r3, %r3") + line("selp.b32 %r9, %r2, %r3, %p2"));
}

TEST_CASE("undefined: predicates of it that decide nothing") {
  const std::string compare = kLoad + line("setp.ne.s32 %p4, %r1, 3");
  const std::string choose = line("selp.b32 %r9, 1, 2, %p5");
  gives(1, compare + line("or.pred %p5, %p2, %p4") + choose);
  gives(2, compare + line("and.pred %p5, %p4, %p3") + choose);
  gives(2, compare + line("not.pred %p5, %p4") + line("and.pred %p5, %p5, %p3") + choose);
  gives(2, kLoad + line("setp.lt.and.s32 %p5, %r1, 3, %p3") + choose);
  gives(1, kLoad + line("setp.lt.or.f32 %p5|%p6, %r1, %r1, %p2") + choose);
  gives(7, compare + line("selp.b32 %r3, -1, 0, %p4") + line("selp.b32 %r3, %r2, %r3, %p2") + line("and.b32 %r9, %r3, 7"));
  gives(7, compare + line("or.pred %p5, %p2, %p4") + line("mov.b32 %r9, 0") + line("@%p5 mov.b32 %r9, %r2"));
}

TEST_CASE("undefined: bits beside it are defined") {
  const std::string zero = line("and.b32 %r3, %r1, 0");
  gives(7, kLoad + line("and.b32 %r3, %r1, 0xffffff00") + line("or.b32 %r3, %r3, %r2") + line("and.b32 %r9, %r3, 255"));
  gives(~0u, kLoad + line("or.b32 %r9, %r1, -1"));
  gives(7, kLoad + line("lop3.b32 %r3, %r1, %r2, 0xff, 0x40") + line("lop3.b32 %r9, %r3, %r2, %r3, 0x0c"));
  gives(7, kLoad + line("shl.b32 %r3, %r1, 16") + line("or.b32 %r3, %r3, %r2") + line("cvt.u16.u32 %r9, %r3"));
  gives(7, kLoad + line("shr.u32 %r3, %r1, 8") + line("prmt.b32 %r9, %r2, %r3, 0x7210"));
  gives(0x70, kLoad + line("bfi.b32 %r3, %r2, %r1, 4, 8") + line("bfe.u32 %r9, %r3, 4, 8") + line("shl.b32 %r9, %r9, 4"));
  gives(7, kLoad + line("mov.b64 %d2, {%r2, %r1}") + line("shl.b64 %d2, %d2, 3") + line("mov.b64 {%r3, %r4}, %d2") + line("shr.u32 %r9, %r3, 3"));
  gives(7, "  .reg .b16 %h<4>;\n" + kLoad + line("mov.b32 {%h0, %h1}, %r1") + line("cvt.u16.u32 %h2, %r2") + line("mov.b32 %r3, {%h2, %h0}") +
               line("mov.b32 {%h3, _}, %r3") + line("cvt.u32.u16 %r9, %h3"));
  gives(0x0e, kLoad + line("prmt.b32 %r3, %r2, %r1, 0x5410") + line("add.u16x2 %r3, %r3, %r3") + line("and.b32 %r9, %r3, 0xffff"));
  gives(14, kLoad + line("mov.b64 %d2, {%r2, %r1}") + line("add.rn.f32x2 %d3, %d2, %d2") + line("mov.b64 {%r9, %r4}, %d3"));
  gives(0, kLoad + line("and.b32 %r9, %r1, 0"));
  gives(0, kLoad + line("xor.b32 %r9, %r1, %r1"));
  gives(7, kLoad + line("xor.b32 %r3, %r1, %r2") + zero + line("add.u32 %r9, %r3, %r2"));
}

TEST_CASE("undefined: parts of what is loaded") {
  const std::string write = line("st.shared.u32 [smem+1028], %r2") + line("st.shared.u8 [smem+1033], %r2") + line("bar.sync 0");
  gives(7, write + line("ld.shared.v2.u32 {%r3, %r9}, [smem+1024]"));
  gives(7, write + line("ld.shared.u64 %d2, [smem+1024]") + line("shr.u64 %d2, %d2, 32") + line("cvt.u32.u64 %r9, %d2"));
  gives(7, write + line("ld.shared.u16 %r3, [smem+1032]") + line("shr.u32 %r9, %r3, 8"));
  gives(7, write + line("ld.shared.s16 %r3, [smem+1032]") + line("shr.s32 %r9, %r3, 8"));
  gives(0, write + line("ld.shared.u8 %r3, [smem+1024]") + line("shr.u32 %r9, %r3, 8"));
  faults(kStored, write + line("ld.shared.s8 %r3, [smem+1024]") + line("shr.u32 %r9, %r3, 8"));
  faults(kStored, write + line("ld.shared.v2.u32 {%r9, %r3}, [smem+1024]"));
}

TEST_CASE("undefined: lanes are on their own") {
  const std::string own = line("shl.b32 %r3, %tid32, 2") + line("add.u32 %r3, %r3, %r63") + line("setp.ne.u32 %p4, %tid32, 5") +
                          line("@%p4 st.shared.u32 [%r3+1004], %r2") + line("bar.sync 0") + line("ld.shared.u32 %r1, [%r3+1004]");
  // Thread 5 has loaded the word at 1024.
  gives(7, own + line("mov.b32 %r9, 7") + line("@%p4 mov.b32 %r9, %r1"));
  gives(7, own + line("@!%p4 mov.b32 %r1, 7") + kUse);
  gives(7, own + line("@%p4 bra BEHIND") + line("mov.b32 %r1, 7") + "BEHIND:\n" + kUse);
  gives(7, own + line("shfl.sync.idx.b32 %r9, %r1, 3, 31, -1"));
  gives(7, own + line("shfl.sync.down.b32 %r4, %r1, 1, 31, -1") + line("setp.ne.u32 %p5, %tid32, 4") + line("selp.b32 %r9, %r4, 7, %p5"));
  faults(kStored, own + kUse, "lane 5: undefined");
  faults(kStored, own + line("shfl.sync.bfly.b32 %r9, %r1, 2, 31, -1"), "lane 7: undefined");
  faults(kStored, own + line("@%p4 bra BEHIND") + line("st.global.u32 [%out+256], %r1") + "BEHIND:\n" + line("mov.b32 %r9, 0"), "lane 5: undefined");
  faults(kOperand, own + line("redux.sync.add.u32 %r9, %r1, -1"), "lane 5: an operand");
}

TEST_CASE("undefined: through memory") {
  const std::string move = kLoad + line("st.shared.u32 [smem+2048], %r1") + line("bar.sync 0") + line("ld.shared.u32 %r3, [smem+2048]");
  gives(7, move + line("selp.b32 %r9, %r2, %r3, %p2"));
  gives(7, move + line("st.shared.u32 [smem+2048], %r2") + line("bar.sync 0") + line("ld.shared.u32 %r9, [smem+2048]"));
  gives(7, kLoad + line("st.shared.v2.u32 [smem+2048], {%r2, %r1}") + line("bar.sync 0") + line("ld.shared.u32 %r9, [smem+2048]"));
  faults(kStored, move + line("mov.b32 %r9, %r3"));
  faults(kStored, move + line("mov.u32 %r4, smem") + line("cvt.u64.u32 %d2, %r4") + line("cvta.shared.u64 %d2, %d2") + line("st.u32 [%d2+4096], %r3") +
                      line("bar.sync 0") + line("ld.u32 %r9, [%d2+4096]"));
  // By another warp than the one that has loaded it.
  faults(kStored, line("setp.ne.u32 %p4, %warp, 1") + line("@%p4 bra BEHIND") + kLoad + line("st.shared.u32 [smem+2048], %r1") + "BEHIND:\n" +
                      line("bar.sync 0") + line("@!%p4 exit") + line("ld.shared.u32 %r9, [smem+2048]"), "of warp 1 loads it");
  const std::string local = "  .local .align 8 .b8 own[16];\n  .reg .b64 %a;\n" + line("mov.u64 %a, own") + line("add.u64 %a, %a, 4") + kLoad + line("st.local.u32 [%a], %r1");
  gives(7, local + line("ld.local.u32 %r3, [own+4]") + line("selp.b32 %r9, %r2, %r3, %p2"));
  gives(7, local + line("st.local.u32 [own+4], %r2") + line("ld.local.u32 %r9, [%a]"));
  faults(kStored, local + line("ld.local.u32 %r9, [own+4]"));
  faults(kStored, local + line("ld.local.u64 %d2, [own]") + line("shr.u64 %d2, %d2, 32") + line("cvt.u32.u64 %r9, %d2"));
}

TEST_CASE("undefined: what does not take it, tells where it comes from") {
  const std::string move = kLoad + line("st.shared.v4.u32 [smem+2048], {%r1, %r1, %r1, %r1}") + line("mov.b32 %r9, 0") + line("fence.proxy.async.shared::cta") + line("bar.sync 0");
  faults("the box to store holds shared memory (0xc00), into which undefined data was stored",
         move + line("@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d1], [smem+2048], 16"));
  faults("reads shared memory (0xc00), into which undefined data was stored", move + line("atom.shared.add.u32 %r9, [smem+2048], 1"));
  faults("reads shared memory (0xc04), into which undefined data was stored",
         move + line("st.shared.u32 [smem+2048], %r2") + line("bar.sync 0") + line("add.u32 %r63, %r63, 2048") + line("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r63]"));
  faults(kOperand, allocate_tmem(16, 32) + kLoad + line("shl.b32 %r3, %warp, 21") + line("add.u32 %r3, %r3, %tm") +
                       line("tcgen05.st.sync.aligned.32x32b.x1.b32 [%r3], {%r1}"));
}

TEST_CASE("undefined: where it is not executed") {
  gives(7, kLoad + line("mov.b32 %r9, %r2") + line("@%p3 st.global.u32 [%out], %r1") + line("@%p3 mov.b32 %r9, %r1"));
  gives(7, kLoad + line("mov.b32 %r9, %r2") + line("cvt.u64.u32 %d2, %r1") + line("@%p3 ld.global.u32 %r9, [%d2]"));
  gives(7, kLoad + line("mov.b32 %r9, %r2") + line("@!%p3 bra BEHIND") + line("st.shared.u32 [%r1], %r2") + "BEHIND:\n");
}

TEST_CASE("undefined: what lets it be seen") {
  faults(kStored, kLoad + kUse);
  faults(kStored, kLoad + line("add.u32 %r9, %r1, 1"));
  faults(kStored, kLoad + line("selp.b32 %r9, %r2, %r1, %p3"));
  faults(kStored, kLoad + line("mul.lo.u32 %r9, %r1, 0"));
  faults(kStored, kLoad + line("add.cc.u32 %r3, %r1, 1") + line("addc.u32 %r9, %r2, 0"));
  faults(kStored, kLoad + line("setp.ne.u32 %p4, %r1, 0") + line("selp.b32 %r9, 1, 2, %p4"));
  faults(kStored, kLoad + line("set.eq.u32.u32 %r9, %r1, %r2"));
  faults(kStored, kLoad + line("prmt.b32 %r9, %r2, %r2, %r1"));
  faults(kStored, kLoad + line("shl.b32 %r9, %r2, %r1"));
  faults(kStored, kLoad + line("mov.b64 %d2, {%r2, %r1}") + line("st.global.u64 [%d1], %d2") + kUse);
  faults(kDecides, kLoad + line("setp.ne.u32 %p4, %r1, 0") + line("mov.b32 %r9, 0") + line("@%p4 mov.b32 %r9, 1"));
  faults(kDecides, kLoad + line("setp.ne.u32 %p4, %r1, 0") + line("mov.b32 %r9, 0") + line("@%p4 bra BEHIND") + "BEHIND:\n");
  faults(kDecides, kLoad + line("setp.ne.u32 %p4, %r1, 0") + line("or.pred %p5, %p3, %p4") + line("@%p5 exit") + line("mov.b32 %r9, 1"));
  faults(kAddress, kLoad + line("and.b32 %r3, %r1, 12") + line("add.u32 %r3, %r3, %r63") + line("ld.shared.u32 %r9, [%r3]"));
  faults(kAddress, kLoad + line("and.b32 %r3, %r1, 12") + line("add.u32 %r3, %r3, %r63") + line("st.shared.u32 [%r3], %r2"));
  faults(kAddress, kLoad + line("mad.wide.u32 %d2, %r1, 4, %d1") + line("ld.global.u32 %r9, [%d2]"));
  faults(kOperand, kLoad + line("atom.global.add.u32 %r9, [%d1], %r1"));
  faults(kOperand, kLoad + line("red.global.add.u32 [%d1], %r1"));
  faults(kOperand, kLoad + line("match.any.sync.b32 %r9, %r1, -1"));
  faults(kTakes, kLoad + line("setp.ne.u32 %p4, %r1, 0") + line("vote.sync.any.pred %p5, %p4, -1"));
  faults(kOperand, kLoad + line("shfl.sync.idx.b32 %r9, %r2, %r1, 31, -1"));
  faults(kOperand, kLoad + line("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r9, %r3}, {%r2, %r2}, {%r1}, {%r2, %r2}"));
  faults(kOperand, kLoad + line("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r63], {%r1}"));
  faults(kOperand, kLoad + line("nanosleep.u32 %r1"));
  faults(kOperand, kLoad + line("@%p0 mbarrier.init.shared::cta.b64 [smem], %r1"));
}

// What the simulator takes for defined does not depend on what memory held: random programs with words that nobody has
// written must, where they run to their end, give what they give with anything in these words.
namespace {

class Soup {
 public:
  explicit Soup(uint64_t seed) : random_(seed) {
    for (int i = 0; i < 6; ++i) {
      if (i < 3)
        text_ += line("ld.shared.u32 " + narrow(i) + ", [%own+" + std::to_string(4 * i) + "]");
      else
        text_ += line("mad.lo.u32 " + narrow(i) + ", %tid32, " + std::to_string(pick(~0u)) + ", " + std::to_string(pick(~0u)));
    }
    text_ += line("mov.b64 %d2, {" + narrow(0) + ", " + narrow(4) + "}") + line("mov.b64 %d3, {" + narrow(5) + ", " + narrow(1) + "}");
    text_ += line("setp.lt.s32 %p4, " + narrow(2) + ", " + narrow(3)) + line("setp.lt.s32 %p5, " + narrow(3) + ", " + narrow(4));
    for (uint32_t i = 6 + pick(14); i > 0; --i) statement();
    text_ += line("mov.b32 %r9, " + any());
  }
  const std::string& text() const { return text_; }

 private:
  uint32_t pick(uint32_t n) { return uint32_t(random_.next() % n); }
  static std::string narrow(uint32_t i) { return "%r" + std::to_string(10 + i); }
  std::string any() { return narrow(pick(8) < 2 ? pick(3) : pick(6)); }
  std::string wide() { return "%d" + std::to_string(2 + pick(2)); }
  std::string predicate() { return "%p" + std::to_string(4 + pick(2)); }
  std::string immediate() {
    static const uint32_t masks[] = {0xFF, 0xFFFF, 0xFFFF0000, 0xFF00, 1, 0, 0xFFFFFFFF, 0x80000000};
    return std::to_string(pick(3) ? masks[pick(8)] : pick(~0u));
  }
  void statement() {
    static const std::vector<std::string> two = {"add.u32", "sub.u32", "mul.lo.u32", "max.s32", "min.u32", "add.f32", "max.f32", "add.u16x2", "max.s16x2",
                                                 "add.rn.f16x2", "and.b32", "or.b32", "xor.b32", "mul.hi.s32"};
    const std::string d = any();
    switch (pick(24)) {
      case 0: text_ += line("shl.b32 " + d + ", " + any() + ", " + std::to_string(pick(33))); break;
      case 1: text_ += line("shr.s32 " + d + ", " + any() + ", " + std::to_string(pick(33))); break;
      case 2: text_ += line("prmt.b32 " + d + ", " + any() + ", " + any() + ", " + std::to_string(pick(65536))); break;
      case 3: text_ += line("bfe.s32 " + d + ", " + any() + ", " + std::to_string(pick(32)) + ", " + std::to_string(pick(32))); break;
      case 4: text_ += line("bfi.b32 " + d + ", " + any() + ", " + any() + ", " + std::to_string(pick(32)) + ", " + std::to_string(pick(32))); break;
      case 5: text_ += line("lop3.b32 " + d + ", " + any() + ", " + any() + ", " + any() + ", " + std::to_string(pick(256))); break;
      case 6: text_ += line("shf.r.clamp.b32 " + d + ", " + any() + ", " + any() + ", " + std::to_string(pick(34))); break;
      case 7:
      case 8: text_ += line("selp.b32 " + d + ", " + any() + ", " + any() + ", " + predicate()); break;
      case 9: text_ += line("slct.b32.s32 " + d + ", " + any() + ", " + any() + ", " + any()); break;
      case 10: text_ += line("setp.lt.s32 " + predicate() + ", " + any() + ", " + any()); break;
      case 11: text_ += line("setp.ne.and.u32 " + predicate() + ", " + any() + ", " + immediate() + ", " + predicate()); break;
      case 12: {
        static const std::vector<std::string> logic = {"and.pred", "or.pred", "xor.pred"};
        text_ += line(logic[pick(3)] + " " + predicate() + ", " + predicate() + ", " + predicate());
        break;
      }
      case 13: text_ += line("and.b32 " + d + ", " + any() + ", " + immediate()); break;
      case 14: text_ += line("or.b32 " + d + ", " + any() + ", " + immediate()); break;
      case 15: text_ += line("mov.b64 " + wide() + ", {" + any() + ", " + any() + "}"); break;
      case 16: text_ += line("mov.b64 {" + narrow(pick(3)) + ", " + narrow(3 + pick(3)) + "}, " + wide()); break;
      case 17: text_ += line("shl.b64 " + wide() + ", " + wide() + ", " + std::to_string(pick(65))); break;
      case 18: text_ += line("add.rn.f32x2 " + wide() + ", " + wide() + ", " + wide()); break;
      case 19: text_ += line("cvt.s64.s32 " + wide() + ", " + any()); break;
      case 20: text_ += line("add.cc.u32 " + d + ", " + any() + ", " + any()) + line("addc.u32 " + any() + ", " + any() + ", " + any()); break;
      case 21: text_ += line("shfl.sync.bfly.b32 " + d + ", " + any() + ", " + std::to_string(pick(32)) + ", 31, -1"); break;
      case 22: text_ += line("st.shared.u32 [%own+64], " + any()) + line("ld.shared.s16 " + d + ", [%own+" + std::to_string(64 + 2 * pick(2)) + "]"); break;
      default: text_ += line(two[pick(uint32_t(two.size()))] + " " + d + ", " + any() + ", " + any());
    }
  }
  Random random_;
  std::string text_;
};

}  // namespace

TEST_CASE("undefined: what is taken for defined does not depend on it") {
  constexpr uint64_t kPrograms = 600;
  uint32_t ended = 0;
  Random words(77);
  const std::string begin = "  .reg .b32 %own, %w<3>;\n" + line("shl.b32 %own, %tid32, 7") + line("add.u32 %own, %own, %r63") + line("add.u32 %own, %own, 4096");
  for (uint64_t number = 1; number <= kPrograms; ++number) {
    const std::string body = Soup(number).text();
    INFO("program " << number << "\n" << body);
    std::vector<uint32_t> expected;
    try {
      expected = results(begin + body);
    } catch (const Fault& fault) {
      CHECK(fault.kind == Fault::Kind::poison);
      continue;
    }
    ++ended;
    for (int trial = 0; trial < 4; ++trial) {
      std::string stores;
      for (int i = 0; i < 3; ++i) {
        const uint64_t word = trial == 0 ? 0 : trial == 1 ? ~0u : words.next();
        stores += line("mad.lo.u32 %w0, %tid32, " + std::to_string(trial < 2 ? 0 : uint32_t(word >> 32)) + ", " + std::to_string(uint32_t(word))) +
                  line("st.shared.u32 [%own+" + std::to_string(4 * i) + "], %w0");
      }
      REQUIRE((results(begin + stores + body) == expected));
    }
  }
  INFO(ended << " programs of " << kPrograms << " ran to their end");
  CHECK(ended >= kPrograms / 5);
  CHECK(ended <= kPrograms * 4 / 5);
}
