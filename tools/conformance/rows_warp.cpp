// SPDX-License-Identifier: Apache-2.0
// Instructions across the lanes of a warp, and predication.
#include "row.h"

namespace fa4::conformance {
namespace {

// %p: in turn true for all lanes, for none, for one, and at random, a warp each.
const std::string kPredicate =
    "shr.u32 %t, %i, 5; and.b32 %t, %t, 3; shr.u32 %u, %i, 7; and.b32 %u, %u, 31; setp.eq.s32 %p, %u, %lane; "
    "selp.b32 %u, 1, 0, %p; "
    "setp.eq.s32 %p, %t, 0; selp.b32 %u, 1, %u, %p; setp.eq.s32 %p, %t, 1; selp.b32 %u, 0, %u, %p; "
    "setp.eq.s32 %p, %t, 3; "
    "and.b32 %t, %a, 1; selp.b32 %u, %t, %u, %p; setp.ne.s32 %p, %u, 0; ";
// The lanes below %cut, and the others, execute the instruction with their own member mask.
std::string split(const std::string& instruction, int cut) {
  const uint32_t low = (1u << cut) - 1, high = ~low;
  const auto with = [&](uint32_t mask) {
    std::string text = instruction;
    text.replace(text.find("MASK"), 4, std::to_string(mask));
    return text;
  };
  return "{ .reg .pred %below; setp.lt.u32 %below, %lane, " + std::to_string(cut) + "; @%below bra LOW; " +
         with(high) + " bra.uni MEET; LOW: " + with(low) + " MEET: }";
}

}  // namespace

void add_warp_rows(Table& t) {
  t.family({"shuffles", "9.7.9.6",
            "c is the clamp and the segment mask; the predicate says whether the source lane was in range, "
            "else the own value comes back"});
  const std::string with_predicate = " selp.b32 %t, 0x10000, 0, %p; add.u32 %d, %d, %t;";
  for (const auto& [mode, clamps] :
       {std::pair{"up", std::vector<const char*>{"0", "0x1800", "0x1c00", "0x1e03"}},
        {"down", {"31", "0x181f", "0x1c1f", "0x1e0f"}},
        {"bfly", {"31", "0x181f", "0x1c1f", "7"}},
        {"idx", {"31", "0x181f", "0x1c1f", "0x1c0b"}}}) {
    for (const char* c : clamps) {
      t.add(std::string("shfl.sync.") + mode + ".b32 %d|%p, %a, %b, " + c + ", -1;" + with_predicate, "r=ns",
            std::string("shfl.sync.") + mode + ".b32 c " + c);
    }
    t.add(std::string("and.b32 %u, %c, 0x1f1f; shfl.sync.") + mode + ".b32 %d|%p, %a, %b, %u, -1;" +
              with_predicate,
          "r=nsn", std::string("shfl.sync.") + mode + ".b32 c of each lane");
    t.add(split(std::string("shfl.sync.") + mode + ".b32 %d|%p, %a, 1, " +
                    (std::string_view(mode) == "up" ? "0x1800" : "0x181f") + ", MASK;",
                8) +
              with_predicate,
          "r=n", std::string("shfl.sync.") + mode + ".b32 in two parts of the warp",
          "lanes outside the member mask do not take part");
  }
  t.family({"votes, matches and reductions", "9.7.13", "over the lanes of the member mask"});
  for (const char* kind : {"any", "all", "uni"}) {
    t.add(kPredicate + "vote.sync." + kind + ".pred %q, %p, -1; selp.b32 %d, 1, 0, %q;", "r=n",
          std::string("vote.sync.") + kind + ".pred");
    t.add(kPredicate + "vote.sync." + kind + ".pred %q, !%p, -1; selp.b32 %d, 1, 0, %q;", "r=n",
          std::string("vote.sync.") + kind + ".pred of a negated predicate");
    t.add(kPredicate + split(std::string("vote.sync.") + kind + ".pred %q, %p, MASK;", 12) +
              " selp.b32 %d, 1, 0, %q;",
          "r=n", std::string("vote.sync.") + kind + ".pred in two parts of the warp");
  }
  t.add(kPredicate + "vote.sync.ballot.b32 %d, %p, -1;", "r=n", "vote.sync.ballot.b32", "bit i is lane i");
  t.add(kPredicate + split("vote.sync.ballot.b32 %d, %p, MASK;", 20), "r=n",
        "vote.sync.ballot.b32 in two parts of the warp", "lanes outside the member mask are 0");
  t.add("and.b32 %t, %a, 3; match.any.sync.b32 %d, %t, -1;", "r=n", "match.any.sync.b32",
        "the lanes that hold the same value");
  t.add("and.b64 %w, %a, 0x100000001; match.any.sync.b64 %d, %w, -1;", "r=m", "match.any.sync.b64",
        "the lanes that hold the same value");
  t.add(
      "shr.u32 %t, %i, 5; and.b32 %t, %t, 1; setp.eq.s32 %p, %t, 0; and.b32 %u, %a, 1; selp.b32 %u, %i, %u, "
      "%p; and.b32 %u, %u, 1056; match.all.sync.b32 %d|%q, %u, -1; selp.b32 %t, 0x55, 0, %q; xor.b32 %d, %d, "
      "%t;",
      "r=n", "match.all.sync.b32", "all members if all hold the same value, else 0 and false");
  t.add(
      "shr.u32 %t, %i, 5; cvt.u64.u32 %w, %t; and.b32 %t, %t, 1; setp.eq.s32 %p, %t, 0; selp.b64 %w, %w, %a, "
      "%p; match.all.sync.b64 %d|%q, %w, -1; selp.b32 %t, 0x55, 0, %q; xor.b32 %d, %d, %t;",
      "r=m", "match.all.sync.b64", "all members if all hold the same value, else 0 and false");
  t.add("and.b32 %t, %a, 3; " + split("match.any.sync.b32 %d, %t, MASK;", 10), "r=n",
        "match.any.sync.b32 in two parts of the warp", "lanes outside the member mask do not count");
  for (const char* op :
       {"add.s32", "add.u32", "min.s32", "min.u32", "max.s32", "max.u32", "and.b32", "or.b32", "xor.b32"}) {
    t.add(std::string("redux.sync.") + op + " %d, %a, -1;", "r=r", std::string("redux.sync.") + op,
          "every member gets the result");
    t.add(split(std::string("redux.sync.") + op + " %d, %a, MASK;", 5), "r=r",
          std::string("redux.sync.") + op + " in two parts of the warp",
          "every member gets its part's result");
  }
  t.add("elect.sync %d|%p, -1; selp.b32 %t, 0x100, 0, %p; or.b32 %d, %d, %t;", "r=n", "elect.sync",
        "the lowest lane of the mask is elected");
  t.add(split("elect.sync %d|%p, MASK;", 9) + " selp.b32 %t, 0x100, 0, %p; or.b32 %d, %d, %t;", "r=n",
        "elect.sync in two parts of the warp", "the lowest lane of the mask is elected");
  t.add("activemask.b32 %d;", "r=n", "activemask.b32 of a converged warp", "all lanes are there");
  t.add("bar.warp.sync -1; mov.b32 %d, %a;", "r=n", "bar.warp.sync", "changes no value");

  t.family({"predication", "9.3",
            "a guarded instruction leaves its destination as it was where the guard is false"});
  for (const auto& [op, letters] : {std::pair{"add.s32 %d, %a, %b;", "r=rrn"},
                                    {"mul.wide.s32 %d, %a, %b;", "l=rrn"},
                                    {"fma.rn.f32 %d, %a, %b, %a;", "f=ffn"},
                                    {"cvt.rn.f16.f32 %d, %a;", "x=ffn"},
                                    {"ld.global.b32 %d, [%from];", "r=rrn"},
                                    {"mov.b64 %d, {%a, %b};", "l=rrn"}}) {
    const std::string zero = letters[0] == 'l'   ? "mov.b64 %d, 77; "
                             : letters[0] == 'x' ? "mov.b16 %d, 77; "
                                                 : "mov.b32 %d, 77; ";
    t.add(zero + "setp.lt.s32 %p, %c, 0; @%p " + op, letters, std::string("@p ") + op);
    t.add(zero + "setp.lt.s32 %p, %c, 0; @!%p " + op, letters, std::string("@!p ") + op);
  }
  t.add("setp.lt.s32 %p, %b, 0; mov.b32 %d, 7; @%p bra SKIP; mov.b32 %d, %a; SKIP: add.u32 %d, %d, 1;",
        "r=nn", "bra under a guard", "lanes part and meet again");
  t.add(
      "and.b32 %t, %b, 3; LIST: .branchtargets L0, L1, L2, L3; brx.idx %t, LIST; L0: add.u32 %d, %a, 1; bra "
      "MEET; L1: xor.b32 %d, %a, 77; bra MEET; L2: not.b32 %d, %a; bra MEET; L3: mul.lo.u32 %d, %a, 3; MEET: "
      "add.u32 %d, %d, %t;",
      "r=nn", "brx.idx", "each lane jumps to its own label");
  t.add(
      "and.b32 %t, %b, 3; setp.lt.s32 %p, %c, 0; mov.b32 %d, 9; LIST: .branchtargets L0, L1, L0, L1; @%p "
      "brx.idx %t, LIST; mov.b32 %d, 5; bra MEET; L0: add.u32 %d, %a, 1; bra MEET; L1: xor.b32 %d, %a, 77; "
      "MEET: add.u32 %d, %d, %t;",
      "r=nnn", "brx.idx under a guard", "the other lanes go on behind it");
  t.add("setp.lt.s32 %p, %b, 0; mov.b32 %d, %a; @%p exit;", "r=nn", "exit under a guard",
        "the lanes that exit store nothing, the others go on");
  t.add("setp.lt.s32 %p, %b, 0; mov.b32 %d, %a; @!%p ret;", "r=nn", "ret under a guard",
        "the lanes that return store nothing, the others go on");
  t.add(
      "setp.lt.s32 %p, %b, 0; mov.b32 %d, %a; @%p st.global.b32 [%to], %d; @!%p mov.b32 %d, 1; @%p "
      "ld.global.b32 %d, [%to];",
      "r=nn", "st and ld under a guard", "only the lanes of the guard store");
}

}  // namespace fa4::conformance
