// SPDX-License-Identifier: Apache-2.0
// The tensor-core step against three independent witnesses: results of a GPU, a second definition in double
// precision, and, for every instruction set of this machine, the integer definition.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <vector>

#include "mma_cases.h"
#include "mma_fixture.h"
#include "support/catch.h"
#include "tools/sim/core/mma_dispatch.h"
#include "tools/sim/core/mma_reference.h"

using namespace fa4::sim;
using cases::Case;
using cases::Kind;

namespace {

constexpr Kind kinds[] = {
    Kind::wide,        Kind::subnormal_inputs, Kind::tiny,           Kind::tiny_without_c,
    Kind::zeros,       Kind::below_subnormal,  Kind::overflow,       Kind::specials,
    Kind::large_c,     Kind::near_four,        Kind::tiny_and_zeros, Kind::dominant_c,
    Kind::subnormal_c, Kind::cancelling,       Kind::small_sums};
static_assert(std::size(kinds) == cases::kind_count);

// The operands of a case as an instruction takes them, with zeros for the k that it does not have.
struct CaseStep {
  std::vector<uint32_t> a, b;  // raw values, of 16 bits two to a word
  std::vector<float> d = std::vector<float>(Case::m * Case::n);
  MmaStep step;

  CaseStep(const cases::Instruction& instruction, const Case& c) {
    const bool wide = instruction.input == MmaInput::tf32;
    const uint32_t depth = wide ? 8 : 16;
    a.resize(depth * 128), b.resize(Case::n * depth);
    const auto put = [&](std::vector<uint32_t>& to, size_t index, uint32_t bits) {
      if (wide)
        to[index] = bits;
      else
        reinterpret_cast<uint16_t*>(to.data())[index] = static_cast<uint16_t>(bits);
    };
    for (uint32_t k = 0; k < instruction.k; ++k) {
      for (uint32_t m = 0; m < Case::m; ++m) put(a, k * 128 + m, c.a[k * Case::m + m]);
      for (uint32_t n = 0; n < Case::n; ++n) put(b, n * depth + k, c.b[n * 16 + k]);
    }
    std::memcpy(d.data(), c.c, sizeof c.c);
    step = {instruction.input, instruction.input, false,    false,    true,    Case::m,
            Case::n,           a.data(),          b.data(), d.data(), Case::m, instruction.accumulator};
  }
};

uint32_t bits_of(float x) {
  return std::bit_cast<uint32_t>(x);
}

double value_of(MmaInput type, uint16_t bits) {
  if (type == MmaInput::bf16) return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const double magnitude = (bits & 0x7C00) == 0
                               ? std::ldexp(bits & 0x3FF, -24)
                               : std::ldexp(0x400 | (bits & 0x3FF), ((bits >> 10) & 31) - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

// Exponent with which a finite non-zero number enters a product.
int exponent_of(MmaInput type, double value) {
  return std::max(std::ilogb(value), type == MmaInput::bf16 ? -126 : -14);
}

// The definition once more, in double precision: exact products, terms cut by trunc(), an exact sum, a float
// that is pulled back toward zero. For finite inputs and results below 2^128.
uint32_t by_doubles(const MmaStep& s, uint32_t m, uint32_t n) {
  double terms[17];
  int largest = -133;
  for (uint32_t k = 0; k < 16; ++k) {
    const double a = value_of(s.a_type, static_cast<const uint16_t*>(s.a)[k * 128 + m]),
                 b = value_of(s.b_type, static_cast<const uint16_t*>(s.b)[n * 16 + k]);
    terms[k] = (s.negate_a ? -a : a) * (s.negate_b ? -b : b);
    if (terms[k] != 0) largest = std::max(largest, exponent_of(s.a_type, a) + exponent_of(s.b_type, b));
  }
  const float c = s.accumulate ? s.d[n * s.d_pitch + m] : 0;
  terms[16] = c;
  if (c != 0) largest = std::max(largest, std::max(std::ilogb(c), -126));
  double sum = 0;
  for (double term : terms) sum += std::trunc(std::ldexp(term, 25 - largest));
  sum = std::ldexp(sum, largest - 25);
  float result = static_cast<float>(sum);
  if (std::fabs(static_cast<double>(result)) > std::fabs(sum)) result = std::nextafter(result, 0.0f);
  return result == 0 ? 0 : bits_of(result);
}

std::vector<Isa> isas() {
  std::vector<Isa> list;
  std::copy_if(all_isas.begin(), all_isas.end(), std::back_inserter(list), isa_supported);
  return list;
}

// Whole steps of any shape, filled from the kinds above.
struct Step {
  std::vector<uint16_t> a, b;
  std::vector<float> d;
  MmaStep step;

  Step(MmaInput a_type, MmaInput b_type, uint32_t m, uint32_t n, size_t pitch, Kind kind,
       cases::Random& random)
      : a(16 * 128), b(n * 16), d(n * pitch) {
    for (uint16_t& x : a) x = static_cast<uint16_t>(cases::input_of(kind, a_type, random));
    for (uint16_t& x : b) x = static_cast<uint16_t>(cases::input_of(kind, b_type, random));
    for (float& x : d) x = std::bit_cast<float>(cases::c_of(kind, a_type, random));
    step = {a_type, b_type, false, false, true, m, n, a.data(), b.data(), d.data(), pitch};
  }
};

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::memcpy(bits.data(), values.data(), bits.size() * sizeof(uint32_t));
  return bits;
}

// Runs `s` by the definition and by every instruction set; true when all of D has the same bits, pitch gaps
// included.
void check_all_isas(const Step& s) {
  Step expected = s;
  expected.step.d = expected.d.data();
  mma_step_reference(expected.step);
  for (Isa isa : isas()) {
    Step actual = s;
    actual.step.d = actual.d.data();
    mma_step(isa, actual.step);
    INFO(isa_name(isa));
    CHECK(bits_of(actual.d) == bits_of(expected.d));
  }
}

}  // namespace

TEST_CASE("tensor core: results of a GPU are reproduced bit for bit", "[mma]") {
  for (int i = 0; i < cases::instruction_count; ++i) {
    const cases::Instruction& instruction = cases::instructions[i];
    // f16 accumulators have no kernel but the definition; the others are held against it below.
    const size_t ways = instruction.accumulator == MmaAccumulator::f16 ? 1 : isas().size();
    for (Kind kind : kinds) {
      std::vector<uint64_t> hashes(ways, cases::hash_start);
      Case c;
      for (uint32_t index = 0; index < fixture::mma_cases_per_kind; ++index) {
        cases::generate(kind, instruction, index, &c);
        for (size_t way = 0; way < ways; ++way) {
          CaseStep s(instruction, c);
          mma_step(isas()[way], s.step);
          for (float x : s.d) hashes[way] = cases::hash(hashes[way], bits_of(x));
        }
      }
      for (size_t way = 0; way < ways; ++way) {
        INFO(instruction.name << ", " << cases::kind_name(kind) << ", " << isa_name(isas()[way]));
        CHECK(hashes[way] == fixture::mma_hashes[i][static_cast<int>(kind)]);
      }
    }
  }
}

TEST_CASE("tensor core: every instruction set gives the bits of the definition for tf32", "[mma]") {
  cases::Random random(7);
  for (Kind kind : kinds) {
    for (int flags = 0; flags < 8; ++flags) {
      const uint32_t m = random.one_in(2) ? 64 : 128, n = 8u * static_cast<uint32_t>(random.range(1, 4));
      std::vector<uint32_t> a(8 * 128), b(n * 8);
      std::vector<float> c(n * m);
      for (uint32_t& x : a) x = cases::input_of(kind, MmaInput::tf32, random);
      for (uint32_t& x : b) x = cases::input_of(kind, MmaInput::tf32, random);
      for (float& x : c) x = std::bit_cast<float>(cases::c_of(kind, MmaInput::tf32, random));
      MmaStep step{MmaInput::tf32,
                   MmaInput::tf32,
                   (flags & 1) != 0,
                   (flags & 2) != 0,
                   (flags & 4) == 0,
                   m,
                   n,
                   a.data(),
                   b.data(),
                   nullptr,
                   m};
      std::vector<float> expected = c;
      step.d = expected.data();
      mma_step_reference(step);
      for (Isa isa : isas()) {
        std::vector<float> actual = c;
        step.d = actual.data();
        mma_step(isa, step);
        INFO(cases::kind_name(kind) << ", flags " << flags << ", m " << m << ", n " << n << ", "
                                    << isa_name(isa));
        CHECK(bits_of(actual) == bits_of(expected));
      }
    }
  }
}

TEST_CASE("tensor core: the integer definition agrees with one in double precision", "[mma]") {
  cases::Random random(1);
  for (Kind kind : kinds) {
    if (kind == Kind::specials || kind == Kind::overflow) continue;
    for (int types = 0; types < 4; ++types) {
      for (int flags = 0; flags < 8; ++flags) {
        Step s(static_cast<MmaInput>(types & 1), static_cast<MmaInput>(types >> 1), 64, 8, 64, kind, random);
        s.step.negate_a = flags & 1;
        s.step.negate_b = flags & 2;
        s.step.accumulate = flags & 4;
        uint32_t different = 0;
        for (uint32_t n = 0; n < 8; ++n) {
          for (uint32_t m = 0; m < 64; ++m) {
            different += mma_element_reference(s.step, m, n) != by_doubles(s.step, m, n);
          }
        }
        INFO(cases::kind_name(kind) << ", types " << types << ", flags " << flags);
        CHECK(different == 0);
      }
    }
  }
}

TEST_CASE("tensor core: every instruction set gives the bits of the definition", "[mma]") {
  cases::Random random(2);
  const uint32_t columns[] = {8, 16, 40, 128, 256};
  int round = 0;
  for (Kind kind : kinds) {
    for (int types = 0; types < 4; ++types) {
      for (int flags = 0; flags < 8; ++flags) {
        const uint32_t m = random.one_in(2) ? 64 : 128;
        const uint32_t n = flags == 0 ? columns[round++ % 5] : 8u * static_cast<uint32_t>(random.range(1, 4));
        const size_t pitch = m + static_cast<size_t>(random.range(0, 3));
        Step s(static_cast<MmaInput>(types & 1), static_cast<MmaInput>(types >> 1), m, n, pitch, kind,
               random);
        s.step.negate_a = flags & 1;
        s.step.negate_b = flags & 2;
        s.step.accumulate = !(flags & 4);
        INFO(cases::kind_name(kind) << ", types " << types << ", flags " << flags << ", m " << m << ", n "
                                    << n << ", pitch " << pitch);
        check_all_isas(s);
      }
    }
  }
}

TEST_CASE("tensor core: the edges of the vector kernels' range", "[mma]") {
  // bf16 powers of two (and their neighbours) make every largest exponent around both ends of the fast range,
  // with c absent, small, equal and large.
  cases::Random random(3);
  for (int sum : {-140, -135, -134, -133, -132, -103, -102, -101, -100, 118, 119, 120, 121, 122, 126, 127}) {
    for (int round = 0; round < 8; ++round) {
      Step s(MmaInput::bf16, MmaInput::bf16, 128, 16, 128, Kind::wide, random);
      for (uint16_t& x : s.a) {
        const int field = std::clamp(127 + sum / 2 - random.range(0, round), 0, 254);
        x = static_cast<uint16_t>((random.bits() & 0x807F) | static_cast<uint32_t>(field) << 7);
      }
      for (uint16_t& x : s.b) {
        const int field = std::clamp(127 + sum - sum / 2 - random.range(0, round), 0, 254);
        x = static_cast<uint16_t>((random.bits() & 0x807F) | static_cast<uint32_t>(field) << 7);
      }
      for (float& x : s.d) {
        const int field = std::clamp(127 + sum + random.range(-30, 3), 0, 254);
        x = std::bit_cast<float>(random.one_in(4)
                                     ? random.bits() & 0x80000000
                                     : (random.bits() & 0x807FFFFF) | static_cast<uint32_t>(field) << 23);
      }
      INFO("exponent " << sum << ", round " << round);
      check_all_isas(s);
      s.step.accumulate = false;
      check_all_isas(s);
    }
  }
}

TEST_CASE("tensor core: sums at the limits of 32-bit integers", "[mma]") {
  // 16 products just below 4 and a c of the same exponent pass 2^31 units of the last place.
  cases::Random random(4);
  for (MmaInput type : {MmaInput::f16, MmaInput::bf16}) {
    for (int round = 0; round < 32; ++round) {
      Step s(type, type, 128, 8, 128, Kind::near_four, random);
      const int largest = 0x3FFF;  // the number below 2 in both formats
      for (uint16_t& x : s.a) {
        x = static_cast<uint16_t>((largest - (round > 3 ? random.range(0, 3) : 0)) |
                                  (round & 1 ? 0x8000 : 0));
      }
      for (uint16_t& x : s.b) x = static_cast<uint16_t>(largest - (round > 7 ? random.range(0, 3) : 0));
      for (float& x : s.d) {
        x = std::bit_cast<float>((random.bits() & 0x7FFFFF) | 127u << 23 | (round & 2 ? 0x80000000u : 0));
      }
      check_all_isas(s);
    }
  }
}

TEST_CASE("tensor core: the special rules, written out", "[mma]") {
  const float inf = INFINITY, nan = std::bit_cast<float>(0xFFC12345u);
  struct Row {
    const char* what;
    uint16_t a0, b0, a1, b1;  // bf16
    float c;
    uint32_t result;
  };
  const Row rows[] = {
      {"one product", 0x3F80, 0x4000, 0, 0, 0.0f, 0x40000000},
      {"all zero, all negative", 0x8000, 0x3F80, 0x8000, 0x3F80, -0.0f, 0},
      {"exact cancellation", 0x3F80, 0x3F80, 0xBF80, 0x3F80, -0.0f, 0},
      {"c alone", 0, 0, 0, 0, -1.5f, 0xBFC00000},
      {"c alone, subnormal", 0, 0, 0, 0, std::bit_cast<float>(0x80000001u), 0x80000001},
      {"NaN in A", 0x7FC0, 0, 0, 0, 1.0f, 0x7FFFFFFF},
      {"NaN in c", 0, 0, 0, 0, nan, 0x7FFFFFFF},
      {"infinity times zero", 0x7F80, 0x8000, 0, 0, 1.0f, 0x7FFFFFFF},
      {"infinity", 0x7F80, 0xBF80, 0, 0, 1.0f, 0xFF800000},
      {"infinities of one sign", 0x7F80, 0xBF80, 0xFF80, 0x3F80, -inf, 0xFF800000},
      {"infinities of both signs", 0x7F80, 0xBF80, 0x7F80, 0x3F80, 1.0f, 0x7FFFFFFF},
      {"infinite product, opposite c", 0x7F80, 0x3F80, 0, 0, -inf, 0x7FFFFFFF},
      {"overflow", 0x7F00, 0x4000, 0, 0, 0.0f, 0x7F800000},
      {"largest finite result", 0x7F00, 0x3F80, 0, 0, std::bit_cast<float>(0x7EFFFFFFu), 0x7F7FFFFF},
      {"truncation toward zero, up", 0x3F80, 0x3F80, 0, 0, std::bit_cast<float>(0xB3000000u), 0x3F7FFFFF},
      {"a term below the 25 kept bits", 0x3F80, 0x3F80, 0, 0, std::bit_cast<float>(0xB2FFFFFFu), 0x3F800000},
  };
  for (const Row& row : rows) {
    cases::Random random(0);
    Step s(MmaInput::bf16, MmaInput::bf16, 64, 8, 64, Kind::zeros, random);
    std::fill(s.a.begin(), s.a.end(), uint16_t{0});
    std::fill(s.b.begin(), s.b.end(), uint16_t{0});
    for (uint32_t m = 0; m < 128; ++m) {
      s.a[m] = row.a0;
      s.a[128 + m] = row.a1;
    }
    for (uint32_t n = 0; n < 8; ++n) {
      s.b[n * 16] = row.b0;
      s.b[n * 16 + 1] = row.b1;
    }
    std::fill(s.d.begin(), s.d.end(), row.c);
    INFO(row.what);
    CHECK(mma_element_reference(s.step, 5, 3) == row.result);
    check_all_isas(s);
  }
}

TEST_CASE("tensor core: an unsupported instruction set is refused", "[mma]") {
  cases::Random random(5);
  Step s(MmaInput::f16, MmaInput::f16, 64, 8, 64, Kind::wide, random);
  for (Isa isa : all_isas) {
    if (isa_supported(isa)) {
      CHECK_NOTHROW(mma_step(isa, s.step));
    } else {
      CHECK_THROWS_AS(mma_step(isa, s.step), std::invalid_argument);
    }
  }
}

TEST_CASE("tensor core: shapes that no instruction has are refused", "[mma]") {
  cases::Random random(6);
  const Step good(MmaInput::f16, MmaInput::f16, 64, 8, 64, Kind::wide, random);
  for (auto [m, n, pitch] : {std::array<uint32_t, 3>{32, 8, 64},
                             {96, 8, 96},
                             {64, 0, 64},
                             {64, 12, 64},
                             {64, 264, 64},
                             {64, 8, 63}}) {
    Step s = good;
    s.step.m = m;
    s.step.n = n;
    s.step.d_pitch = pitch;
    CHECK_THROWS_AS(mma_step(s.step), std::invalid_argument);
  }
  Step mixed = good;
  mixed.step.a_type = MmaInput::tf32;
  CHECK_THROWS_AS(mma_step(mixed.step), std::invalid_argument);
}
