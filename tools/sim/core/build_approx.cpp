// SPDX-License-Identifier: Apache-2.0
// The approximate functions: from PTX to lane handlers. Only forms that are known bit for bit are here; all others are
// refused.
#include "builder.h"

namespace fa4::sim {
namespace {

using ptx::Type;
using enum LaneCode;

struct Form {
  std::string_view opcode;
  LaneCode code;
};
constexpr Form forms[] = {
    {"ex2.approx.ftz.f32", ex2_approx_ftz_f32},
    {"ex2.approx.f32", ex2_approx_f32},
    {"ex2.approx.f16", ex2_approx_f16},
    {"ex2.approx.f16x2", ex2_approx_f16x2},
    {"ex2.approx.ftz.bf16", ex2_approx_ftz_bf16},
    {"ex2.approx.ftz.bf16x2", ex2_approx_ftz_bf16x2},
    {"rcp.approx.ftz.f32", rcp_approx_ftz_f32},
    {"rcp.approx.f32", rcp_approx_f32},
    {"rsqrt.approx.ftz.f32", rsqrt_approx_ftz_f32},
    {"rsqrt.approx.f32", rsqrt_approx_f32},
    {"sqrt.approx.ftz.f32", sqrt_approx_ftz_f32},
    {"sqrt.approx.f32", sqrt_approx_f32},
    {"lg2.approx.ftz.f32", lg2_approx_ftz_f32},
    {"lg2.approx.f32", lg2_approx_f32},
    {"sin.approx.ftz.f32", sin_approx_f32},
    {"sin.approx.f32", sin_approx_f32},
    {"cos.approx.ftz.f32", cos_approx_f32},
    {"cos.approx.f32", cos_approx_f32},
    {"tanh.approx.f32", tanh_approx_f32},
    {"tanh.approx.f16", tanh_approx_f16},
    {"tanh.approx.f16x2", tanh_approx_f16x2},
    {"tanh.approx.bf16", tanh_approx_bf16},
    {"tanh.approx.bf16x2", tanh_approx_bf16x2},
    {"div.approx.ftz.f32", div_approx_ftz_f32},
    {"div.approx.f32", div_approx_f32},
    {"div.full.ftz.f32", div_full_ftz_f32},
    {"div.full.f32", div_full_f32},
};

void approximate_only(Builder& b, Modifiers& m) {
  if (approximate_function(b, m)) return;
  std::string known;
  for (const Form& form : forms) {
    if (form.opcode.starts_with(std::string(b.instruction().parts[0]) + ".")) {
      known += (known.empty() ? "" : ", ") + std::string(form.opcode);
    }
  }
  b.refuse("'" + std::string(b.instruction().opcode) + "': the forms known bit for bit are " + known);
}

}  // namespace

bool approximate_function(Builder& b, Modifiers& m) {
  const std::string_view opcode = b.instruction().opcode;
  for (const Form& form : forms) {
    if (form.opcode != opcode) continue;
    m.take("approx"), m.take("full"), m.take("ftz");
    const Type type = m.type();
    const int sources = b.instruction().parts[0] == "div" ? 2 : 1;
    Virtual a = b.source(b.operand(1), type), divisor{};
    if (sources == 2) divisor = b.source(b.operand(2), type);
    const Virtual d = b.destination(b.operand(0), type);
    b.emit(form.code);
    b.use(Builder::Field::a, a);
    if (sources == 2) b.use(Builder::Field::b, divisor);
    b.def(Builder::Field::d, d);
    b.newest().cycles = 8;
    return true;
  }
  return false;
}

std::vector<FamilyRow> approx_rows() {
  return {{"ex2", approximate_only}, {"rsqrt", approximate_only}, {"lg2", approximate_only},
          {"sin", approximate_only}, {"cos", approximate_only},   {"tanh", approximate_only}};
}

}  // namespace fa4::sim
