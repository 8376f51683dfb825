// SPDX-License-Identifier: Apache-2.0
// The approximate functions as instructions: the f32 forms reach the function of their name (whose bits are compared
// with a GPU's where its tables are tested), the f16 and bf16 forms give a GPU's results on all inputs.
#include <bit>
#include <iterator>
#include <string>

#include "lanes.h"
#include "sim/numerics/approx_cases.h"
#include "sim/numerics/approx_fixture.h"
#include "support/catch.h"
#include "tools/sim/core/approx.h"
#include "tools/sim/core/ex2.h"
#include "tools/sim/core/lane_handlers.h"
#include "tools/sim/core/machine.h"

using namespace fa4::sim::test;
using fa4::sim::ApproxFunction;
using fa4::sim::Division;

namespace {

template <class Function>
uint64_t first_lane(uint64_t a, uint64_t b, Function function) {
  float p[32] = {}, q[32] = {}, y[32];
  p[0] = std::bit_cast<float>(uint32_t(a)), q[0] = std::bit_cast<float>(uint32_t(b));
  function(p, q, y);
  return std::bit_cast<uint32_t>(y[0]);
}

LaneCase unary(const std::string& opcode, ApproxFunction f) {
  return {opcode + " %d, %a;", 'r', "r", [f](uint64_t a, uint64_t, uint64_t) {
            return first_lane(a, 0, [f](const float* p, const float*, float* y) { fa4::sim::approx(f, p, y); });
          }};
}
LaneCase division(const std::string& opcode, Division f) {
  return {opcode + " %d, %a, %b;", 'r', "rr", [f](uint64_t a, uint64_t b, uint64_t) {
            return first_lane(a, b, [f](const float* p, const float* q, float* y) { fa4::sim::divide_approx(f, p, q, y); });
          }};
}
LaneCase power(const std::string& opcode, void (*f)(const float*, float*)) {
  return {opcode + " %d, %a;", 'r', "r", [f](uint64_t a, uint64_t, uint64_t) {
            return first_lane(a, 0, [f](const float* p, const float*, float* y) { f(p, y); });
          }};
}

}  // namespace

TEST_CASE("approximate f32 instructions are the functions of their names") {
  const std::vector<LaneCase> cases = {
      power("ex2.approx.ftz.f32", fa4::sim::ex2_approx_ftz),
      power("ex2.approx.f32", fa4::sim::ex2_approx),
      unary("rcp.approx.ftz.f32", ApproxFunction::rcp_ftz),
      unary("rcp.approx.f32", ApproxFunction::rcp),
      unary("rsqrt.approx.ftz.f32", ApproxFunction::rsqrt_ftz),
      unary("rsqrt.approx.f32", ApproxFunction::rsqrt),
      unary("sqrt.approx.ftz.f32", ApproxFunction::sqrt_ftz),
      unary("sqrt.approx.f32", ApproxFunction::sqrt),
      unary("lg2.approx.ftz.f32", ApproxFunction::lg2_ftz),
      unary("lg2.approx.f32", ApproxFunction::lg2),
      unary("sin.approx.ftz.f32", ApproxFunction::sin),
      unary("sin.approx.f32", ApproxFunction::sin),
      unary("cos.approx.ftz.f32", ApproxFunction::cos),
      unary("cos.approx.f32", ApproxFunction::cos),
      unary("tanh.approx.f32", ApproxFunction::tanh),
      division("div.approx.ftz.f32", Division::approx_ftz),
      division("div.approx.f32", Division::approx),
      division("div.full.ftz.f32", Division::full_ftz),
      division("div.full.f32", Division::full)};
  const auto mismatches = run_lane_cases(cases, Values::floats, Values::floats, Values::floats, 3);
  INFO(describe(mismatches));
  CHECK(mismatches.empty());
}

TEST_CASE("approximate 16-bit instructions are accepted with one and two numbers in a register") {
  // tanh is odd and 2^0 is one: enough to see that each half of the register is worked on.
  const auto constant = [](uint64_t y) { return [y](uint64_t, uint64_t, uint64_t) { return y; }; };
  const std::vector<LaneCase> cases = {
      {"mov.b32 %t, 0x80003C00; ex2.approx.f16x2 %d, %t;", 'r', "r", constant(0x3C004000)},
      {"mov.b32 %t, 0x80003F80; ex2.approx.ftz.bf16x2 %d, %t;", 'r', "r", constant(0x3F804000)},
      {"mov.b32 %t, 0xFC007C00; tanh.approx.f16x2 %d, %t;", 'r', "r", constant(0xBC003C00)},
      {"mov.b32 %t, 0xFF807F80; tanh.approx.bf16x2 %d, %t;", 'r', "r", constant(0xBF803F80)},
      {"mov.b16 %h, 0x3C00; ex2.approx.f16 %d, %h;", 'h', "h", constant(0x4000)},
      {"mov.b16 %h, 0x3F80; ex2.approx.ftz.bf16 %d, %h;", 'h', "h", constant(0x4000)},
      {"mov.b16 %h, 0x7C00; tanh.approx.f16 %d, %h;", 'h', "h", constant(0x3C00)},
      {"mov.b16 %h, 0xFF80; tanh.approx.bf16 %d, %h;", 'h', "h", constant(0xBF80)}};
  const auto mismatches = run_lane_cases(cases, Values::integers, Values::integers, Values::integers, 3);
  INFO(describe(mismatches));
  CHECK(mismatches.empty());
}

TEST_CASE("approximate 16-bit instructions reproduce results of a GPU on all inputs") {
  using Code = fa4::sim::LaneCode;
  namespace cases = fa4::sim::cases;
  namespace fixture = fa4::sim::fixture;
  // In the order of the fixture's rows.
  constexpr Code codes[] = {Code::ex2_approx_f16,  Code::ex2_approx_f16x2,  Code::ex2_approx_ftz_bf16, Code::ex2_approx_ftz_bf16x2,
                            Code::tanh_approx_f16, Code::tanh_approx_f16x2, Code::tanh_approx_bf16,    Code::tanh_approx_bf16x2};
  static_assert(std::size(codes) == std::size(fixture::half_hashes));
  int count = 0;
  const fa4::sim::LaneTable* tables = fa4::sim::lane_tables(&count);
  for (int t = 0; t < count; ++t) {
    if (!tables[t].supported()) continue;
    for (size_t row = 0; row < std::size(codes); ++row) {
      alignas(64) fa4::sim::Row rows[2];  // d, a
      fa4::sim::Op op;
      op.d = 0, op.a = 1;
      fa4::sim::Warp warp;
      warp.rows = rows;
      uint64_t sum = 0;
      for (uint32_t i = 0; i < 1u << 16; i += 32) {
        for (uint32_t lane = 0; lane < 32; ++lane) rows[1].lane[lane] = cases::half_pair(i + lane);
        tables[t].handlers[size_t(codes[row])](warp, &op, fa4::sim::kAllLanes);
        for (uint32_t lane = 0; lane < 32; ++lane) sum += cases::hash_term(i + lane, rows[0].lane[lane]);
      }
      INFO(fixture::half_hashes[row].opcode << ", " << tables[t].instruction_set);
      CHECK(cases::folded(sum) == fixture::half_hashes[row].hash[0]);
    }
  }
}
