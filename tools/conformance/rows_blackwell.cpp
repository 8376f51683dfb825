// SPDX-License-Identifier: Apache-2.0
// Forms that need a Blackwell GPU: pairs of f32, three-input minimum and maximum, tensor memory and its MMAs.
#include "row.h"

namespace fa4::conformance {
namespace {

std::string number(uint64_t v) {
  return std::to_string(v);
}

// A block of 128 threads that owns all of tensor memory. Every cell of columns 0 to `columns` - 1 holds a
// word of its own before `body`, which may use %taddr (the warp's partition), %base, %thread, %to, %from, %i,
// %v<128>, %p, and `dynamic`.
std::string tensor_memory_module(uint32_t columns, const std::string& body) {
  std::string t =
      ".version 8.8\n.target $\n.address_size 64\n.extern .shared .align 1024 .b8 dynamic[];\n"
      ".visible .entry row(.param .u64 out, .param .u64 in)\n.maxntid 128, 1, 1\n{\n"
      "  .shared .align 8 .b8 slot[8];\n  .shared .align 8 .b8 bar[8];\n"
      "  .reg .pred %p, %q;\n  .reg .b32 %taddr, %base, %thread, %warp, %i, %t, %u, %v<128>;\n  .reg .b64 "
      "%from, %to, %a, %b, %w;\n"
      "  ld.param.u64 %from, [in];\n  ld.param.u64 %to, [out];\n  mov.u32 %thread, %tid.x;\n  shr.u32 %warp, "
      "%thread, 5;\n"
      "  mov.u32 %t, slot;\n  setp.ne.u32 %p, %warp, 0;\n  @%p bra.uni ALLOCATED;\n"
      "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%t], 512;\n"
      "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nALLOCATED:\n"
      "  setp.ne.u32 %p, %thread, 0;\n  @!%p mbarrier.init.shared::cta.b64 [bar], 1;\n"
      "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  tcgen05.fence::after_thread_sync;\n"
      "  ld.shared.b32 %base, [slot];\n  shl.b32 %taddr, %warp, 21;\n  add.u32 %taddr, %taddr, %base;\n";
  // Background: the word of (lane, column) is lane * 40503 + column * 65599, so that no two cells in reach
  // are alike.
  t += "  mul.lo.u32 %t, %thread, 40503;\n";
  for (uint32_t c = 0; c < columns; c += 4) {
    for (uint32_t k = 0; k < 4; ++k)
      t += "  add.u32 %v" + number(k) + ", %t, " + number((c + k) * 65599) + ";\n";
    t += "  tcgen05.st.sync.aligned.32x32b.x4.b32 [%taddr+" + number(c) + "], {%v0, %v1, %v2, %v3};\n";
  }
  t += "  tcgen05.wait::st.sync.aligned;\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  "
       "tcgen05.fence::after_thread_sync;\n" +
       body;
  t += "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  tcgen05.fence::after_thread_sync;\n  "
       "setp.ne.u32 %p, %warp, 0;\n  @%p bra.uni DONE;\n"
       "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %base, 512;\nDONE:\n  ret;\n}\n";
  return t;
}

std::string registers(uint32_t count) {
  std::string list = "{";
  for (uint32_t r = 0; r < count; ++r) list += (r ? ", %v" : "%v") + number(r);
  return list + "}";
}
// Stores %v0 to %v<count - 1> of each thread, one thread's words together.
std::string store_registers(uint32_t count) {
  std::string t = "  mad.wide.u32 %a, %thread, " + number(4 * count) + ", %to;\n";
  for (uint32_t r = 0; r < count; ++r)
    t += "  st.global.b32 [%a+" + number(4 * r) + "], %v" + number(r) + ";\n";
  return t;
}
// The cells of columns 0 to columns - 1, thread by thread.
std::string store_columns(uint32_t columns) {
  std::string t = "  mad.wide.u32 %a, %thread, " + number(4 * columns) + ", %to;\n";
  for (uint32_t c = 0; c < columns; c += 8) {
    t += "  tcgen05.ld.sync.aligned.32x32b.x8.b32 " + registers(8) + ", [%taddr+" + number(c) +
         "];\n  tcgen05.wait::ld.sync.aligned;\n";
    for (uint32_t r = 0; r < 8; ++r)
      t += "  st.global.b32 [%a+" + number(4 * (c + r)) + "], %v" + number(r) + ";\n";
  }
  return t;
}

struct TmemShape {
  const char* name;
  uint32_t registers_each, columns_each, most;
};
constexpr TmemShape kShapes[] = {
    {"32x32b", 1, 1, 128}, {"16x64b", 1, 2, 128}, {"16x128b", 2, 4, 64}, {"16x256b", 4, 8, 32}};

Row& add_row(Table& t, const std::string& name, const std::string& belief, std::string ptx,
             uint32_t output_words, Values values = Values::bits) {
  Row& row = t.text(name, belief, std::move(ptx));
  row.inputs = {{values, 4}};
  row.elements = 8192;
  row.output_elements = output_words;
  row.output_element_bytes = 4;
  return row;
}

void add_tensor_memory_rows(Table& t) {
  t.family({"tensor memory loads and stores", "9.7.16.8", ""});
  for (const TmemShape& s : kShapes) {
    const bool half = s.registers_each != 1 || s.columns_each != 1;  // shapes of 16 lanes
    for (uint32_t n = 1; n <= s.most; n *= 2) {
      const uint32_t count = n * s.registers_each, columns = (n * s.columns_each + 7) / 8 * 8;
      for (uint32_t lane = 0; lane <= (half ? 16u : 0u); lane += 16) {
        const std::string form = std::string(s.name) + ".x" + number(n),
                          at = "[%t+" + number(lane << 16) + "]";
        const std::string where = lane ? " lanes 16-31" : "";
        add_row(t, "tcgen05.ld." + form + where,
                "which cell each thread's register holds, as the layout of the shape says",
                tensor_memory_module(columns, "  mov.b32 %t, %taddr;\n  tcgen05.ld.sync.aligned." + form +
                                                  ".b32 " + registers(count) + ", " + at +
                                                  ";\n  tcgen05.wait::ld.sync.aligned;\n" +
                                                  store_registers(count)),
                128 * count);
        std::string fill = "  mul.lo.u32 %i, %thread, 2654435;\n";
        for (uint32_t r = 0; r < count; ++r)
          fill += "  add.u32 %v" + number(r) + ", %i, " + number(1 + r * 7919) + ";\n";
        add_row(t, "tcgen05.st." + form + where,
                "which cell each thread's register goes to, as the layout of the shape says; the others keep "
                "their words",
                tensor_memory_module(columns, fill + "  mov.b32 %t, %taddr;\n  tcgen05.st.sync.aligned." +
                                                  form + ".b32 " + at + ", " + registers(count) +
                                                  ";\n  tcgen05.wait::st.sync.aligned;\n" +
                                                  store_columns(columns)),
                128 * columns);
      }
    }
  }
  t.family({"tensor memory allocation", "9.7.16.7", ""});
  std::string sizes =
      "  mov.u32 %t, slot;\n  setp.ne.u32 %p, %warp, 0;\n  @%p bra.uni SKIP;\n  st.global.b32 [%to], "
      "%base;\nSKIP:\n";
  add_row(t, "tcgen05.alloc of all columns", "the first allocation of 512 columns begins at column 0, lane 0",
          tensor_memory_module(8, sizes), 128);
}

struct Operand {
  const char* name;
  bool mn_major;
  uint32_t swizzle;          // of the descriptor: 0 none, 2 128B, 4 64B, 6 32B
  uint32_t leading, stride;  // bytes
};

uint64_t descriptor(const Operand& o) {
  return uint64_t(o.leading >> 4) << 16 | uint64_t(o.stride >> 4) << 32 | 1ull << 46 |
         uint64_t(o.swizzle) << 61;
}

// One or two MMAs of K = 16 over whatever halves the input gives: A at 0, B at 16 KiB of shared memory.
void add_mma(Table& t, const std::string& name, const std::string& belief, bool bf16, uint32_t m, uint32_t n,
             const Operand& a, const Operand& b, bool a_in_tmem, uint32_t steps, uint32_t step_a = 32,
             uint32_t step_b = 32, bool accumulate_first = false) {
  const uint32_t idesc = 1u << 4 | (bf16 ? 1u << 7 | 1u << 10 : 0u) | (a.mn_major ? 1u << 15 : 0u) |
                         (b.mn_major ? 1u << 16 : 0u) | (n >> 3) << 17 | (m >> 4) << 24;
  const uint32_t a_column = 256;
  std::string body =
      "  mov.u32 %t, dynamic;\n  mov.b32 %i, %thread;\nFILL:\n  mad.wide.u32 %a, %i, 4, %from;\n  "
      "ld.global.b32 %u, [%a];\n  mad.lo.s32 %v0, %i, 4, %t;\n"
      "  st.shared.b32 [%v0], %u;\n  add.s32 %i, %i, 128;\n  setp.lt.s32 %p, %i, 8192;\n  @%p bra FILL;\n";
  if (a_in_tmem) {
    body += "  mad.wide.u32 %a, %thread, 64, %from;\n";
    for (uint32_t r = 0; r < 8 * steps; ++r)
      body += "  ld.global.b32 %v" + number(r) + ", [%a+" + number(4 * r) + "];\n";
    for (uint32_t s = 0; s < steps; ++s) {
      body += "  tcgen05.st.sync.aligned.32x32b.x8.b32 [%taddr+" + number(a_column + 8 * s) + "], {";
      for (uint32_t r = 0; r < 8; ++r) body += (r ? ", %v" : "%v") + number(8 * s + r);
      body += "};\n";
    }
    body += "  tcgen05.wait::st.sync.aligned;\n";
  }
  if (accumulate_first) {  // a float in every cell of D
    body += "  cvt.rn.f32.u32 %u, %thread;\n  mul.f32 %u, %u, 0f3C23D70A;\n";
    for (uint32_t c = 0; c < n; c += 4)
      body += "  tcgen05.st.sync.aligned.32x32b.x4.b32 [%taddr+" + number(c) + "], {%u, %u, %u, %u};\n";
    body += "  tcgen05.wait::st.sync.aligned;\n";
  }
  body +=
      "  fence.proxy.async.shared::cta;\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  "
      "tcgen05.fence::after_thread_sync;\n"
      "  setp.ne.u32 %p, %thread, 0;\n  @%p bra WAIT;\n  shr.u32 %u, %t, 4;\n  cvt.u64.u32 %w, %u;\n";
  for (uint32_t s = 0; s < steps; ++s) {
    const uint64_t b_start = (16384 + s * step_b) >> 4;
    body += "  add.u64 %b, %w, " + number(descriptor(b) + b_start) + ";\n  setp.ne.u32 %q, " +
            number(s > 0 || accumulate_first ? 1 : 0) + ", 0;\n";
    if (a_in_tmem) {
      body += "  add.u32 %v0, %base, " + number(a_column + 8 * s) +
              ";\n  tcgen05.mma.cta_group::1.kind::f16 [%base], [%v0], %b, " + number(idesc) + ", %q;\n";
    } else {
      body += "  add.u64 %a, %w, " + number(descriptor(a) + ((s * step_a) >> 4)) +
              ";\n  tcgen05.mma.cta_group::1.kind::f16 [%base], %a, %b, " + number(idesc) + ", %q;\n";
    }
  }
  body +=
      "  mov.u32 %u, bar;\n  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
      "[%u];\nWAIT:\n"
      "  mov.b32 %i, 0;\nAGAIN:\n  mbarrier.try_wait.parity.shared::cta.b64 %p, [bar], 0;\n  add.s32 %i, %i, "
      "1;\n  setp.gt.s32 %q, %i, 100000;\n  or.pred %p, %p, %q;\n"
      "  @!%p bra AGAIN;\n  bar.warp.sync -1;\n  tcgen05.fence::after_thread_sync;\n" +
      store_columns(n);
  Row& row = add_row(t, name, belief, tensor_memory_module((n + 7) / 8 * 8, body), 128 * n,
                     bf16 ? Values::small_bf16x2 : Values::small_f16x2);
  row.dynamic_shared = 32768;
}

void add_mma_rows(Table& t) {
  t.family({"tensor core", "9.7.16.10", ""});
  const std::string arithmetic =
      "a fused sum of 17 terms, each truncated to 25 fractional bits below the largest, rounded toward zero; "
      "operands lie as their descriptors say";
  // K-major operands of 32 bytes a row in rows of 8; MN-major ones in blocks of 8 k.
  const Operand k_major[] = {{"K none", false, 0, 128, 256},
                             {"K 32B", false, 6, 16, 256},
                             {"K 64B", false, 4, 16, 512},
                             {"K 128B", false, 2, 16, 1024}};
  const Operand mn_major[] = {{"MN none", true, 0, 256, 128},
                              {"MN 32B", true, 6, 512, 256},
                              {"MN 64B", true, 4, 1024, 512},
                              {"MN 128B", true, 2, 2048, 1024}};
  for (bool bf16 : {false, true}) {
    const std::string type = bf16 ? "bf16" : "f16";
    for (const Operand& a : k_major)
      add_mma(t, "tcgen05.mma " + type + " SS, A " + a.name + ", B " + a.name, arithmetic, bf16, 128, 64, a,
              a, false, 1);
    for (const Operand& b : mn_major)
      add_mma(t, "tcgen05.mma " + type + " SS, A K 128B, B " + b.name, arithmetic, bf16, 128, 64, k_major[3],
              b, false, 1);
    for (const Operand& a : mn_major)
      add_mma(t, "tcgen05.mma " + type + " SS, A " + a.name + ", B K 128B", arithmetic, bf16, 128, 64, a,
              k_major[3], false, 1);
    add_mma(t, "tcgen05.mma " + type + " SS, four steps along K",
            "the start address of a descriptor moves by 32 bytes a step within the swizzle's rows", bf16, 128,
            64, k_major[3], k_major[3], false, 4);
    add_mma(t, "tcgen05.mma " + type + " SS, adding to D",
            "with enable-input-d the accumulator is the 17th term", bf16, 128, 64, k_major[3], k_major[3],
            false, 1, 32, 32, true);
    add_mma(t, "tcgen05.mma " + type + " SS, M 64", "row m of the accumulator is lane 32 (m / 16) + m mod 16",
            bf16, 64, 64, k_major[3], k_major[3], false, 1);
    for (uint32_t n : {8u, 24u, 128u})
      add_mma(t, "tcgen05.mma " + type + " SS, N " + number(n), arithmetic, bf16, 128, n, k_major[3],
              k_major[3], false, 1);
    for (const Operand& b : {k_major[3], mn_major[3]}) {
      add_mma(t, "tcgen05.mma " + type + " TS, B " + b.name,
              "A in tensor memory: k even in the low half, k odd in the high half of a column", bf16, 128, 64,
              k_major[3], b, true, 1);
      add_mma(t, "tcgen05.mma " + type + " TS, two steps, B " + b.name,
              "each step of K takes the next 8 columns of A", bf16, 128, 64, k_major[3], b, true, 2, 32,
              b.mn_major ? 2048 : 32);
    }
  }
}

}  // namespace

void add_blackwell_rows(Table& t) {
  t.needs(Needs::blackwell);
  t.family({"f32x2 arithmetic", "9.7.3", "two f32 operations on the words of a pair"});
  for (const char* op : {"add", "sub", "mul"}) {
    for (const char* round : {"", ".rn", ".rz", ".rm", ".rp"}) {
      for (const char* ftz : {"", ".ftz"}) t.add(std::string(op) + round + ftz + ".f32x2", "F=FF");
    }
  }
  for (const char* round : {".rn", ".rz", ".rm", ".rp"}) {
    for (const char* ftz : {"", ".ftz"}) t.add(std::string("fma") + round + ftz + ".f32x2", "F=FFF");
  }
  t.family({"minimum and maximum of three", "9.7.3",
            "as two of two: a NaN loses, or wins with .NaN; -0 is below +0"});
  for (const char* op : {"min", "max"}) {
    for (const char* mode : {"", ".ftz", ".NaN", ".ftz.NaN", ".abs", ".NaN.abs"})
      t.add(std::string(op) + mode + ".f32 %d, %a, %b, %c;", "f=fff",
            std::string(op) + mode + ".f32 of three");
  }
  add_tensor_memory_rows(t);
  add_mma_rows(t);
}

}  // namespace fa4::conformance
