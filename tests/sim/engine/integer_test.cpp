// SPDX-License-Identifier: Apache-2.0
// Integer and logical instructions against the host's arithmetic, on corner values and random ones.
#include "lanes.h"
#include "support/catch.h"

using namespace fa4::sim::test;

namespace {

using i128 = __int128;
using u128 = unsigned __int128;

// Value of the low `bits` bits of x, as the type says.
i128 value(uint64_t x, int bits, bool is_signed) {
  const u128 low = bits == 64 ? u128(x) : u128(x) & ((u128(1) << bits) - 1);
  return is_signed && (low >> (bits - 1) & 1) ? i128(low) - (i128(1) << bits) : i128(low);
}

struct IntegerType {
  const char* name;
  int bits;
  bool is_signed;
  char width() const { return bits == 16 ? 'h' : bits == 32 ? 'r' : 'l'; }
  i128 of(uint64_t x) const { return value(x, bits, is_signed); }
};
constexpr IntegerType kTypes[] = {{"s16", 16, true},  {"u16", 16, false}, {"s32", 32, true},
                                  {"u32", 32, false}, {"s64", 64, true},  {"u64", 64, false}};

LaneCase two(const IntegerType& t, const std::string& opcode, std::function<i128(i128, i128)> f) {
  return {opcode + "." + t.name + " %d, %a, %b;", t.width(), std::string(2, t.width()),
          [t, f](uint64_t a, uint64_t b, uint64_t) { return uint64_t(f(t.of(a), t.of(b))); }};
}

void check(const std::vector<LaneCase>& cases, Values first, Values second, Values third) {
  const auto mismatches = run_lane_cases(cases, first, second, third, 1);
  INFO(describe(mismatches));
  CHECK(mismatches.empty());
}

}  // namespace

TEST_CASE("integer arithmetic of every width") {
  std::vector<LaneCase> cases;
  for (const IntegerType& t : kTypes) {
    const int bits = t.bits;
    cases.push_back(two(t, "add", [](i128 a, i128 b) { return a + b; }));
    cases.push_back(two(t, "sub", [](i128 a, i128 b) { return a - b; }));
    cases.push_back(two(t, "mul.lo", [](i128 a, i128 b) { return i128(u128(a) * u128(b)); }));
    cases.push_back(two(t, "mul.hi", [bits](i128 a, i128 b) {
      // The magnitude of an unsigned 64 x 64 product fills 128 bits: take it as unsigned.
      return a >= 0 && b >= 0 ? i128(u128(a) * u128(b) >> bits) : (a * b) >> bits;
    }));
    cases.push_back(two(t, "min", [](i128 a, i128 b) { return a < b ? a : b; }));
    cases.push_back(two(t, "max", [](i128 a, i128 b) { return a < b ? b : a; }));
    // A division by zero is unspecified in PTX; hardware gives all ones for both.
    cases.push_back(two(t, "div", [](i128 a, i128 b) { return b == 0 ? i128(-1) : a / b; }));
    cases.push_back(two(t, "rem", [](i128 a, i128 b) { return b == 0 ? i128(-1) : a % b; }));
    cases.push_back({std::string("mad.lo.") + t.name + " %d, %a, %b, %c;", t.width(),
                     std::string(3, t.width()),
                     [](uint64_t a, uint64_t b, uint64_t c) { return a * b + c; }});
    if (t.is_signed) {
      cases.push_back({std::string("neg.") + t.name + " %d, %a;",
                       t.width(),
                       {t.width()},
                       [](uint64_t a, uint64_t, uint64_t) { return 0 - a; }});
      cases.push_back({std::string("abs.") + t.name + " %d, %a;",
                       t.width(),
                       {t.width()},
                       [t](uint64_t a, uint64_t, uint64_t) { return t.of(a) < 0 ? 0 - a : a; }});
    }
    if (bits < 64) {
      const char wide = bits == 16 ? 'r' : 'l';
      cases.push_back({std::string("mul.wide.") + t.name + " %d, %a, %b;", wide, std::string(2, t.width()),
                       [t](uint64_t a, uint64_t b, uint64_t) { return uint64_t(t.of(a) * t.of(b)); }});
      cases.push_back({std::string("mad.wide.") + t.name + " %d, %a, %b, %c;", wide,
                       std::string(2, t.width()) + wide,
                       [t](uint64_t a, uint64_t b, uint64_t c) { return uint64_t(t.of(a) * t.of(b)) + c; }});
    }
    if (bits == 32) {
      cases.push_back(
          {std::string("mad.hi.") + t.name + " %d, %a, %b, %c;", 'r', "rrr",
           [t](uint64_t a, uint64_t b, uint64_t c) { return uint64_t((t.of(a) * t.of(b)) >> 32) + c; }});
    }
  }
  check(cases, Values::integers, Values::integers, Values::integers);
}

TEST_CASE("logic, permutation and bit counting") {
  std::vector<LaneCase> cases;
  for (const auto& [name, width] : {std::pair{"b16", 'h'}, {"b32", 'r'}, {"b64", 'l'}}) {
    const std::string t = name, s2(2, width);
    cases.push_back(
        {"and." + t + " %d, %a, %b;", width, s2, [](uint64_t a, uint64_t b, uint64_t) { return a & b; }});
    cases.push_back(
        {"or." + t + " %d, %a, %b;", width, s2, [](uint64_t a, uint64_t b, uint64_t) { return a | b; }});
    cases.push_back(
        {"xor." + t + " %d, %a, %b;", width, s2, [](uint64_t a, uint64_t b, uint64_t) { return a ^ b; }});
    cases.push_back(
        {"not." + t + " %d, %a;", width, {width}, [](uint64_t a, uint64_t, uint64_t) { return ~a; }});
  }
  for (const auto& [name, width, bits] : {std::tuple{"b32", 'r', 32}, {"b64", 'l', 64}}) {
    const std::string t = name;
    const int n = bits;
    cases.push_back({"popc." + t + " %d, %a;", 'r', {width}, [](uint64_t a, uint64_t, uint64_t) {
                       uint64_t count = 0;
                       for (; a; a >>= 1) count += a & 1;
                       return count;
                     }});
    cases.push_back({"clz." + t + " %d, %a;", 'r', {width}, [n](uint64_t a, uint64_t, uint64_t) {
                       uint64_t count = 0;
                       for (int i = n - 1; i >= 0 && !(a >> i & 1); --i) ++count;
                       return count;
                     }});
    cases.push_back({"brev." + t + " %d, %a;", width, {width}, [n](uint64_t a, uint64_t, uint64_t) {
                       uint64_t r = 0;
                       for (int i = 0; i < n; ++i) r = r << 1 | (a >> i & 1);
                       return r;
                     }});
  }
  const auto highest = [](uint32_t x) {
    for (int i = 31; i >= 0; --i) {
      if (x >> i & 1) return uint64_t(i);
    }
    return uint64_t(0xFFFFFFFF);
  };
  cases.push_back(
      {"bfind.u32 %d, %a;", 'r', "r", [=](uint64_t a, uint64_t, uint64_t) { return highest(uint32_t(a)); }});
  // For signed inputs: the highest bit that differs from the sign.
  cases.push_back({"bfind.s32 %d, %a;", 'r', "r", [=](uint64_t a, uint64_t, uint64_t) {
                     return highest(a >> 31 & 1 ? ~uint32_t(a) : uint32_t(a));
                   }});
  cases.push_back({"prmt.b32 %d, %a, %b, %c;", 'r', "rrr", [](uint64_t a, uint64_t b, uint64_t c) {
                     const uint64_t pool = b << 32 | a;
                     uint64_t r = 0;
                     for (int i = 0; i < 4; ++i) {
                       const uint64_t nibble = c >> (4 * i) & 0xF, byte = pool >> (nibble % 8 * 8) & 0xFF;
                       // Bit 3 of a selector nibble replicates the sign of the byte.
                       r |= (nibble & 8 ? (byte & 0x80 ? 0xFFull : 0) : byte) << (8 * i);
                     }
                     return r;
                   }});
  Random random(7);
  for (int i = 0; i < 24; ++i) {
    const uint32_t table = i == 0   ? 0xE8
                           : i == 1 ? 0x96
                           : i == 2 ? 0
                           : i == 3 ? 0xFF
                                    : uint32_t(random.next() & 0xFF);
    cases.push_back({"lop3.b32 %d, %a, %b, %c, " + std::to_string(table) + ";", 'r', "rrr",
                     [table](uint64_t a, uint64_t b, uint64_t c) {
                       uint64_t r = 0;
                       for (int k = 0; k < 32; ++k)
                         r |= uint64_t(table >> ((a >> k & 1) * 4 + (b >> k & 1) * 2 + (c >> k & 1)) & 1)
                              << k;
                       return r;
                     }});
  }
  check(cases, Values::integers, Values::integers, Values::integers);
}

TEST_CASE("shifts and bit fields, amounts beyond the width included") {
  std::vector<LaneCase> cases;
  for (const IntegerType& t : kTypes) {
    const std::string sources = {t.width(), 'r'};
    const int bits = t.bits;
    if (!t.is_signed) {
      cases.push_back(
          {"shl.b" + std::to_string(bits) + " %d, %a, %b;", t.width(), sources,
           [bits](uint64_t a, uint64_t b, uint64_t) { return b >= uint64_t(bits) ? 0 : a << b; }});
    }
    // The amount is clamped to the width; the sign fills.
    cases.push_back({std::string("shr.") + t.name + " %d, %a, %b;", t.width(), sources,
                     [t](uint64_t a, uint64_t b, uint64_t) {
                       return uint64_t(t.of(a) >> std::min<uint64_t>(b, uint64_t(t.bits)));
                     }});
    if (bits < 32) continue;
    // bfe: position and length are 8 bits each, or all of their bits where the field is of 64; beyond the top, the sign of
    // the field's last bit in the register.
    cases.push_back({std::string("bfe.") + t.name + " %d, %a, %b, %c;", t.width(), sources + "r",
                     [t](uint64_t a, uint64_t b, uint64_t c) -> uint64_t {
                       const int msb = t.bits - 1, pos = int(t.bits == 64 ? std::min<uint64_t>(b & 0xFFFFFFFF, 1000) : b & 0xFF),
                                 len = int(t.bits == 64 ? std::min<uint64_t>(c & 0xFFFFFFFF, 1000) : c & 0xFF);
                       const int top = std::min(pos + len - 1, msb);
                       const uint64_t sign = !t.is_signed || len == 0 ? 0 : a >> top & 1;
                       uint64_t r = 0;
                       for (int i = 0; i <= msb; ++i)
                         r |= (i < len && pos + i <= msb ? a >> (pos + i) & 1 : sign) << i;
                       return r;
                     }});
  }
  for (const std::string& mode : {std::string("wrap"), std::string("clamp")}) {
    const auto amount = [mode](uint64_t c) { return mode == "wrap" ? c & 31 : std::min<uint64_t>(c, 32); };
    cases.push_back(
        {"shf.l." + mode + ".b32 %d, %a, %c, %b;", 'r', "rrr", [amount](uint64_t a, uint64_t b, uint64_t c) {
           return uint64_t((u128(c << 32 | a) << amount(b)) >> 32);
         }});
    cases.push_back({"shf.r." + mode + ".b32 %d, %a, %c, %b;", 'r', "rrr",
                     [amount](uint64_t a, uint64_t b, uint64_t c) { return (c << 32 | a) >> amount(b); }});
  }
  check(cases, Values::integers, Values::shifts, Values::shifts);
}

TEST_CASE("comparisons, their combination with a predicate, and selection") {
  std::vector<LaneCase> cases;
  const auto compare = [](const std::string& op, i128 a, i128 b) {
    if (op == "eq") return a == b;
    if (op == "ne") return a != b;
    if (op == "lt" || op == "lo") return a < b;
    if (op == "le" || op == "ls") return a <= b;
    if (op == "gt" || op == "hi") return a > b;
    return a >= b;
  };
  for (const IntegerType& t : kTypes) {
    std::vector<std::string> names = {"eq", "ne", "lt", "le", "gt", "ge"};
    if (!t.is_signed) names.insert(names.end(), {"lo", "ls", "hi", "hs"});
    for (const std::string& op : names) {
      cases.push_back({"setp." + op + "." + t.name + " %p, %a, %b; selp.b32 %d, 1, 0, %p;", 'r',
                       std::string(2, t.width()), [=](uint64_t a, uint64_t b, uint64_t) {
                         return uint64_t(compare(op, t.of(a), t.of(b)));
                       }});
    }
  }
  // p|q with a third predicate: p = (a < b) BOOL c, q = !(a < b) BOOL c; here c is bit 0 of %c, plain or
  // negated.
  for (const std::string& combine : {std::string("and"), std::string("or"), std::string("xor")}) {
    for (const bool negated : {false, true}) {
      cases.push_back({"and.b32 %t, %c, 1; setp.eq.s32 %q, %t, 1; setp.lt." + combine +
                           ".s32 %p|%q, %a, %b, " + (negated ? "!" : "") +
                           "%q; selp.b32 %d, 2, 0, %p; selp.b32 %t, 1, 0, %q; or.b32 %d, %d, %t;",
                       'r', "rrr", [=](uint64_t a, uint64_t b, uint64_t c) {
                         const bool less = int32_t(a) < int32_t(b), third = bool(c & 1) != negated;
                         const auto bool_op = [&](bool x) {
                           return combine == "and" ? x && third : combine == "or" ? x || third : x != third;
                         };
                         return uint64_t(bool_op(less)) * 2 + uint64_t(bool_op(!less));
                       }});
    }
  }
  for (const auto& [t, width] : {std::pair{"b16", 'h'}, {"b32", 'r'}, {"b64", 'l'}}) {
    cases.push_back({std::string("setp.gt.") +
                         (width == 'h'   ? "s16"
                          : width == 'r' ? "s32"
                                         : "s64") +
                         " %p, %a, 5; selp." + t + " %d, %b, %a, %p;",
                     width, std::string(2, width), [width](uint64_t a, uint64_t b, uint64_t) {
                       return value(a, width == 'h' ? 16 : width == 'r' ? 32 : 64, true) > 5 ? b : a;
                     }});
  }
  cases.push_back(
      {"setp.lt.s32 %p, %a, 0; setp.lt.s32 %q, %b, 0; and.pred %p, %p, %q; not.pred %p, %p; xor.pred %q, %p, "
       "%q; or.pred %q, %q, %p; selp.b32 %d, 7, 9, %q;",
       'r', "rr", [](uint64_t a, uint64_t b, uint64_t) {
         const bool p = !(int32_t(a) < 0 && int32_t(b) < 0), q = (p != (int32_t(b) < 0)) || p;
         return q ? 7ull : 9ull;
       }});
  check(cases, Values::integers, Values::integers, Values::integers);
}

TEST_CASE("moves pack and unpack") {
  const std::vector<LaneCase> cases = {
      {"mov.b64 %d, {%a, %b};", 'l', "rr", [](uint64_t a, uint64_t b, uint64_t) { return b << 32 | a; }},
      {"mov.b64 {%d, %t}, %a;", 'r', "l", [](uint64_t a, uint64_t, uint64_t) { return a; }},
      {"mov.b64 {%t, %d}, %a;", 'r', "l", [](uint64_t a, uint64_t, uint64_t) { return a >> 32; }},
      {"mov.b32 %d, {%a, %b};", 'r', "hh", [](uint64_t a, uint64_t b, uint64_t) { return b << 16 | a; }},
      {"mov.b32 {%d, %h}, %a;", 'h', "r", [](uint64_t a, uint64_t, uint64_t) { return a; }},
      {"mov.b32 {%h, %d}, %a;", 'h', "r", [](uint64_t a, uint64_t, uint64_t) { return a >> 16; }},
      {"mov.b16 %d, %a;", 'h', "h", [](uint64_t a, uint64_t, uint64_t) { return a; }},
      {"mov.b64 %d, %a;", 'l', "l", [](uint64_t a, uint64_t, uint64_t) { return a; }}};
  check(cases, Values::integers, Values::integers, Values::integers);
}
