// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 arithmetic, and what all floating-point formats share: minimum and maximum in every form,
// comparisons, selection by sign, classes of numbers. Values are exact numbers (number.h), rounded once.
#include "builder.h"
#include "machine.h"
#include "number.h"

namespace fa4::sim {
namespace {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

enum class Kind : uint8_t { add, sub, mul, fma, neg, abs, min, max, copysign };
enum Flag : uint8_t { kFlush = 1, kSaturate = 2, kRelu = 4, kNan = 8, kXorSign = 16, kAbs = 32 };

struct Shape {
  const Format* format = nullptr;
  Type type = Type::none;
  bool pair = false;
  uint64_t canonical_nan = 0;
};

Shape shape_of(Type t) {
  switch (t) {
    case Type::f16:
      return {&kF16, t, false, 0x7FFF};
    case Type::f16x2:
      return {&kF16, t, true, 0x7FFF};
    case Type::bf16:
      return {&kBf16, t, false, 0x7FFF};
    case Type::bf16x2:
      return {&kBf16, t, true, 0x7FFF};
    case Type::f32:
      return {&kF32, t, false, 0x7FFFFFFF};
    case Type::f64:
      return {&kF64, t, false, 0xFFF8000000000000};
    default:
      return {};
  }
}

bool is_nan(uint64_t x, const Format& f) {
  return (x & (f.sign_bit() - 1)) > f.infinity();
}
uint64_t flushed(uint64_t x, const Format& f) {
  return (x & f.infinity()) == 0 ? x & f.sign_bit() : x;
}

// x + y, exact as far as any rounding to 53 bits can tell: bits far below become one sticky bit.
Number sum(Number x, Number y) {
  if (x.kind == Number::Kind::infinity) return x;
  if (y.kind == Number::Kind::infinity) return y;
  if (x.significand == 0 && y.significand == 0) {
    x.sign = x.sign && y.sign;
    return x;
  }
  if (x.significand == 0) return y;
  if (y.significand == 0) return x;
  if (top_bit(x.significand) + x.exponent < top_bit(y.significand) + y.exponent) std::swap(x, y);
  const int raise = 120 - top_bit(x.significand);
  x.significand <<= raise;
  x.exponent -= raise;
  const int down = x.exponent - y.exponent;
  if (down <= 0) {
    y.significand <<= -down;
  } else {
    const bool sticky = down > 127 || (y.significand & (((unsigned __int128)1 << down) - 1)) != 0;
    y.significand = (down > 127 ? 0 : y.significand >> down) | (sticky ? 1 : 0);
  }
  if (x.sign == y.sign) {
    x.significand += y.significand;
  } else if (x.significand >= y.significand) {
    x.significand -= y.significand;
    if (x.significand == 0) x.sign = false;
  } else {
    x.significand = y.significand - x.significand;
    x.sign = y.sign;
  }
  return x;
}

uint64_t arithmetic(Kind kind, uint8_t flags, const Shape& s, uint64_t a, uint64_t b, uint64_t c) {
  const Format& f = *s.format;
  if (flags & kFlush) a = flushed(a, f), b = flushed(b, f), c = flushed(c, f);
  const uint64_t nan = flags & kSaturate ? 0 : s.canonical_nan;
  const bool product = kind == Kind::mul || kind == Kind::fma, three = kind == Kind::fma;
  if (is_nan(a, f) || is_nan(b, f) || (three && is_nan(c, f))) return nan;
  if (kind == Kind::sub) b ^= f.sign_bit();
  Number x = decode(a, f);
  const Number y = decode(b, f);
  if (product) {
    const bool x_infinite = x.kind == Number::Kind::infinity, y_infinite = y.kind == Number::Kind::infinity;
    if ((x_infinite && y.kind == Number::Kind::finite && y.significand == 0) ||
        (y_infinite && !x_infinite && x.significand == 0))
      return nan;
    x.sign ^= y.sign;
    if (x_infinite || y_infinite) x.kind = Number::Kind::infinity;
    x.significand *= y.significand;
    x.exponent += y.exponent;
  }
  if (kind != Kind::mul) {
    const Number z = three ? decode(c, f) : y;
    if (x.kind == Number::Kind::infinity && z.kind == Number::Kind::infinity && x.sign != z.sign) return nan;
    x = sum(x, z);
  }
  if ((flags & kRelu) && x.sign) return 0;
  if (flags & kSaturate) {
    if (x.sign || (x.kind == Number::Kind::finite && x.significand == 0)) return 0;
    if (x.kind == Number::Kind::infinity || top_bit(x.significand) + x.exponent >= 0)
      return uint64_t(f.bias()) << f.fraction_bits;
  }
  Encoding e;
  e.flush = flags & kFlush;
  return encode(x, f, e);
}

// Total order with -0 below +0; a NaN loses, or wins with .NaN.
uint64_t extreme(bool maximum, uint8_t flags, const Shape& s, uint64_t a, uint64_t b) {
  const Format& f = *s.format;
  if (flags & kFlush) a = flushed(a, f), b = flushed(b, f);
  const uint64_t sign = (a ^ b) & f.sign_bit();
  if (flags & (kXorSign | kAbs)) a &= ~f.sign_bit(), b &= ~f.sign_bit();
  const bool a_nan = is_nan(a, f), b_nan = is_nan(b, f);
  uint64_t r;
  if ((a_nan && b_nan) || ((flags & kNan) && (a_nan || b_nan))) {
    return &f == &kF64 ? b | 0x0008000000000000 : s.canonical_nan;
  } else if (a_nan || b_nan) {
    r = a_nan ? b : a;
  } else {
    const auto order = [&](uint64_t x) {
      return x & f.sign_bit() ? -int64_t(x & ~f.sign_bit()) - 1 : int64_t(x);
    };
    r = (order(a) < order(b)) != maximum ? a : b;
  }
  if (flags & kXorSign) r = (r & ~f.sign_bit()) | sign;
  if ((flags & kRelu) && (r & f.sign_bit())) r = 0;
  return r;
}

uint64_t one(Kind kind, uint8_t flags, const Shape& s, uint64_t a, uint64_t b, uint64_t c, bool third) {
  const Format& f = *s.format;
  switch (kind) {
    case Kind::neg:
    case Kind::abs:
      if (is_nan(a, f)) return s.canonical_nan;
      if (flags & kFlush) a = flushed(a, f);
      return kind == Kind::neg ? a ^ f.sign_bit() : a & ~f.sign_bit();
    case Kind::min:
    case Kind::max: {
      const bool maximum = kind == Kind::max;
      const uint64_t r = extreme(maximum, flags, s, a, b);
      return third ? extreme(maximum, flags, s, r, c) : r;
    }
    case Kind::copysign:
      return (b & ~f.sign_bit()) | (a & f.sign_bit());
    default:
      return arithmetic(kind, flags, s, a, b, c);
  }
}

void set_lane_bits(Row* row, int lane, uint32_t rows, uint64_t v) {
  row[0].lane[lane] = uint32_t(v);
  if (rows == 2) row[1].lane[lane] = uint32_t(v >> 32);
}

// Op::mode: kind; size: flags; count: number of sources; imm: type.
const Op* execute(Warp& w, const Op* op, Mask mask) {
  const Shape s = shape_of(Type(op->imm));
  const auto kind = Kind(op->mode);
  const uint32_t rows = Builder::rows_of(s.type);
  const bool three = op->count == 3;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint64_t a = lane_bits(w.rows + op->a, lane, rows == 2), b = lane_bits(w.rows + op->b, lane, rows == 2),
                   c = lane_bits(w.rows + op->c, lane, rows == 2);
    uint64_t r;
    if (s.pair) {
      r = one(kind, op->size, s, a & 0xFFFF, b & 0xFFFF, c & 0xFFFF, three) |
          one(kind, op->size, s, a >> 16, b >> 16, c >> 16, three) << 16;
    } else if (s.format->fraction_bits + s.format->exponent_bits == 15) {
      r = one(kind, op->size, s, a & 0xFFFF, b & 0xFFFF, c & 0xFFFF, three);
    } else {
      r = one(kind, op->size, s, a, b, c, three);
    }
    set_lane_bits(w.rows + op->d, lane, rows, r);
  }
  return op + 1;
}

bool compare(Compare c, double a, double b) {
  const bool unordered = a != a || b != b;
  switch (c) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a < b || a > b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
    case Compare::equ:
      return unordered || a == b;
    case Compare::neu:
      return !(a == b);
    case Compare::ltu:
      return unordered || a < b;
    case Compare::leu:
      return unordered || a <= b;
    case Compare::gtu:
      return unordered || a > b;
    case Compare::geu:
      return unordered || a >= b;
    case Compare::num:
      return !unordered;
    case Compare::nan:
      return unordered;
  }
  return false;
}

double value_of(uint64_t x, const Format& f, bool flush) {
  if (flush) x = flushed(x, f);
  if (&f == &kF64) return std::bit_cast<double>(x);
  if (is_nan(x, f)) return __builtin_nan("");
  return std::bit_cast<double>(encode(decode(x, f), kF64, {}));
}

// setp of halves and with .ftz. Op::mode: comparison; size: Combine; count: flags; imm: type. The first
// predicate is the low half's, the second the high half's; of single numbers the second is the complement.
const Op* set_predicates(Warp& w, const Op* op, Mask mask) {
  const Shape s = shape_of(Type(op->imm));
  const bool flush = op->count & kFlush;
  const Mask third = op->pa_not ? ~w.predicates[op->pa] : w.predicates[op->pa];
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint64_t a = w.rows[op->a].lane[lane], b = w.rows[op->b].lane[lane];
    const bool half = s.format != &kF32;
    const auto at = [&](int shift) {
      return compare(Compare(op->mode), value_of(half ? a >> shift & 0xFFFF : a, *s.format, flush),
                     value_of(half ? b >> shift & 0xFFFF : b, *s.format, flush));
    };
    const bool first = at(0), second = s.pair ? at(16) : !first;
    const bool other = third >> lane & 1;
    const auto put = [&](uint16_t predicate, bool value) {
      switch (Combine(op->size)) {
        case Combine::with_and:
          value = value && other;
          break;
        case Combine::with_or:
          value = value || other;
          break;
        case Combine::with_xor:
          value = value != other;
          break;
        default:
          break;
      }
      w.predicates[predicate] = (w.predicates[predicate] & ~(1u << lane)) | Mask(value) << lane;
    };
    if (op->pd) put(op->pd, first);
    if (op->pb) put(op->pb, second);
  }
  return op + 1;
}

// testp. Op::mode: class.
enum class Class : uint8_t { finite, infinite, number, notanumber, normal, subnormal };
const Op* test_class(Warp& w, const Op* op, Mask mask) {
  const Shape s = shape_of(Type(op->imm));
  const Format& f = *s.format;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint64_t x = lane_bits(w.rows + op->a, lane, Builder::rows_of(s.type) == 2) & (f.sign_bit() - 1);
    bool r = false;
    switch (Class(op->mode)) {
      case Class::finite:
        r = x < f.infinity();
        break;
      case Class::infinite:
        r = x == f.infinity();
        break;
      case Class::number:
        r = x <= f.infinity();
        break;
      case Class::notanumber:
        r = x > f.infinity();
        break;
      case Class::normal:
        r = x == 0 || (x < f.infinity() && x >= 1ull << f.fraction_bits);
        break;
      case Class::subnormal:
        r = x != 0 && x < 1ull << f.fraction_bits;
        break;
    }
    w.predicates[op->pd] = (w.predicates[op->pd] & ~(1u << lane)) | Mask(r) << lane;
  }
  return op + 1;
}

// slct: a where c >= 0, else b. Op::mode bit 0: c is an f32; bit 1: flushed; size: bytes.
const Op* select_by_sign(Warp& w, const Op* op, Mask mask) {
  const uint32_t rows = op->size == 8 ? 2 : 1;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint32_t c = w.rows[op->c].lane[lane];
    const bool take_a = op->mode & 1 ? value_of(c, kF32, op->mode & 2) >= 0 : int32_t(c) >= 0;
    set_lane_bits(w.rows + op->d, lane, rows, lane_bits(w.rows + (take_a ? op->a : op->b), lane, rows == 2));
  }
  return op + 1;
}

}  // namespace

uint64_t add_floats(Type type, bool by_memory, uint64_t a, uint64_t b) {
  const Shape s = shape_of(type);
  const uint8_t flags = by_memory && type == Type::f32 ? kFlush : 0;
  if (type == Type::f64) {
    const bool a_nan = is_nan(a, kF64), b_nan = is_nan(b, kF64);
    if (by_memory && (a_nan || b_nan)) return b_nan ? b : a;
    if (a_nan || b_nan) return (a_nan ? a : b) | 0x0008000000000000;
  }
  if (s.pair)
    return arithmetic(Kind::add, flags, s, a & 0xFFFF, b & 0xFFFF, 0) |
           arithmetic(Kind::add, flags, s, a >> 16, b >> 16, 0) << 16;
  return arithmetic(Kind::add, flags, s, a, b, 0);
}
uint64_t extreme_of_floats(Type type, bool maximum, uint64_t a, uint64_t b) {
  const Shape s = shape_of(type);
  if (s.pair)
    return extreme(maximum, 0, s, a & 0xFFFF, b & 0xFFFF) | extreme(maximum, 0, s, a >> 16, b >> 16) << 16;
  return extreme(maximum, 0, s, a, b);
}

namespace {

void build_testp(Builder& b, Modifiers& m) {
  static constexpr std::string_view names[] = {"finite",     "infinite", "number",
                                               "notanumber", "normal",   "subnormal"};
  int which = -1;
  for (int i = 0; i < 6; ++i) {
    if (which < 0 && m.take(names[i])) which = i;
  }
  const Type t = m.type();
  if (which < 0 || (t != Type::f32 && t != Type::f64)) b.refuse("testp names a class of f32 or f64 numbers");
  const Virtual x = b.source(b.operand(1), t);
  const uint16_t p = b.predicate_destination(b.operand(0));
  Op& op = b.emit(test_class);
  op.mode = uint8_t(which);
  op.imm = int64_t(t);
  op.pd = p ? p : b.scratch_predicate();
  b.use(Field::a, x);
}

void build_copysign(Builder& b, Modifiers& m) {
  const Type t = m.type();
  if (t != Type::f32 && t != Type::f64) b.refuse("copysign works on f32 and f64");
  const Virtual x = b.source(b.operand(1), t), y = b.source(b.operand(2), t),
                d = b.destination(b.operand(0), t);
  Op& op = b.emit(execute);
  op.mode = uint8_t(Kind::copysign);
  op.imm = int64_t(t);
  op.count = 2;
  b.use(Field::a, x);
  b.use(Field::b, y);
  b.use(Field::c, x);
  b.def(Field::d, d);
}

void build_slct(Builder& b, Modifiers& m) {
  const bool ftz = m.take("ftz");
  const Type t = m.type(), by = m.type();
  if (ptx::size_in_bytes(t) < 2 || ptx::size_in_bytes(t) > 8 || (by != Type::s32 && by != Type::f32))
    b.refuse("slct selects 16, 32 or 64 bits by an .s32 or .f32");
  const Virtual x = b.source(b.operand(1), t), y = b.source(b.operand(2), t), c = b.source(b.operand(3), by);
  const Virtual d = b.destination(b.operand(0), t);
  Op& op = b.emit(select_by_sign);
  op.mode = uint8_t((by == Type::f32 ? 1 : 0) | (ftz ? 2 : 0));
  op.size = uint8_t(ptx::size_in_bytes(t));
  b.use(Field::a, x);
  b.use(Field::b, y);
  b.use(Field::c, c);
  b.def(Field::d, d);
}

}  // namespace

bool half_arithmetic(Builder& b, Modifiers& m) {
  const Type t = ptx::type_from_suffix(b.instruction().parts.back());
  const Shape s = shape_of(t);
  const std::string_view opcode = b.instruction().parts[0];
  static constexpr std::pair<std::string_view, Kind> kinds[] = {
      {"add", Kind::add}, {"sub", Kind::sub}, {"mul", Kind::mul}, {"fma", Kind::fma},
      {"neg", Kind::neg}, {"abs", Kind::abs}, {"min", Kind::min}, {"max", Kind::max}};
  const Kind* kind = nullptr;
  for (const auto& [name, value] : kinds) {
    if (name == opcode) kind = &value;
  }
  const bool extremes = kind && (*kind == Kind::min || *kind == Kind::max);
  const bool half = s.format == &kF16 || s.format == &kBf16;
  // The wider formats come here for minimum and maximum in the forms without a handler of their own.
  if (!s.format || !kind || (!half && !extremes)) return false;
  m.type();
  uint8_t flags = 0;
  if (m.take("ftz")) flags |= kFlush;
  if (m.take("sat")) flags |= kSaturate;
  if (m.take("relu")) flags |= kRelu;
  if (extremes) {
    if (m.take("NaN")) flags |= kNan;
    if (m.take("xorsign")) flags |= kXorSign;
    const bool absolute = m.take("abs");
    if (absolute && !(flags & kXorSign)) flags |= kAbs;
    if ((flags & kXorSign) && !absolute) b.refuse(".xorsign comes with .abs");
  }
  const bool rn = m.take("rn"), bf16 = s.format == &kBf16;
  if (*kind == Kind::fma && !rn) b.refuse("fma says how it rounds");
  if ((flags & (kFlush | kSaturate)) && bf16) b.refuse("bf16 arithmetic has neither .ftz nor .sat");
  if ((flags & kRelu) && *kind != Kind::fma) b.refuse("of the arithmetic of halves fma has .relu");
  if (t == Type::f64 && flags) b.refuse("min and max of f64 have no modifiers");
  const size_t sources = *kind == Kind::neg || *kind == Kind::abs                     ? 1
                         : *kind == Kind::fma || (extremes && b.operand_count() == 4) ? 3
                                                                                      : 2;
  if (extremes && sources == 3 && t != Type::f32) b.refuse("of three numbers min and max take .f32");
  Virtual v[3];
  for (size_t i = 0; i < sources; ++i) v[i] = b.source(b.operand(1 + i), t);
  const Virtual d = b.destination(b.operand(0), t);
  Op& op = b.emit(execute);
  op.mode = uint8_t(*kind);
  op.size = flags;
  op.count = uint8_t(sources);
  op.imm = int64_t(t);
  for (size_t i = 0; i < 3; ++i) b.use(Field(int(Field::a) + int(i)), v[i < sources ? i : 0]);
  b.def(Field::d, d);
  return true;
}

bool half_comparison(Builder& b, Type t, Compare comparison, Combine combine, uint16_t p, uint16_t q,
                     uint16_t third, bool third_not, bool ftz, size_t first_source) {
  const Shape s = shape_of(t);
  if (!s.format || t == Type::f64 || (t == Type::f32 && !ftz)) return false;
  if (ftz && s.format == &kBf16) b.refuse("comparisons of bf16 have no .ftz");
  const Virtual x = b.source(b.operand(first_source), t), y = b.source(b.operand(first_source + 1), t);
  Op& op = b.emit(set_predicates);
  op.mode = uint8_t(comparison);
  op.size = uint8_t(combine);
  op.count = ftz ? kFlush : 0;
  op.imm = int64_t(t);
  op.pd = p, op.pb = q, op.pa = third, op.pa_not = third_not;
  b.use(Field::a, x);
  b.use(Field::b, y);
  return true;
}

std::vector<FamilyRow> half_rows() {
  return {{"testp", build_testp}, {"copysign", build_copysign}, {"slct", build_slct}};
}

}  // namespace fa4::sim
