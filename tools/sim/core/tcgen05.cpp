// SPDX-License-Identifier: Apache-2.0
// tcgen05.alloc, dealloc, ld, st, wait and fence: tensor memory as warps use it.
#include "tcgen05.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "builder.h"
#include "convergence.h"
#include "delivery.h"
#include "shared_memory.h"
#include "warp_wide.h"

namespace fa4::sim {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

void build_mma(Builder& b, Modifiers& m);
void build_commit(Builder& b, Modifiers& m);

namespace {

bool valid_columns(uint32_t n) { return n >= 32 && n <= 512 && std::has_single_bit(n); }

const Op* alloc(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  Cta& cta = *w.cta;
  const uint32_t columns = uniform(w, op, op->b, mask, "the number of columns");
  const uint32_t address = own_shared(cta, uniform(w, op, op->a, mask, "the destination"));
  if (!valid_columns(columns)) fault(w, op, Fault::Kind::illegal_instruction, "tcgen05.alloc of " + std::to_string(columns) + " columns; a power of two from 32 to 512 is possible");
  if (cta.tmem_relinquished) fault(w, op, Fault::Kind::illegal_instruction, "tcgen05.alloc after relinquish_alloc_permit");
  const std::string outside = outside_shared(cta, address, 4);
  if (!outside.empty()) fault(w, op, Fault::Kind::illegal_address, outside);
  if (mbarrier_in(cta, address, 4)) fault(w, op, Fault::Kind::poison, "tcgen05.alloc writes its result over a live barrier");
  uint32_t base = 0;
  for (bool found = false; !found; base += columns) {
    if (base + columns > TensorMemory::columns) fault(w, op, Fault::Kind::illegal_instruction, "tcgen05.alloc of " + std::to_string(columns) + " columns: so many are not free");
    found = std::none_of(cta.tmem.allocated + base, cta.tmem.allocated + base + columns, [](bool a) { return a; });
    if (found) break;
  }
  cta.tmem_allocations.push_back({base, columns});
  std::fill_n(cta.tmem.allocated + base, columns, true);
  for (uint32_t c = base; c < base + columns; ++c) std::fill_n(cta.tmem.valid[c], TensorMemory::partitions, 0u);
  std::memcpy(cta.shared.data() + address, &base, 4);
  set_shared_valid(cta, address, 4, true);
  if (cta.observer) cta.observer->tmem_allocated(w, op, base, columns, address);
  return op + 1;
}

const Op* dealloc(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  Cta& cta = *w.cta;
  const uint32_t address = uniform(w, op, op->a, mask, "the address"), columns = uniform(w, op, op->b, mask, "the number of columns");
  const auto it = std::find_if(cta.tmem_allocations.begin(), cta.tmem_allocations.end(), [&](const TmemAllocation& a) { return a.column == address && a.columns == columns; });
  if (it == cta.tmem_allocations.end()) {
    fault(w, op, Fault::Kind::illegal_instruction, "tcgen05.dealloc of " + std::to_string(columns) + " columns at " + std::to_string(address) + ": no tcgen05.alloc gave these");
  }
  for (uint32_t c = address; c < address + columns; ++c) {
    if (cta.tmem.mma_in_flight[c] || cta.tmem.mma_reading[c]) fault(w, op, Fault::Kind::poison, "tcgen05.dealloc while an MMA is in flight on " + tmem_name(cta, c));
    cta.tmem.allocated[c] = false;
  }
  cta.tmem_allocations.erase(it);
  if (cta.observer) cta.observer->tmem_released(w, op, address, columns);
  return op + 1;
}

const Op* relinquish(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  w.cta->tmem_relinquished = true;
  return op + 1;
}

// Lane (in the warp's partition) and column that register r of thread t stands for; shapes as in the table of the ISA.
enum class TmemShape : uint8_t { s32x32b, s16x64b, s16x128b, s16x256b };
struct Cell {
  uint32_t lane, column;
};
Cell cell(TmemShape shape, uint32_t t, uint32_t r) {
  switch (shape) {
    case TmemShape::s32x32b: return {t, r};
    case TmemShape::s16x64b: return {t / 4 + 8 * (t & 1), 2 * r + (t >> 1 & 1)};
    case TmemShape::s16x128b: return {t / 4 + 8 * (r & 1), 4 * (r >> 1) + t % 4};
    default: return {t / 4 + 8 * (r >> 1 & 1), 8 * (r >> 2) + 2 * (t % 4) + (r & 1)};
  }
}
uint32_t columns_of(TmemShape shape, uint32_t registers) {
  switch (shape) {
    case TmemShape::s32x32b: return registers;
    case TmemShape::s16x64b: return 2 * registers;
    case TmemShape::s16x128b: return 2 * registers;
    default: return 2 * registers;
  }
}

struct Window {
  uint32_t column, columns, partition, lane;
};
// The cells that a warp-wide load or store touches: columns from the address, lanes of the warp's own partition.
Window window(Warp& w, const Op* op, Mask mask) {
  const uint32_t address = uniform(w, op, op->a, mask, "the TMEM address") + uint32_t(op->imm);
  Window v;
  v.column = address & 0xFFFF;
  v.partition = w.index % 4;
  const uint32_t field = address >> 16;
  v.lane = field % 32;
  const auto shape = TmemShape(op->mode);
  v.columns = columns_of(shape, op->aux_count);
  // The lane field names the warp's partition or is relative to it; anything else is another warp's lanes.
  if (field / 32 != v.partition && field / 32 != 0) {
    fault(w, op, Fault::Kind::illegal_address, "TMEM lane " + std::to_string(field) + " is not in this warp's partition, lanes " + std::to_string(32 * v.partition) + ".." + std::to_string(32 * v.partition + 31));
  }
  if (v.lane != 0 && !(shape != TmemShape::s32x32b && v.lane == 16)) fault(w, op, Fault::Kind::illegal_address, "TMEM lane " + std::to_string(field) + " is not where this shape can start");
  if (v.column + v.columns > TensorMemory::columns) fault(w, op, Fault::Kind::illegal_address, "the access reaches beyond TMEM column 511");
  for (uint32_t c = v.column; c < v.column + v.columns; ++c) {
    if (!w.cta->tmem.allocated[c]) fault(w, op, Fault::Kind::illegal_address, tmem_name(*w.cta, c) + " is not allocated");
    if (w.cta->tmem.mma_in_flight[c]) fault(w, op, Fault::Kind::poison, tmem_name(*w.cta, c) + " is the accumulator of an MMA in flight: wait for its commit");
  }
  return v;
}

void count(Warp& w, const Window& v, uint32_t kind, uint32_t registers) {
  const uint64_t bytes = 128ull * registers;
  if (kind == FA4SIM_EVENT_TMEM_LOAD) {
    ++w.counters.tmem_loads;
    w.counters.tmem_load_bytes += bytes;
  } else {
    ++w.counters.tmem_stores;
    w.counters.tmem_store_bytes += bytes;
  }
  if (!w.cta->traced) return;
  fa4sim_event e{};
  e.kind = kind;
  e.begin = w.time;
  e.end = w.time + 16 + registers;
  e.warp = w.index;
  e.address = v.column;
  e.bytes = uint32_t(bytes);
  w.cta->trace(e);
}

// The lanes of its partition that the accumulator of an MMA with M = 64 has. A load of all 32 lanes is a usual way to
// read it: the values of the others, which nobody has written, are unspecified (here a NaN), and to be thrown away.
constexpr Mask kLanesOfM64 = 0xFFFF;

}  // namespace

const Op* tmem_load(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  const Window v = window(w, op, mask);
  const auto shape = TmemShape(op->mode);
  TensorMemory& tmem = w.cta->tmem;
  const Mask lanes = shape == TmemShape::s32x32b ? kAllLanes : 0xFFFFu << v.lane;
  for (uint32_t c = v.column; c < v.column + v.columns; ++c) {
    if (tmem.store_in_flight[c][v.partition] && w.cta->launch->model != Model::silicon) fault(w, op, Fault::Kind::poison, tmem_name(*w.cta, c) + " has a tcgen05.st that no wait::st has completed");
    Mask& written = tmem.valid[c][v.partition];
    if ((written & lanes) == lanes) continue;
    if (written != kLanesOfM64) fault(w, op, Fault::Kind::poison, tmem_name(*w.cta, c) + " is read but has not been written");
    std::memset(tmem.cells->word[c] + 32 * v.partition + 16, 0xFF, 64);
  }
  const uint16_t* rows = w.code->aux.data() + op->aux;
  const uint32_t base = 32 * v.partition + v.lane;
  for (uint32_t r = 0; r < op->aux_count; ++r) {
    if (shape == TmemShape::s32x32b && mask == kAllLanes) {
      std::memcpy(w.rows[rows[r]].lane, tmem.cells->word[v.column + r] + base, 128);
      continue;
    }
    for (Mask m = mask; m; m &= m - 1) {
      const uint32_t t = uint32_t(first_lane(m));
      const Cell at = cell(shape, t, r);
      w.rows[rows[r]].lane[t] = tmem.cells->word[v.column + at.column][base + at.lane];
    }
  }
  issue_tmem_load(w, v.column, v.columns, {rows, op->aux_count});
  count(w, v, FA4SIM_EVENT_TMEM_LOAD, op->aux_count);
  if (w.cta->observer) w.cta->observer->tmem_access(w, op, v.column, v.columns, false);
  return op + 1;
}

namespace {

const Op* store(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  const Window v = window(w, op, mask);
  const auto shape = TmemShape(op->mode);
  TensorMemory& tmem = w.cta->tmem;
  const Mask lanes = shape == TmemShape::s32x32b ? kAllLanes : 0xFFFFu << v.lane;
  for (uint32_t c = v.column; c < v.column + v.columns; ++c) {
    if (tmem.mma_reading[c]) fault(w, op, Fault::Kind::poison, tmem_name(*w.cta, c) + " is A of an MMA in flight: wait for its commit");
    tmem.valid[c][v.partition] |= lanes;
    tmem.store_in_flight[c][v.partition] = 1;
  }
  w.tmem_pending_stores.push_back(v.column << 16 | v.columns);
  const uint16_t* rows = w.code->aux.data() + op->aux;
  const uint32_t base = 32 * v.partition + v.lane;
  for (uint32_t r = 0; r < op->aux_count; ++r) {
    if (shape == TmemShape::s32x32b && mask == kAllLanes) {
      std::memcpy(tmem.cells->word[v.column + r] + base, w.rows[rows[r]].lane, 128);
      continue;
    }
    for (Mask m = mask; m; m &= m - 1) {
      const uint32_t t = uint32_t(first_lane(m));
      const Cell at = cell(shape, t, r);
      tmem.cells->word[v.column + at.column][base + at.lane] = w.rows[rows[r]].lane[t];
    }
  }
  count(w, v, FA4SIM_EVENT_TMEM_STORE, op->aux_count);
  if (w.cta->observer) w.cta->observer->tmem_access(w, op, v.column, v.columns, true);
  return op + 1;
}

}  // namespace

const Op* tmem_wait_load(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  wait_tmem_loads(w);
  if (w.cta->observer) w.cta->observer->tmem_waited(w, false);
  return op + 1;
}

namespace {

const Op* wait_store(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  for (uint32_t range : w.tmem_pending_stores) {
    const uint32_t column = range >> 16, columns = range & 0xFFFF;
    for (uint32_t c = column; c < column + columns; ++c) w.cta->tmem.store_in_flight[c][w.index % 4] = 0;
  }
  w.tmem_pending_stores.clear();
  if (w.cta->observer) w.cta->observer->tmem_waited(w, true);
  return op + 1;
}

// They order what this engine executes in order anyway; the happens-before checker is where they count.
const Op* thread_sync_fence(Warp& w, const Op* op, Mask mask) {
  if (w.cta->observer) w.cta->observer->fence(w, op, mask, FenceKind(op->mode));
  return op + 1;
}

// ---- from PTX ------------------------------------------------------------------------------------------------------------

void take_group(Builder& b, Modifiers& m) {
  if (m.take("cta_group::2")) b.refuse("cta_group::2 is not supported");
  if (!m.take("cta_group::1")) b.refuse("a cta_group is missing");
}
void take_sync_aligned(Builder& b, Modifiers& m) {
  if (!m.take("sync") || !m.take("aligned")) b.refuse("this instruction is .sync.aligned");
}

void build_allocation(Builder& b, Modifiers& m, Handler handler, bool to_shared) {
  take_group(b, m);
  take_sync_aligned(b, m);
  m.take("shared::cta");
  if (m.type() != Type::b32) b.refuse("the type is .b32");
  const Operand &first = b.operand(0), &n = b.operand(1);
  if (n.kind == Operand::Kind::immediate && !valid_columns(uint32_t(n.bits))) b.refuse("the number of columns is a power of two from 32 to 512");
  const Virtual columns = b.source(n, Type::u32);
  const Virtual at = to_shared ? b.address_value(first) : b.source(first, Type::u32);
  b.emit(handler).cycles = 200;
  b.use(Field::a, at);
  b.use(Field::b, columns);
}

void build_access(Builder& b, Modifiers& m, bool is_load) {
  take_sync_aligned(b, m);
  static constexpr std::pair<std::string_view, TmemShape> shapes[] = {{"32x32b", TmemShape::s32x32b}, {"16x64b", TmemShape::s16x64b}, {"16x128b", TmemShape::s16x128b}, {"16x256b", TmemShape::s16x256b}};
  static constexpr uint32_t words[] = {1, 1, 2, 4};
  int shape = -1;
  for (int i = 0; i < 4; ++i) {
    if (shape < 0 && m.take(shapes[i].first)) shape = i;
  }
  if (shape < 0) b.refuse("of the shapes 32x32b, 16x64b, 16x128b and 16x256b are supported");
  const auto times = m.take_prefix("x");
  uint32_t n = 0;
  for (char c : times.substr(times.empty() ? 0 : 1)) n = n * 10 + uint32_t(c - '0');
  const uint32_t registers = n * words[shape];
  if (!std::has_single_bit(n) || registers > 128) b.refuse("the number of repetitions is not possible for this shape");
  if (m.type() != Type::b32) b.refuse("the type is .b32");
  const Operand &vector = b.operand(is_load ? 0 : 1), &at = b.operand(is_load ? 1 : 0);
  if (vector.kind != Operand::Kind::vector || vector.elements.size() != registers) b.refuse("a vector of " + std::to_string(registers) + " registers in braces is needed");
  std::vector<Virtual> v;
  for (const Operand& e : vector.elements) {
    if (is_load && e.kind == Operand::Kind::sink) b.refuse("tcgen05.ld does not take _");
    v.push_back(is_load ? b.destination(e, 1) : b.source(e, Type::b32));
  }
  const Virtual address = b.address_value(at);
  if (b.rows(address) != 1) b.refuse("a TMEM address has 32 bits");
  Op& op = b.emit(is_load ? tmem_load : store);
  op.mode = uint8_t(shapes[shape].second);
  op.cycles = uint8_t(16 + registers);
  b.use(Field::a, address);
  for (Virtual x : v) is_load ? b.aux_def(x) : b.aux_use(x);
}

void build_tcgen05(Builder& b, Modifiers& m) {
  if (m.take("mma")) return build_mma(b, m);
  if (m.take("commit")) return build_commit(b, m);
  if (m.take("alloc")) return build_allocation(b, m, alloc, true);
  if (m.take("dealloc")) return build_allocation(b, m, dealloc, false);
  if (m.take("ld")) return build_access(b, m, true);
  if (m.take("st")) return build_access(b, m, false);
  if (m.take("relinquish_alloc_permit")) {
    take_group(b, m);
    take_sync_aligned(b, m);
    b.emit(relinquish);
    return;
  }
  if (m.take("wait::ld")) {
    take_sync_aligned(b, m);
    b.emit(tmem_wait_load);
    return;
  }
  if (m.take("wait::st")) {
    take_sync_aligned(b, m);
    b.emit(wait_store);
    return;
  }
  const bool before = m.take("fence::before_thread_sync");
  if (before || m.take("fence::after_thread_sync")) {
    b.emit(thread_sync_fence).mode = uint8_t(before ? FenceKind::before_thread_sync : FenceKind::after_thread_sync);
    return;
  }
  b.refuse("this tcgen05 instruction is not supported");
}

}  // namespace

std::vector<FamilyRow> tcgen05_rows() { return {{"tcgen05", build_tcgen05}}; }

}  // namespace fa4::sim
