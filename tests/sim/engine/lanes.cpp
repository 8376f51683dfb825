// SPDX-License-Identifier: Apache-2.0
#include "lanes.h"

#include <bit>
#include <cstdio>

namespace fa4::sim::test {
namespace {

constexpr uint64_t kUntouched = 0xA5A5'1234'5A5A'4321ull;  // %d before a guarded instruction
constexpr uint32_t kThreads = 256;

uint64_t mask_of(char width) {
  return width == 'l' ? ~0ull : width == 'r' ? 0xFFFFFFFFull : 0xFFFFull;
}
std::string type_of(char width) {
  return width == 'l' ? ".b64" : width == 'r' ? ".b32" : ".b16";
}
bool guarded(uint64_t i) {
  return ((i * 7) ^ (i >> 2) ^ (i >> 5)) & 1;
}

std::string with_guard(const std::string& instructions) {
  std::string text;
  size_t begin = 0;
  for (size_t end; (end = instructions.find(';', begin)) != std::string::npos; begin = end + 1) {
    text += "  @%g " + instructions.substr(begin, end - begin + 1) + "\n";
  }
  return text;
}

// Thread i reads 8-byte slot i of a, b, c; writes slots 2 i (unguarded) and 2 i + 1 (guarded).
std::string entry(const LaneCase& c, size_t index) {
  std::string t = ".visible .entry case" + std::to_string(index) +
                  "(.param .u64 out, .param .u64 pa, .param .u64 pb, .param .u64 pc)\n.maxntid 256, 1, 1\n{\n"
                  "  .reg .pred %p, %q, %g;\n  .reg .b32 %t, %i, %x<6>;\n  .reg .b64 %y<8>;\n"
                  "  .reg .b16 %h;\n";
  const std::string names = "abc";
  t += "  .reg " + type_of(c.result) + " %d;\n";
  for (size_t k = 0; k < c.sources.size(); ++k)
    t += "  .reg " + type_of(c.sources[k]) + " %" + names[k] + ";\n";
  t += "  mov.u32 %x0, %ctaid.x;\n  mov.u32 %x1, %tid.x;\n  mad.lo.s32 %i, %x0, 256, %x1;\n"
       "  mul.wide.u32 %y0, %i, 8;\n";
  for (size_t k = 0; k < c.sources.size(); ++k) {
    t += std::string("  ld.param.u64 %y1, [p") + names[k] + "];\n  add.s64 %y1, %y1, %y0;\n  ld.global" +
         type_of(c.sources[k]) + " %" + names[k] + ", [%y1];\n";
  }
  t += "  ld.param.u64 %y2, [out];\n  add.s64 %y0, %y0, %y0;\n  add.s64 %y2, %y2, %y0;\n";
  t += "  " + c.instructions + "\n  st.global" + type_of(c.result) + " [%y2], %d;\n";
  // The guard, from the thread's index, without any instruction that a case is likely to test alone.
  t += "  mul.lo.s32 %x2, %i, 7;\n  shr.u32 %x3, %i, 2;\n  shr.u32 %x4, %i, 5;\n  xor.b32 %x2, %x2, %x3;\n"
       "  xor.b32 %x2, %x2, %x4;\n  and.b32 %x2, %x2, 1;\n  setp.ne.s32 %g, %x2, 0;\n";
  char untouched[32];
  std::snprintf(untouched, sizeof untouched, "0x%llx",
                static_cast<unsigned long long>(kUntouched & mask_of(c.result)));
  t += "  mov" + type_of(c.result) + " %d, " + untouched + ";\n" + with_guard(c.instructions) +
       "  st.global" + type_of(c.result) + " [%y2+8], %d;\n  ret;\n}\n";
  return t;
}

}  // namespace

std::vector<uint64_t> corners(Values kind) {
  std::vector<uint64_t> v;
  switch (kind) {
    case Values::integers:
      for (uint64_t x : {0ull,
                         1ull,
                         2ull,
                         3ull,
                         7ull,
                         8ull,
                         10ull,
                         31ull,
                         32ull,
                         33ull,
                         127ull,
                         128ull,
                         255ull,
                         256ull,
                         32767ull,
                         32768ull,
                         65535ull,
                         65536ull,
                         0x7FFFFFFFull,
                         0x80000000ull,
                         0xFFFFFFFFull,
                         0x100000000ull,
                         0x7FFFFFFFFFFFFFFFull,
                         0x8000000000000000ull}) {
        v.push_back(x);
        v.push_back(0 - x);
      }
      break;
    case Values::shifts:
      for (uint64_t x : {0ull,   1ull,   7ull,   8ull,          15ull,         16ull,        17ull,
                         31ull,  32ull,  33ull,  63ull,         64ull,         65ull,        127ull,
                         255ull, 256ull, 257ull, 0x7FFFFFFFull, 0x80000000ull, 0xFFFFFFFFull}) {
        v.push_back(x);
      }
      break;
    case Values::floats:
      for (uint32_t x :
           {0u,          1u,          2u,          0x7FFFFFu,   0x800000u,   0x800001u,   0x33000000u,
            0x33000001u, 0x33800000u, 0x387FC000u, 0x387FE000u, 0x387FFFFFu, 0x38800000u, 0x38801000u,
            0x38803000u, 0x3E800000u, 0x3F000000u, 0x3F7FFFFFu, 0x3F800000u, 0x3F800001u, 0x3FC00000u,
            0x40200000u, 0x3F808000u, 0x3F818000u, 0x40000000u, 0x40490FDBu, 0x477FE000u, 0x477FEFFFu,
            0x477FF000u, 0x4B000000u, 0x4B7FFFFFu, 0x4EFFFFFFu, 0x4F000000u, 0x4F7FFFFFu, 0x4F800000u,
            0x5F000000u, 0x5F7FFFFFu, 0x5F800000u, 0x7F7F7FFFu, 0x7F7F8000u, 0x7F7FFFFFu, 0x7F800000u,
            0x7FC00000u, 0x7F800001u, 0x7FFFFFFFu}) {
        v.push_back(x);
        v.push_back(x ^ 0x80000000u);
      }
      break;
    case Values::doubles:
      for (double x : {0.0,
                       0x1p-1074,
                       0x1p-1022,
                       0.25,
                       0.5,
                       1.0,
                       1.5,
                       2.5,
                       3.0,
                       0x1.fffffffffffffp0,
                       0x1.0000010000000p0,
                       0x1.0000030000000p0,
                       0x1p-126,
                       0x1p-149,
                       0x1.8p-149,
                       0x1p-150,
                       2147483647.0,
                       2147483647.5,
                       2147483648.0,
                       4294967295.0,
                       4294967295.5,
                       4294967296.0,
                       0x1p63,
                       0x1.fffffffffffffp62,
                       0x1p64,
                       0x1.fffffep127,
                       0x1.ffffffp127,
                       0x1p128,
                       0x1.fffffffffffffp1023,
                       __builtin_inf(),
                       __builtin_nan("")}) {
        v.push_back(std::bit_cast<uint64_t>(x));
        v.push_back(std::bit_cast<uint64_t>(x) ^ 1ull << 63);
      }
      break;
  }
  return v;
}

namespace {

uint64_t random_value(Values kind, Random& random) {
  const uint64_t bits = random.next(), choice = random.next();
  switch (kind) {
    case Values::integers:
      return choice % 4 == 0 ? bits >> (choice >> 8) % 64 : bits;
    case Values::shifts:
      return choice % 8 == 0 ? bits & 0xFFFFFFFF : bits % 70;
    case Values::floats:  // exponents near each other, so that sums and products meet
      return choice % 4 == 0 ? bits & 0xFFFFFFFF
                             : (bits & 0x807FFFFF) | (127 - 20 + (choice >> 8) % 40) << 23;
    default:
      return choice % 4 == 0 ? bits : (bits & 0x800FFFFFFFFFFFFFull) | (1023 - 20 + (choice >> 8) % 90) << 52;
  }
}

}  // namespace

std::vector<Mismatch> run_lane_cases(const std::vector<LaneCase>& cases, Values first, Values second,
                                     Values third, uint64_t seed) {
  Random random(seed);
  const Values kinds[3] = {first, second, third};
  std::vector<uint64_t> list[3], value[3];
  for (int k = 0; k < 3; ++k) list[k] = corners(kinds[k]);
  for (uint64_t a : list[0]) {
    for (uint64_t b : list[1]) {
      value[0].push_back(a);
      value[1].push_back(b);
      value[2].push_back(list[2][random.next() % list[2].size()]);
    }
  }
  do {
    for (int k = 0; k < 3; ++k) {
      const bool corner = random.next() % 8 == 0;
      value[k].push_back(corner ? list[k][random.next() % list[k].size()] : random_value(kinds[k], random));
    }
  } while (value[0].size() % kThreads != 0 || value[0].size() < 3000);
  const size_t n = value[0].size();

  std::string text;
  for (size_t i = 0; i < cases.size(); ++i) text += entry(cases[i], i);
  Kernel kernel(module_of(text));
  const uint64_t a = kernel.upload(value[0]), b = kernel.upload(value[1]), c = kernel.upload(value[2]);
  const uint64_t out = kernel.buffer<uint64_t>(2 * n);
  std::vector<Mismatch> mismatches;
  for (size_t i = 0; i < cases.size(); ++i) {
    const LaneCase& one = cases[i];
    kernel.run("case" + std::to_string(i), {{uint32_t(n / kThreads), 1, 1}, {kThreads, 1, 1}, 0}, out, a, b,
               c);
    const std::vector<uint64_t> got = kernel.read<uint64_t>(out, 2 * n);
    const uint64_t mask = mask_of(one.result);
    for (size_t j = 0; j < n && mismatches.size() < 16; ++j) {
      uint64_t x[3] = {};
      for (size_t k = 0; k < one.sources.size(); ++k) x[k] = value[k][j] & mask_of(one.sources[k]);
      const uint64_t expected = one.expected(x[0], x[1], x[2]) & mask;
      const uint64_t under_guard = guarded(j) ? expected : kUntouched & mask;
      for (int side = 0; side < 2; ++side) {
        const uint64_t e = side ? under_guard : expected, g = got[2 * j + side] & mask;
        if (e != g)
          mismatches.push_back(
              {std::string(side ? "guarded " : "") + one.instructions, x[0], x[1], x[2], e, g});
      }
    }
  }
  return mismatches;
}

std::string describe(const std::vector<Mismatch>& mismatches) {
  std::string text;
  for (const Mismatch& m : mismatches) {
    char line[200];
    std::snprintf(line, sizeof line, "  a %llx b %llx c %llx: expected %llx, got %llx\n",
                  static_cast<unsigned long long>(m.a), static_cast<unsigned long long>(m.b),
                  static_cast<unsigned long long>(m.c), static_cast<unsigned long long>(m.expected),
                  static_cast<unsigned long long>(m.got));
    text += m.instructions + line;
  }
  return text;
}

}  // namespace fa4::sim::test
