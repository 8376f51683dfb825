// SPDX-License-Identifier: Apache-2.0
// Matrices that a warp holds in registers: mma.sync in all shapes of f16, bf16 and tf32, and the loads,
// stores and transpositions of its fragments.
#include "row.h"

namespace fa4::conformance {
namespace {

std::string number(uint64_t v) {
  return std::to_string(v);
}
std::string list(const std::string& reg, uint32_t count, uint32_t first = 0) {
  std::string text = "{";
  for (uint32_t r = 0; r < count; ++r) text += (r ? ", " : "") + reg + number(first + r);
  return text + "}";
}

// A kernel of 128 threads a block: thread %i of the grid, lane %lane; %a<>, %b<>, %c<> and %d<> of 32 bits,
// %t and %u; 4 KiB of shared memory from %shared and, as a generic address, %generic; input at %from, output
// at %to.
std::string module_of(const std::string& body) {
  return ".version 8.6\n.target $\n.address_size 64\n"
         ".visible .entry row(.param .u64 out, .param .u64 in)\n.maxntid 128, 1, 1\n{\n"
         "  .shared .align 128 .b8 memory[4096];\n"
         "  .reg .pred %p;\n  .reg .b32 %t, %u, %i, %lane, %shared, %a<4>, %b<2>, %c<4>, %d<4>;\n  .reg .b64 "
         "%from, %to, %at, "
         "%generic;\n"
         "  mov.u32 %t, %ctaid.x;\n  mov.u32 %u, %tid.x;\n  mad.lo.s32 %i, %t, 128, %u;\n  mov.u32 %lane, "
         "%laneid;\n"
         "  ld.param.u64 %from, [in];\n  ld.param.u64 %to, [out];\n  mov.u32 %shared, memory;\n  cvt.u64.u32 "
         "%generic, "
         "%shared;\n  cvta.shared.u64 %generic, %generic;\n" +
         body + "  ret;\n}\n";
}
// Words %i * count + 0 ... of the `input`-th input.
std::string load(const std::string& reg, uint32_t count, uint32_t input, uint32_t elements) {
  std::string text = "  mad.wide.u32 %at, %i, " + number(4 * count) + ", %from;\n";
  for (uint32_t r = 0; r < count; ++r)
    text +=
        "  ld.global.b32 " + reg + number(r) + ", [%at+" + number(4ull * input * elements + 4 * r) + "];\n";
  return text;
}
std::string store(uint32_t count) {
  std::string text = "  mad.wide.u32 %at, %i, " + number(4 * count) + ", %to;\n";
  for (uint32_t r = 0; r < count; ++r)
    text += "  st.global.b32 [%at+" + number(4 * r) + "], %d" + number(r) + ";\n";
  return text;
}

struct Shape {
  const char* shape;
  const char* types;  // of D, A, B and C
  uint32_t a, b, c;   // registers
  Values inputs, small_inputs, accumulators, small_accumulators;
};
constexpr Shape kShapes[] = {
    {"m16n8k16", "f32.f16.f16.f32", 4, 2, 4, Values::f16x2, Values::small_f16x2, Values::f32,
     Values::small_f32},
    {"m16n8k16", "f16.f16.f16.f16", 4, 2, 2, Values::f16x2, Values::small_f16x2, Values::f16x2,
     Values::small_f16x2},
    {"m16n8k16", "f32.bf16.bf16.f32", 4, 2, 4, Values::bf16x2, Values::small_bf16x2, Values::f32,
     Values::small_f32},
    {"m16n8k8", "f32.f16.f16.f32", 2, 1, 4, Values::f16x2, Values::small_f16x2, Values::f32,
     Values::small_f32},
    {"m16n8k8", "f16.f16.f16.f16", 2, 1, 2, Values::f16x2, Values::small_f16x2, Values::f16x2,
     Values::small_f16x2},
    {"m16n8k8", "f32.bf16.bf16.f32", 2, 1, 4, Values::bf16x2, Values::small_bf16x2, Values::f32,
     Values::small_f32},
    {"m16n8k8", "f32.tf32.tf32.f32", 4, 2, 4, Values::f32, Values::small_f32, Values::f32, Values::small_f32},
    {"m16n8k4", "f32.tf32.tf32.f32", 2, 1, 4, Values::f32, Values::small_f32, Values::f32, Values::small_f32},
};

constexpr uint32_t kThreads = 2048;  // of a row's grid

void add_mma(Table& t, const Shape& s, bool small) {
  const uint32_t elements = 4 * kThreads;
  const std::string opcode = std::string("mma.sync.aligned.") + s.shape + ".row.col." + s.types;
  Row& row = t.text(
      opcode + (small ? "" : ", any values"),
      "a fused sum of the products and C, each truncated to 25 fractional bits below the largest, "
      "rounded toward zero to f32 or to nearest even to f16; tf32 inputs lose their lower 13 bits",
      module_of(load("%a", s.a, 0, elements) + load("%b", s.b, 1, elements) + load("%c", s.c, 2, elements) +
                "  " + opcode + " " + list("%d", s.c) + ", " + list("%a", s.a) + ", " + list("%b", s.b) +
                ", " + list("%c", s.c) + ";\n" + store(s.c)));
  row.inputs = {{small ? s.small_inputs : s.inputs, 4},
                {small ? s.small_inputs : s.inputs, 4},
                {small ? s.small_accumulators : s.accumulators, 4}};
  row.elements = elements;
  row.output_elements = kThreads * s.c;
  row.grid = kThreads / 128;
}

// 4 KiB of the input in shared memory; then %t is the byte offset of a row of the lane's own.
std::string fill_shared() {
  std::string text;
  for (uint32_t k = 0; k < 8; ++k)
    text += "  mad.wide.u32 %at, %i, 4, %from;\n  ld.global.b32 %a0, [%at+" + number(512 * k) +
            "];\n  mov.u32 %u, %tid.x;\n  mad.lo.s32 %u, %u, 4, %shared;\n  st.shared.b32 [%u+" +
            number(512 * k) + "], %a0;\n";
  return text + "  bar.sync 0;\n";
}
// Rows that lie apart, in an order that is not the lanes'.
std::string row_offset() {
  return "  mov.u32 %t, %tid.x;\n  mul.lo.u32 %t, %t, 37;\n  add.u32 %t, %t, 5;\n  and.b32 %t, %t, 255;\n  "
         "shl.b32 %t, %t, 4;\n";
}
std::string row_address(bool generic) {
  return generic ? "  cvt.u64.u32 %at, %t;\n  add.u64 %at, %at, %generic;\n" : "  add.u32 %t, %t, %shared;\n";
}

void add_fragments(Table& t) {
  t.family({"matrix fragments", "9.7.14.5", ""});
  for (uint32_t count : {1u, 2u, 4u}) {
    for (bool transposed : {false, true}) {
      for (bool generic : {false, true}) {
        const std::string form = ".sync.aligned.m8n8.x" + number(count) + (transposed ? ".trans" : "") +
                                 (generic ? "" : ".shared") + ".b16";
        const std::string at = generic ? "[%at]" : "[%t]";
        Row& loaded = t.text(
            "ldmatrix" + form,
            "lanes 8 i to 8 i + 7 give the rows of matrix i; lane l gets two elements of row l / 4, or, "
            "transposed, of column l / 4",
            module_of(fill_shared() + row_offset() + row_address(generic) + "  ldmatrix" + form + " " +
                      list("%d", count) + ", " + at + ";\n" + store(count)));
        loaded.elements = 1024;
        loaded.output_elements = 128 * count;
        // The lanes of four warps name all 256 rows of 16 bytes once or not at all.
        std::string dump = "  bar.sync 0;\n";
        for (uint32_t k = 0; k < 8; ++k)
          dump += "  mov.u32 %u, %tid.x;\n  mad.lo.s32 %u, %u, 4, %shared;\n  ld.shared.b32 %d0, [%u+" +
                  number(512 * k) + "];\n  mad.wide.u32 %at, %i, 4, %to;\n  st.global.b32 [%at+" +
                  number(512 * k) + "], %d0;\n";
        Row& stored =
            t.text("stmatrix" + form, "as ldmatrix, the other way",
                   module_of(fill_shared() + load("%c", 4, 0, 0) + row_offset() + row_address(generic) +
                             "  stmatrix" + form + " " + at + ", " + list("%c", count) + ";\n" + dump));
        stored.elements = 1024;
        stored.output_elements = 1024;
      }
    }
  }
  t.add("movmatrix.sync.aligned.m8n8.trans.b16", "r=r", "", "lane l gets two elements of column l / 4");
}

}  // namespace

void add_matrix_rows(Table& t) {
  t.family({"mma.sync", "9.7.14.5.14", ""});
  for (const Shape& s : kShapes) {
    add_mma(t, s, true);
    add_mma(t, s, false);
  }
  add_fragments(t);
}

}  // namespace fa4::conformance
