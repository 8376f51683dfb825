// SPDX-License-Identifier: Apache-2.0
// Matrices that a warp holds in registers: mma.sync, ldmatrix, stmatrix and movmatrix. Lane l has row l / 4
// of an 8 x 8 matrix of 16-bit elements, of it elements 2 (l % 4) in the low half and 2 (l % 4) + 1 in the
// high half of a register.
#include <algorithm>
#include <cstring>

#include "builder.h"
#include "convergence.h"
#include "mma.h"
#include "warp_wide.h"

namespace fa4::sim {
namespace {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

// ---- mma.sync
// ------------------------------------------------------------------------------------------------------------

struct Form {
  std::string_view shape, types;  // types of D, A, B and C
  MmaInput input;
  MmaAccumulator accumulator;
  uint8_t a, b, c;  // registers
};
constexpr Form kForms[] = {
    {"m16n8k16", "f32.f16.f16.f32", MmaInput::f16, MmaAccumulator::f32, 4, 2, 4},
    {"m16n8k16", "f16.f16.f16.f16", MmaInput::f16, MmaAccumulator::f16, 4, 2, 2},
    {"m16n8k16", "f32.bf16.bf16.f32", MmaInput::bf16, MmaAccumulator::f32, 4, 2, 4},
    {"m16n8k8", "f32.f16.f16.f32", MmaInput::f16, MmaAccumulator::f32, 2, 1, 4},
    {"m16n8k8", "f16.f16.f16.f16", MmaInput::f16, MmaAccumulator::f16, 2, 1, 2},
    {"m16n8k8", "f32.bf16.bf16.f32", MmaInput::bf16, MmaAccumulator::f32, 2, 1, 4},
    {"m16n8k8", "f32.tf32.tf32.f32", MmaInput::tf32, MmaAccumulator::f32, 4, 2, 4},
    {"m16n8k4", "f32.tf32.tf32.f32", MmaInput::tf32, MmaAccumulator::f32, 2, 1, 4},
};

constexpr uint32_t kRows = 64;  // what a step of the tensor core works on; 16 of them count here

// aux: registers of D, A, B and C. Op::mode: index into kForms. Lane l holds rows l / 4 and l / 4 + 8 of A, C
// and D.
const Op* mma_sync(Warp& w, const Op* op, Mask mask) {
  if (mask != kAllLanes)
    fault(w, op, Fault::Kind::illegal_instruction, "mma.sync must be executed by all 32 lanes of the warp together");
  const Form& form = kForms[op->mode];
  const uint16_t *d_rows = w.code->aux.data() + op->aux, *a_rows = d_rows + form.c, *b_rows = a_rows + form.a,
                 *c_rows = b_rows + form.b;
  const bool wide = form.input == MmaInput::tf32, half = form.accumulator == MmaAccumulator::f16;
  alignas(64) uint32_t a[16 * 128 / 2], b[8 * 16 / 2];  // with halves, or in the same bytes words of 8 k
  alignas(64) float d[8 * kRows];
  const uint32_t depth = wide ? 8 : 16;
  for (uint32_t k = 0; k < depth; ++k)
    std::memset(reinterpret_cast<std::byte*>(a) + k * 128 * (wide ? 4 : 2), 0, kRows * (wide ? 4 : 2));
  std::memset(b, 0, sizeof b);
  std::memset(d, 0, sizeof d);
  auto* const a16 = reinterpret_cast<uint16_t*>(a);
  auto* const b16 = reinterpret_cast<uint16_t*>(b);
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t row = lane / 4, t = lane % 4;
    const auto value = [&](uint16_t r) { return w.rows[r].lane[lane]; };
    for (uint32_t r = 0; r < form.a; ++r) {
      const uint32_t m = row + 8 * (r % 2), v = value(a_rows[r]);
      if (wide) {
        a[(t + 4 * (r / 2)) * 128 + m] = v;
      } else {
        const uint32_t k = 2 * t + 8 * (r / 2);
        a16[k * 128 + m] = uint16_t(v);
        a16[(k + 1) * 128 + m] = uint16_t(v >> 16);
      }
    }
    for (uint32_t r = 0; r < form.b; ++r) {
      const uint32_t v = value(b_rows[r]);
      if (wide)
        b[row * 8 + t + 4 * r] = v;
      else
        std::memcpy(b16 + row * 16 + 2 * t + 8 * r, &v, 4);
    }
    for (uint32_t r = 0; r < form.c; ++r) {
      const uint32_t v = value(c_rows[r]);
      const uint32_t m = row + 8 * (half ? r : r / 2), n = 2 * t;
      const uint32_t low = half ? v & 0xFFFF : v, high = v >> 16;
      std::memcpy(d + (half ? n : n + r % 2) * kRows + m, &low, 4);
      if (half) std::memcpy(d + (n + 1) * kRows + m, &high, 4);
    }
  }
  mma_step({form.input, form.input, false, false, true, kRows, 8, a, b, d, kRows, form.accumulator});
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    const uint32_t row = lane / 4, t = lane % 4;
    const auto bits = [&](uint32_t n, uint32_t m) {
      uint32_t v;
      std::memcpy(&v, d + n * kRows + m, 4);
      return v;
    };
    for (uint32_t r = 0; r < form.c; ++r) {
      w.rows[d_rows[r]].lane[lane] = half ? bits(2 * t, row + 8 * r) | bits(2 * t + 1, row + 8 * r) << 16
                                          : bits(2 * t + r % 2, row + 8 * (r / 2));
    }
  }
  return op + 1;
}

// ---- matrices of 8 x 8 halves
// --------------------------------------------------------------------------------------------

struct Matrix {
  uint16_t element[8][8];

  Matrix transposed() const {
    Matrix t;
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) t.element[j][i] = element[i][j];
    }
    return t;
  }
  static Matrix from(const Row& row) {
    Matrix m;
    std::memcpy(m.element, row.lane, sizeof m);
    return m;
  }
  void to(Row& row) const { std::memcpy(row.lane, element, sizeof element); }
};
static_assert(sizeof(Matrix) == sizeof(Row));  // lanes lie as the elements do: four to a row

// A row of 16 bytes: lane 8 i + j gives the address of row j of matrix i.
std::byte* matrix_row(Warp& w, const Op* op, int lane, bool write) {
  const uint64_t address = lane_address(w, op, lane);
  if (op->space == AddressSpace::generic &&
      (address < kSharedWindow || address >= kSharedWindow + kWindowBytes)) {
    fault(w, op, Fault::Kind::illegal_address,
          "lane " + std::to_string(lane) + ": the generic address is not one of shared memory");
  }
  return locate(w, op, lane, address, 16, write);
}

// aux: registers; Op::mode bit 1: .trans.
const Op* ldmatrix(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  Matrix loaded[4];
  for (uint32_t i = 0; i < op->aux_count; ++i) {
    for (int j = 0; j < 8; ++j)
      std::memcpy(loaded[i].element[j], matrix_row(w, op, int(8 * i) + j, false), 16);
  }
  for (uint32_t i = 0; i < op->aux_count; ++i) {
    (op->mode & 2 ? loaded[i].transposed() : loaded[i]).to(w.rows[w.code->aux[op->aux + i]]);
  }
  return op + 1;
}

const Op* stmatrix(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  for (uint32_t i = 0; i < op->aux_count; ++i) {
    const Matrix held = Matrix::from(w.rows[w.code->aux[op->aux + i]]);
    const Matrix stored = op->mode & 2 ? held.transposed() : held;
    for (int j = 0; j < 8; ++j) std::memcpy(matrix_row(w, op, int(8 * i) + j, true), stored.element[j], 16);
  }
  return op + 1;
}

const Op* movmatrix(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  Matrix::from(w.rows[op->a]).transposed().to(w.rows[op->d]);
  return op + 1;
}

// ---- from PTX
// ------------------------------------------------------------------------------------------------------------

void take_sync_aligned(Builder& b, Modifiers& m) {
  if (!m.take("sync") || !m.take("aligned")) b.refuse("this instruction is .sync.aligned");
}

const std::vector<Operand>& registers(Builder& b, size_t index, size_t count, const char* what) {
  const Operand& vector = b.operand(index);
  if (vector.kind != Operand::Kind::vector || vector.elements.size() != count) {
    b.refuse(std::string(what) + " is a vector of " + std::to_string(count) + " registers in braces");
  }
  return vector.elements;
}

void build_mma(Builder& b, Modifiers& m) {
  take_sync_aligned(b, m);
  const auto shape = m.take_prefix("m");
  if (!m.take("row") || !m.take("col")) b.refuse("mma.sync says .row.col");
  std::string types;
  for (std::string_view part = m.first_left(); !part.empty(); part = m.first_left()) {
    types += (types.empty() ? "" : ".") + std::string(part);
    m.take(part);
  }
  const Form* form = std::find_if(std::begin(kForms), std::end(kForms),
                                  [&](const Form& f) { return f.shape == shape && f.types == types; });
  if (form == std::end(kForms)) {
    std::string list;
    for (const Form& f : kForms)
      list += (list.empty() ? "" : ", ") + std::string(f.shape) + " " + std::string(f.types);
    b.refuse("mma.sync ." + std::string(shape) + " with types " + types +
             " is not supported; these are: " + list);
  }
  if (b.operand_count() != 4) b.refuse("mma.sync has operands d, a, b, c");
  std::vector<Virtual> d, sources;
  for (const Operand& e : registers(b, 0, form->c, "D")) d.push_back(b.destination(e, 1));
  for (const Operand& e : registers(b, 1, form->a, "A")) sources.push_back(b.source(e, Type::b32));
  for (const Operand& e : registers(b, 2, form->b, "B")) sources.push_back(b.source(e, Type::b32));
  for (const Operand& e : registers(b, 3, form->c, "C")) sources.push_back(b.source(e, Type::b32));
  Op& op = b.emit(mma_sync);
  op.mode = uint8_t(form - kForms);
  op.cycles = 16;
  for (Virtual v : d) b.aux_def(v);
  for (Virtual v : sources) b.aux_use(v);
}

void build_matrix_access(Builder& b, Modifiers& m, bool is_load) {
  take_sync_aligned(b, m);
  if (!m.take("m8n8")) b.refuse("of the shapes m8n8 is supported");
  const auto times = m.take_any({"x1", "x2", "x4"});
  if (times.empty()) b.refuse("the number of matrices is .x1, .x2 or .x4");
  const bool transpose = m.take("trans");
  const AddressSpace space =
      m.take("shared") || m.take("shared::cta") ? AddressSpace::shared : AddressSpace::generic;
  if (m.type() != Type::b16) b.refuse("of the types .b16 is supported");
  std::vector<Virtual> v;
  for (const Operand& e : registers(b, is_load ? 0 : 1, size_t(times[1] - '0'), "the matrices")) {
    v.push_back(is_load ? b.destination(e, 1) : b.source(e, Type::b32));
  }
  b.emit(is_load ? ldmatrix : stmatrix).cycles = 8;
  const bool wide = b.address(b.operand(is_load ? 1 : 0), space);
  b.newest().mode = uint8_t((wide ? 1 : 0) | (transpose ? 2 : 0));
  for (Virtual x : v) is_load ? b.aux_def(x) : b.aux_use(x);
}
void build_ldmatrix(Builder& b, Modifiers& m) {
  build_matrix_access(b, m, true);
}
void build_stmatrix(Builder& b, Modifiers& m) {
  build_matrix_access(b, m, false);
}

void build_movmatrix(Builder& b, Modifiers& m) {
  take_sync_aligned(b, m);
  if (!m.take("m8n8") || !m.take("trans") || m.type() != Type::b16)
    b.refuse("movmatrix is movmatrix.sync.aligned.m8n8.trans.b16");
  const Virtual d = b.destination(b.operand(0), 1), a = b.source(b.operand(1), Type::b32);
  b.emit(movmatrix).cycles = 8;
  b.use(Field::a, a);
  b.def(Field::d, d);
}

}  // namespace

std::vector<FamilyRow> warp_matrix_rows() {
  return {{"mma", build_mma},
          {"ldmatrix", build_ldmatrix},
          {"stmatrix", build_stmatrix},
          {"movmatrix", build_movmatrix}};
}

}  // namespace fa4::sim
