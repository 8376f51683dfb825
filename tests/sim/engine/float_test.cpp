// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic against the host's, with the host's rounding mode set as the instruction says. A
// NaN result of f32 arithmetic is 0x7fffffff.
#include <bit>
#include <cfenv>
#include <cmath>

#include "lanes.h"
#include "support/catch.h"

using namespace fa4::sim::test;

namespace {

struct RoundingName {
  const char* name;
  int mode;
};
constexpr RoundingName kRoundings[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

// Evaluates f under a rounding mode; volatile operands keep the compiler from moving or folding the
// arithmetic.
template <class T, class F>
T under(int mode, F f, T a, T b, T c) {
  volatile T x = a, y = b, z = c;
  std::fesetround(mode);
  volatile T r = f(T(x), T(y), T(z));
  std::fesetround(FE_TONEAREST);
  return r;
}

float f32(uint64_t bits) {
  return std::bit_cast<float>(uint32_t(bits));
}
double f64(uint64_t bits) {
  return std::bit_cast<double>(bits);
}
uint64_t bits_of(float x) {
  return x != x ? 0x7FFFFFFF : std::bit_cast<uint32_t>(x);
}
uint64_t bits_of(double x) {
  return x != x ? 0x7FF8000000000000ull : std::bit_cast<uint64_t>(x);
}
float flush(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

struct Operation {
  const char* name;
  int sources;
  float (*f)(float, float, float);
  double (*d)(double, double, double);
};
const Operation kOperations[] = {
    {"add", 2, [](float a, float b, float) { return a + b; },
     [](double a, double b, double) { return a + b; }},
    {"sub", 2, [](float a, float b, float) { return a - b; },
     [](double a, double b, double) { return a - b; }},
    {"mul", 2, [](float a, float b, float) { return a * b; },
     [](double a, double b, double) { return a * b; }},
    {"fma", 3, [](float a, float b, float c) { return std::fma(a, b, c); },
     [](double a, double b, double c) { return std::fma(a, b, c); }},
    {"div", 2, [](float a, float b, float) { return a / b; },
     [](double a, double b, double) { return a / b; }},
    {"rcp", 1, [](float a, float, float) { return 1 / a; }, [](double a, double, double) { return 1 / a; }},
    {"sqrt", 1, [](float a, float, float) { return std::sqrt(a); },
     [](double a, double, double) { return std::sqrt(a); }},
};

std::string operands(int n) {
  return n == 1 ? " %d, %a;" : n == 2 ? " %d, %a, %b;" : " %d, %a, %b, %c;";
}

void check(const std::vector<LaneCase>& cases, Values kind) {
  const auto mismatches = run_lane_cases(cases, kind, kind, kind, 2);
  INFO(describe(mismatches));
  CHECK(mismatches.empty());
}

// The number that a min or max selects: a NaN loses, -0 is below +0.
float select_number(bool maximum, float a, float b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == 0 && b == 0) return std::signbit(a) == maximum ? b : a;
  return maximum ? (a > b ? a : b) : (a < b ? a : b);
}

}  // namespace

TEST_CASE("f32 arithmetic in four roundings, with and without flushing") {
  std::vector<LaneCase> cases;
  for (const Operation& op : kOperations) {
    for (const RoundingName& r : kRoundings) {
      const bool inexact_forms =
          std::string(op.name) == "div" || std::string(op.name) == "rcp" || std::string(op.name) == "sqrt";
      cases.push_back({std::string(op.name) + "." + r.name + ".f32" + operands(op.sources), 'r',
                       std::string(size_t(op.sources), 'r'), [op, r](uint64_t a, uint64_t b, uint64_t c) {
                         return bits_of(under(r.mode, op.f, f32(a), f32(b), f32(c)));
                       }});
      if (inexact_forms) continue;
      cases.push_back({std::string(op.name) + "." + r.name + ".ftz.f32" + operands(op.sources), 'r',
                       std::string(size_t(op.sources), 'r'), [op, r](uint64_t a, uint64_t b, uint64_t c) {
                         // What counts is the exact value: below 2^-126 it is flushed even if it rounds up to that.
                         const float x = flush(f32(a)), y = flush(f32(b)), z = flush(f32(c));
                         const float result = under(r.mode, op.f, x, y, z);
                         const bool tiny = std::fabs(under(FE_TOWARDZERO, op.d, double(x), double(y), double(z))) < 0x1p-126;
                         return bits_of(tiny ? std::copysign(0.0f, result) : flush(result));
                       }});
    }
  }
  cases.push_back({"add.f32 %d, %a, %b;", 'r', "rr",
                   [](uint64_t a, uint64_t b, uint64_t) { return bits_of(f32(a) + f32(b)); }});
  check(cases, Values::floats);
}

TEST_CASE("f64 arithmetic in four roundings") {
  std::vector<LaneCase> cases;
  for (const Operation& op : kOperations) {
    for (const RoundingName& r : kRoundings) {
      // The payload of a NaN is not specified: NaNs are compared as such.
      cases.push_back({std::string(op.name) + "." + r.name + ".f64" + operands(op.sources) +
                           " setp.nan.f64 %p, %d, %d; selp.b64 %d, 0x7FF8000000000000, %d, %p;",
                       'l', std::string(size_t(op.sources), 'l'),
                       [op, r](uint64_t a, uint64_t b, uint64_t c) {
                         return bits_of(under(r.mode, op.d, f64(a), f64(b), f64(c)));
                       }});
    }
  }
  check(cases, Values::doubles);
}

TEST_CASE("f32x2: two numbers in a 64-bit register") {
  std::vector<LaneCase> cases;
  for (const Operation& op : kOperations) {
    if (std::string(op.name) == "div" || op.sources == 1) continue;
    for (const RoundingName& r : kRoundings) {
      cases.push_back({std::string(op.name) + "." + r.name + ".f32x2" + operands(op.sources), 'l',
                       std::string(size_t(op.sources), 'l'), [op, r](uint64_t a, uint64_t b, uint64_t c) {
                         const auto half = [&](int s) {
                           return bits_of(under(r.mode, op.f, f32(a >> s), f32(b >> s), f32(c >> s)));
                         };
                         return half(32) << 32 | half(0);
                       }});
    }
  }
  cases.push_back({"add.f32x2 %d, %a, %b;", 'l', "ll", [](uint64_t a, uint64_t b, uint64_t) {
                     return bits_of(f32(a >> 32) + f32(b >> 32)) << 32 | bits_of(f32(a) + f32(b));
                   }});
  check(cases, Values::doubles);  // random halves; the exponents of the upper ones are near each other
  // Both halves from the list of f32 values.
  std::vector<LaneCase> packed;
  for (const char* name : {"add.rn", "mul.rz", "sub.rp"}) {
    const Operation& op = kOperations[name[0] == 'a' ? 0 : name[0] == 's' ? 1 : 2];
    const int mode = std::string(name).ends_with("rz")   ? FE_TOWARDZERO
                     : std::string(name).ends_with("rp") ? FE_UPWARD
                                                         : FE_TONEAREST;
    packed.push_back(
        {"mov.b64 %y3, {%a, %b}; mov.b64 %y4, {%c, %a}; " + std::string(name) + ".f32x2 %d, %y3, %y4;", 'l',
         "rrr", [op, mode](uint64_t a, uint64_t b, uint64_t c) {
           return bits_of(under(mode, op.f, f32(b), f32(a), 0.0f)) << 32 |
                  bits_of(under(mode, op.f, f32(a), f32(c), 0.0f));
         }});
  }
  check(packed, Values::floats);
}

TEST_CASE("min and max of f32: NaN, signed zeros, three inputs") {
  std::vector<LaneCase> cases;
  for (const bool maximum : {false, true}) {
    for (const bool ftz : {false, true}) {
      const auto in = [ftz](uint64_t x) { return ftz ? flush(f32(x)) : f32(x); };
      const std::string opcode = std::string(maximum ? "max" : "min") + (ftz ? ".ftz" : "");
      cases.push_back({opcode + ".f32 %d, %a, %b;", 'r', "rr", [=](uint64_t a, uint64_t b, uint64_t) {
                         return bits_of(select_number(maximum, in(a), in(b)));
                       }});
      cases.push_back({opcode + ".f32 %d, %a, %b, %c;", 'r', "rrr", [=](uint64_t a, uint64_t b, uint64_t c) {
                         return bits_of(select_number(maximum, select_number(maximum, in(a), in(b)), in(c)));
                       }});
    }
    cases.push_back({std::string(maximum ? "max" : "min") + ".NaN.f32 %d, %a, %b;", 'r', "rr",
                     [=](uint64_t a, uint64_t b, uint64_t) {
                       return std::isnan(f32(a)) || std::isnan(f32(b))
                                  ? 0x7FFFFFFFull
                                  : bits_of(select_number(maximum, f32(a), f32(b)));
                     }});
  }
  check(cases, Values::floats);
}

TEST_CASE("sign operations") {
  // The sign of a NaN is not specified: NaNs are left out by a selection.
  const std::string no_nan = " setp.nan.f32 %p, %a, %a; selp.b32 %d, 0x7FFFFFFF, %d, %p;";
  const std::vector<LaneCase> cases = {
      {"neg.f32 %d, %a;" + no_nan, 'r', "r", [](uint64_t a, uint64_t, uint64_t) { return bits_of(-f32(a)); }},
      {"abs.f32 %d, %a;" + no_nan, 'r', "r",
       [](uint64_t a, uint64_t, uint64_t) { return bits_of(std::fabs(f32(a))); }},
      {"neg.ftz.f32 %d, %a;" + no_nan, 'r', "r",
       [](uint64_t a, uint64_t, uint64_t) { return bits_of(-flush(f32(a))); }},
      {"abs.ftz.f32 %d, %a;" + no_nan, 'r', "r",
       [](uint64_t a, uint64_t, uint64_t) { return bits_of(std::fabs(flush(f32(a)))); }}};
  check(cases, Values::floats);
}

TEST_CASE("comparisons of floats: ordered, unordered, num, nan") {
  std::vector<LaneCase> singles, doubles;
  const auto compare = [](const std::string& op, double a, double b) {
    const bool unordered = std::isnan(a) || std::isnan(b);
    if (op == "num") return !unordered;
    if (op == "nan") return unordered;
    if (unordered) return op.size() == 3;  // equ, neu, ltu, ...
    const std::string base = op.substr(0, 2);
    return base == "eq"   ? a == b
           : base == "ne" ? a != b
           : base == "lt" ? a < b
           : base == "le" ? a <= b
           : base == "gt" ? a > b
                          : a >= b;
  };
  for (const char* op :
       {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) {
    const std::string name = op;
    singles.push_back(
        {"setp." + name +
             ".f32 %p|%q, %a, %b; selp.b32 %d, 2, 0, %p; selp.b32 %t, 1, 0, %q; or.b32 %d, %d, %t;",
         'r', "rr",
         [=](uint64_t a, uint64_t b, uint64_t) { return compare(name, f32(a), f32(b)) ? 2ull : 1ull; }});
    doubles.push_back(
        {"setp." + name + ".f64 %p, %a, %b; selp.b32 %d, 1, 0, %p;", 'r', "ll",
         [=](uint64_t a, uint64_t b, uint64_t) { return compare(name, f64(a), f64(b)) ? 1ull : 0ull; }});
  }
  check(singles, Values::floats);
  check(doubles, Values::doubles);
}

TEST_CASE("ex2 at its special values") {
  // Everything else of ex2 is compared bit for bit where its table is tested.
  std::vector<LaneCase> cases;
  const std::pair<uint32_t, uint32_t> values[] = {
      {0xFF800000, 0},          {0, 0x3F800000},          {0x80000000, 0x3F800000}, {0x7F800000, 0x7F800000},
      {0x7FC00000, 0x7FFFFFFF}, {0xFFC00001, 0x7FFFFFFF}, {0xC2FE0000, 0},          {0xC2FD0000, 0},
      {0xC2FC0000, 0x00800000}, {0x43000000, 0x7F800000}, {0x3F800000, 0x40000000}, {0xBF800000, 0x3F000000},
      {0x00000001, 0x3F800000}, {0x807FFFFF, 0x3F800000}, {0x42FE0000, 0x7F000000}};
  for (const auto& [x, y] : values) {
    cases.push_back({"mov.b32 %t, " + std::to_string(x) + "; ex2.approx.ftz.f32 %d, %t;", 'r', "r",
                     [y = y](uint64_t, uint64_t, uint64_t) { return uint64_t(y); }});
  }
  check(cases, Values::floats);
}
