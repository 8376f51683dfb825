// SPDX-License-Identifier: Apache-2.0
// cvt: integers of all widths, integers and floats with saturation, and the 16-bit formats.
#include <bit>
#include <cfenv>
#include <cmath>

#include "lanes.h"
#include "support/catch.h"

using namespace fa4::sim::test;

namespace {

float f32(uint64_t bits) {
  return std::bit_cast<float>(uint32_t(bits));
}
double f64(uint64_t bits) {
  return std::bit_cast<double>(bits);
}
uint64_t bits_of(float x) {
  return x != x ? 0x7FFFFFFF : std::bit_cast<uint32_t>(x);
}

struct IntegerType {
  const char* name;
  int bits;
  bool is_signed;
};
constexpr IntegerType kTypes[] = {{"s8", 8, true},    {"u8", 8, false},  {"s16", 16, true},
                                  {"u16", 16, false}, {"s32", 32, true}, {"u32", 32, false},
                                  {"s64", 64, true},  {"u64", 64, false}};
char width_of(int bits) {
  return bits <= 16 ? 'h' : bits == 32 ? 'r' : 'l';
}

__int128 value(uint64_t x, const IntegerType& t) {
  const unsigned __int128 one = 1, low = (unsigned __int128)(x) & ((one << t.bits) - 1);
  return t.is_signed && (low >> (t.bits - 1) & 1) ? __int128(low) - (__int128(1) << t.bits) : __int128(low);
}

// x in a format with `digits` significand bits and smallest normal exponent `lowest`, to nearest even, as a
// real number.
double rounded_to_format(double x, int digits, int lowest) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(x), lowest) - (digits - 1));
  return std::nearbyint(x / ulp) * ulp;
}
uint64_t half_bits(float x) {
  if (std::isnan(x)) return 0x7FFF;
  const uint64_t sign = std::signbit(x) ? 0x8000 : 0;
  const double r = std::fabs(rounded_to_format(x, 11, -14));
  if (r > 65504) return sign | 0x7C00;
  if (r < 0x1p-14) return sign | uint64_t(r * 0x1p24);
  const int e = std::ilogb(r);
  return sign | uint64_t(e + 15) << 10 | uint64_t((r / std::ldexp(1.0, e) - 1) * 1024);
}
uint64_t brain_bits(float x) {
  if (std::isnan(x)) return 0x7FFF;
  const double r = rounded_to_format(x, 8, -126);
  return std::bit_cast<uint32_t>(float(r)) >> 16;  // beyond the range float() gives infinity
}
uint64_t float_of_half(uint64_t h) {
  const uint64_t sign = h >> 15 & 1, e = h >> 10 & 31, f = h & 1023;
  if (e == 31) return f ? 0x7FFFFFFF : sign << 31 | 0x7F800000;
  const double m = e == 0 ? std::ldexp(double(f), -24) : std::ldexp(1024.0 + double(f), int(e) - 25);
  return std::bit_cast<uint32_t>(float(sign ? -m : m));
}

void check(const std::vector<LaneCase>& cases, Values kind) {
  const auto mismatches = run_lane_cases(cases, kind, kind, kind, 3);
  INFO(describe(mismatches));
  CHECK(mismatches.empty());
}

}  // namespace

TEST_CASE("integers to integers of all widths") {
  std::vector<LaneCase> cases;
  for (const IntegerType& d : kTypes) {
    for (const IntegerType& s : kTypes) {
      // An 8-bit result fills its 16-bit register as its sign says.
      cases.push_back(
          {std::string("cvt.") + d.name + "." + s.name + " %d, %a;",
           width_of(d.bits),
           {width_of(s.bits)},
           [d, s](uint64_t a, uint64_t, uint64_t) { return uint64_t(value(uint64_t(value(a, s)), d)); }});
      if (s.bits < 32) {  // a source register may be wider than the type
        cases.push_back(
            {std::string("cvt.") + d.name + "." + s.name + " %d, %a;", width_of(d.bits), "r",
             [d, s](uint64_t a, uint64_t, uint64_t) { return uint64_t(value(uint64_t(value(a, s)), d)); }});
      }
      if (d.bits < 32) {  // and so may a destination
        cases.push_back(
            {std::string("cvt.") + d.name + "." + s.name + " %d, %a;",
             'r',
             {width_of(s.bits)},
             [d, s](uint64_t a, uint64_t, uint64_t) { return uint64_t(value(uint64_t(value(a, s)), d)); }});
      }
    }
  }
  check(cases, Values::integers);
}

TEST_CASE("integers to floats in four roundings") {
  std::vector<LaneCase> cases;
  for (const auto& [name, mode] :
       {std::pair{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}}) {
    for (const IntegerType& s : kTypes) {
      if (s.bits < 32) continue;
      const int m = mode;
      const auto convert = [s, m](uint64_t a, auto zero) {
        std::fesetround(m);
        volatile uint64_t u = uint64_t(value(a, s));
        volatile decltype(zero) r = s.is_signed ? decltype(zero)(int64_t(u)) : decltype(zero)(uint64_t(u));
        std::fesetround(FE_TONEAREST);
        return decltype(zero)(r);
      };
      cases.push_back({std::string("cvt.") + name + ".f32." + s.name + " %d, %a;",
                       'r',
                       {width_of(s.bits)},
                       [=](uint64_t a, uint64_t, uint64_t) { return bits_of(convert(a, 0.0f)); }});
      cases.push_back(
          {std::string("cvt.") + name + ".f64." + s.name + " %d, %a;",
           'l',
           {width_of(s.bits)},
           [=](uint64_t a, uint64_t, uint64_t) { return std::bit_cast<uint64_t>(convert(a, 0.0)); }});
    }
  }
  check(cases, Values::integers);
}

TEST_CASE("floats to integers: four roundings, saturation, NaN") {
  std::vector<LaneCase> singles, doubles;
  for (const auto& [name, mode] : {std::pair{"rni", 0}, {"rzi", 1}, {"rmi", 2}, {"rpi", 3}}) {
    for (const IntegerType& d : kTypes) {
      if (d.bits < 32) continue;
      const int m = mode;
      const auto convert = [d, m](double x, bool from_double) -> uint64_t {
        // NaN: 0, but the highest bit alone where the source is f64 or the destination has 64 bits.
        if (std::isnan(x)) return from_double || d.bits == 64 ? 1ull << (d.bits - 1) : 0;
        const double r = m == 0   ? std::nearbyint(x)
                         : m == 1 ? std::trunc(x)
                         : m == 2 ? std::floor(x)
                                  : std::ceil(x);
        const __int128 one = 1, high = (one << (d.bits - d.is_signed)) - 1,
                       low = d.is_signed ? -(one << (d.bits - 1)) : 0;
        if (r >= std::ldexp(1.0, d.bits - d.is_signed)) return uint64_t(high);
        if (r < double(low)) return uint64_t(low);
        return uint64_t(__int128(r));
      };
      singles.push_back({std::string("cvt.") + name + "." + d.name + ".f32 %d, %a;", width_of(d.bits), "r",
                         [=](uint64_t a, uint64_t, uint64_t) { return convert(f32(a), false); }});
      doubles.push_back({std::string("cvt.") + name + "." + d.name + ".f64 %d, %a;", width_of(d.bits), "l",
                         [=](uint64_t a, uint64_t, uint64_t) { return convert(f64(a), true); }});
    }
    const int m = mode;
    singles.push_back(
        {std::string("cvt.") + name + ".f32.f32 %d, %a;", 'r', "r", [m](uint64_t a, uint64_t, uint64_t) {
           const float x = f32(a);
           return bits_of(m == 0   ? std::nearbyint(x)
                          : m == 1 ? std::trunc(x)
                          : m == 2 ? std::floor(x)
                                   : std::ceil(x));
         }});
  }
  check(singles, Values::floats);
  check(doubles, Values::doubles);
}

TEST_CASE("f32 and f64") {
  std::vector<LaneCase> narrow;
  for (const auto& [name, mode] :
       {std::pair{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}}) {
    const int m = mode;
    narrow.push_back(
        {std::string("cvt.") + name + ".f32.f64 %d, %a;", 'r', "l", [m](uint64_t a, uint64_t, uint64_t) {
           volatile double x = f64(a);
           std::fesetround(m);
           volatile float r = float(x);
           std::fesetround(FE_TONEAREST);
           if (std::isnan(f64(a))) return (a >> 32 & 0x80000000) | 0x7FC00000 | (a >> 29 & 0x3FFFFF);  // sign and payload stay
           return bits_of(float(r));
         }});
  }
  check(narrow, Values::doubles);
  check({{"cvt.f64.f32 %d, %a; setp.nan.f64 %p, %d, %d; selp.b64 %d, 0x7FF8000000000000, %d, %p;", 'l', "r",
          [](uint64_t a, uint64_t, uint64_t) {
            return std::isnan(f32(a)) ? 0x7FF8000000000000ull : std::bit_cast<uint64_t>(double(f32(a)));
          }}},
        Values::floats);
}

TEST_CASE("16-bit formats: ties, subnormals, overflow, NaN") {
  check(
      {{"cvt.rn.f16.f32 %d, %a;", 'h', "r", [](uint64_t a, uint64_t, uint64_t) { return half_bits(f32(a)); }},
       {"cvt.rn.bf16.f32 %d, %a;", 'h', "r",
        [](uint64_t a, uint64_t, uint64_t) { return brain_bits(f32(a)); }},
       // the first source goes to the upper half
       {"cvt.rn.f16x2.f32 %d, %a, %b;", 'r', "rr",
        [](uint64_t a, uint64_t b, uint64_t) { return half_bits(f32(a)) << 16 | half_bits(f32(b)); }},
       {"cvt.rn.bf16x2.f32 %d, %a, %b;", 'r', "rr",
        [](uint64_t a, uint64_t b, uint64_t) { return brain_bits(f32(a)) << 16 | brain_bits(f32(b)); }}},
      Values::floats);
  // All 2^16 values back: the thread's index is the value.
  const std::string text = module_of(R"(
.visible .entry widen(.param .u64 out)
{
  .reg .b32 %r<4>;
  .reg .b16 %h;
  .reg .b64 %o, %i;
  .reg .pred %p;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  mad.lo.s32 %r0, %r0, 1024, %r1;
  cvt.u16.u32 %h, %r0;
  ld.param.u64 %o, [out];
  mul.wide.u32 %i, %r0, 8;
  add.s64 %o, %o, %i;
  cvt.f32.f16 %r2, %h;
  cvt.f32.bf16 %r3, %h;
  st.global.v2.b32 [%o], {%r2, %r3};
  ret;
})");
  Kernel kernel(text);
  const uint64_t out = kernel.buffer<uint64_t>(65536);
  kernel.run("widen", {{64, 1, 1}, {1024, 1, 1}, 0}, out);
  const auto got = kernel.read<uint32_t>(out, 2 * 65536);
  uint32_t wrong = 0, first = 0;
  for (uint32_t h = 0; h < 65536; ++h) {
    const bool nan = (h & 0x7FFF) > 0x7F80;
    const bool good =
        got[2 * h] == float_of_half(h) && (nan ? std::isnan(f32(got[2 * h + 1])) : got[2 * h + 1] == h << 16);
    if (!good && wrong++ == 0) first = h;
  }
  INFO("first wrong value: " << first << " -> " << got[2 * first] << ", " << got[2 * first + 1]);
  CHECK(wrong == 0);
}
