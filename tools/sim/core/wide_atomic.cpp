// SPDX-License-Identifier: Apache-2.0
// Atomics of more than a word: vectors of floats in global memory, element by element, and 128 bits exchanged
// as one.
#include "wide_atomic.h"

#include <cstring>

#include "warp_wide.h"

namespace fa4::sim {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

namespace {

// aux: registers of the result, if there is one, then of the operand. mode bit 0: 64-bit address, bits 1..:
// the reduction. size: bytes that a register stands for; count: the element's type; target: registers.
const Op* vector_atomic(Warp& w, const Op* op, Mask mask) {
  const auto kind = Reduction(op->mode >> 1);
  const auto type = Type(op->count);
  const uint32_t element = ptx::size_in_bytes(type), registers = op->target, bytes = registers * op->size;
  const uint16_t* operand = w.code->aux.data() + op->aux + (op->aux_count - registers);
  const uint16_t* result = op->aux_count > registers ? w.code->aux.data() + op->aux : nullptr;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint64_t address = lane_address(w, op, lane);
    locate(w, op, lane, address, bytes, false);
    std::byte* const at = locate(w, op, lane, address, bytes, true);
    for (uint32_t r = 0; r < registers; ++r) {
      const uint32_t x = w.rows[operand[r]].lane[lane];
      uint32_t before = 0, after = 0;
      std::memcpy(&before, at + r * op->size, op->size);
      for (uint32_t bit = 0; bit < 8u * op->size; bit += 8 * element) {
        const uint32_t all = element == 4 ? ~0u : 0xFFFF;
        after |= uint32_t(reduced(kind, type, true, before >> bit & all, x >> bit & all)) << bit;
      }
      std::memcpy(at + r * op->size, &after, op->size);
      if (result) w.rows[result[r]].lane[lane] = before;
    }
  }
  ++w.cta->scheduler->progress;
  return op + 1;
}

// Rows of 4: d, b, and for a compare-and-swap c, where b is compared.
const Op* atomic_128(Warp& w, const Op* op, Mask mask) {
  bool changed = false;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint64_t address = lane_address(w, op, lane);
    locate(w, op, lane, address, 16, false);
    std::byte* const at = locate(w, op, lane, address, 16, true);
    uint32_t before[4], operand[4], after[4];
    std::memcpy(before, at, 16);
    const auto read = [&](uint16_t row, uint32_t(&to)[4]) {
      for (uint32_t r = 0; r < 4; ++r) to[r] = w.rows[row + r].lane[lane];
    };
    read(op->b, operand);
    bool store = true;
    if (Reduction(op->mode >> 1) == Reduction::cas) {
      store = std::memcmp(before, operand, 16) == 0;
      read(op->c, after);
    } else {
      std::memcpy(after, operand, 16);
    }
    if (store) std::memcpy(at, after, 16);
    changed |= store && std::memcmp(before, after, 16) != 0;
    for (uint32_t r = 0; r < 4; ++r) w.rows[op->d + r].lane[lane] = before[r];
  }
  if (changed) ++w.cta->scheduler->progress;
  return op + 1;
}

}  // namespace

void build_vector_atomic(Builder& b, Modifiers& m, const WideAtomic& a) {
  const bool noftz = m.take("noftz");
  m.take("L2::cache_hint");
  const Type t = m.type();
  const bool packed = t == Type::f16x2 || t == Type::bf16x2, half = t == Type::f16 || t == Type::bf16;
  const bool possible = t == Type::f32 ? a.kind == Reduction::add && a.count <= 4 && !noftz
                                       : (packed || half) && noftz &&
                                             (a.kind == Reduction::add || a.kind == Reduction::min ||
                                              a.kind == Reduction::max) &&
                                             a.count <= (packed ? 4 : 8);
  if (!possible)
    b.refuse(
        "a vector atomic is .add of .v2 or .v4 .f32, or .add, .min or .max with .noftz of up to 16 bytes of "
        ".f16, .bf16, .f16x2 or .bf16x2");
  if (a.space != AddressSpace::global && a.space != AddressSpace::generic)
    b.refuse("a vector atomic is on global memory");
  const size_t first = a.returns ? 1 : 0;
  const auto list = [&](size_t index) -> const std::vector<Operand>& {
    const Operand& vector = b.operand(index);
    if (vector.kind != Operand::Kind::vector || vector.elements.size() != a.count)
      b.refuse("a vector of " + std::to_string(a.count) + " registers in braces is needed");
    return vector.elements;
  };
  std::vector<Virtual> results, operands;
  if (a.returns) {
    for (const Operand& e : list(0)) results.push_back(b.destination(e, t));
  }
  for (const Operand& e : list(first + 1)) operands.push_back(b.source(e, t));
  Op& op = b.emit(vector_atomic);
  op.size = uint8_t(ptx::size_in_bytes(t));
  op.count = uint8_t(t == Type::f16x2 ? Type::f16 : t == Type::bf16x2 ? Type::bf16 : t);
  op.order = a.order;
  op.cycles = 20;
  op.target = a.count;
  const bool wide = b.address(b.operand(first), a.space);
  b.newest().mode = uint8_t(wide | int(a.kind) << 1);
  for (Virtual v : results) b.aux_def(v);
  for (Virtual v : operands) b.aux_use(v);
  b.mark_communicates();
}

void build_atomic_128(Builder& b, const WideAtomic& a) {
  if (!a.returns || (a.kind != Reduction::exch && a.kind != Reduction::cas))
    b.refuse("of 128 bits there are atom.exch and atom.cas");
  const Virtual d = b.destination(b.operand(0), 4), x = b.source(b.operand(2), Type::b128);
  const Virtual y = a.kind == Reduction::cas ? b.source(b.operand(3), Type::b128) : x;
  Op& op = b.emit(atomic_128);
  op.size = 16;
  op.order = a.order;
  op.cycles = 20;
  const bool wide = b.address(b.operand(1), a.space);
  b.newest().mode = uint8_t(wide | int(a.kind) << 1);
  b.use(Field::b, x);
  b.use(Field::c, y);
  b.def(Field::d, d);
  if (a.space != AddressSpace::shared) b.mark_communicates();
}

}  // namespace fa4::sim
