// SPDX-License-Identifier: Apache-2.0
// Conversions in general: any pair of formats through an exact number and one rounding. The forms that
// compiled kernels use most have lane handlers of their own (build_float.cpp).
#include "builder.h"
#include "machine.h"
#include "number.h"

namespace fa4::sim {
namespace {

using ptx::Type;
using Field = Builder::Field;

// What a conversion is about, packed into Op::imm.
struct Conversion {
  Type d, s;
  Rounding rounding;
  enum Flag : uint8_t {
    integral = 1,
    flush = 2,
    saturate = 4,
    relu = 8,
    satfinite = 16,
    away = 32,
    pair = 64,
    tf32 = 128
  };
  uint8_t flags;
  uint8_t d_kind;  // DestinationKind
  bool has(Flag f) const { return flags & f; }
};
enum class Narrow : uint8_t {
  none,
  e4m3,
  e5m2
};  // formats that PTX types do not name: d_kind low nibble to, high from

int64_t pack(const Conversion& c) {
  return int64_t(uint64_t(c.d) | uint64_t(c.s) << 8 | uint64_t(c.rounding) << 16 | uint64_t(c.flags) << 24 |
                 uint64_t(c.d_kind) << 32);
}
Conversion unpack(int64_t v) {
  return {Type(v & 255), Type(v >> 8 & 255), Rounding(v >> 16 & 255), uint8_t(v >> 24 & 255),
          uint8_t(v >> 32 & 255)};
}

struct Integer {
  int bits;
  bool is_signed;
};
bool integer_of(Type t, Integer* i) {
  switch (t) {
    case Type::s8:
      *i = {8, true};
      return true;
    case Type::u8:
      *i = {8, false};
      return true;
    case Type::s16:
      *i = {16, true};
      return true;
    case Type::u16:
      *i = {16, false};
      return true;
    case Type::s32:
      *i = {32, true};
      return true;
    case Type::u32:
      *i = {32, false};
      return true;
    case Type::s64:
      *i = {64, true};
      return true;
    case Type::u64:
      *i = {64, false};
      return true;
    default:
      return false;
  }
}
const Format* format_of(Type t) {
  switch (t) {
    case Type::f64:
      return &kF64;
    case Type::f32:
      return &kF32;
    case Type::f16:
    case Type::f16x2:
      return &kF16;
    case Type::bf16:
    case Type::bf16x2:
      return &kBf16;
    default:
      return nullptr;
  }
}

int64_t extended(uint64_t bits, const Integer& i) {
  const int shift = 64 - i.bits;
  return i.is_signed ? int64_t(bits << shift) >> shift : int64_t(bits << shift >> shift);
}

uint64_t to_integer(const Number& n, const Integer& d, const Conversion& c) {
  if (n.kind == Number::Kind::nan) {
    // As hardware answers: zero, but the sign bit where the source or the destination has 64 bits.
    return c.s == Type::f64 || d.bits == 64 ? uint64_t(extended(1ull << (d.bits - 1), d)) : 0;
  }
  const unsigned __int128 highest =
      d.is_signed ? (unsigned __int128)(1) << (d.bits - 1) : (unsigned __int128)(1) << d.bits;
  const bool huge =
      n.kind == Number::Kind::infinity || (n.significand != 0 && top_bit(n.significand) + n.exponent > 64);
  unsigned __int128 magnitude = huge ? highest : shifted(n.significand, -n.exponent, c.rounding, n.sign);
  if (n.sign) {
    if (!d.is_signed) return 0;
    if (magnitude > highest) magnitude = highest;
    return 0 - uint64_t(magnitude);
  }
  if (magnitude >= highest) magnitude = highest - 1;
  return uint64_t(magnitude);
}

uint64_t to_float(Number n, const Format& d, const Conversion& c) {
  if (n.kind == Number::Kind::nan) {
    if (c.has(Conversion::saturate)) return 0;
    // Conversions from and to f64, and to f64 of anything, keep sign and payload; the others give the
    // canonical NaN.
    if (c.has(Conversion::flush) && c.d == Type::f64)
      n.sign = false, n.payload = 0x7FFFFFull << 29;  // the f32 became canonical first
    if (c.s == Type::f64 || c.d == Type::f64) {
      return (n.sign ? d.sign_bit() : 0) | d.infinity() | 1ull << (d.fraction_bits - 1) |
             n.payload >> (52 - d.fraction_bits);
    }
    if (&d == &kF32) return 0x7FFFFFFF;
    return d.sign_bit() - 1;
  }
  if (c.has(Conversion::relu) && n.sign) return 0;
  if (c.has(Conversion::saturate)) {
    if (n.sign || (n.kind == Number::Kind::finite && n.significand == 0)) return 0;
    const bool above = n.kind == Number::Kind::infinity || top_bit(n.significand) + n.exponent >= 0;
    if (above) return uint64_t(d.bias()) << d.fraction_bits;
  }
  if (c.has(Conversion::integral) && n.kind == Number::Kind::finite && n.exponent < 0) {
    n.significand = shifted(n.significand, -n.exponent, c.rounding, n.sign);
    n.exponent = 0;
  }
  Encoding e;
  e.rounding = c.rounding;
  e.ties_away = c.has(Conversion::away);
  e.flush = c.has(Conversion::flush) && &d == &kF32;
  e.to_largest = c.has(Conversion::satfinite);
  return encode(n, d, e);
}

Number source_number(uint64_t bits, const Conversion& c) {
  Integer i;
  if (integer_of(c.s, &i)) {
    const int64_t v = extended(bits, i);
    const bool negative = i.is_signed && v < 0;
    return number_of(negative ? 0 - uint64_t(v) : uint64_t(v), negative);
  }
  Number n = decode(bits, *format_of(c.s));
  const bool subnormal = n.kind == Number::Kind::finite && n.significand != 0 &&
                         n.significand < (1ull << format_of(c.s)->fraction_bits);
  if (c.has(Conversion::flush) && subnormal && c.s != Type::f64 && c.s != Type::f16) n.significand = 0;
  return n;
}

uint64_t converted(uint64_t bits, const Conversion& c) {
  Integer d;
  if (c.s == Type::bf16 && c.d == Type::f32 && c.flags == 0) return bits << 16;  // not even a NaN changes
  Integer s;
  if (integer_of(c.d, &d)) {
    if (integer_of(c.s, &s)) {  // .sat between integers
      const int64_t v = extended(bits, s);
      const bool negative = s.is_signed && v < 0;
      if (negative) {
        if (!d.is_signed) return 0;
        const int64_t lowest = d.bits == 64 ? INT64_MIN : -(1ll << (d.bits - 1));
        return uint64_t(v < lowest ? lowest : v);
      }
      const uint64_t highest = d.is_signed ? ~0ull >> (65 - d.bits) : ~0ull >> (64 - d.bits);
      return uint64_t(v) > highest ? highest : uint64_t(v);
    }
    return to_integer(source_number(bits, c), d, c);
  }
  const Number n = source_number(bits, c);
  if (c.has(Conversion::tf32)) {
    if (!c.has(Conversion::away))
      return n.kind == Number::Kind::nan ? 0x7FFFE000 : to_float(n, kTf32, c) << 13;
    Conversion plain = c;
    plain.flags &= uint8_t(~Conversion::satfinite);
    const uint64_t r = n.kind == Number::Kind::nan ? bits & 0xFFFFE000 : to_float(n, kTf32, plain) << 13;
    // .rna.satfinite steps down whatever has the highest exponent, NaNs as well.
    const bool top = (r & 0x7F800000) == 0x7F800000;
    return c.has(Conversion::satfinite) && top ? (r - 1) & 0xFFFFE000 : r;
  }
  const auto narrow = Narrow(c.d_kind & 15);
  if (narrow != Narrow::none) return to_float(n, narrow == Narrow::e4m3 ? kE4m3 : kE5m2, c);
  return to_float(n, *format_of(c.d), c);
}

// Op::size: bytes of the destination register, into which signed results extend.
const Op* convert(Warp& w, const Op* op, Mask mask) {
  const Conversion c = unpack(op->imm);
  const uint32_t source_rows = Builder::rows_of(c.s);
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    uint64_t r;
    if (c.has(Conversion::pair)) {
      // Two results, the first source's in the upper half; or the halves of one source.
      const auto from = Narrow(c.d_kind >> 4), to = Narrow(c.d_kind & 15);
      const uint32_t a = w.rows[op->a].lane[lane], b = w.rows[op->b].lane[lane];
      if (from != Narrow::none) {
        const Format& f = from == Narrow::e4m3 ? kE4m3 : kE5m2;
        const auto half = [&](uint32_t byte) { return to_float(decode(byte & 255, f), kF16, c); };
        r = half(a) | half(a >> 8) << 16;
      } else if (to != Narrow::none) {
        const bool packed = c.s == Type::f16x2;
        const uint64_t low = converted(packed ? a & 0xFFFF : b, c), high = converted(packed ? a >> 16 : a, c);
        r = low | high << 8;
      } else {
        r = converted(b, c) | converted(a, c) << 16;
      }
    } else {
      r = converted(lane_bits(w.rows + op->a, lane, source_rows == 2), c);
    }
    if (op->size == 2) r &= 0xFFFF;
    w.rows[op->d].lane[lane] = uint32_t(r);
    if (op->size == 8) w.rows[op->d + 1].lane[lane] = uint32_t(r >> 32);
  }
  return op + 1;
}

}  // namespace

void general_conversion(Builder& b, Modifiers& m) {
  const auto& parts = b.instruction().parts;
  const auto has = [&](std::string_view name) {
    for (std::string_view part : parts) {
      if (part == name) return true;
    }
    return false;
  };
  const bool tf32 = m.take("tf32");
  Conversion c{};
  bool rounded = true;
  const bool rn = m.take("rn"), away = m.take("rna");
  if (rn || away)
    c.rounding = Rounding::nearest_even;
  else if (m.take("rz"))
    c.rounding = Rounding::toward_zero;
  else if (m.take("rm"))
    c.rounding = Rounding::down;
  else if (m.take("rp"))
    c.rounding = Rounding::up;
  else
    rounded = false;
  bool integral = true;
  if (m.take("rni"))
    c.rounding = Rounding::nearest_even;
  else if (m.take("rzi"))
    c.rounding = Rounding::toward_zero;
  else if (m.take("rmi"))
    c.rounding = Rounding::down;
  else if (m.take("rpi"))
    c.rounding = Rounding::up;
  else
    integral = false;
  if (away) c.flags |= Conversion::away;
  if (integral) c.flags |= Conversion::integral;
  if (m.take("ftz")) c.flags |= Conversion::flush;
  if (m.take("sat")) c.flags |= Conversion::saturate;
  if (m.take("relu")) c.flags |= Conversion::relu;
  if (m.take("satfinite")) c.flags |= Conversion::satfinite;
  const auto narrow_of = [](std::string_view name) {
    return name == "e4m3x2" ? Narrow::e4m3 : name == "e5m2x2" ? Narrow::e5m2 : Narrow::none;
  };
  Narrow to = Narrow::none, from = Narrow::none;
  if (parts.size() >= 3) {
    to = narrow_of(parts[parts.size() - 2]);
    from = narrow_of(parts.back());
  }
  if (to != Narrow::none || from != Narrow::none) m.take_any({"e4m3x2", "e5m2x2"});
  if (to == Narrow::none && !tf32) c.d = m.type();
  if (from == Narrow::none) c.s = m.type();
  c.d_kind = uint8_t(unsigned(to) | unsigned(from) << 4);
  const auto refuse = [&]() {
    b.refuse("'" + std::string(b.instruction().opcode) + "': this conversion is not supported");
  };
  uint32_t bytes = 0;
  size_t sources = 1;
  if (tf32) {
    if (c.s != Type::f32 || !rounded) refuse();
    c.flags |= Conversion::tf32;
    bytes = 4;
  } else if (to != Narrow::none) {
    if (!rn || !c.has(Conversion::satfinite) || (c.s != Type::f32 && c.s != Type::f16x2)) refuse();
    c.flags |= Conversion::pair;
    bytes = 2;
    sources = c.s == Type::f32 ? 2 : 1;
  } else if (from != Narrow::none) {
    if (!rn || c.d != Type::f16x2 || c.has(Conversion::satfinite)) refuse();
    c.s = Type::b16;
    c.flags |= Conversion::pair;
    bytes = 4;
  } else {
    Integer di, si;
    const bool d_integer = integer_of(c.d, &di), s_integer = integer_of(c.s, &si);
    const Format *df = format_of(c.d), *sf = format_of(c.s);
    if ((!d_integer && !df) || (!s_integer && !sf)) refuse();
    if (d_integer && s_integer && (!c.has(Conversion::saturate) || rounded || integral)) refuse();
    if (d_integer && sf && !integral) b.refuse("a conversion to an integer says .rni, .rzi, .rmi or .rpi");
    const bool halves = c.d == Type::f16x2 || c.d == Type::bf16x2;
    if (c.s == Type::f16x2 || c.s == Type::bf16x2 || (halves && c.s != Type::f32)) refuse();
    const bool narrows = df && (s_integer || df->fraction_bits < sf->fraction_bits ||
                                (df->fraction_bits <= sf->fraction_bits && df != sf));
    if (narrows && !rounded) b.refuse("a conversion that rounds says how");
    if (df && df == sf && rounded) refuse();
    if (has("relu") && !(df == &kF16 || df == &kBf16)) refuse();
    // A wider destination holds every value: the rounding, if any, is of no account.
    if (halves) c.flags |= Conversion::pair, sources = 2;
    bytes = ptx::size_in_bytes(c.d);
    if (d_integer) {  // fills the register
      const Type declared = b.register_type(b.operand(0));
      if (declared != Type::none) bytes = ptx::size_in_bytes(declared);
    }
    if (halves && c.d == Type::f16x2) c.d = Type::f16;
    if (halves && c.d == Type::bf16x2) c.d = Type::bf16;
  }
  const Type source_type = c.s;
  const Virtual x = b.source(b.operand(1), source_type, true);
  const Virtual y = sources == 2 ? b.source(b.operand(2), source_type, true) : kNoVirtual;
  const Virtual d = b.wide_destination(b.operand(0), bytes == 8 ? 2 : 1);
  Op& op = b.emit(convert);
  op.imm = pack(c);
  op.size = uint8_t(bytes);
  op.cycles = 4;
  b.use(Field::a, x);
  if (y != kNoVirtual) b.use(Field::b, y);
  b.def(Field::d, d);
}

}  // namespace fa4::sim
