// SPDX-License-Identifier: Apache-2.0
// Integer instructions that compiled code uses now and then: bit fields, 24-bit products, dot products,
// packed halves, saturation, carries. Each is a function of up to four 64-bit values, applied lane by lane.
#include <bit>
#include <limits>

#include "builder.h"
#include "machine.h"

namespace fa4::sim {
namespace {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

using Function = uint64_t (*)(uint64_t a, uint64_t b, uint64_t c, uint64_t e);

// Op::imm: the function. Op::size: bit i, operand i has two rows; Op::count: sources; bit 7 of mode: the
// result has two rows.
const Op* apply(Warp& w, const Op* op, Mask mask) {
  const auto function = reinterpret_cast<Function>(op->imm);
  const uint16_t rows[4] = {op->a, op->b, op->c, op->aux_count ? w.code->aux[op->aux] : op->a};
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    uint64_t v[4] = {};
    for (int i = 0; i < op->count; ++i) {
      v[i] = w.rows[rows[i]].lane[lane];
      if (op->size >> i & 1) v[i] |= uint64_t(w.rows[rows[i] + 1].lane[lane]) << 32;
    }
    const uint64_t r = function(v[0], v[1], v[2], v[3]);
    w.rows[op->d].lane[lane] = uint32_t(r);
    if (op->mode & 128) w.rows[op->d + 1].lane[lane] = uint32_t(r >> 32);
  }
  return op + 1;
}

// d and the sources of the given types, from operand 0 on.
void emit(Builder& b, Function function, Type result, std::initializer_list<Type> sources) {
  Virtual v[4] = {kNoVirtual, kNoVirtual, kNoVirtual, kNoVirtual};
  uint8_t wide = 0;
  size_t n = 0;
  for (Type t : sources) {
    v[n] = b.source(b.operand(1 + n), t);
    if (Builder::rows_of(t) == 2) wide |= uint8_t(1 << n);
    ++n;
  }
  const Virtual d = b.destination(b.operand(0), result);
  Op& op = b.emit(apply);
  op.imm = reinterpret_cast<int64_t>(function);
  op.size = wide;
  op.count = uint8_t(n);
  op.mode = Builder::rows_of(result) == 2 ? 128 : 0;
  b.use(Field::a, v[0]);
  if (n > 1) b.use(Field::b, v[1]);
  if (n > 2) b.use(Field::c, v[2]);
  if (n > 3) b.aux_use(v[3]);
  b.def(Field::d, d);
}

// A handler for each of the types that an opcode has.
struct Typed {
  Type type;
  Function function;
};
Function pick(Builder& b, Type type, std::initializer_list<Typed> rows) {
  for (const Typed& row : rows) {
    if (row.type == type) return row.function;
  }
  b.refuse("'" + std::string(b.instruction().opcode) + "': this type is not supported");
}

template <class T>
uint64_t bits(T v) {
  return sizeof(T) == 2 ? uint64_t(uint16_t(v)) : sizeof(T) == 4 ? uint64_t(uint32_t(v)) : uint64_t(v);
}
template <class T>
constexpr int width = 8 * int(sizeof(T));

template <class T>
uint64_t sad(uint64_t a, uint64_t b, uint64_t c, uint64_t) {
  const T x = T(a), y = T(b);
  return bits(T(c + (x < y ? uint64_t(y) - uint64_t(x) : uint64_t(x) - uint64_t(y))));
}
int64_t low24(uint64_t x, bool is_signed) {
  return is_signed ? int64_t(x << 40) >> 40 : int64_t(x & 0xFFFFFF);
}
template <bool is_signed, bool high, bool add>
uint64_t product24(uint64_t a, uint64_t b, uint64_t c, uint64_t) {
  const int64_t p = low24(a, is_signed) * low24(b, is_signed);
  return uint32_t(uint32_t(high ? p >> 16 : p) + (add ? uint32_t(c) : 0));
}
template <class T>
uint64_t multiply_add_high(uint64_t a, uint64_t b, uint64_t c, uint64_t) {
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
  return bits(T(uint64_t(Wide(T(a)) * Wide(T(b)) >> width<T>) + c));
}
template <class T>
uint64_t insert(uint64_t a, uint64_t b, uint64_t position, uint64_t length) {
  if (width<T> == 32) position &= 255, length &= 255;  // 64-bit fields take all bits of both
  T r = T(b);
  for (uint64_t i = 0; i < length && position + i < uint64_t(width<T>); ++i) {
    const T one = T(T(1) << (position + i));
    r = T((r & ~one) | (i < uint64_t(width<T>) && (a >> i & 1) ? one : T(0)));
  }
  return r;
}
template <class T>
uint64_t leading(uint64_t a, uint64_t, uint64_t, uint64_t) {
  T x = T(a);
  if (std::is_signed_v<T> && x < 0) x = T(~x);
  return x == 0 ? 0xFFFFFFFF : uint64_t(63 - std::countl_zero(uint64_t(std::make_unsigned_t<T>(x))));
}
template <class T>
uint64_t leading_shift(uint64_t a, uint64_t, uint64_t, uint64_t) {
  const uint64_t at = leading<T>(a, 0, 0, 0);
  return at == 0xFFFFFFFF ? at : uint64_t(width<T> - 1) - at;
}
template <class T>
uint64_t is_zero(uint64_t a, uint64_t, uint64_t, uint64_t) {
  return T(a) == 0 ? 1 : 0;
}
template <bool a_signed, bool b_signed>
uint64_t dot4(uint64_t a, uint64_t b, uint64_t c, uint64_t) {
  int64_t r = int32_t(c);
  for (int i = 0; i < 32; i += 8) {
    const int64_t x = a_signed ? int8_t(a >> i) : int64_t(a >> i & 255),
                  y = b_signed ? int8_t(b >> i) : int64_t(b >> i & 255);
    r += x * y;
  }
  return uint32_t(r);
}
template <bool a_signed, bool b_signed, bool high>
uint64_t dot2(uint64_t a, uint64_t b, uint64_t c, uint64_t) {
  int64_t r = int32_t(c);
  for (int i = 0; i < 2; ++i) {
    const uint64_t half = a >> (16 * i), byte = b >> (8 * i + (high ? 16 : 0));
    r += (a_signed ? int64_t(int16_t(half)) : int64_t(half & 0xFFFF)) *
         (b_signed ? int64_t(int8_t(byte)) : int64_t(byte & 255));
  }
  return uint32_t(r);
}
template <bool clamp>
uint64_t bit_mask(uint64_t a, uint64_t b, uint64_t, uint64_t) {
  uint64_t position = a & 0xFFFFFFFF, length = b & 0xFFFFFFFF;
  if (clamp) {
    position = position > 32 ? 32 : position;
    length = length > 32 ? 32 : length;
  } else {
    position &= 31;
    length &= 31;
  }
  return uint32_t(((1ull << length) - 1) << position);
}
template <bool clamp, bool is_signed>
uint64_t extend(uint64_t a, uint64_t n, uint64_t, uint64_t) {
  n &= 0xFFFFFFFF;
  n = clamp ? (n > 32 ? 32 : n) : n & 31;
  if (n == 0) return 0;
  const int shift = 64 - int(n);
  return uint32_t(is_signed ? uint64_t(int64_t(a << shift) >> shift) : a << shift >> shift);
}
// The position of the |n|-th set bit, counted from the base towards the top (n > 0) or the bottom; n = 0
// tests the base.
uint64_t nth_set(uint64_t a, uint64_t base, uint64_t count, uint64_t) {
  const int64_t n = int32_t(count);
  if (n == INT32_MIN) return 0;  // as hardware answers
  base &= 31;
  if (n == 0) return a >> base & 1 ? base : 0xFFFFFFFF;
  int64_t left = n < 0 ? -n : n;
  for (int64_t at = int64_t(base); at >= 0 && at < 32; at += n < 0 ? -1 : 1) {
    if ((a >> at & 1) && --left == 0) return uint64_t(at);
  }
  return 0xFFFFFFFF;
}
template <bool subtract>
uint64_t saturated_s32(uint64_t a, uint64_t b, uint64_t, uint64_t) {
  const int64_t r = subtract ? int64_t(int32_t(a)) - int32_t(b) : int64_t(int32_t(a)) + int32_t(b);
  return uint32_t(r > INT32_MAX ? INT32_MAX : r < INT32_MIN ? INT32_MIN : int32_t(r));
}
enum class Packed { add, min, max };
template <class T, Packed operation, bool relu>
uint64_t packed(uint64_t a, uint64_t b, uint64_t, uint64_t) {
  uint64_t r = 0;
  for (int i = 0; i < 32; i += 16) {
    const T x = T(a >> i), y = T(b >> i);
    T v = operation == Packed::add ? T(x + y) : operation == Packed::min ? (y < x ? y : x) : (x < y ? y : x);
    if (relu && v < 0) v = 0;
    r |= uint64_t(uint16_t(v)) << i;
  }
  return r;
}
template <Packed operation>
uint64_t rectified(uint64_t a, uint64_t b, uint64_t, uint64_t) {
  const int32_t x = int32_t(a), y = int32_t(b),
                v = operation == Packed::min ? (y < x ? y : x) : (x < y ? y : x);
  return uint32_t(v < 0 ? 0 : v);
}
// prmt's modes: where the four bytes come from, by the low two bits of the selector, as four hexadecimal
// digits.
template <uint32_t s0, uint32_t s1, uint32_t s2, uint32_t s3>
uint64_t permute_mode(uint64_t a, uint64_t b, uint64_t c, uint64_t) {
  constexpr uint32_t selectors[] = {s0, s1, s2, s3};
  const uint64_t bytes = (b & 0xFFFFFFFF) << 32 | (a & 0xFFFFFFFF);
  uint64_t r = 0;
  for (int i = 0; i < 4; ++i) r |= (bytes >> (8 * (selectors[c & 3] >> (4 * i) & 7)) & 255) << (8 * i);
  return r;
}

void build_sad(Builder& b, Modifiers& m) {
  const Type t = m.type();
  emit(b,
       pick(b, t,
            {{Type::s16, sad<int16_t>},
             {Type::u16, sad<uint16_t>},
             {Type::s32, sad<int32_t>},
             {Type::u32, sad<uint32_t>},
             {Type::s64, sad<int64_t>},
             {Type::u64, sad<uint64_t>}}),
       t, {t, t, t});
}
void build_mul24(Builder& b, Modifiers& m, bool add) {
  const bool high = m.take("hi");
  if (!high && !m.take("lo")) b.refuse("mul24 and mad24 say .lo or .hi");
  const Type t = m.type();
  const bool s = t == Type::s32;
  if (!s && t != Type::u32) b.refuse("mul24 and mad24 work on .s32 and .u32");
  if (add)
    emit(b,
         high ? (s ? product24<true, true, true> : product24<false, true, true>)
              : (s ? product24<true, false, true> : product24<false, false, true>),
         t, {t, t, t});
  else
    emit(b,
         high ? (s ? product24<true, true, false> : product24<false, true, false>)
              : (s ? product24<true, false, false> : product24<false, false, false>),
         t, {t, t});
}
void build_bfi(Builder& b, Modifiers& m) {
  const Type t = m.type();
  emit(b, pick(b, t, {{Type::b32, insert<uint32_t>}, {Type::b64, insert<uint64_t>}}), t,
       {t, t, Type::u32, Type::u32});
}
void build_bfind(Builder& b, Modifiers& m) {
  const bool shift = m.take("shiftamt");
  const Type t = m.type();
  emit(b,
       shift ? pick(b, t,
                    {{Type::u32, leading_shift<uint32_t>},
                     {Type::s32, leading_shift<int32_t>},
                     {Type::u64, leading_shift<uint64_t>},
                     {Type::s64, leading_shift<int64_t>}})
             : pick(b, t,
                    {{Type::u32, leading<uint32_t>},
                     {Type::s32, leading<int32_t>},
                     {Type::u64, leading<uint64_t>},
                     {Type::s64, leading<int64_t>}}),
       Type::b32, {t});
}
void build_cnot(Builder& b, Modifiers& m) {
  const Type t = m.type();
  emit(b,
       pick(b, t,
            {{Type::b16, is_zero<uint16_t>}, {Type::b32, is_zero<uint32_t>}, {Type::b64, is_zero<uint64_t>}}),
       t, {t});
}
void build_dp4a(Builder& b, Modifiers& m) {
  const Type x = m.type(), y = m.type();
  if ((x != Type::s32 && x != Type::u32) || (y != Type::s32 && y != Type::u32))
    b.refuse("dp4a works on .s32 and .u32");
  const bool sx = x == Type::s32, sy = y == Type::s32;
  emit(b, sx ? (sy ? dot4<true, true> : dot4<true, false>) : (sy ? dot4<false, true> : dot4<false, false>),
       Type::b32, {Type::b32, Type::b32, Type::b32});
}
void build_dp2a(Builder& b, Modifiers& m) {
  const bool high = m.take("hi");
  if (!high && !m.take("lo")) b.refuse("dp2a says .lo or .hi");
  const Type x = m.type(), y = m.type();
  if ((x != Type::s32 && x != Type::u32) || (y != Type::s32 && y != Type::u32))
    b.refuse("dp2a works on .s32 and .u32");
  const bool sx = x == Type::s32, sy = y == Type::s32;
  const Function f = high ? (sx ? (sy ? dot2<true, true, true> : dot2<true, false, true>)
                                : (sy ? dot2<false, true, true> : dot2<false, false, true>))
                          : (sx ? (sy ? dot2<true, true, false> : dot2<true, false, false>)
                                : (sy ? dot2<false, true, false> : dot2<false, false, false>));
  emit(b, f, Type::b32, {Type::b32, Type::b32, Type::b32});
}
bool take_clamp(Builder& b, Modifiers& m) {
  const bool clamp = m.take("clamp");
  if (!clamp && !m.take("wrap"))
    b.refuse("'" + std::string(b.instruction().parts[0]) + "' says .clamp or .wrap");
  return clamp;
}
void build_bmsk(Builder& b, Modifiers& m) {
  const bool clamp = take_clamp(b, m);
  if (m.type() != Type::b32) b.refuse("bmsk works on .b32");
  emit(b, clamp ? bit_mask<true> : bit_mask<false>, Type::b32, {Type::b32, Type::b32});
}
void build_szext(Builder& b, Modifiers& m) {
  const bool clamp = take_clamp(b, m);
  const Type t = m.type();
  emit(b,
       clamp ? pick(b, t, {{Type::s32, extend<true, true>}, {Type::u32, extend<true, false>}})
             : pick(b, t, {{Type::s32, extend<false, true>}, {Type::u32, extend<false, false>}}),
       t, {t, Type::u32});
}
void build_fns(Builder& b, Modifiers& m) {
  if (m.type() != Type::b32) b.refuse("fns works on .b32");
  emit(b, nth_set, Type::b32, {Type::b32, Type::b32, Type::b32});
}

// ---- carries: a predicate of the function holds the thread's condition code
// ---------------------------------------------

// Op::mode: 0 add, 1 sub, 2 mad.lo, 3 mad.hi; bit 4: reads the carry (pa); bit 5: writes it (pd). size: 1 if
// 64 bits.
const Op* with_carry(Warp& w, const Op* op, Mask mask) {
  const int kind = op->mode & 15;
  const bool wide = op->size, reads = op->mode & 16, writes = op->mode & 32;
  Mask carry_out = 0;
  const Mask carry_in = w.predicates[op->pa];
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    uint64_t x = lane_bits(w.rows + op->a, lane, wide), y = lane_bits(w.rows + op->b, lane, wide);
    const int bits = wide ? 64 : 32;
    if (kind >= 2) {
      const unsigned __int128 p =
          op->count ? (unsigned __int128)(wide ? __int128(int64_t(x)) * int64_t(y)
                                               : __int128(int64_t(int32_t(x)) * int64_t(int32_t(y))))
                    : (unsigned __int128)(x)*y;
      x = uint64_t(kind == 3 ? p >> bits : p);
      if (!wide) x &= 0xFFFFFFFF;
      y = lane_bits(w.rows + op->c, lane, wide);
    }
    const unsigned in = reads ? carry_in >> lane & 1 : 0;
    const unsigned __int128 r = kind == 1 ? (unsigned __int128)(x)-y - in : (unsigned __int128)(x) + y + in;
    carry_out |= Mask((r >> bits) & 1) << lane;
    w.rows[op->d].lane[lane] = uint32_t(r);
    if (wide) w.rows[op->d + 1].lane[lane] = uint32_t(r >> 32);
  }
  if (writes) w.predicates[op->pd] = (w.predicates[op->pd] & ~mask) | carry_out;
  return op + 1;
}

}  // namespace

bool carry_arithmetic(Builder& b, Modifiers& m) {
  const std::string_view opcode = b.instruction().parts[0];
  const bool reads = opcode == "addc" || opcode == "subc" || opcode == "madc", writes = m.take("cc");
  if (!reads && !writes) return false;
  const bool mad = opcode[0] == 'm';
  uint8_t kind = opcode[0] == 's' ? 1 : 0;
  if (mad) {
    kind = m.take("hi") ? 3 : 2;
    if (kind == 2 && !m.take("lo")) b.refuse("mad says .lo or .hi");
  }
  const Type t = m.type();
  const bool is_signed = t == Type::s32 || t == Type::s64;
  if (!is_signed && t != Type::u32 && t != Type::u64) b.refuse("carries go with .s32, .u32, .s64 and .u64");
  Virtual v[3];
  const size_t sources = mad ? 3 : 2;
  for (size_t i = 0; i < sources; ++i) v[i] = b.source(b.operand(1 + i), t);
  const Virtual d = b.destination(b.operand(0), t);
  const uint16_t carry = b.carry_predicate();
  Op& op = b.emit(with_carry);
  op.mode = uint8_t(kind | (reads ? 16 : 0) | (writes ? 32 : 0));
  op.size = Builder::rows_of(t) == 2;
  op.count = is_signed;
  op.pa = op.pd = carry;
  for (size_t i = 0; i < sources; ++i) b.use(Field(int(Field::a) + int(i)), v[i]);
  b.def(Field::d, d);
  return true;
}

bool packed_or_saturated(Builder& b, Modifiers& m) {
  const auto& parts = b.instruction().parts;
  const std::string_view opcode = parts[0], type = parts.back();
  const bool x2 = type == "u16x2" || type == "s16x2";
  if (!x2) {
    const bool sat = m.take("sat"), relu = m.take("relu");
    if (!sat && !relu) return false;
    if (m.type() != Type::s32) b.refuse("of the integers .s32 has .sat and .relu");
    Function f = nullptr;
    if (sat && (opcode == "add" || opcode == "sub"))
      f = opcode == "sub" ? saturated_s32<true> : saturated_s32<false>;
    if (relu && (opcode == "min" || opcode == "max"))
      f = opcode == "min" ? rectified<Packed::min> : rectified<Packed::max>;
    if (!f) b.refuse("'" + std::string(b.instruction().opcode) + "': this form is not supported");
    emit(b, f, Type::s32, {Type::s32, Type::s32});
    return true;
  }
  m.take(type);
  const bool relu = m.take("relu"), is_signed = type == "s16x2";
  if (relu && (!is_signed || opcode == "add")) b.refuse(".relu goes with min and max of .s16x2");
  Function f = nullptr;
  if (opcode == "add") f = packed<uint16_t, Packed::add, false>;
  if (opcode == "min")
    f = relu        ? packed<int16_t, Packed::min, true>
        : is_signed ? packed<int16_t, Packed::min, false>
                    : packed<uint16_t, Packed::min, false>;
  if (opcode == "max")
    f = relu        ? packed<int16_t, Packed::max, true>
        : is_signed ? packed<int16_t, Packed::max, false>
                    : packed<uint16_t, Packed::max, false>;
  if (!f) b.refuse("'" + std::string(b.instruction().opcode) + "': this form is not supported");
  emit(b, f, Type::b32, {Type::b32, Type::b32});
  return true;
}

bool multiply_add_high_any(Builder& b, Type t) {
  switch (t) {
    case Type::s16:
      emit(b, multiply_add_high<int16_t>, t, {t, t, t});
      return true;
    case Type::u16:
      emit(b, multiply_add_high<uint16_t>, t, {t, t, t});
      return true;
    case Type::s64:
      emit(b, multiply_add_high<int64_t>, t, {t, t, t});
      return true;
    case Type::u64:
      emit(b, multiply_add_high<uint64_t>, t, {t, t, t});
      return true;
    default:
      return false;
  }
}

bool permutation_mode(Builder& b, Modifiers& m) {
  const auto mode = m.take_any({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (mode.empty()) return false;
  const Function f = mode == "f4e"   ? permute_mode<0x3210, 0x4321, 0x5432, 0x6543>
                     : mode == "b4e" ? permute_mode<0x5670, 0x6701, 0x7012, 0x0123>
                     : mode == "rc8" ? permute_mode<0x0000, 0x1111, 0x2222, 0x3333>
                     : mode == "ecl" ? permute_mode<0x3210, 0x3211, 0x3222, 0x3333>
                     : mode == "ecr" ? permute_mode<0x0000, 0x1110, 0x2210, 0x3210>
                                     : permute_mode<0x1010, 0x3232, 0x1010, 0x3232>;
  emit(b, f, Type::b32, {Type::b32, Type::b32, Type::b32});
  return true;
}

std::vector<FamilyRow> bit_rows() {
  const auto carry = [](Builder& b, Modifiers& m) { carry_arithmetic(b, m); };
  return {{"sad", build_sad},
          {"mul24", [](Builder& b, Modifiers& m) { build_mul24(b, m, false); }},
          {"mad24", [](Builder& b, Modifiers& m) { build_mul24(b, m, true); }},
          {"bfi", build_bfi},
          {"bfind", build_bfind},
          {"cnot", build_cnot},
          {"dp4a", build_dp4a},
          {"dp2a", build_dp2a},
          {"bmsk", build_bmsk},
          {"szext", build_szext},
          {"fns", build_fns},
          {"addc", carry},
          {"subc", carry},
          {"madc", carry}};
}

}  // namespace fa4::sim
