// SPDX-License-Identifier: Apache-2.0
// wgmma in all shapes of f16, bf16 and tf32, with every layout of its operands. Its matrix descriptors share
// the rules of those of tcgen05.mma.
#include "row.h"

namespace fa4::conformance {
namespace {

std::string number(uint64_t v) {
  return std::to_string(v);
}

struct Type {
  const char* name;             // of the inputs
  const char* types;            // of D, A and B
  uint32_t k, words_per_block;  // registers of D for 8 columns
  Values inputs, accumulators;
};
constexpr Type kF16{"f16", "f32.f16.f16", 16, 4, Values::small_f16x2, Values::small_f32},
    kBf16{"bf16", "f32.bf16.bf16", 16, 4, Values::small_bf16x2, Values::small_f32},
    kTf32{"tf32", "f32.tf32.tf32", 8, 4, Values::small_f32, Values::small_f32},
    kHalf{"f16 with f16 accumulators", "f16.f16.f16", 16, 2, Values::small_f16x2, Values::small_f16x2};

struct Layout {
  const char* name;
  bool mn_major;
  uint32_t swizzle;          // bits 62 and 63 of the descriptor
  uint32_t leading, stride;  // bytes
};
constexpr Layout kKMajor[] = {{"K none", false, 0, 128, 256},
                              {"K 32B", false, 3, 16, 256},
                              {"K 64B", false, 2, 16, 512},
                              {"K 128B", false, 1, 16, 1024}};
constexpr Layout kMnMajor[] = {{"MN none", true, 0, 256, 128},
                               {"MN 32B", true, 3, 512, 256},
                               {"MN 64B", true, 2, 1024, 512},
                               {"MN 128B", true, 1, 2048, 1024}};

uint64_t descriptor(const Layout& l) {
  return uint64_t(l.leading >> 4) << 16 | uint64_t(l.stride >> 4) << 32 | uint64_t(l.swizzle) << 62;
}

constexpr uint32_t kWords = 10240;  // of shared memory: A from byte 0, B from kB on
constexpr uint32_t kB = 8192, kElements = 16384;

struct Case {
  Type type = kF16;
  uint32_t n = 64;
  Layout a = kKMajor[3], b = kKMajor[3];
  bool a_in_registers = false, negate_a = false, negate_b = false;
  std::string scale_d = "1";
  uint32_t steps = 1, step_a = 32, step_b = 32;  // MMAs along K and how far apart their operands begin
  uint32_t groups = 1;                           // 128 threads each; they share B
  std::string between = "";                      // steps
};

std::string module_of(const Case& c) {
  const uint32_t registers = c.n / 8 * c.type.words_per_block;
  std::string t =
      ".version 8.6\n.target $\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
      ".visible .entry row(.param .u64 out, .param .u64 in)\n.maxntid " +
      number(128 * c.groups) +
      ", 1, 1\n{\n"
      "  .reg .pred %p, %q;\n  .reg .b32 %t, %u, %i, %thread, %d<128>, %a<4>;\n  .reg .b64 %from, %to, %at, "
      "%base, %da, %db;\n"
      "  ld.param.u64 %from, [in];\n  ld.param.u64 %to, [out];\n  mov.u32 %thread, %tid.x;\n  mov.u32 %t, "
      "dynamic;\n"
      "  mov.b32 %i, %thread;\n"
      "FILL:\n  mad.wide.u32 %at, %i, 4, %from;\n  ld.global.b32 %u, [%at];\n  mad.lo.s32 %d0, %i, 4, %t;\n  "
      "st.shared.b32 [%d0], %u;\n"
      "  add.s32 %i, %i, " +
      number(128 * c.groups) + ";\n  setp.lt.s32 %p, %i, " + number(kWords) +
      ";\n  @%p bra FILL;\n"
      "  mad.wide.u32 %at, %thread, " +
      number(4 * registers) + ", %from;\n";
  for (uint32_t r = 0; r < registers; ++r)
    t += "  ld.global.b32 %d" + number(r) + ", [%at+" + number(4 * (kElements + r)) + "];\n";
  if (c.a_in_registers) {
    t += "  mad.wide.u32 %at, %thread, 16, %from;\n";
    for (uint32_t r = 0; r < 4; ++r)
      t += "  ld.global.b32 %a" + number(r) + ", [%at+" + number(4 * (8192 + r)) + "];\n";
  }
  t += "  setp.ne.u32 %q, %t, 0;\n  fence.proxy.async.shared::cta;\n  bar.sync 0;\n  shr.u32 %u, %t, 4;\n  "
       "cvt.u64.u32 %base, %u;\n"
       "  shr.u32 %i, %thread, 7;\n  mul.lo.u32 %i, %i, " +
       number(4096 >> 4) +
       ";\n  cvt.u64.u32 %at, %i;\n"
       "  add.u64 %da, %base, " +
       number(descriptor(c.a)) + ";\n  add.u64 %da, %da, %at;\n  add.u64 %db, %base, " +
       number(descriptor(c.b) + (kB >> 4)) + ";\n  wgmma.fence.sync.aligned;\n";
  std::string list = "{";
  for (uint32_t r = 0; r < registers; ++r) list += (r ? ", %d" : "%d") + number(r);
  list += "}";
  for (uint32_t s = 0; s < c.steps; ++s) {
    t += "  wgmma.mma_async.sync.aligned.m64n" + number(c.n) + "k" + number(c.type.k) + "." + c.type.types +
         " " + list + ", " + (c.a_in_registers ? "{%a0, %a1, %a2, %a3}" : "%da") + ", %db, " +
         (s == 0 ? c.scale_d : "1") + ", " + (c.negate_a ? "-1" : "1") + ", " + (c.negate_b ? "-1" : "1");
    if (c.type.k == 16)
      t += std::string(c.a_in_registers ? "" : c.a.mn_major ? ", 1" : ", 0") + (c.b.mn_major ? ", 1" : ", 0");
    t += ";\n  add.u64 %da, %da, " + number(c.step_a >> 4) + ";\n  add.u64 %db, %db, " +
         number(c.step_b >> 4) + ";\n";
    if (s + 1 < c.steps) t += c.between;
  }
  t += "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;\n  mad.wide.u32 %at, "
       "%thread, " +
       number(4 * registers) + ", %to;\n";
  for (uint32_t r = 0; r < registers; ++r)
    t += "  st.global.b32 [%at+" + number(4 * r) + "], %d" + number(r) + ";\n";
  return t + "  ret;\n}\n";
}

void add(Table& t, const std::string& name, const std::string& belief, const Case& c) {
  Row& row = t.text("wgmma " + name, belief, module_of(c));
  row.inputs = {{c.type.inputs, 4}, {c.type.accumulators, 4}};
  row.elements = kElements;
  row.block = 128 * c.groups;
  row.output_elements = row.block * (c.n / 8 * c.type.words_per_block);
  row.dynamic_shared = 4 * kWords;
}

void add_layouts(Table& t, const Type& type) {
  const std::string belief = "operands lie as their descriptors say";
  const bool may_transpose = type.k == 16;
  std::vector<Layout> layouts(std::begin(kKMajor), std::end(kKMajor));
  if (may_transpose) layouts.insert(layouts.end(), std::begin(kMnMajor), std::end(kMnMajor));
  for (const Layout& b : layouts) {
    for (const Layout& a : layouts) {
      Case c{.type = type, .n = 64, .a = a, .b = b};
      add(t, std::string(type.name) + ", A " + a.name + ", B " + b.name, belief, c);
    }
    Case c{.type = type, .n = 96, .b = b, .a_in_registers = true};
    add(t, std::string(type.name) + ", A in registers, B " + b.name,
        "lane l holds rows l / 4 and l / 4 + 8 of A's 16 rows of its warp", c);
    c = {.type = type, .n = 256, .b = b};
    add(t, std::string(type.name) + ", N 256, B " + b.name, belief, c);
  }
}

}  // namespace

void add_wgmma_rows(Table& t) {
  t.needs(Needs::hopper);
  t.family({"wgmma", "9.7.15", ""});
  const std::string arithmetic =
      "a fused sum of the products and D, each truncated to 25 fractional bits below the largest, rounded "
      "toward zero to f32 "
      "or to nearest even to f16";
  for (const Type& type : {kF16, kBf16, kTf32, kHalf}) {
    for (uint32_t n = 8; n <= 256; n += 8)
      add(t, std::string(type.name) + ", N " + number(n), arithmetic, {.type = type, .n = n});
    add_layouts(t, type);
    const std::string name = type.name;
    add(t, name + ", -A", "imm-scale-a of -1 negates A", {.type = type, .negate_a = true});
    add(t, name + ", -B", "imm-scale-b of -1 negates B", {.type = type, .negate_b = true});
    add(t, name + ", -A, -B, A in registers", "both may be negated",
        {.type = type, .a_in_registers = true, .negate_a = true, .negate_b = true});
    add(t, name + ", scale-d 0", "D is not read", {.type = type, .scale_d = "0"});
    add(t, name + ", scale-d false", "D is not read", {.type = type, .scale_d = "!%q"});
    add(t, name + ", scale-d true", "D is the sum's last term", {.type = type, .scale_d = "%q"});
    add(t, name + ", four steps", "the start address moves by 32 bytes a step within the swizzle's rows",
        {.type = type, .steps = 4});
    add(t, name + ", four steps in groups of their own",
        "operations with the same accumulators come one after the other",
        {.type = type,
         .steps = 4,
         .between = "  wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 1;\n"});
    add(t, name + ", two warpgroups", "each warpgroup has its own A and registers",
        {.type = type, .n = 48, .a = kKMajor[2], .groups = 2});
  }
  // Values of any kind.
  for (Type type : {kF16, kBf16, kTf32, kHalf}) {
    type.inputs = type.k == 8                           ? Values::f32
                  : type.inputs == Values::small_bf16x2 ? Values::bf16x2
                                                        : Values::f16x2;
    type.accumulators = type.words_per_block == 2 ? Values::f16x2 : Values::f32;
    add(t, std::string(type.name) + ", any values", arithmetic, {.type = type, .n = 128});
  }
}

}  // namespace fa4::conformance
