// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic: from PTX to lane handlers. The approximate forms are in build_approx.cpp, conversions in
// build_convert.cpp, 16-bit formats in build_half.cpp.
#include <algorithm>
#include <optional>

#include "builder.h"

namespace fa4::sim {
namespace {

using ptx::Type;
using enum LaneCode;
using Field = Builder::Field;

void emit(Builder& b, LaneCode code, Type type, size_t sources, Type result, Rounding rounding = Rounding::nearest_even) {
  Virtual v[3];
  for (size_t i = 0; i < sources; ++i) v[i] = b.source(b.operand(1 + i), type);
  const Virtual d = b.destination(b.operand(0), result);
  b.emit(code).mode = uint8_t(rounding);
  for (size_t i = 0; i < sources; ++i) b.use(Field(int(Field::a) + int(i)), v[i]);
  b.def(Field::d, d);
}

std::optional<Rounding> rounding(Modifiers& m) {
  if (m.take("rn")) return Rounding::nearest_even;
  if (m.take("rz")) return Rounding::toward_zero;
  if (m.take("rm")) return Rounding::down;
  if (m.take("rp")) return Rounding::up;
  return std::nullopt;
}
Type type_of(const Builder& b) {
  return ptx::type_from_suffix(b.instruction().parts.back());
}

// Arithmetic by opcode: the handlers for f32 (plain, flushing, saturating, both), f32x2 (plain, flushing) and f64.
struct Arithmetic {
  std::string_view opcode;
  uint8_t sources;
  std::optional<LaneCode> f32, f32_ftz, f32_sat, f32_ftz_sat, f32x2, f32x2_ftz, f64;
};
constexpr std::nullopt_t none = std::nullopt;
const Arithmetic arithmetic[] = {
    {"add", 2, add_f32, add_ftz_f32, add_sat_f32, add_ftz_sat_f32, add_f32x2, add_ftz_f32x2, add_f64},
    {"sub", 2, sub_f32, sub_ftz_f32, sub_sat_f32, sub_ftz_sat_f32, sub_f32x2, sub_ftz_f32x2, sub_f64},
    {"mul", 2, mul_f32, mul_ftz_f32, mul_sat_f32, mul_ftz_sat_f32, mul_f32x2, mul_ftz_f32x2, mul_f64},
    {"fma", 3, fma_f32, fma_ftz_f32, fma_sat_f32, fma_ftz_sat_f32, fma_f32x2, fma_ftz_f32x2, fma_f64},
    {"mad", 3, fma_f32, fma_ftz_f32, fma_sat_f32, fma_ftz_sat_f32, none, none, fma_f64},
    {"div", 2, div_rn_f32, div_rn_ftz_f32, none, none, none, none, div_rn_f64},
    {"rcp", 1, rcp_rn_f32, rcp_rn_ftz_f32, none, none, none, none, rcp_rn_f64},
    {"sqrt", 1, sqrt_rn_f32, sqrt_rn_ftz_f32, none, none, none, none, sqrt_rn_f64},
    {"neg", 1, neg_f32, neg_ftz_f32, none, none, none, none, neg_f64},
    {"abs", 1, abs_f32, abs_ftz_f32, none, none, none, none, abs_f64},
};

void minimum_or_maximum(Builder& b, Modifiers& m, bool maximum) {
  const bool ftz = m.take("ftz"), nan = m.take("NaN");
  if (m.type() != Type::f32) b.refuse("min and max of this floating-point type are not supported");
  const bool three = b.operand_count() == 4;
  LaneCode code = maximum ? max_f32 : min_f32;
  if (nan) code = maximum ? max_nan_f32 : min_nan_f32;
  else if (three) code = ftz ? (maximum ? max3_ftz_f32 : min3_ftz_f32) : (maximum ? max3_f32 : min3_f32);
  else if (ftz) code = maximum ? max_ftz_f32 : min_ftz_f32;
  emit(b, code, Type::f32, three ? 3 : 2, Type::f32);
}

void float_only(Builder& b, Modifiers& m) {
  if (!float_arithmetic(b, m)) b.refuse("'" + std::string(b.instruction().opcode) + "': this type is not supported");
}

bool is_integer(Type t) {
  switch (t) {
    case Type::u8: case Type::s8: case Type::u16: case Type::s16: case Type::u32: case Type::s32: case Type::u64: case Type::s64:
      return true;
    default: return false;
  }
}

bool is_signed(Type t) { return t == Type::s8 || t == Type::s16 || t == Type::s32 || t == Type::s64; }

// cvt.d.s: the first type is the destination's. The forms that compiled kernels use most have handlers of their own.
void cvt(Builder& b, Modifiers& m) {
  const auto& parts = b.instruction().parts;
  const Type d = parts.size() < 3 ? Type::none : ptx::type_from_suffix(parts[parts.size() - 2]), s = type_of(b);
  const auto only = [&](std::string_view rounding) {
    return parts.size() == (rounding.empty() ? 3u : 4u) && (rounding.empty() || parts[1] == rounding);
  };
  if (only("") && is_integer(d) && is_integer(s)) {
    static constexpr std::pair<Type, LaneCode> codes[] = {{Type::s8, cvt_s8}, {Type::u8, cvt_u8}, {Type::s16, cvt_s16}, {Type::u16, cvt_u16}, {Type::s32, cvt_s32}, {Type::u32, cvt_u32}, {Type::s64, cvt_s64}, {Type::u64, cvt_u64}};
    m.type(), m.type();
    // A narrowing conversion chops; a widening one extends as the source's sign says, into the whole register.
    const Type narrow = ptx::size_in_bytes(d) <= ptx::size_in_bytes(s) ? d : s;
    for (const auto& [type, code] : codes) {
      if (type != narrow) continue;
      Type from = s;
      if (narrow == d && Builder::rows_of(s) == 2 && Builder::rows_of(d) == 1) from = Type::b64;
      const Virtual x = b.source(b.operand(1), from, true);
      const Type declared = b.register_type(b.operand(0));
      const Type whole = declared == Type::none ? d : declared;
      const Virtual v = b.wide_destination(b.operand(0), Builder::rows_of(whole));
      // A negative number as an unsigned one of 8 or 16 bits: zeros, not the sign, fill the rest of the register.
      const bool zeros_fill = narrow == s && !is_signed(d) && is_signed(s) && ptx::size_in_bytes(whole) > ptx::size_in_bytes(d);
      if (zeros_fill && Builder::rows_of(whole) > 1) b.refuse("'" + std::string(b.instruction().opcode) + "' into a 64-bit register is not supported");
      b.emit(code).size = uint8_t(ptx::size_in_bytes(zeros_fill ? d : whole));
      b.use(Field::a, x);
      b.def(Field::d, v);
      return;
    }
  }
  struct Row {
    Type d, s;
    std::string_view rounding;
    LaneCode code;
    Rounding mode = Rounding::nearest_even;
  };
  static constexpr Row rows[] = {
      {Type::f32, Type::s32, "rn", cvt_f32_s32}, {Type::f32, Type::u32, "rn", cvt_f32_u32}, {Type::f32, Type::s64, "rn", cvt_f32_s64}, {Type::f32, Type::u64, "rn", cvt_f32_u64},
      {Type::f64, Type::s32, "rn", cvt_f64_s32}, {Type::f64, Type::u32, "rn", cvt_f64_u32}, {Type::f32, Type::f16, "", cvt_f32_f16},
      {Type::s32, Type::f32, "rzi", cvt_s32_f32, Rounding::toward_zero}, {Type::u32, Type::f32, "rzi", cvt_u32_f32, Rounding::toward_zero},
      {Type::s32, Type::f32, "rni", cvt_s32_f32}, {Type::s32, Type::f32, "rmi", cvt_s32_f32, Rounding::down}, {Type::s32, Type::f32, "rpi", cvt_s32_f32, Rounding::up},
      {Type::f16, Type::f32, "rn", cvt_f16_f32}, {Type::bf16, Type::f32, "rn", cvt_bf16_f32}, {Type::f16x2, Type::f32, "rn", cvt_f16x2_f32}, {Type::bf16x2, Type::f32, "rn", cvt_bf16x2_f32}};
  for (const Row& row : rows) {
    if (row.d != d || row.s != s || !only(row.rounding)) continue;
    if (!row.rounding.empty()) m.take(row.rounding);
    m.type(), m.type();
    emit(b, row.code, s, d == Type::f16x2 || d == Type::bf16x2 ? 2 : 1, d, row.mode);
    return;
  }
  general_conversion(b, m);
}

}  // namespace

bool float_arithmetic(Builder& b, Modifiers& m) {
  const Type type = type_of(b);
  const std::string_view opcode = b.instruction().parts[0];
  const bool floating = type == Type::f32 || type == Type::f32x2 || type == Type::f64;
  if (!floating) return half_arithmetic(b, m);
  if (approximate_function(b, m)) return true;
  if (opcode == "min" || opcode == "max") {
    const auto& parts = b.instruction().parts;
    const auto has = [&](std::string_view name) { return std::find(parts.begin(), parts.end(), name) != parts.end(); };
    const bool rare = type == Type::f64 || has("abs") || (has("NaN") && (has("ftz") || b.operand_count() == 4));
    if (rare) return half_arithmetic(b, m);
    minimum_or_maximum(b, m, opcode == "max");
    return true;
  }
  const Arithmetic* row = nullptr;
  for (const Arithmetic& r : arithmetic) {
    if (r.opcode == opcode) row = &r;
  }
  const auto round = rounding(m);
  const bool ftz = m.take("ftz"), sat = m.take("sat");
  m.type();
  const bool inexact_forms = opcode == "div" || opcode == "rcp" || opcode == "sqrt";
  if (inexact_forms && !round) {
    b.refuse("'" + std::string(b.instruction().opcode) + "': this approximate form is not known bit for bit");
  }
  if ((opcode == "fma" || opcode == "mad") && !round) b.refuse("fma says how it rounds");
  std::optional<LaneCode> code;
  if (type == Type::f64 && !ftz && !sat) code = row->f64;
  if (type == Type::f32x2 && !sat) code = ftz ? row->f32x2_ftz : row->f32x2;
  if (type == Type::f32) code = ftz ? (sat ? row->f32_ftz_sat : row->f32_ftz) : (sat ? row->f32_sat : row->f32);
  if (!code) b.refuse("'" + std::string(b.instruction().opcode) + "': this form is not supported");
  emit(b, *code, type == Type::f32x2 ? Type::b64 : type, row->sources, type == Type::f32x2 ? Type::b64 : type,
       round.value_or(Rounding::nearest_even));
  return true;
}

std::vector<FamilyRow> float_rows() {
  return {{"fma", float_only}, {"rcp", float_only}, {"sqrt", float_only}, {"cvt", cvt}};
}

}  // namespace fa4::sim
