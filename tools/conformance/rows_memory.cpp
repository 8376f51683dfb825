// SPDX-License-Identifier: Apache-2.0
// Loads, stores, atomics and addresses in global, shared, local and generic space.
#include <tuple>

#include "row.h"

namespace fa4::conformance {
namespace {

struct Access {
  const char* type;
  uint32_t bytes;
  char memory, result;  // letters of the source and the widened result
};
constexpr Access kNarrow[] = {{"u8", 1, 'b', 'r'},  {"s8", 1, 'b', 'r'}, {"u16", 2, 'h', 'r'},
                              {"s16", 2, 'h', 'r'}, {"b8", 1, 'b', 'r'}, {"b16", 2, 'h', 'h'}};
constexpr Access kPlain[] = {{"u32", 4, 'r', 'r'}, {"s32", 4, 'r', 'r'}, {"b32", 4, 'r', 'r'},
                             {"f32", 4, 'f', 'f'}, {"u64", 8, 'l', 'l'}, {"s64", 8, 'l', 'l'},
                             {"b64", 8, 'l', 'l'}, {"f64", 8, 'd', 'd'}};

// %t: this thread's 16 bytes of `space` memory, which the statement declares.
std::string private_bytes(const char* space) {
  const bool local = std::string_view(space) == "local";
  return std::string("{ .") + space + " .align 16 .b8 buffer[" + (local ? "64" : "2048") +
         "]; mov.u32 %u, %tid.x; " + (local ? "and.b32 %u, %u, 3; " : "") +
         "mov.u32 %t, buffer; mad.lo.s32 %t, %u, 16, %t; ";
}

void add_accesses(Table& t) {
  t.family(
      {"loads and stores", "9.7.9.8",
       "narrow types extend into the register as their sign says; cache hints and orders change no value"});
  for (const Access& a : kNarrow)
    t.add(std::string("ld.global.") + a.type + " %d, [%at];", std::string(1, a.result) + "=" + a.memory,
          std::string("ld.global.") + a.type);
  t.add("ld.global.s8 %d, [%at];", "l=b", "ld.global.s8 into 64 bits");
  t.add("ld.global.u16 %d, [%at];", "l=h", "ld.global.u16 into 64 bits");
  t.add("ld.global.s32 %d, [%at];", "l=r", "ld.global.s32 into 64 bits");
  for (const Access& a : kPlain) {
    t.add(std::string("ld.global.") + a.type + " %d, [%at];", std::string(1, a.result) + "=" + a.memory,
          std::string("ld.global.") + a.type);
    t.add(std::string("ld.") + a.type + " %d, [%at];", std::string(1, a.result) + "=" + a.memory,
          std::string("ld.") + a.type, "a generic address of global memory is the global address");
  }
  for (const char* hint :
       {".ca", ".cg", ".cs", ".lu", ".cv", ".nc", ".ca.nc", ".L1::no_allocate", ".L1::evict_last",
        ".L1::evict_first", ".L2::64B", ".L2::128B", ".L2::256B", ".nc.L1::no_allocate.L2::128B"}) {
    t.add(std::string("ld.global") + hint + ".b32 %d, [%at];", "r=r",
          std::string("ld.global") + hint + ".b32");
  }
  for (const char* order : {"volatile", "relaxed.gpu", "acquire.gpu", "acquire.sys", "relaxed.cta", "weak"}) {
    t.add((std::string("ld.") + order + ".global.b32 %d, [%at];"), "r=r",
          std::string("ld.") + order + ".global.b32");
  }
  for (const auto& [vector, registers, combine] :
       {std::tuple<const char*, const char*, const char*>{"v2.b32", "{%t, %u}", "sub.u32 %d, %t, %u;"},
        {"v4.b32", "{%t, %u, %d, %lane}", "sub.u32 %d, %d, %lane; sub.u32 %t, %t, %u; xor.b32 %d, %d, %t;"},
        {"v2.u8", "{%t, %u}", "sub.u32 %d, %t, %u;"},
        {"v4.u8", "{%t, %u, %d, %lane}", "sub.u32 %d, %d, %lane; mad.lo.u32 %d, %t, %u, %d;"},
        {"v2.s16", "{%t, %u}", "sub.u32 %d, %t, %u;"},
        {"v4.u16", "{%t, %u, %d, %lane}", "sub.u32 %d, %d, %lane; mad.lo.u32 %d, %t, %u, %d;"}}) {
    t.add(std::string("and.b32 %u, %i, 4092; mad.wide.u32 %at, %u, 4, %from; ld.global.") + vector + " " +
              registers + ", [%at]; " + combine,
          "r=n", std::string("ld.global.") + vector, "elements in the order of addresses");
    t.add(std::string("and.b32 %u, %i, 4092; mad.wide.u32 %at, %u, 4, %from; ld.global.nc.") + vector + " " +
              registers + ", [%at]; " + combine,
          "r=n", std::string("ld.global.nc.") + vector, "elements in the order of addresses");
  }
  t.add(
      "and.b32 %u, %i, 4092; mad.wide.u32 %at, %u, 4, %from; ld.global.v2.b64 {%w, %d}, [%at]; sub.u64 %d, "
      "%w, %d;",
      "l=n", "ld.global.v2.b64", "elements in the order of addresses");
  t.add(
      "and.b32 %u, %i, 4092; mad.wide.u32 %at, %u, 4, %from; { .reg .b128 %q; .reg .b64 %x; ld.global.b128 "
      "%q, [%at]; mov.b128 {%x, %d}, %q; sub.u64 %d, %x, %d; }",
      "l=n", "ld.global.b128", "128 bits, low word first");
  for (const char* space : {"shared", "local"}) {
    for (const Access& a : kNarrow) {
      t.add(private_bytes(space) + "st." + space + ".b32 [%t], %a; st." + space + "." + a.type +
                " [%t+2], %b; ld." + space + ".b32 %d, [%t]; }",
            "r=nn", std::string("st.") + space + "." + a.type, "a narrow store changes its own bytes alone");
      t.add(private_bytes(space) + "st." + space + ".b32 [%t], %a; ld." + space + "." + a.type +
                " %d, [%t+2]; }",
            std::string(1, a.result) + "=n", std::string("ld.") + space + "." + a.type, "little-endian");
    }
    for (const Access& a : kPlain) {
      t.add(private_bytes(space) + "st." + space + "." + a.type + " [%t+8], %a; ld." + space + "." + a.type +
                " %d, [%t+8]; }",
            std::string(1, a.result) + "=" + a.memory,
            std::string("st.") + space + "." + a.type + ", ld." + space + "." + a.type,
            "what was stored comes back");
    }
    t.add(private_bytes(space) + "st." + space + ".v4.b32 [%t], {%a, %b, %c, %a}; ld." + space +
              ".v2.b32 {%u, %d}, [%t+8]; sub.u32 %d, %u, %d; }",
          "r=nnn", std::string("st.") + space + ".v4.b32, ld." + space + ".v2.b32",
          "elements in the order of addresses");
    t.add(private_bytes(space) + "st." + space + ".v2.b64 [%t], {%a, %b}; ld." + space +
              ".v4.b32 {%lane, %u, %t, %i}, [%t]; xor.b32 %u, %u, %t; cvt.u64.u32 %d, %u; }",
          "l=mm", std::string("st.") + space + ".v2.b64, ld." + space + ".v4.b32",
          "elements in the order of addresses");
    t.add(private_bytes(space) + "st." + space + ".v4.u8 [%t], {%a, %b, %c, %a}; ld." + space +
              ".b32 %d, [%t]; }",
          "r=nnn", std::string("st.") + space + ".v4.u8", "low bytes in the order of addresses");
    t.add(private_bytes(space) + "cvt.u64.u32 %w, %t; cvta." + space +
              ".u64 %w, %w; st.b32 [%w], %a; st.b8 [%w+1], %b; ld." + space + ".b32 %d, [%t]; }",
          "r=nn", std::string("cvta.") + space + ".u64, st.b32",
          "a generic address reaches the space it was made from");
    t.add(private_bytes(space) + "cvt.u64.u32 %w, %t; cvta." + space + ".u64 %w, %w; st." + space +
              ".b32 [%t], %a; ld.b32 %d, [%w]; }",
          "r=n", std::string("cvta.") + space + ".u64, ld.b32",
          "a generic address reaches the space it was made from");
    t.add(private_bytes(space) + "cvt.u64.u32 %w, %t; cvta." + space + ".u64 %w, %w; cvta.to." + space +
              ".u64 %w, %w; cvt.u32.u64 %u, %w; sub.u32 %d, %u, %t; }",
          "r=n", std::string("cvta.to.") + space + ".u64", "there and back is the same address");
    for (const char* tested : {"global", "shared", "local", "const"}) {
      t.add(private_bytes(space) + "cvt.u64.u32 %w, %t; cvta." + space + ".u64 %w, %w; isspacep." + tested +
                " %p, %w; selp.b32 %d, 1, 0, %p; }",
            "r=n", std::string("isspacep.") + tested + " of " + space,
            "windows of generic addresses do not overlap");
    }
  }
  for (const char* tested : {"global", "shared", "local"})
    t.add(std::string("isspacep.") + tested + " %p, %from; selp.b32 %d, 1, 0, %p;", "r=n",
          std::string("isspacep.") + tested + " of global", "windows of generic addresses do not overlap");
  for (const char* hint : {"", ".wb", ".cg", ".cs", ".wt", ".L1::no_allocate"}) {
    t.add(std::string("st.global") + hint + ".b32 [%to], %a; ld.global.b32 %d, [%to];", "r=n",
          std::string("st.global") + hint + ".b32");
  }
  for (const char* order : {"volatile", "relaxed.gpu", "release.gpu", "release.sys", "weak"}) {
    t.add(std::string("st.") + order + ".global.b32 [%to], %a; ld.global.b32 %d, [%to];", "r=n",
          std::string("st.") + order + ".global.b32");
  }
  t.add(
      "st.global.b8 [%to], %a; st.global.b8 [%to+1], %b; st.global.b16 [%to+2], %c; ld.global.b32 %d, [%to];",
      "r=nnn", "st.global.b8, st.global.b16", "a narrow store changes its own bytes alone");
  for (const char* what :
       {"prefetch.global.L1 [%at];", "prefetch.global.L2 [%at];", "prefetch.global.L2::evict_last [%at];",
        "prefetchu.L1 [%at];", "applypriority.global.L2::evict_normal [%w], 128;",
        "discard.global.L2 [%w], 128;"}) {
    const std::string_view text = what;
    if (text.starts_with("discard")) continue;
    const std::string align = text.find("%w") != std::string_view::npos ? "and.b64 %w, %at, -128; " : "";
    t.add(align + what + " mov.b32 %d, %a;", "r=n", std::string(text.substr(0, text.find(' '))),
          "a prefetch changes no value");
  }
  t.add("ldu.global.b32 %d, [%at];", "r=n", "ldu.global.b32");
  t.add("createpolicy.fractional.L2::evict_first.b64 %w, 0.5; ld.global.L2::cache_hint.b32 %d, [%at], %w;",
        "r=n", "createpolicy, ld.global.L2::cache_hint", "a policy changes no value");
  t.add(
      "createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %w; st.global.L2::cache_hint.b32 "
      "[%to], %a, %w; ld.global.b32 %d, [%to];",
      "r=n", "createpolicy, st.global.L2::cache_hint", "a policy changes no value");
  t.add("nanosleep.u32 20; mov.b32 %d, %a;", "r=n", "nanosleep.u32", "changes no value");
  for (const char* what :
       {"membar.cta", "membar.gl", "membar.sys", "fence.acq_rel.cta", "fence.acq_rel.gpu", "fence.sc.gpu",
        "fence.sc.sys", "fence.acq_rel.cluster", "fence.proxy.async", "fence.proxy.async.global",
        "fence.proxy.async.shared::cta", "fence.proxy.alias"}) {
    t.add(std::string("st.global.b32 [%to], %a; ") + what + "; ld.global.b32 %d, [%to];", "r=n", what,
          "a fence changes no value");
  }
}

// An atomic operation of a vector on what %a and, of 16 bytes, %b hold: the result says what was there and
// what is.
void add_vector_atomics(Table& t) {
  t.family(
      {"vector atomics", "9.7.13.5", "each element is combined with what is there, as the scalar form does"});
  struct Form {
    const char *op, *vector, *type;
    char letter;                // of the inputs
    uint32_t registers, bytes;  // bytes of a register
  };
  for (const Form& f : {Form{"add", "v2", "f32", 'f', 2, 4},
                        {"add", "v4", "f32", 'f', 4, 4},
                        {"add.noftz", "v2", "f16", 'X', 2, 2},
                        {"add.noftz", "v4", "f16", 'X', 4, 2},
                        {"add.noftz", "v8", "f16", 'X', 8, 2},
                        {"add.noftz", "v2", "bf16", 'Y', 2, 2},
                        {"add.noftz", "v8", "bf16", 'Y', 8, 2},
                        {"add.noftz", "v2", "f16x2", 'X', 2, 4},
                        {"add.noftz", "v4", "f16x2", 'X', 4, 4},
                        {"add.noftz", "v2", "bf16x2", 'Y', 2, 4},
                        {"add.noftz", "v4", "bf16x2", 'Y', 4, 4},
                        {"min.noftz", "v4", "f16", 'X', 4, 2},
                        {"max.noftz", "v4", "bf16", 'Y', 4, 2},
                        {"min.noftz", "v2", "bf16x2", 'Y', 2, 4},
                        {"max.noftz", "v4", "f16x2", 'X', 4, 4}}) {
    const uint32_t words = f.registers * f.bytes / 4;  // of the vector
    const std::string kind =
        ".reg .b" + std::to_string(8 * f.bytes) + " %y<8>; .reg .b32 %o<4>, %n<4>; .reg .b64 %m; ";
    std::string list, before, after, sum;
    // The words of memory are the input, rotated by one element a word; those of the operand another input.
    const char sources[] = "abce";
    for (uint32_t k = 0; k < words; ++k)
      before += std::string("mov.b32 %o") + char('0' + k) + ", %" + sources[k % 2] + "; ";
    for (uint32_t k = 0; k < words; ++k) {
      const std::string operand = std::string("%") + sources[2 + k % 2], number = std::to_string(k);
      if (f.bytes == 4)
        after += "mov.b32 %y" + number + ", " + operand + "; ";
      else
        after += "mov.b32 {%y" + std::to_string(2 * k) + ", %y" + std::to_string(2 * k + 1) + "}, " +
                 operand + "; ";
    }
    for (uint32_t r = 0; r < f.registers; ++r) list += (r ? ", %y" : "%y") + std::to_string(r);
    const std::string store = words == 1   ? "st.global.b32 [%m], %o0; "
                              : words == 2 ? "st.global.v2.b32 [%m], {%o0, %o1}; "
                                           : "st.global.v4.b32 [%m], {%o0, %o1, %o2, %o3}; ";
    const std::string load = words == 1   ? "ld.global.b32 %n0, [%m]; "
                             : words == 2 ? "ld.global.v2.b32 {%n0, %n1}, [%m]; "
                                          : "ld.global.v4.b32 {%n0, %n1, %n2, %n3}, [%m]; ";
    sum = "mov.b32 %d, 0; ";
    for (uint32_t k = 0; k < words; ++k) {
      const std::string number = std::to_string(k);
      if (f.bytes == 2)
        sum += "mov.b32 %o" + number + ", {%y" + std::to_string(2 * k) + ", %y" + std::to_string(2 * k + 1) +
               "}; ";
      else
        sum += "mov.b32 %o" + number + ", %y" + number + "; ";
      sum += "mad.lo.u32 %d, %d, 31, %o" + number + "; mad.lo.u32 %d, %d, 31, %n" + number + "; ";
    }
    for (bool red : {false, true}) {
      const std::string opcode =
          std::string(red ? "red" : "atom") + ".global." + f.op + "." + f.vector + "." + f.type;
      // A place of 16 bytes for each thread behind the results.
      const std::string place =
          "ld.param.u64 %m, [out]; mad.wide.u32 %m, %i, 16, %m; add.u64 %m, %m, 16384; ";
      t.add("{ " + kind + place + before + store + after + opcode +
                (red ? " [%m], {" : " {" + list + "}, [%m], {") + list + "}; " + load + sum + "}",
            std::string("r=") + f.letter + f.letter + f.letter + f.letter, opcode)
          .output_elements *= 5;
    }
  }
  t.family({"128-bit atomics", "9.7.13.5", "16 bytes are exchanged as one"});
  for (const char* space : {"shared", "global"}) {
    const bool shared = std::string(space) == "shared";
    const std::string start =
        std::string("{ .reg .b128 %x, %y, %z; .reg .b64 %m, %n; .reg .b32 %o; ") +
        (shared ? ".shared .align 16 .b8 place[2048]; mov.u32 %o, place; mov.u32 %u, "
                  "%tid.x; mad.lo.u32 %o, %u, 16, %o; "
                : "ld.param.u64 %m, [out]; mad.wide.u32 %m, %i, 16, %m; add.u64 %m, %m, 32768; ");
    const std::string at = shared ? "[%o]" : "[%m]";
    const std::string init = std::string("st.") + space + ".v2.b64 " + at + ", {%a, %b}; ";
    const std::string finish = std::string("mov.b128 {%d, %w}, %z; mad.lo.u64 %d, %d, 31, %w; ld.") + space +
                               ".v2.b64 {%w, %n}, " + at +
                               "; mad.lo.u64 %d, %d, 31, %w; mad.lo.u64 %d, %d, 31, %n; }";
    const std::string name = std::string("atom.") + space;
    t.add(start + init + "mov.b128 %x, {%b, %a}; " + name + ".exch.b128 %z, " + at + ", %x; " + finish,
          "l=ll", name + ".exch.b128")
        .output_elements *= 3;
    // Equal in one half of the threads, in one word of four less in the others.
    t.add(start + init +
              "and.b32 %t, %i, 1; cvt.u64.u32 %w, %t; xor.b64 %w, %w, %b; mov.b128 %x, {%a, %w}; mov.b128 "
              "%y, {%b, %a}; " +
              name + ".cas.b128 %z, " + at + ", %x, %y; " + finish,
          "l=ll", name + ".cas.b128")
        .output_elements *= 3;
  }
}

void add_atomics(Table& t) {
  t.family({"atomics", "9.7.13",
            "the old value comes back, the new one stays; .inc and .dec wrap at the operand"});
  struct Operation {
    const char* text;  // after the space
    char letter;
    bool three = false;
    bool returns_only = false;
  };
  const Operation operations[] = {{"add.u32", 'r'},
                                  {"add.s32", 'r'},
                                  {"add.u64", 'l'},
                                  {"min.u32", 'r'},
                                  {"min.s32", 'r'},
                                  {"max.u32", 'r'},
                                  {"max.s32", 'r'},
                                  {"min.u64", 'l'},
                                  {"min.s64", 'l'},
                                  {"max.u64", 'l'},
                                  {"max.s64", 'l'},
                                  {"inc.u32", 'r'},
                                  {"dec.u32", 'r'},
                                  {"and.b32", 'r'},
                                  {"or.b32", 'r'},
                                  {"xor.b32", 'r'},
                                  {"and.b64", 'l'},
                                  {"or.b64", 'l'},
                                  {"xor.b64", 'l'},
                                  {"exch.b32", 'r', false, true},
                                  {"exch.b64", 'l', false, true},
                                  {"cas.b32", 'r', true, true},
                                  {"cas.b64", 'l', true, true},
                                  {"cas.b16", 'h', true, true},
                                  {"add.f32", 'f'},
                                  {"add.f64", 'd'},
                                  {"add.noftz.f16", 'x'},
                                  {"add.noftz.bf16", 'y'},
                                  {"add.noftz.f16x2", 'X'},
                                  {"add.noftz.bf16x2", 'Y'}};
  for (const char* space : {"global", "shared", "generic"}) {
    const bool shared = std::string_view(space) == "shared", generic = std::string_view(space) == "generic";
    for (const Operation& op : operations) {
      const char letter = op.letter;
      const bool narrow = letter == 'h' || letter == 'x' || letter == 'y';
      const std::string bits = narrow ? "b16" : letter == 'l' || letter == 'd' ? "b64" : "b32";
      const std::string at = shared ? "[%t]" : "[%to]";
      const std::string place = shared ? private_bytes("shared") : std::string("{ ");
      const std::string dot = generic ? "" : std::string(".") + space;
      const bool floating = std::string_view("fdxyXY").find(letter) != std::string_view::npos;
      // A compare-and-swap succeeds for every other element.
      const std::string expected =
          op.three ? "and.b32 %u, %i, 1; setp.ne.s32 %p, %u, 0; selp." + bits + " %old, %a, %b, %p; " : "";
      const std::string declared = "{ .reg ." + bits + " %old; ";
      const std::string operands = op.three ? "%old, %c" : "%b";
      const std::string check = "sub." +
                                std::string(bits == "b64"   ? "u64"
                                            : bits == "b32" ? "u32"
                                                            : "u16") +
                                " %old, %old, %a; xor." + bits + " %d, %d, %old; } }";
      t.add(place + declared + expected + "st" + dot + "." + bits + " " + at + ", %a; atom" + dot + "." +
                op.text + " %old, " + at + ", " + operands + "; ld" + dot + "." + bits + " %d, " + at + "; " +
                check,
            std::string(1, letter) + "=" + std::string(op.three ? 3 : 2, letter),
            std::string("atom") + dot + "." + op.text,
            floating ? "rounded to nearest even; f32 flushes subnormals in global memory and keeps them in "
                       "shared memory"
                     : "");
      if (op.returns_only) continue;
      t.add(place + "st" + dot + "." + bits + " " + at + ", %a; red" + dot + "." + op.text + " " + at +
                ", %b; ld" + dot + "." + bits + " %d, " + at + "; }",
            std::string(1, letter) + "=" + std::string(2, letter), std::string("red") + dot + "." + op.text,
            floating ? "rounded to nearest even; f32 flushes subnormals in global memory and keeps them in "
                       "shared memory"
                     : "the new value stays");
    }
  }
  for (const char* order :
       {"relaxed.cta", "relaxed.gpu", "acquire.gpu", "release.gpu", "acq_rel.gpu", "acq_rel.sys"}) {
    t.add(std::string("st.global.b32 [%to], %a; atom.") + order +
              ".global.add.u32 %u, [%to], %b; ld.global.b32 %d, [%to]; xor.b32 %d, %d, %u;",
          "r=rr", std::string("atom.") + order + ".global.add.u32",
          "an order changes no value of one thread");
  }
}

}  // namespace

void add_memory_rows(Table& t) {
  add_accesses(t);
  add_atomics(t);
  add_vector_atomics(t);
}

}  // namespace fa4::conformance
