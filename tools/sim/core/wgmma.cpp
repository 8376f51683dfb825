// SPDX-License-Identifier: Apache-2.0
// wgmma: four warps multiply a tile in shared memory, or 64 rows of A in their registers, with one in shared
// memory, into accumulators in their registers. Every warp's 16 rows are an asynchronous operation of their
// own: nothing makes a warp know how far the others are.
#include "wgmma.h"

#include <algorithm>
#include <cstring>

#include "builder.h"
#include "convergence.h"
#include "delivery.h"
#include "mma.h"
#include "shared_memory.h"
#include "tcgen05.h"
#include "visibility.h"
#include "warp_wide.h"

namespace fa4::sim {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

namespace {

// Nominal times in cycles; a warp's tensor core takes N / 4 for its 16 rows.
constexpr uint64_t kLatency = 60, kIssue = 8;
constexpr uint32_t kRows = 16;  // of D that a warp holds

struct Form {
  std::string_view shape_end, types;  // "k16", types of D, A and B
  MmaInput input;
  MmaAccumulator accumulator;
};
constexpr Form kForms[] = {
    {"k16", "f32.f16.f16", MmaInput::f16, MmaAccumulator::f32},
    {"k16", "f16.f16.f16", MmaInput::f16, MmaAccumulator::f16},
    {"k16", "f32.bf16.bf16", MmaInput::bf16, MmaAccumulator::f32},
    {"k8", "f32.tf32.tf32", MmaInput::tf32, MmaAccumulator::f32},
};
// Op::size
constexpr uint8_t kARegisters = 1, kNegateA = 2, kNegateB = 4, kTransposeA = 8, kTransposeB = 16;
constexpr uint32_t kARegisterCount = 4;

uint32_t columns_of(const Op* op) {
  return op->count * 8u;
}
bool half_accumulators(const Op* op) {
  return kForms[op->mode].accumulator == MmaAccumulator::f16;
}
uint32_t d_registers(const Op* op) {
  return columns_of(op) / (half_accumulators(op) ? 4 : 2);
}

// Null for the first warp of the warpgroup that comes to its n-th item; else what that one had there. `count`:
// how many items a warp has behind it.
template <class T>
const T* remembered(Warp& w, WarpgroupHistory<T>& history, uint64_t WgmmaGroups::* count, const T& now) {
  constexpr size_t kKept = 256;  // those that all have executed are forgotten now and then
  if (history.items.size() >= kKept) {
    const Warp* warps = w.cta->warps.data() + w.index / 4 * 4;
    uint64_t done = warps[0].wgmma.*count;
    for (int i = 1; i < 4; ++i) done = std::min(done, warps[i].wgmma.*count);
    history.items.erase(history.items.begin(), history.items.begin() + std::ptrdiff_t(done - history.first));
    history.first = done;
  }
  const uint64_t n = w.wgmma.*count - history.first;
  ++(w.wgmma.*count);
  if (n < history.items.size()) return &history.items[n];
  history.items.push_back(now);
  return nullptr;
}

// As whole_warp, for an instruction that the warps of a warpgroup execute alike (9.7.15.5, 9.7.15.7).
bool in_warpgroup(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return false;
  if (mask != kAllLanes || w.index / 4 * 4 + 4 > w.cta->warps.size()) {
    fault(
        w, op, Fault::Kind::illegal_instruction,
        "wgmma needs a warpgroup: four whole warps, the first of which has a number that is a multiple of 4");
  }
  Warpgroup& group = w.cta->warpgroups[w.index / 4];
  const Op* const* const other = remembered(w, group.executed, &WgmmaGroups::executed, op);
  if (other == nullptr || *other == op || group.differs) return true;
  if (w.cta->launch->model != Model::silicon) {
    fault(w, op, Fault::Kind::illegal_instruction,
          "another warp of the warpgroup executed " + place(*w.cta, *other) +
              " in its place: all four must execute the same wgmma instructions");
  }
  group.differs = true;
  if (w.cta->observer) w.cta->observer->warpgroup_differs(w, op, *other);
  return true;
}

// "" or what is wrong with the 64 bits.
std::string decode(uint64_t bits, MatrixDescriptor* d) {
  d->start = uint32_t(bits & 0x3FFF) << 4;
  d->leading = uint32_t(bits >> 16 & 0x3FFF) << 4;
  d->stride = uint32_t(bits >> 32 & 0x3FFF) << 4;
  if (bits >> 49 & 7)
    return "a matrix base offset other than 0 is not supported: align tiles to the swizzle's period";
  if ((bits >> 14 & 3) || (bits >> 30 & 3) || (bits >> 46 & 7) || (bits >> 52 & 0x3FF))
    return "reserved bits of the matrix descriptor are set";
  static constexpr uint32_t shifts[] = {4, 7, 6, 5};  // none, 128B, 64B, 32B
  d->swizzle_shift = shifts[bits >> 62];
  return {};
}

// The same operand from row or column `mn` on, a multiple of 8.
MatrixDescriptor from(MatrixDescriptor d, bool mn_major, uint32_t mn) {
  if (!mn_major || d.swizzle_shift == 4) {
    d.start += mn / 8 * d.stride;
  } else {
    const uint32_t row_shift = d.swizzle_shift - 1;  // log2 of the atom row's elements
    d.start += (mn >> row_shift) * d.leading + (mn & ((1u << row_shift) - 1)) * 2;
  }
  return d;
}

// The warps of a warpgroup execute the same wgmma.mma_async with the same operands.
void check_same(Warp& w, const Op* op, const WgmmaIssue& now) {
  const WgmmaIssue* const first =
      remembered(w, w.cta->warpgroups[w.index / 4].issued, &WgmmaGroups::issued, now);
  if (first == nullptr) return;
  if (first->op != now.op)
    fault(w, op, Fault::Kind::illegal_instruction,
          "another warp of the warpgroup executed " + place(*w.cta, first->op) +
              " in its place: all four must execute the same wgmma.mma_async");
  if (first->a != now.a || first->b != now.b || first->accumulate != now.accumulate)
    fault(w, op, Fault::Kind::illegal_instruction,
          "the matrix descriptors or scale-d differ from those of another warp of the warpgroup");
}

// Accumulators of an operation in flight may be those of the next one of the same shape, and of no other.
void check_accumulators(Warp& w, const Op* op) {
  const uint16_t* rows = w.code->aux.data() + op->aux;
  for (uint32_t slot : w.wgmma.pending) {
    const Op* other = w.cta->wgmmas[slot].op;
    if (other == op || (other->count == op->count && other->mode == op->mode)) continue;
    const uint16_t* others = w.code->aux.data() + other->aux;
    for (uint32_t i = 0; i < d_registers(op); ++i) {
      if (std::find(others, others + d_registers(other), rows[i]) != others + d_registers(other)) {
        fault(w, op, Fault::Kind::poison,
              "an accumulator register is that of a wgmma.mma_async of another shape in flight, " +
                  place(*w.cta, other) + ": wgmma.wait_group is missing between them");
      }
    }
  }
}

uint32_t take_slot(Cta& cta) {
  if (cta.free_wgmmas.empty()) {
    cta.wgmmas.emplace_back();
    return uint32_t(cta.wgmmas.size() - 1);
  }
  const uint32_t slot = cta.free_wgmmas.back();
  cta.free_wgmmas.pop_back();
  return slot;
}

}  // namespace

// Rows: b A descriptor, c B descriptor (2 rows each); aux: D, then A if it is in registers. pa: scale-d.
// count: N / 8.
const Op* wgmma_mma_async(Warp& w, const Op* op, Mask mask) {
  if (!in_warpgroup(w, op, mask)) return nullptr;
  Cta& cta = *w.cta;
  const bool a_in_registers = op->size & kARegisters;
  const auto wide = [&](uint16_t row, const char* what) {
    return uint64_t(uniform(w, op, row, mask, what)) | uint64_t(uniform(w, op, uint16_t(row + 1), mask, what))
                                                           << 32;
  };
  const Mask scale = op->pa_not ? ~w.predicates[op->pa] : w.predicates[op->pa];
  if (scale != 0 && scale != kAllLanes)
    fault(w, op, Fault::Kind::illegal_instruction, "scale-d differs between the lanes of the warp");
  const uint64_t a_bits = a_in_registers ? 0 : wide(op->b, "A's matrix descriptor"),
                 b_bits = wide(op->c, "B's matrix descriptor");
  MatrixDescriptor a{}, b{};
  const auto require = [&](Fault::Kind kind, const char* name, const std::string& problem) {
    if (!problem.empty()) fault(w, op, kind, std::string(name) + problem);
  };
  if (!a_in_registers) {
    require(Fault::Kind::illegal_instruction, "A: ", decode(a_bits, &a));
    require(Fault::Kind::poison, "A: ", operand_problem(cta, a, op->size & kTransposeA, 64));
  }
  require(Fault::Kind::illegal_instruction, "B: ", decode(b_bits, &b));
  require(Fault::Kind::poison, "B: ", operand_problem(cta, b, op->size & kTransposeB, columns_of(op)));
  check_same(w, op, {op, a_bits, b_bits, scale != 0});
  check_accumulators(w, op);
  const uint16_t* rows = w.code->aux.data() + op->aux;
  issue_wgmma_registers(w, op, {rows, d_registers(op)},
                        {rows + d_registers(op), a_in_registers ? kARegisterCount : 0});

  const uint32_t slot = take_slot(cta);
  WgmmaWork& work = cta.wgmmas[slot];
  work = {op,
          a_bits,
          b_bits,
          cta.shared_invalidations,
          w.wgmma.issued,
          w.wgmma.open,
          uint16_t(w.index),
          scale != 0,
          false,
          {},
          {}};
  if (a_in_registers) {
    for (uint32_t r = 0; r < kARegisterCount; ++r) work.a[r] = w.rows[rows[d_registers(op) + r]];
  }
  w.wgmma.pending.push_back(slot);
  if (cta.observer) {
    cta.observer->wgmma_issued(w, op,
                               {a_in_registers ? nullptr : &a, &b, (op->size & kTransposeA) != 0,
                                (op->size & kTransposeB) != 0, columns_of(op), w.wgmma.issued});
  }
  w.wgmma.core_free = std::max(w.wgmma.core_free, w.time + kIssue) + columns_of(op) / 4;
  Event event;
  event.time = std::max(w.wgmma.core_free + delay(cta, kLatency), w.wgmma.last_done + 1);
  w.wgmma.last_done = event.time;
  event.kind = Event::Kind::wgmma;
  event.cta = &cta;
  event.warp = uint16_t(w.index);
  event.slot = slot;
  event.op = op;
  if (cta.random) {
    Event read = event;
    read.kind = Event::Kind::wgmma_read;
    read.time = moment(cta, w.time, event.time);
    send(cta, read);
  }
  send(cta, event);
  ++w.counters.mma;
  cta.mma_flop += 2ull * kRows * columns_of(op) * (kForms[op->mode].input == MmaInput::tf32 ? 8 : 16);
  return op + 1;
}

namespace {

// The 16 x K part of A that belongs to the warp, raw values one row after the other.
void read_a(const Cta& cta, const WgmmaWork& work, const MatrixDescriptor& d, std::byte* rows) {
  const bool wide = kForms[work.op->mode].input == MmaInput::tf32;
  if (work.op->size & kARegisters) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      for (uint32_t r = 0; r < kARegisterCount; ++r) {
        const uint32_t m = lane / 4 + 8 * (r % 2), word = lane % 4 + 4 * (r / 2);
        std::memcpy(rows + m * 32 + word * 4, &work.a[r].lane[lane], 4);
      }
    }
    return;
  }
  const bool mn_major = work.op->size & kTransposeA;
  const MatrixDescriptor part = from(d, mn_major, kRows * (work.warp % 4));
  if (!wide) return gather_b(cta, part, mn_major, kRows, reinterpret_cast<uint16_t*>(rows));
  each_chunk(part, false, kRows, [&](uint32_t m, uint32_t k, uint32_t address) {
    std::memcpy(rows + m * 32 + k * 2, cta.shared.data() + address, 16);
  });
}

// `columns` columns of B, raw values: those of one k after the other, 128 apart.
void read_b(const Cta& cta, const WgmmaWork& work, const MatrixDescriptor& d, uint32_t columns,
            std::byte* values) {
  const bool mn_major = work.op->size & kTransposeB;
  if (kForms[work.op->mode].input != MmaInput::tf32)
    return gather_a(cta, d, mn_major, columns, reinterpret_cast<uint16_t*>(values));
  // Two words of tf32 lie where four halves would.
  auto* const words = reinterpret_cast<uint32_t*>(values);
  each_chunk(d, false, columns, [&](uint32_t n, uint32_t k, uint32_t address) {
    uint32_t chunk[4];
    std::memcpy(chunk, cta.shared.data() + address, sizeof chunk);
    for (uint32_t i = 0; i < 4; ++i) words[(k / 2 + i) * 128 + n] = chunk[i];
  });
}

constexpr uint32_t kPitch = 128;  // columns of B that are worked on at a time
constexpr uint32_t kABytes = kRows * 32, kBBytes = kPitch * 32;

// The operands as they are now: A, then B in parts of kPitch columns; those that there are not are zero.
void read_operands(const Cta& cta, const WgmmaWork& work, std::byte* to) {
  MatrixDescriptor a{}, b{};
  decode(work.a_descriptor, &a);
  decode(work.b_descriptor, &b);
  read_a(cta, work, a, to);
  for (uint32_t first = 0; first < columns_of(work.op); first += kPitch) {
    std::byte* const part = to + kABytes + first / kPitch * kBBytes;
    const uint32_t columns = std::min(kPitch, columns_of(work.op) - first);
    if (columns < kPitch) std::memset(part, 0, kBBytes);
    read_b(cta, work, from(b, work.op->size & kTransposeB, first), columns, part);
  }
}

// Calls f(register of D, lane, row, column) for the first or only value of every accumulator register. Lane l
// holds rows l / 4 and l / 4 + 8; of eight columns, two.
template <class F>
void each_accumulator(const Op* op, uint32_t first_column, uint32_t columns, F f) {
  const uint32_t per_block = half_accumulators(op) ? 2 : 4;
  for (uint32_t block = 0; block < columns / 8; ++block) {
    for (uint32_t r = 0; r < per_block; ++r) {
      const uint32_t below = half_accumulators(op) ? r : r / 2, odd = half_accumulators(op) ? 0 : r % 2;
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        f((first_column / 8 + block) * per_block + r, lane, lane / 4 + 8 * below,
          block * 8 + 2 * (lane % 4) + odd);
      }
    }
  }
}

void complete(Cta& cta, WgmmaWork& work) {
  if (work.done) return;
  work.done = true;
  Warp& w = cta.warps[work.warp];
  const Op* op = work.op;
  const Form& form = kForms[op->mode];
  if (work.invalidations != cta.shared_invalidations) {
    MatrixDescriptor a{}, b{};
    decode(work.a_descriptor, &a);
    decode(work.b_descriptor, &b);
    const auto check = [&](const char* name, const MatrixDescriptor& d, bool mn_major, uint32_t rows) {
      const std::string e = operand_problem(cta, d, mn_major, rows);
      if (!e.empty())
        fault(cta, work.warp, op, Fault::Kind::poison,
              std::string(name) + " was overwritten while the wgmma.mma_async was in flight: " + e);
    };
    if (!(op->size & kARegisters)) check("A", a, op->size & kTransposeA, 64);
    check("B", b, op->size & kTransposeB, columns_of(op));
  }
  // The transposed product, so that the many columns are what the step works on side by side: rows of it are
  // columns of D.
  alignas(64) std::byte operands[kABytes + 2 * kBBytes];
  alignas(64) float d[kRows * kPitch];
  if (work.operands.empty())
    read_operands(cta, work, operands);
  else
    std::memcpy(operands, work.operands.data(), sizeof operands);
  const uint16_t* registers = w.code->aux.data() + op->aux;
  const bool half = half_accumulators(op);
  const auto word = [&](uint32_t row, uint32_t column) -> float& { return d[row * kPitch + column]; };
  const auto set = [&](uint32_t row, uint32_t column, uint32_t bits) {
    std::memcpy(&word(row, column), &bits, 4);
  };
  const auto get = [&](uint32_t row, uint32_t column) {
    uint32_t bits;
    std::memcpy(&bits, &word(row, column), 4);
    return bits;
  };
  for (uint32_t first = 0; first < columns_of(op); first += kPitch) {
    const uint32_t columns = std::min(kPitch, columns_of(op) - first), padded = columns <= 64 ? 64 : 128;
    if (columns != padded) std::memset(d, 0, sizeof d);
    if (work.accumulate) {
      each_accumulator(op, first, columns, [&](uint32_t r, uint32_t lane, uint32_t row, uint32_t column) {
        const uint32_t bits = w.rows[registers[r]].lane[lane];
        set(row, column, half ? bits & 0xFFFF : bits);
        if (half) set(row, column + 1, bits >> 16);
      });
    }
    mma_step({form.input, form.input, (op->size & kNegateB) != 0, (op->size & kNegateA) != 0, work.accumulate,
              padded, kRows, operands + kABytes + first / kPitch * kBBytes, operands, d, kPitch,
              form.accumulator});
    each_accumulator(op, first, columns, [&](uint32_t r, uint32_t lane, uint32_t row, uint32_t column) {
      w.rows[registers[r]].lane[lane] =
          half ? get(row, column) | get(row, column + 1) << 16 : get(row, column);
    });
  }
}

// Groups below this one are what the wait asks for.
uint32_t awaited(const Warp& w, uint32_t may_stay_pending) {
  return w.wgmma.open > may_stay_pending ? w.wgmma.open - may_stay_pending : 0;
}

// A wait is over: what it covers may be used.
void cover(Warp& w, uint32_t may_stay_pending) {
  WgmmaGroups& g = w.wgmma;
  const uint32_t limit = awaited(w, may_stay_pending);
  if (limit > g.known + 1) g.known = limit - 1;
  size_t covered = 0;
  uint64_t newest = 0;
  while (covered < g.pending.size() && w.cta->wgmmas[g.pending[covered]].group <= g.known) {
    newest = w.cta->wgmmas[g.pending[covered]].number;
    w.cta->free_wgmmas.push_back(g.pending[covered++]);
  }
  g.pending.erase(g.pending.begin(), g.pending.begin() + std::ptrdiff_t(covered));
  if (newest && w.cta->observer) w.cta->observer->wgmma_waited(w, newest);
}

}  // namespace

const Op* wgmma_commit_group(Warp& w, const Op* op, Mask mask) {
  if (!in_warpgroup(w, op, mask)) return nullptr;
  ++w.wgmma.open;
  return op + 1;
}

const Op* wgmma_fence(Warp& w, const Op* op, Mask mask) {
  if (!in_warpgroup(w, op, mask)) return nullptr;
  ++w.wgmma.fences;
  return op + 1;
}

namespace {

// Whether the operations that a wgmma.wait_group asks for are complete: the warp's own parts, or, as hardware executes
// them, those of all four warps.
bool complete_for(const Warp& w, const Fragment& f, bool warpgroup) {
  const uint32_t limit = awaited(w, f.wait_value);
  const Warp* const warps = warpgroup ? w.cta->warps.data() + w.index / 4 * 4 : &w;
  uint64_t landed = warps->wgmma.landed;
  for (int i = 1; warpgroup && i < 4; ++i) landed = std::min(landed, warps[i].wgmma.landed);
  return std::all_of(w.wgmma.pending.begin(), w.wgmma.pending.end(), [&](uint32_t slot) {
    const WgmmaWork& work = w.cta->wgmmas[slot];
    return work.group >= limit || work.number <= landed;
  });
}
bool passed(const Warp& w, const Fragment& f) { return complete_for(w, f, w.cta->launch->model == Model::silicon); }

void wake(Warp& w, Fragment& f, uint64_t time) {
  f.state = Fragment::State::ready;
  w.time = std::max(w.time, time);
  cover(w, f.wait_value);
}

}  // namespace

bool let_wgmma_wait_go(Warp& w, Fragment& f) {
  if (f.state != Fragment::State::wgmma_group || !complete_for(w, f, false)) return false;
  wake(w, f, w.time);
  return true;
}

const Op* wgmma_wait_group(Warp& w, const Op* op, Mask mask) {
  if (!in_warpgroup(w, op, mask)) return nullptr;
  Fragment& f = w.fragment();
  f.wait_value = uint32_t(op->imm);
  if (passed(w, f)) {
    cover(w, f.wait_value);
    return op + 1;
  }
  f.pc = op + 1;
  f.state = Fragment::State::wgmma_group;
  f.wait_begin = w.time;
  return nullptr;
}

void complete_wgmmas(Warp& w) {
  for (uint32_t slot : w.wgmma.pending) complete(*w.cta, w.cta->wgmmas[slot]);
}

void read_wgmma_operands(const Event& event) {
  Cta& cta = *event.cta;
  WgmmaWork& work = cta.wgmmas[event.slot];
  if (work.done) return;
  const AsyncView view(cta);
  work.operands.resize(kABytes + 2 * kBBytes);
  read_operands(cta, work, work.operands.data());
}

void land_wgmma(const Event& event) {
  Cta& cta = *event.cta;
  WgmmaWork& work = cta.wgmmas[event.slot];
  complete(cta, work);
  cta.warps[event.warp].wgmma.landed = work.number;
  for (uint32_t i = event.warp / 4u * 4; i < event.warp / 4u * 4 + 4; ++i) {
    Warp& w = cta.warps[i];
    for (Fragment& f : w.fragments) {
      if (f.state == Fragment::State::wgmma_group && passed(w, f)) wake(w, f, event.time);
    }
  }
}

void check_warpgroups(Cta& cta) {
  for (size_t first = 0; first + 4 <= cta.warps.size(); first += 4) {
    Warp* const warps = cta.warps.data() + first;
    const auto [least, most] = std::minmax_element(warps, warps + 4, [](const Warp& a, const Warp& b) {
      return std::pair(a.wgmma.issued, a.wgmma.executed) < std::pair(b.wgmma.issued, b.wgmma.executed);
    });
    Warpgroup& group = cta.warpgroups[first / 4];
    const bool issues = least->wgmma.issued != most->wgmma.issued;
    if (!issues && least->wgmma.executed == most->wgmma.executed) continue;
    if (issues || cta.launch->model != Model::silicon) {
      const auto count = [&](const Warp& w) {
        return role_name(cta, w.index) + " " + std::to_string(issues ? w.wgmma.issued : w.wgmma.executed);
      };
      fault(cta, least->index, nullptr, Fault::Kind::illegal_instruction,
            std::string("the warps of a warpgroup executed different numbers of ") +
                (issues ? "wgmma.mma_async: " : "wgmma instructions: ") + count(*most) + ", " + count(*least));
    }
    if (!group.differs && cta.observer) {
      cta.observer->warpgroup_differs(*least, nullptr,
                                      group.executed.items[least->wgmma.executed - group.executed.first]);
    }
  }
}

// ---- from PTX
// ------------------------------------------------------------------------------------------------------------

namespace {

bool is_negated(Builder& b, size_t index) {
  const Operand& scale = b.operand(index);
  if (scale.kind != Operand::Kind::immediate || (scale.bits != 1 && int64_t(scale.bits) != -1))
    b.refuse("imm-scale-a and imm-scale-b are 1 or -1");
  return scale.bits != 1;
}
bool is_transposed(Builder& b, size_t index) {
  const Operand& transpose = b.operand(index);
  if (transpose.kind != Operand::Kind::immediate || transpose.bits > 1)
    b.refuse("imm-trans-a and imm-trans-b are 0 or 1");
  return transpose.bits == 1;
}

void build_mma_async(Builder& b, Modifiers& m) {
  std::string shape(m.take_prefix("m64n")), types;
  for (std::string_view part = m.first_left(); !part.empty(); part = m.first_left()) {
    types += (types.empty() ? "" : ".") + std::string(part);
    m.take(part);
  }
  const size_t k = shape.find('k');
  uint32_t n = 0;
  for (size_t i = 4; i < std::min(k, shape.size()); ++i) n = n * 10 + uint32_t(shape[i] - '0');
  const Form* form = std::find_if(std::begin(kForms), std::end(kForms), [&](const Form& f) {
    return k != std::string::npos && shape.substr(k) == f.shape_end && types == f.types;
  });
  if (form == std::end(kForms) || n < 8 || n > 256 || n % 8 != 0) {
    std::string list;
    for (const Form& f : kForms)
      list += (list.empty() ? ".m64nN" : ", .m64nN") + std::string(f.shape_end) + "." + std::string(f.types);
    b.refuse("wgmma.mma_async ." + shape + "." + types +
             " is not supported; these are, with N from 8 to 256, a multiple of 8: " + list);
  }
  const bool wide = form->input == MmaInput::tf32;
  Op description;  // what emit() will be given
  description.mode = uint8_t(form - kForms);
  description.count = uint8_t(n / 8);
  const Operand &d = b.operand(0), &a = b.operand(1);
  const bool a_in_registers = a.kind == Operand::Kind::vector;
  const size_t scales = 4, transposes = wide ? 0 : a_in_registers ? 1 : 2;
  if (b.operand_count() != scales + 2 + transposes)
    b.refuse("wgmma.mma_async has operands d, a or a-desc, b-desc, scale-d, imm-scale-a, imm-scale-b" +
             std::string(wide             ? ""
                         : a_in_registers ? ", imm-trans-b"
                                          : ", imm-trans-a, imm-trans-b"));
  if (d.kind != Operand::Kind::vector || d.elements.size() != d_registers(&description))
    b.refuse("D is a vector of " + std::to_string(d_registers(&description)) + " registers in braces");
  std::vector<Virtual> accumulators, rows;
  for (const Operand& e : d.elements) {
    if (e.kind != Operand::Kind::reg) b.refuse("an accumulator is a register");
    accumulators.push_back(b.destination(e, 1));
    if (std::count(accumulators.begin(), accumulators.end(), accumulators.back()) > 1)
      b.refuse("an accumulator register stands twice in D");
  }
  if (a_in_registers) {
    if (a.elements.size() != kARegisterCount) b.refuse("A is a vector of 4 registers in braces");
    for (const Operand& e : a.elements) rows.push_back(b.source(e, Type::b32));
  }
  const Virtual a_descriptor = a_in_registers ? kNoVirtual : b.source(a, Type::b64),
                b_descriptor = b.source(b.operand(2), Type::b64);
  bool negated = false;
  const uint16_t scale = b.predicate(b.operand(3), &negated);
  description.size = uint8_t((a_in_registers ? kARegisters : 0) | (is_negated(b, scales) ? kNegateA : 0) |
                             (is_negated(b, scales + 1) ? kNegateB : 0));
  if (transposes == 2 && is_transposed(b, scales + 2)) description.size |= kTransposeA;
  if (transposes > 0 && is_transposed(b, scales + 1 + transposes)) description.size |= kTransposeB;
  Op& op = b.emit(wgmma_mma_async);
  op.mode = description.mode;
  op.count = description.count;
  op.size = description.size;
  op.pa = scale;
  op.pa_not = negated;
  op.cycles = kIssue;
  const bool overwrites = scale == 0 && negated;
  if (!a_in_registers) b.use(Field::b, a_descriptor);
  b.use(Field::c, b_descriptor);
  for (Virtual v : accumulators) overwrites ? b.aux_def(v) : b.aux_def_use(v);
  for (Virtual v : rows) b.aux_use(v);
}

void build_wgmma(Builder& b, Modifiers& m) {
  const auto verb = m.take_any({"mma_async", "fence", "commit_group", "wait_group"});
  if (verb.empty()) b.refuse("wgmma is wgmma.mma_async, .fence, .commit_group or .wait_group");
  if (!m.take("sync") || !m.take("aligned")) b.refuse("this instruction is .sync.aligned");
  if (verb == "mma_async") return build_mma_async(b, m);
  if (verb == "wait_group") {
    const Operand& n = b.operand(0);
    if (n.kind != Operand::Kind::immediate || n.is_float) b.refuse("wait_group takes an integer constant");
    b.emit(wgmma_wait_group).imm = int64_t(std::min<uint64_t>(n.bits, UINT32_MAX));
    return;
  }
  b.emit(verb == "fence" ? wgmma_fence : wgmma_commit_group);
}

}  // namespace

std::vector<FamilyRow> wgmma_rows() {
  return {{"wgmma", build_wgmma}};
}

}  // namespace fa4::sim
