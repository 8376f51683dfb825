// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic, logic, shifts and bit fields.
#include "row.h"

namespace fa4::conformance {
namespace {

char width(std::string_view type) {
  return type.ends_with("16") ? 'h' : type.ends_with("64") ? 'l' : 'r';
}
std::string same(std::string_view type, int sources) {
  return std::string(1, width(type)) + "=" + std::string(size_t(sources), width(type));
}

constexpr const char* kAll[] = {"s16", "u16", "s32", "u32", "s64", "u64"};
constexpr const char* kSigned[] = {"s16", "s32", "s64"};

}  // namespace

void add_integer_rows(Table& t) {
  t.family(
      {"integer arithmetic", "9.7.1", "results wrap modulo 2^n; .hi is the upper half of the exact product"});
  for (const char* opcode : {"add.", "sub.", "mul.lo.", "mul.hi.", "min.", "max."}) {
    for (const char* type : kAll) t.add(std::string(opcode) + type, same(type, 2));
  }
  for (const char* opcode : {"mad.lo.", "mad.hi."}) {
    for (const char* type : kAll) t.add(std::string(opcode) + type, same(type, 3));
  }
  for (const char* type : {"s16", "u16"}) {
    t.add(std::string("mul.wide.") + type, "r=hh");
    t.add(std::string("mad.wide.") + type, "r=hhr");
  }
  for (const char* type : {"s32", "u32"}) {
    t.add(std::string("mul.wide.") + type, "l=rr");
    t.add(std::string("mad.wide.") + type, "l=rrl");
    for (const char* part : {"lo.", "hi."}) {
      t.add(std::string("mul24.") + part + type, "r=rr", "",
            "the factors are the low 24 bits; .hi is bits 16 to 47 of the product");
      t.add(std::string("mad24.") + part + type, "r=rrr", "",
            "the factors are the low 24 bits; .hi is bits 16 to 47 of the product");
    }
  }
  for (const char* type : kAll) {
    t.add(std::string("sad.") + type, same(type, 3), "",
          "c plus the absolute difference of a and b as the type orders them");
    t.add(std::string("div.") + type, same(type, 2), "",
          "truncates; the most negative number by -1 wraps; by zero gives all ones");
    t.add(std::string("rem.") + type, same(type, 2), "", "has the dividend's sign; by zero gives all ones");
  }
  for (const char* type : kSigned) {
    t.add(std::string("neg.") + type, same(type, 1));
    t.add(std::string("abs.") + type, same(type, 1), "",
          "the most negative number is its own absolute value");
  }
  t.add("add.sat.s32", "r=rr", "", "clamps to the range of s32");
  t.add("sub.sat.s32", "r=rr", "", "clamps to the range of s32");
  for (const char* opcode : {"add", "min", "max"}) {
    for (const char* type : {".u16x2", ".s16x2"})
      t.add(opcode + std::string(type), "r=rr", "", "two halves that do not touch each other");
  }
  t.add("min.relu.s16x2", "r=rr", "", "a negative result becomes 0");
  t.add("max.relu.s32", "r=rr", "", "a negative result becomes 0");
  for (const char* a : {"s32", "u32"}) {
    for (const char* b : {"s32", "u32"}) {
      t.add(std::string("dp4a.") + a + "." + b, "r=nnr", "",
            "four products of bytes added to c, modulo 2^32");
      t.add(std::string("dp2a.lo.") + a + "." + b, "r=nnr", "",
            "two products of a half and a byte of b's lower half, added to c");
      t.add(std::string("dp2a.hi.") + a + "." + b, "r=nnr", "",
            "two products of a half and a byte of b's upper half, added to c");
    }
  }
  t.add("add.cc.u32 %t, %a, %b; addc.u32 %d, %a, %c;", "r=rrr", "add.cc.u32, addc.u32",
        "the carry of the first addition enters the second");
  t.add("sub.cc.u32 %t, %a, %b; subc.u32 %d, %a, %c;", "r=rrr", "sub.cc.u32, subc.u32",
        "the borrow of the first subtraction enters the second");
  t.add("mad.lo.cc.u32 %t, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;", "r=rrr", "mad.lo.cc.u32, madc.hi.u32",
        "the carry of the low part enters the high part");

  t.family({"bit counting and fields", "9.7.1", "counts from bit 0; a length of 0 is an empty field"});
  for (const char* type : {"b32", "b64"}) {
    t.add(std::string("popc.") + type, std::string("r=") + width(type));
    t.add(std::string("clz.") + type, std::string("r=") + width(type));
    t.add(std::string("brev.") + type, same(type, 1));
    t.add(std::string("bfi.") + type, std::string(1, width(type)) + "=" + width(type) + width(type) + "ss",
          "", "position and length are their low 8 bits; what leaves the width is lost");
  }
  for (const char* type : {"u32", "s32", "u64", "s64"}) {
    t.add(std::string("bfind.") + type, std::string("r=") + width(type), "",
          "the highest bit that differs from the sign, all ones if there is none");
    t.add(std::string("bfind.shiftamt.") + type, std::string("r=") + width(type), "",
          "how far to shift left to bring that bit to the top");
    t.add(std::string("bfe.") + type, std::string(1, width(type)) + "=" + width(type) + "ss", "",
          "position and length are their low 8 bits; beyond the top comes the sign");
  }
  t.add("and.b32 %t, %b, 31; fns.b32 %d, %a, %t, %c;", "r=nrr", "fns.b32",
        "the c-th set bit from the base, all ones if there is none");
  for (const char* mode : {"clamp", "wrap"}) {
    t.add(std::string("bmsk.") + mode + ".b32", "r=ss", "",
          "length ones from the position; both are clamped to 32, or wrapped modulo 32");
    t.add(std::string("szext.") + mode + ".s32", "r=rs", "",
          "sign extension of the low n bits, n clamped to 32 or wrapped modulo 32");
    t.add(std::string("szext.") + mode + ".u32", "r=rs", "",
          "zero extension of the low n bits, n clamped to 32 or wrapped modulo 32");
  }

  t.family({"logic and shifts", "9.7.8", "bit by bit; shift amounts beyond the width are clamped to it"});
  for (const char* opcode : {"and.", "or.", "xor."}) {
    for (const char* type : {"b16", "b32", "b64"}) t.add(std::string(opcode) + type, same(type, 2));
  }
  for (const char* type : {"b16", "b32", "b64"}) {
    t.add(std::string("not.") + type, same(type, 1));
    t.add(std::string("cnot.") + type, same(type, 1), "", "1 for zero, else 0");
    t.add(std::string("shl.") + type, std::string(1, width(type)) + "=" + width(type) + "s");
    t.add(std::string("shr.") + type, std::string(1, width(type)) + "=" + width(type) + "s");
  }
  for (const char* type : kAll)
    t.add(std::string("shr.") + type, std::string(1, width(type)) + "=" + width(type) + "s");
  for (const char* mode : {"l.wrap", "l.clamp", "r.wrap", "r.clamp"}) {
    t.add(std::string("shf.") + mode + ".b32", "r=nns", "",
          "a is the low word, b the high word; the amount wraps at 32 or is clamped to it");
  }
  for (const char* table : {"0x01", "0x1b", "0x3c", "0x78", "0x80", "0x96", "0xca", "0xe8", "0xfe"}) {
    t.add(std::string("lop3.b32 %d, %a, %b, %c, ") + table + ";", "r=nnn", std::string("lop3.b32 ") + table,
          "bit i of the table is the result for (a, b, c) = the bits of i, a highest");
  }
  t.add(
      "{ .reg .pred %x, %y; setp.lt.s32 %x, %a, 0; setp.lt.s32 %y, %b, 0; and.pred %p, %x, %y; or.pred %q, "
      "%x, !%p; xor.pred %x, %p, %q; not.pred %y, %x; selp.b32 %d, 1, 0, %p; selp.b32 %t, 2, 0, %q; or.b32 "
      "%d, %d, %t; selp.b32 %t, 4, 0, %x; or.b32 %d, %d, %t; selp.b32 %t, 8, 0, %y; or.b32 %d, %d, %t; }",
      "r=rr", "and, or, xor, not.pred", "predicates have logic of their own");
}

void add_selection_rows(Table& t) {
  t.family({"comparison and selection", "9.7.6",
            "ordered comparisons with a NaN are false, unordered ones true; -0 equals +0"});
  constexpr const char* integer_comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (const char* type : kAll) {
    for (const char* c : integer_comparisons) {
      const std::string op = std::string("setp.") + c + "." + type;
      t.add(op + " %p, %a, %b; selp.b32 %d, 1, 0, %p;", std::string("r=") + width(type) + width(type), op);
    }
    if (type[0] == 'u') {
      for (const char* c : {"lo", "ls", "hi", "hs"}) {
        const std::string op = std::string("setp.") + c + "." + type;
        t.add(op + " %p, %a, %b; selp.b32 %d, 1, 0, %p;", std::string("r=") + width(type) + width(type), op,
              "lo, ls, hi, hs are the unsigned comparisons");
      }
    }
  }
  for (const char* type : {"b16", "b32", "b64"}) {
    for (const char* c : {"eq", "ne"}) {
      const std::string op = std::string("setp.") + c + "." + type;
      t.add(op + " %p, %a, %b; selp.b32 %d, 1, 0, %p;", std::string("r=") + width(type) + width(type), op);
    }
  }
  constexpr const char* float_comparisons[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                               "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  for (const char* c : float_comparisons) {
    for (const auto& [type, letter] : {std::pair{"f32", 'f'},
                                       {"ftz.f32", 'f'},
                                       {"f64", 'd'},
                                       {"f16", 'x'},
                                       {"ftz.f16", 'x'},
                                       {"bf16", 'y'}}) {
      const std::string op = std::string("setp.") + c + "." + type;
      t.add(op + " %p, %a, %b; selp.b32 %d, 1, 0, %p;", std::string("r=") + letter + letter, op);
    }
    for (const auto& [type, letter] : {std::pair{"f16x2", 'X'}, {"bf16x2", 'Y'}}) {
      const std::string op = std::string("setp.") + c + "." + type;
      t.add(op + " %p|%q, %a, %b; selp.b32 %d, 1, 0, %p; selp.b32 %t, 2, 0, %q; or.b32 %d, %d, %t;",
            std::string("r=") + letter + letter, op,
            "the first predicate is the low half's, the second the high half's");
    }
  }
  t.add(
      "setp.ge.s32 %q, %c, 0; setp.lt.and.s32 %p|%q, %a, %b, %q; selp.b32 %d, 1, 0, %p; selp.b32 %t, 2, 0, "
      "%q; or.b32 %d, %d, %t;",
      "r=rrr", "setp.lt.and.s32 p|q",
      "q gets the complement of the comparison, combined with the same operand");
  t.add(
      "setp.ge.s32 %q, %c, 0; setp.ne.or.u32 %p|%q, %a, %b, !%q; selp.b32 %d, 1, 0, %p; selp.b32 %t, 2, 0, "
      "%q; or.b32 %d, %d, %t;",
      "r=rrr", "setp.ne.or.u32 p|q",
      "q gets the complement of the comparison, combined with the same operand");
  t.add(
      "setp.ge.s32 %q, %c, 0; setp.gtu.xor.f32 %p|%q, %a, %b, %q; selp.b32 %d, 1, 0, %p; selp.b32 %t, 2, 0, "
      "%q; or.b32 %d, %d, %t;",
      "r=ffr", "setp.gtu.xor.f32 p|q",
      "q gets the complement of the comparison, combined with the same operand");
  for (const char* d : {"u32", "s32", "f32"}) {
    for (const auto& [type, letter] :
         {std::pair{"s32", 'r'}, {"u32", 'r'}, {"f32", 'f'}, {"f64", 'd'}, {"s64", 'l'}, {"u16", 'h'}}) {
      t.add(std::string("set.lt.") + d + "." + type, std::string("r=") + letter + letter, "",
            "all ones, or 1.0f, where the comparison holds, else 0");
    }
    t.add(std::string("set.geu.ftz.") + d + ".f32", "r=ff", "",
          "all ones, or 1.0f, where the comparison holds, else 0");
  }
  t.add("setp.ge.s32 %q, %c, 0; set.lt.and.u32.s32 %d, %a, %b, %q;", "r=rrr", "set.lt.and.u32.s32",
        "the comparison is combined with a predicate");
  t.add("set.gt.f16x2.f16x2", "r=XX", "", "1.0 in each half where the comparison holds, else 0");
  t.add("set.gt.u32.f16", "r=xx", "", "all ones where the comparison holds, else 0");
  t.add("set.le.bf16x2.bf16x2", "r=YY", "", "1.0 in each half where the comparison holds, else 0");
  for (const char* type : {"b16", "b32", "b64", "s16", "u32", "s64", "f32", "f64"}) {
    const char w = width(type);
    t.add(std::string("setp.gt.s32 %p, %c, 0; selp.") + type + " %d, %a, %b, %p;",
          std::string(1, w) + "=" + w + w + "r", std::string("selp.") + type,
          "a where the predicate holds, else b, bit for bit");
    t.add(std::string("slct.") + type + ".s32", std::string(1, w) + "=" + w + w + "r", "",
          "a where c >= 0, else b, bit for bit");
    t.add(std::string("slct.") + type + ".f32", std::string(1, w) + "=" + w + w + "f", "",
          "a where c >= 0, -0 among them; b for a NaN");
  }
  t.add("slct.ftz.u32.f32", "r=rrf", "", "a subnormal c counts as 0");

  t.family({"moves and permutations", "9.7.9", "bits are carried as they are"});
  t.add("prmt.b32", "r=nnn", "", "bytes by selector; bit 3 of a selector replicates the byte's sign");
  for (const char* mode : {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"}) {
    t.add(std::string("prmt.b32.") + mode, "r=nnn", "",
          "the low two bits of c choose the row of the mode's table");
  }
  t.add("mov.b32 {%h, %d}, %a;", "h=n", "mov.b32 unpack 2 x 16", "the first element is the low half");
  t.add("{ .reg .b16 %lo, %hi; mov.b32 {%lo, %hi}, %a; mov.b32 %d, {%hi, %lo}; }", "r=n",
        "mov.b32 pack 2 x 16", "the first element is the low half");
  t.add("mov.b64 {%t, %u}, %a; mov.b64 %d, {%u, %t};", "l=m", "mov.b64 pack 2 x 32",
        "the first element is the low word");
  t.add(
      "{ .reg .b16 %x0, %x1, %x2, %x3; mov.b64 {%x0, %x1, %x2, %x3}, %a; mov.b64 %d, {%x3, %x1, %x2, %x0}; }",
      "l=m", "mov.b64 pack 4 x 16", "elements from low to high");
  t.add(
      "{ .reg .b8 %x0, %x1, %x2, %x3; mov.b32 {%x0, %x1, %x2, %x3}, %a; mov.b32 %d, {%x3, %x1, %x2, %x0}; }",
      "r=n", "mov.b32 pack 4 x 8", "elements from low to high");
  t.add(
      "{ .reg .b128 %q2; .reg .b64 %x0, %x1; mov.b128 %q2, {%a, %b}; mov.b128 {%x0, %x1}, %q2; xor.b64 %d, "
      "%x0, %b; add.u64 %d, %d, %x1; }",
      "l=mm", "mov.b128", "two 64-bit elements, low first");
  for (const char* r : {"%laneid",
                        "%lanemask_eq",
                        "%lanemask_lt",
                        "%lanemask_le",
                        "%lanemask_gt",
                        "%lanemask_ge",
                        "%tid.x",
                        "%tid.y",
                        "%ntid.x",
                        "%ntid.z",
                        "%ctaid.x",
                        "%ctaid.y",
                        "%nctaid.x",
                        "%nctaid.z",
                        "%clusterid.x",
                        "%nclusterid.x",
                        "%cluster_ctaid.x",
                        "%cluster_nctaid.x",
                        "%cluster_ctarank",
                        "%cluster_nctarank",
                        "%dynamic_smem_size",
                        "%total_smem_size"}) {
    t.add(std::string("mov.u32 %d, ") + r + ";", "r=r", std::string("mov.u32 ") + r,
          "the register holds what its name says; a launch without clusters has clusters of one block");
  }
  t.add("cvt.s64.s32 %d, %a;", "l=r", "cvt.s64.s32 in a move", "sign extension");
}

}  // namespace fa4::conformance
