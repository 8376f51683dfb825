// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic, logic, shifts, selection, predicates and moves: from PTX to lane handlers.
#include <array>

#include "builder.h"

namespace fa4::sim {
namespace {

using ptx::Operand;
using ptx::Type;
using enum LaneCode;
using Field = Builder::Field;

// One row for each accepted type of an opcode.
struct Typed {
  Type type;
  LaneCode code;
};

LaneCode pick(Builder& b, Type type, std::initializer_list<Typed> rows) {
  for (const Typed& row : rows) {
    if (row.type == type) return row.code;
  }
  b.refuse("'" + std::string(b.instruction().opcode) + "': this type is not supported");
}

void emit_sources(Builder& b, LaneCode code, Virtual d, std::initializer_list<Virtual> sources) {
  b.emit(code);
  Field field = Field::a;
  for (Virtual v : sources) {
    b.use(field, v);
    field = Field(int(field) + 1);
  }
  b.def(Field::d, d);
}

void binary(Builder& b, Type type, LaneCode code) {
  const Virtual x = b.source(b.operand(1), type), y = b.source(b.operand(2), type);
  emit_sources(b, code, b.destination(b.operand(0), type), {x, y});
}
void unary(Builder& b, Type type, LaneCode code, Type result = Type::none) {
  const Virtual x = b.source(b.operand(1), type);
  emit_sources(b, code, b.destination(b.operand(0), result == Type::none ? type : result), {x});
}
void ternary(Builder& b, Type type, LaneCode code) {
  const Virtual x = b.source(b.operand(1), type), y = b.source(b.operand(2), type), z = b.source(b.operand(3), type);
  emit_sources(b, code, b.destination(b.operand(0), type), {x, y, z});
}

void mul(Builder& b, Modifiers& m) {
  const auto part = m.take_any({"lo", "hi", "wide"});
  const Type t = m.type();
  if (part == "wide") {
    const LaneCode code = pick(b, t, {{Type::s16, mul_wide_s16}, {Type::u16, mul_wide_u16}, {Type::s32, mul_wide_s32}, {Type::u32, mul_wide_u32}});
    const Virtual x = b.source(b.operand(1), t), y = b.source(b.operand(2), t);
    emit_sources(b, code, b.destination(b.operand(0), ptx::size_in_bytes(t) == 2 ? Type::b32 : Type::b64), {x, y});
  } else if (part == "hi") {
    binary(b, t, pick(b, t, {{Type::s16, mul_hi_s16}, {Type::u16, mul_hi_u16}, {Type::s32, mul_hi_s32}, {Type::u32, mul_hi_u32}, {Type::s64, mul_hi_s64}, {Type::u64, mul_hi_u64}}));
  } else {
    if (part.empty()) b.refuse("an integer multiplication says .lo, .hi or .wide");
    binary(b, t, pick(b, t, {{Type::s16, mul_lo_16}, {Type::u16, mul_lo_16}, {Type::s32, mul_lo_32}, {Type::u32, mul_lo_32}, {Type::s64, mul_lo_64}, {Type::u64, mul_lo_64}}));
  }
}

void mad(Builder& b, Modifiers& m) {
  if (carry_arithmetic(b, m)) return;
  const auto part = m.take_any({"lo", "hi", "wide"});
  const Type t = m.type();
  if (part == "wide") {
    const LaneCode code = pick(b, t, {{Type::s16, mad_wide_s16}, {Type::u16, mad_wide_u16}, {Type::s32, mad_wide_s32}, {Type::u32, mad_wide_u32}});
    const Type wide = ptx::size_in_bytes(t) == 2 ? Type::b32 : Type::b64;
    const Virtual x = b.source(b.operand(1), t), y = b.source(b.operand(2), t), z = b.source(b.operand(3), wide);
    emit_sources(b, code, b.destination(b.operand(0), wide), {x, y, z});
  } else if (part == "hi") {
    if (!multiply_add_high_any(b, t)) ternary(b, t, pick(b, t, {{Type::s32, mad_hi_s32}, {Type::u32, mad_hi_u32}}));
  } else {
    if (part.empty()) b.refuse("an integer multiplication says .lo, .hi or .wide");
    ternary(b, t, pick(b, t, {{Type::s16, mad_lo_16}, {Type::u16, mad_lo_16}, {Type::s32, mad_lo_32}, {Type::u32, mad_lo_32}, {Type::s64, mad_lo_64}, {Type::u64, mad_lo_64}}));
  }
}

// and, or, xor, not: on bits, or on predicates
void logic(Builder& b, Modifiers& m, LaneCode c16, LaneCode c32, LaneCode c64, LaneCode on_predicates) {
  const Type t = m.type();
  if (t == Type::pred) {
    bool nx = false, ny = false;
    const uint16_t x = b.predicate(b.operand(1), &nx), y = b.predicate(b.operand(2), &ny);
    const uint16_t d = b.predicate_destination(b.operand(0));
    Op& op = b.emit(on_predicates);
    op.pa = x, op.pa_not = nx, op.pb = y, op.pb_not = ny, op.pd = d;
    return;
  }
  binary(b, t, pick(b, t, {{Type::b16, c16}, {Type::b32, c32}, {Type::b64, c64}}));
}
void and_(Builder& b, Modifiers& m) { logic(b, m, and_16, and_32, and_64, pred_and); }
void or_(Builder& b, Modifiers& m) { logic(b, m, or_16, or_32, or_64, pred_or); }
void xor_(Builder& b, Modifiers& m) { logic(b, m, xor_16, xor_32, xor_64, pred_xor); }
void not_(Builder& b, Modifiers& m) {
  const Type t = m.type();
  if (t == Type::pred) {
    bool negated = false;
    const uint16_t x = b.predicate(b.operand(1), &negated), d = b.predicate_destination(b.operand(0));
    Op& op = b.emit(pred_mov);
    op.pa = x, op.pa_not = !negated, op.pd = d;
    return;
  }
  unary(b, t, pick(b, t, {{Type::b16, not_16}, {Type::b32, not_32}, {Type::b64, not_64}}));
}

void shift(Builder& b, Type t, LaneCode code) {
  const Virtual x = b.source(b.operand(1), t), n = b.source(b.operand(2), Type::u32);
  emit_sources(b, code, b.destination(b.operand(0), t), {x, n});
}
void shl(Builder& b, Modifiers& m) {
  const Type t = m.type();
  shift(b, t, pick(b, t, {{Type::b16, shl_16}, {Type::b32, shl_32}, {Type::b64, shl_64}}));
}
void shr(Builder& b, Modifiers& m) {
  const Type t = m.type();
  shift(b, t, pick(b, t, {{Type::b16, shr_u16}, {Type::u16, shr_u16}, {Type::s16, shr_s16}, {Type::b32, shr_u32}, {Type::u32, shr_u32}, {Type::s32, shr_s32}, {Type::b64, shr_u64}, {Type::u64, shr_u64}, {Type::s64, shr_s64}}));
}
// shf.{l,r}: a is the low word, b the high word
void shf(Builder& b, Modifiers& m) {
  const bool left = m.take("l");
  if (!left && !m.take("r")) b.refuse("shf says .l or .r");
  const bool wrap = m.take("wrap");
  if (!wrap && !m.take("clamp")) b.refuse("shf says .wrap or .clamp");
  if (m.type() != Type::b32) b.refuse("shf works on .b32");
  const Virtual low = b.source(b.operand(1), Type::b32), high = b.source(b.operand(2), Type::b32), n = b.source(b.operand(3), Type::u32);
  const LaneCode code = left ? (wrap ? shf_l_wrap : shf_l_clamp) : (wrap ? shf_r_wrap : shf_r_clamp);
  emit_sources(b, code, b.destination(b.operand(0), 1), {low, high, n});
}

void bfe(Builder& b, Modifiers& m) {
  const Type t = m.type();
  const LaneCode code = pick(b, t, {{Type::u32, bfe_u32}, {Type::s32, bfe_s32}, {Type::u64, bfe_u64}, {Type::s64, bfe_s64}});
  const Virtual x = b.source(b.operand(1), t), p = b.source(b.operand(2), Type::u32), n = b.source(b.operand(3), Type::u32);
  emit_sources(b, code, b.destination(b.operand(0), t), {x, p, n});
}
void prmt_(Builder& b, Modifiers& m) {
  if (m.type() != Type::b32) b.refuse("prmt works on .b32");
  if (permutation_mode(b, m)) return;
  ternary(b, Type::b32, prmt);
}
void lop3_(Builder& b, Modifiers& m) {
  if (m.type() != Type::b32) b.refuse("lop3 works on .b32");
  if (b.operand(4).kind != Operand::Kind::immediate) b.refuse("lop3's table must be an immediate");
  ternary(b, Type::b32, lop3);
  b.newest().imm = int64_t(b.operand(4).bits & 255);
}

void selp(Builder& b, Modifiers& m) {
  const Type t = m.type();
  const uint32_t rows = Builder::rows_of(t);
  if (t == Type::none || rows > 2) b.refuse("selp works on 16, 32 and 64 bits");
  bool negated = false;
  const uint16_t p = b.predicate(b.operand(3), &negated);
  binary(b, t, rows == 2 ? selp64 : selp32);
  b.newest().pa = p;
  b.newest().pa_not = negated;
}

// The comparison of setp and set: predicates p (and q, its complement or the upper half's), from operands 1, 2 and, where it
// is combined with a predicate, 3. `m` stands before the type of the sources.
struct Comparison {
  Compare compare;
  Combine combine;
  bool ftz;
};
Comparison take_comparison(Builder& b, Modifiers& m) {
  static constexpr std::pair<std::string_view, Compare> names[] = {
      {"eq", Compare::eq}, {"ne", Compare::ne}, {"lt", Compare::lt}, {"le", Compare::le}, {"gt", Compare::gt},
      {"ge", Compare::ge}, {"equ", Compare::equ}, {"neu", Compare::neu}, {"ltu", Compare::ltu}, {"leu", Compare::leu},
      {"gtu", Compare::gtu}, {"geu", Compare::geu}, {"num", Compare::num}, {"nan", Compare::nan},
      {"lo", Compare::lt}, {"ls", Compare::le}, {"hi", Compare::gt}, {"hs", Compare::ge}};
  int compare = -1;
  for (const auto& [name, value] : names) {
    if (m.take(name)) {
      compare = int(value);
      break;
    }
  }
  if (compare < 0) b.refuse("a comparison that is not known");
  const auto combine = m.take_any({"and", "or", "xor"});
  return {Compare(compare), combine.empty() ? Combine::none : combine == "and" ? Combine::with_and : combine == "or" ? Combine::with_or : Combine::with_xor, m.take("ftz")};
}
void emit_comparison(Builder& b, const Comparison& c, Type t, uint16_t p, uint16_t q) {
  bool negated = false;
  const uint16_t third = c.combine == Combine::none ? 0 : b.predicate(b.operand(3), &negated);
  if (half_comparison(b, t, c.compare, c.combine, p, q, third, negated, c.ftz, 1)) return;
  const bool floating = t == Type::f32 || t == Type::f64;
  if (c.ftz) b.refuse("comparisons of f32 and f16 have .ftz");
  if (!floating && c.compare > Compare::ge) b.refuse("an unordered comparison of integers");
  const LaneCode code = pick(b, t, {{Type::b16, setp_u16}, {Type::u16, setp_u16}, {Type::s16, setp_s16}, {Type::b32, setp_u32}, {Type::u32, setp_u32}, {Type::s32, setp_s32}, {Type::b64, setp_u64}, {Type::u64, setp_u64}, {Type::s64, setp_s64}, {Type::f32, setp_f32}, {Type::f64, setp_f64}});
  const Virtual x = b.source(b.operand(1), t), y = b.source(b.operand(2), t);
  Op& op = b.emit(code);
  op.mode = uint8_t(c.compare);
  op.size = uint8_t(c.combine);
  op.pd = p, op.pb = q, op.pa = third, op.pa_not = negated;
  b.use(Field::a, x);
  b.use(Field::b, y);
}
void setp(Builder& b, Modifiers& m) {
  const Comparison c = take_comparison(b, m);
  const Type t = m.type();
  uint16_t p = 0, q = 0;
  if (b.operand(0).kind == Operand::Kind::reg_pair) {
    p = b.operand(0).reg == ptx::sink_reg ? 0 : b.predicate_of(b.operand(0).reg);
    q = b.operand(0).reg2 == ptx::sink_reg ? 0 : b.predicate_of(b.operand(0).reg2);
  } else {
    p = b.predicate_destination(b.operand(0));
  }
  emit_comparison(b, c, t, p, q);
}
// set: all ones or 1.0 where the comparison holds, else 0; in halves if the sources are.
void set(Builder& b, Modifiers& m) {
  const Comparison c = take_comparison(b, m);
  const Type d = m.type(), t = m.type();
  const bool pair = t == Type::f16x2 || t == Type::bf16x2;
  uint64_t yes = 0;
  switch (d) {
    case Type::u32: case Type::s32: yes = pair ? 0xFFFF : 0xFFFFFFFF; break;
    case Type::f32: yes = 0x3F800000; break;
    case Type::f16: case Type::f16x2: yes = 0x3C00; break;
    case Type::bf16: case Type::bf16x2: yes = 0x3F80; break;
    case Type::u16: case Type::s16: yes = 0xFFFF; break;
    default: b.refuse("set gives u16, s16, u32, s32, f32 or halves");
  }
  if (pair && (d == Type::f32 || d == Type::f16 || d == Type::bf16)) b.refuse("a comparison of pairs gives a pair");
  const uint16_t p = b.scratch_predicate(), q = pair ? b.scratch_predicate() : 0;
  const Virtual result = b.destination(b.operand(0), d), zero = b.constant(0, 1), one = b.constant(yes, 1);
  emit_comparison(b, c, t, p, q);
  const auto choose = [&](uint16_t predicate, Virtual to) {
    emit_sources(b, selp32, to, {one, zero});
    b.newest().pa = predicate;
  };
  if (!pair) {
    choose(p, result);
    return;
  }
  const Virtual low = b.scratch(1), high = b.scratch(1);
  choose(p, low);
  choose(q, high);
  emit_sources(b, pack_halves, result, {low, high});
}

// Four bytes, low to high, by two permutations of byte pairs.
void pack_bytes(Builder& b, Virtual v, const std::array<Virtual, 4>& part) {
  const Virtual low = b.scratch(1), high = b.scratch(1);
  emit_sources(b, prmt, low, {part[0], part[1], b.constant(0x0040, 1)});
  emit_sources(b, prmt, high, {part[2], part[3], b.constant(0x0040, 1)});
  emit_sources(b, prmt, v, {low, high, b.constant(0x5410, 1)});
}

// mov: registers, immediates, addresses, special registers; packs and unpacks vectors
void mov(Builder& b, Modifiers& m) {
  const Type t = m.type();
  const Operand &d = b.operand(0), &s = b.operand(1);
  if (t == Type::pred && s.kind == Operand::Kind::special) {
    if (b.function().names[s.symbol] != "%is_explicit_cluster") b.refuse("of the special registers %is_explicit_cluster is a predicate");
    const uint16_t p = b.predicate_destination(d);
    const Virtual flag = b.source(s, Type::pred), zero = b.constant(0, 1);
    Op& op = b.emit(setp_u32);
    op.mode = uint8_t(Compare::ne);
    op.pd = p ? p : b.scratch_predicate();
    b.use(Field::a, flag);
    b.use(Field::b, zero);
    return;
  }
  if (t == Type::pred) {
    bool negated = false;
    const uint16_t source = b.predicate(s, &negated), destination = b.predicate_destination(d);
    Op& op = b.emit(pred_mov);
    op.pa = source, op.pa_not = negated, op.pd = destination;
    return;
  }
  const uint32_t bytes = ptx::size_in_bytes(t), rows = Builder::rows_of(t);
  if (bytes < 2) b.refuse("mov works on .pred and 16, 32, 64 and 128 bits");
  if (s.kind == Operand::Kind::vector) {
    const size_t n = s.elements.size();
    const Virtual v = b.destination(d, t);
    if (bytes == 4 && n == 2) {
      const Virtual low = b.source(s.elements[0], Type::b16), high = b.source(s.elements[1], Type::b16);
      emit_sources(b, pack_halves, v, {low, high});
      return;
    }
    if (bytes == 4 && n == 4) {
      std::array<Virtual, 4> part;
      for (uint32_t i = 0; i < 4; ++i) part[i] = b.source(s.elements[i], Type::b8, true);
      pack_bytes(b, v, part);
      return;
    }
    if (bytes == 8 && n == 4) {
      for (uint32_t word = 0; word < 2; ++word) {
        const Virtual low = b.source(s.elements[2 * word], Type::b16), high = b.source(s.elements[2 * word + 1], Type::b16);
        b.emit(pack_halves);
        b.use(Field::a, low);
        b.use(Field::b, high);
        b.def(Field::d, v, word, word != 0);
      }
      return;
    }
    if (n == 0 || (bytes / n != 4 && bytes / n != 8)) b.refuse("mov packs 4 x 8, 2 x 16, 4 x 16, 2 x 32, 4 x 32 or 2 x 64 bits");
    const uint32_t part = rows / uint32_t(n);
    for (uint32_t i = 0; i < n; ++i) {
      const Virtual x = b.source(s.elements[i], part == 2 ? Type::b64 : Type::b32);
      b.emit(part == 2 ? mov64 : mov32);
      b.use(Field::a, x);
      b.def(Field::d, v, i * part, i != 0);
    }
    return;
  }
  if (d.kind == Operand::Kind::vector) {
    const size_t n = d.elements.size();
    const Virtual x = b.source(s, t);
    if (bytes == 4 && n == 2) {
      // The source may be one of the destinations: take the high half first into a scratch row.
      const Virtual high = b.scratch(1);
      emit_sources(b, high_half, high, {x});
      if (d.elements[0].kind != Operand::Kind::sink) emit_sources(b, low_half, b.destination(d.elements[0], Type::b16), {x});
      if (d.elements[1].kind != Operand::Kind::sink) emit_sources(b, mov16, b.destination(d.elements[1], Type::b16), {high});
      return;
    }
    if (bytes == 4 && n == 4) {
      const Virtual whole = b.scratch(1);  // the source may be one of the destinations
      emit_sources(b, mov32, whole, {x});
      for (uint32_t i = 0; i < 4; ++i) {
        if (d.elements[i].kind != Operand::Kind::sink) emit_sources(b, bfe_u32, b.wide_destination(d.elements[i], 1), {whole, b.constant(8 * i, 1), b.constant(8, 1)});
      }
      return;
    }
    if (bytes == 8 && n == 4) {
      for (uint32_t i = 0; i < 4; ++i) {
        if (d.elements[i].kind == Operand::Kind::sink) continue;
        const Virtual half = b.destination(d.elements[i], Type::b16);
        b.emit(i % 2 ? high_half : low_half);
        b.use(Field::a, x, i / 2);
        b.def(Field::d, half);
      }
      return;
    }
    if (n == 0 || (bytes / n != 4 && bytes / n != 8)) b.refuse("mov unpacks 4 x 8, 2 x 16, 4 x 16, 2 x 32, 4 x 32 or 2 x 64 bits");
    const uint32_t part = rows / uint32_t(n);
    for (uint32_t i = 0; i < n; ++i) {
      if (d.elements[i].kind == Operand::Kind::sink) continue;
      const Virtual v = b.destination(d.elements[i], part);
      b.emit(part == 2 ? mov64 : mov32);
      b.use(Field::a, x, i * part);
      b.def(Field::d, v);
    }
    return;
  }
  if (s.kind == Operand::Kind::special && read_clock(b, s, rows)) return;
  const Virtual x = b.source(s, t), v = b.destination(d, t);
  emit_sources(b, bytes == 2 ? mov16 : rows == 1 ? mov32 : rows == 2 ? mov64 : mov128, v, {x});
}

// Opcodes that integers share with floats are dispatched on their type.
void add(Builder& b, Modifiers& m) {
  if (float_arithmetic(b, m)) return;
  if (carry_arithmetic(b, m) || packed_or_saturated(b, m)) return;
  const Type t = m.type();
  binary(b, t, pick(b, t, {{Type::s16, add_16}, {Type::u16, add_16}, {Type::s32, add_32}, {Type::u32, add_32}, {Type::s64, add_64}, {Type::u64, add_64}}));
}
void sub(Builder& b, Modifiers& m) {
  if (float_arithmetic(b, m)) return;
  if (carry_arithmetic(b, m) || packed_or_saturated(b, m)) return;
  const Type t = m.type();
  binary(b, t, pick(b, t, {{Type::s16, sub_16}, {Type::u16, sub_16}, {Type::s32, sub_32}, {Type::u32, sub_32}, {Type::s64, sub_64}, {Type::u64, sub_64}}));
}
void mul_any(Builder& b, Modifiers& m) {
  if (!float_arithmetic(b, m)) mul(b, m);
}
void mad_any(Builder& b, Modifiers& m) {
  if (!float_arithmetic(b, m)) mad(b, m);
}
void div(Builder& b, Modifiers& m) {
  if (float_arithmetic(b, m)) return;
  const Type t = m.type();
  binary(b, t, pick(b, t, {{Type::s16, div_s16}, {Type::u16, div_u16}, {Type::s32, div_s32}, {Type::u32, div_u32}, {Type::s64, div_s64}, {Type::u64, div_u64}}));
}
void rem(Builder& b, Modifiers& m) {
  const Type t = m.type();
  binary(b, t, pick(b, t, {{Type::s16, rem_s16}, {Type::u16, rem_u16}, {Type::s32, rem_s32}, {Type::u32, rem_u32}, {Type::s64, rem_s64}, {Type::u64, rem_u64}}));
}
void min(Builder& b, Modifiers& m) {
  if (float_arithmetic(b, m) || packed_or_saturated(b, m)) return;
  const Type t = m.type();
  binary(b, t, pick(b, t, {{Type::s16, min_s16}, {Type::u16, min_u16}, {Type::s32, min_s32}, {Type::u32, min_u32}, {Type::s64, min_s64}, {Type::u64, min_u64}}));
}
void max(Builder& b, Modifiers& m) {
  if (float_arithmetic(b, m) || packed_or_saturated(b, m)) return;
  const Type t = m.type();
  binary(b, t, pick(b, t, {{Type::s16, max_s16}, {Type::u16, max_u16}, {Type::s32, max_s32}, {Type::u32, max_u32}, {Type::s64, max_s64}, {Type::u64, max_u64}}));
}
void neg(Builder& b, Modifiers& m) {
  if (float_arithmetic(b, m)) return;
  const Type t = m.type();
  unary(b, t, pick(b, t, {{Type::s16, neg_16}, {Type::s32, neg_32}, {Type::s64, neg_64}}));
}
void abs(Builder& b, Modifiers& m) {
  if (float_arithmetic(b, m)) return;
  const Type t = m.type();
  unary(b, t, pick(b, t, {{Type::s16, abs_s16}, {Type::s32, abs_s32}, {Type::s64, abs_s64}}));
}
void popc(Builder& b, Modifiers& m) {
  const Type t = m.type();
  unary(b, t, pick(b, t, {{Type::b32, popc_32}, {Type::b64, popc_64}}), Type::b32);
}
void clz(Builder& b, Modifiers& m) {
  const Type t = m.type();
  unary(b, t, pick(b, t, {{Type::b32, clz_32}, {Type::b64, clz_64}}), Type::b32);
}
void brev(Builder& b, Modifiers& m) {
  const Type t = m.type();
  unary(b, t, pick(b, t, {{Type::b32, brev_32}, {Type::b64, brev_64}}));
}
}  // namespace

std::vector<FamilyRow> integer_rows() {
  return {{"add", add}, {"sub", sub}, {"mul", mul_any}, {"mad", mad_any}, {"div", div}, {"rem", rem}, {"min", min},
          {"max", max}, {"neg", neg}, {"abs", abs}, {"and", and_}, {"or", or_}, {"xor", xor_}, {"not", not_},
          {"shl", shl}, {"shr", shr}, {"shf", shf}, {"bfe", bfe}, {"prmt", prmt_}, {"lop3", lop3_}, {"selp", selp},
          {"setp", setp}, {"set", set}, {"mov", mov}, {"popc", popc}, {"clz", clz}, {"brev", brev}};
}

}  // namespace fa4::sim
