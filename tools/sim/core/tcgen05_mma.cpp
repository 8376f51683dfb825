// SPDX-License-Identifier: Apache-2.0
// tcgen05.mma and tcgen05.commit. The MMAs of a CTA execute in issue order (the axiom that Blackwell kernels rest on);
// each reads its operands and writes its accumulator when it completes. At issue all that it will read must be there.
#include <algorithm>
#include <bit>
#include <cstring>
#include <emmintrin.h>

#include "builder.h"
#include "hex.h"
#include "mbarrier.h"
#include "mma.h"
#include "shared_memory.h"
#include "tcgen05.h"
#include "visibility.h"

namespace fa4::sim {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

namespace {

// Nominal times in cycles; an MMA occupies the tensor core for max(N / 2, bytes of shared memory read / 128).
constexpr uint64_t kLatencyShared = 136, kLatencyTensor = 104, kIssue = 8;

struct Shape {
  uint32_t m, n;
  MmaInput a, b;
  bool negate_a, negate_b, a_mn_major, b_mn_major;
};

std::string decode_instruction(uint32_t bits, Shape* s) {
  s->n = (bits >> 17 & 63) << 3;
  s->m = (bits >> 24 & 31) << 4;
  const uint32_t a = bits >> 7 & 7, b = bits >> 10 & 7;
  if (bits & 0xF) return "sparsity and saturation in the instruction descriptor are not supported";
  if ((bits >> 4 & 3) != 1) return "only accumulation in F32 is supported (bits 4-5 of the instruction descriptor = 1)";
  if ((bits & 0x40) || (bits & 0x800000) || (bits & 0xE0000000)) return "reserved bits of the instruction descriptor are set";
  if (a > 1 || b > 1) return "kind::f16 takes inputs F16 (0) and BF16 (1)";
  if (s->m != 64 && s->m != 128) return "M is " + std::to_string(s->m) + "; 64 or 128 is possible";
  if (s->n < 8 || s->n > 256) return "N is " + std::to_string(s->n) + "; 8 to 256 is possible";
  s->a = MmaInput(a);
  s->b = MmaInput(b);
  s->negate_a = bits >> 13 & 1;
  s->negate_b = bits >> 14 & 1;
  s->a_mn_major = bits >> 15 & 1;
  s->b_mn_major = bits >> 16 & 1;
  return {};
}

}  // namespace

std::string operand_problem(const Cta& cta, const MatrixDescriptor& d, bool mn_major, uint32_t rows) {
  const uint64_t* const valid = cta.shared_valid.data();
  const uint32_t end = cta.shared_end;
  uint32_t bad = 0, bad_mn = 0, bad_k = 0;
  each_chunk(d, mn_major, rows, [&](uint32_t mn, uint32_t k, uint32_t address) {
    const bool inside = address >= kSharedBase && address + 16 <= end;
    if (inside && (valid[address / 64] >> (address % 64) & 0xFFFF) == 0xFFFF) return;
    if (!bad) bad = address + 1, bad_mn = mn, bad_k = k;
  });
  if (!bad) return {};
  const std::string outside = outside_shared(cta, bad - 1, 16);
  if (!outside.empty()) return outside;
  const auto first = uint32_t(first_invalid_shared(cta, bad - 1, 16));
  return "element (" + std::to_string(bad_mn) + ", " + std::to_string(bad_k) + ") lies in " + invalid_name(cta, cta, first);
}

namespace {

// 8 x 8 elements of 16 bits: rows at from[i * from_pitch], columns to to[j * to_pitch].
void transpose(const uint16_t* const from[8], uint16_t* to, size_t to_pitch) {
  __m128i r[8], s[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[i]));
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm_unpacklo_epi16(r[i], r[i + 4]);
    s[2 * i + 1] = _mm_unpackhi_epi16(r[i], r[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    r[2 * i] = _mm_unpacklo_epi16(s[i], s[i + 4]);
    r[2 * i + 1] = _mm_unpackhi_epi16(s[i], s[i + 4]);
  }
  for (int i = 0; i < 4; ++i) {
    s[2 * i] = _mm_unpacklo_epi16(r[i], r[i + 4]);
    s[2 * i + 1] = _mm_unpackhi_epi16(r[i], r[i + 4]);
  }
  for (int j = 0; j < 8; ++j) _mm_storeu_si128(reinterpret_cast<__m128i*>(to + j * to_pitch), s[j]);
}

const uint16_t* chunk(const std::byte* shared, const MatrixDescriptor& d, bool mn_major, uint32_t mn, uint32_t k) {
  return reinterpret_cast<const uint16_t*>(shared + chunk_address(d, mn_major, mn, k));
}

}  // namespace

// The descriptor comes by value and the base of shared memory is a local one: what is written cannot be either of them.
void gather_a(const Cta& cta, MatrixDescriptor d, bool mn_major, uint32_t rows, uint16_t* a) {
  const std::byte* const shared = cta.shared.data();
  if (mn_major) {
    each_chunk(d, true, rows, [=](uint32_t m, uint32_t k, uint32_t address) { std::memcpy(a + k * 128 + m, shared + address, 16); });
    return;
  }
  for (uint32_t m = 0; m < rows; m += 8) {
    for (uint32_t k = 0; k < kDepth; k += 8) {
      const uint16_t* from[8];
      for (uint32_t i = 0; i < 8; ++i) from[i] = chunk(shared, d, false, m + i, k);
      transpose(from, a + k * 128 + m, 128);
    }
  }
}

void gather_b(const Cta& cta, MatrixDescriptor d, bool mn_major, uint32_t rows, uint16_t* b) {
  const std::byte* const shared = cta.shared.data();
  if (!mn_major) {
    each_chunk(d, false, rows, [=](uint32_t n, uint32_t k, uint32_t address) { std::memcpy(b + n * 16 + k, shared + address, 16); });
    return;
  }
  for (uint32_t n = 0; n < rows; n += 8) {
    for (uint32_t k = 0; k < kDepth; k += 8) {
      const uint16_t* from[8];
      for (uint32_t i = 0; i < 8; ++i) from[i] = chunk(shared, d, true, n, k + i);
      transpose(from, b + n * 16 + k, 16);
    }
  }
}

namespace {

// The 32-bit lane mask of a partition that rows of the accumulator use.
Mask lanes_used(uint32_t m) { return m == 128 ? kAllLanes : 0xFFFF; }

std::string tmem_range_problem(const Cta& cta, uint32_t column, uint32_t columns, const char* what) {
  if (column + columns > TensorMemory::columns) return std::string(what) + " reaches beyond TMEM column 511";
  for (uint32_t c = column; c < column + columns; ++c) {
    if (!cta.tmem.allocated[c]) return std::string(what) + " is in " + tmem_name(cta, c) + ", which is not allocated";
  }
  return {};
}

// Under adversarial timing: an operand is read somewhere between `from` and the completion of the MMA.
void schedule_read(Event event, Event::Kind kind, uint64_t from) {
  Cta& cta = *event.cta;
  if (cta.mma_operands.size() <= event.slot) cta.mma_operands.resize(event.slot + 1);
  if (!cta.mma_operands[event.slot]) cta.mma_operands[event.slot] = std::make_unique<MmaOperands>();
  event.kind = kind;
  event.time = moment(cta, from, event.time);
  send(cta, event);
}

// Rows: a D address, b A descriptor (2 rows) or A address, c B descriptor; aux: instruction descriptor, then the lane
// mask if there is one. size 1: A in TMEM. pa: enable-input-d.
const Op* mma(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const auto word = [&](uint16_t row) { return w.rows[row].lane[lane]; };
    const auto wide = [&](uint16_t row) { return uint64_t(word(row)) | uint64_t(word(uint16_t(row + 1))) << 32; };
    const auto refuse = [&](Fault::Kind kind, const std::string& message) { fault(w, op, kind, message); };
    const uint16_t* aux = w.code->aux.data() + op->aux;
    uint32_t slot;
    if (cta.free_mmas.empty()) {
      slot = uint32_t(cta.mmas.size());
      cta.mmas.emplace_back();
    } else {
      slot = cta.free_mmas.back();
      cta.free_mmas.pop_back();
    }
    MmaWork& work = cta.mmas[slot];
    work = {};
    work.invalidations = cta.shared_invalidations;
    work.instruction = word(aux[0]);
    for (uint32_t i = 1; i < op->aux_count; ++i) {
      if (word(aux[i])) refuse(Fault::Kind::illegal_instruction, "disabled output lanes are not supported");
    }
    Shape shape;
    if (const std::string e = decode_instruction(work.instruction, &shape); !e.empty()) refuse(Fault::Kind::illegal_instruction, e);
    const Mask p = op->pa_not ? ~w.predicates[op->pa] : w.predicates[op->pa];
    work.accumulate = p >> lane & 1;
    work.a_in_tmem = op->size == 1;
    work.b_descriptor = wide(op->c);
    const uint32_t d_address = word(op->a);
    if (d_address >> 16) refuse(Fault::Kind::illegal_address, "the accumulator's TMEM address has a lane; it must start at lane 0");
    work.d_column = d_address & 0xFFFF;
    TensorMemory& tmem = cta.tmem;
    const Mask used = lanes_used(shape.m);
    if (const std::string e = tmem_range_problem(cta, work.d_column, shape.n, "the accumulator"); !e.empty()) refuse(Fault::Kind::illegal_address, e);
    for (uint32_t c = work.d_column; c < work.d_column + shape.n; ++c) {
      for (uint32_t q = 0; q < TensorMemory::partitions; ++q) {
        if (tmem.store_in_flight[c][q]) refuse(Fault::Kind::poison, "the accumulator in " + tmem_name(cta, c) + " has a tcgen05.st that no wait::st has completed");
        if (work.accumulate && !tmem.mma_in_flight[c] && (tmem.valid[c][q] & used) != used) {
          refuse(Fault::Kind::poison, "the accumulator in " + tmem_name(cta, c) + " is added to but nobody has written it");
        }
      }
    }
    if (work.a_in_tmem) {
      if (shape.a_mn_major) refuse(Fault::Kind::illegal_instruction, "A in tensor memory is K-major");
      const uint32_t a_address = word(op->b);
      if (a_address >> 16) refuse(Fault::Kind::illegal_address, "A's TMEM address has a lane; it must start at lane 0");
      work.a_column = a_address & 0xFFFF;
      if (const std::string e = tmem_range_problem(cta, work.a_column, kDepth / 2, "A"); !e.empty()) refuse(Fault::Kind::illegal_address, e);
      for (uint32_t c = work.a_column; c < work.a_column + kDepth / 2; ++c) {
        for (uint32_t q = 0; q < TensorMemory::partitions; ++q) {
          if (tmem.store_in_flight[c][q]) refuse(Fault::Kind::poison, "A in " + tmem_name(cta, c) + " has a tcgen05.st that no wait::st has completed");
          if (!tmem.mma_in_flight[c] && (tmem.valid[c][q] & used) != used) refuse(Fault::Kind::poison, "A in " + tmem_name(cta, c) + " has not been written");
        }
        ++tmem.mma_reading[c];
      }
    } else {
      work.a_descriptor = wide(op->b);
      MatrixDescriptor a;
      if (const std::string e = decode_descriptor(work.a_descriptor, &a); !e.empty()) refuse(Fault::Kind::illegal_instruction, "A: " + e);
      if (const std::string e = operand_problem(cta, a, shape.a_mn_major, shape.m); !e.empty()) refuse(Fault::Kind::poison, "A: " + e);
    }
    MatrixDescriptor b;
    if (const std::string e = decode_descriptor(work.b_descriptor, &b); !e.empty()) refuse(Fault::Kind::illegal_instruction, "B: " + e);
    if (const std::string e = operand_problem(cta, b, shape.b_mn_major, shape.n); !e.empty()) refuse(Fault::Kind::poison, "B: " + e);
    for (uint32_t c = work.d_column; c < work.d_column + shape.n; ++c) ++tmem.mma_in_flight[c];
    publish(w, 1u << lane);  // a commit passes on what its thread did before its newest MMA
    if (cta.observer) {
      MatrixDescriptor a{};
      decode_descriptor(work.a_descriptor, &a);
      cta.observer->mma_issued(w, op, lane, {work.a_in_tmem ? nullptr : &a, &b, shape.a_mn_major, shape.b_mn_major, shape.m, shape.n, work.a_column, work.d_column});
    }

    const uint32_t shared_bytes = (work.a_in_tmem ? 0 : shape.m * 32) + shape.n * 32;
    const uint64_t busy = std::max(shape.n / 2, shared_bytes / 128);
    cta.tensor_core_free = std::max(cta.tensor_core_free, w.time + kIssue) + busy;
    Event event;
    event.time = std::max(cta.tensor_core_free + delay(cta, work.a_in_tmem ? kLatencyTensor : kLatencyShared), cta.last_mma_done + 1);
    // What an MMA before this one writes to tensor memory must be there; shared memory may be read at once.
    const uint64_t first_a = work.a_in_tmem ? std::max(w.time, cta.last_mma_done) : w.time;
    cta.last_mma_done = w.last_mma_done[lane] = event.time;
    event.kind = Event::Kind::mma;
    event.cta = event.target = &cta;
    event.warp = uint16_t(w.index);
    event.lane = uint16_t(lane);
    event.slot = slot;
    event.op = op;
    if (cta.random) {
      schedule_read(event, Event::Kind::mma_read_a, first_a);
      schedule_read(event, Event::Kind::mma_read_b, w.time);
    }
    send(cta, event);
    ++w.counters.mma;
    cta.mma_flop += 2ull * shape.m * shape.n * kDepth;
    if (cta.traced) {
      fa4sim_event e{};
      e.kind = FA4SIM_EVENT_MMA;
      e.begin = w.time;
      e.end = event.time;
      e.warp = w.index;
      e.address = work.d_column;
      e.source = work.a_in_tmem ? work.a_column : uint32_t(work.a_descriptor & 0x3FFF) << 4;
      e.other = uint32_t(work.b_descriptor & 0x3FFF) << 4;
      e.a_in_tmem = work.a_in_tmem;
      e.accumulate = work.accumulate;
      cta.trace(e);
    }
  }
  return op + 1;
}

// Row a: the barrier's address.
const Op* commit(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    const uint64_t address = lane_bits(w.rows + op->a, lane, op->mode & 1) + uint64_t(op->imm);
    const SharedPlace place = require_place(w, op, address);
    uint32_t ranks = 1u << place.cta->rank;
    if (op->aux_count) {
      ranks = w.rows[w.code->aux[op->aux]].lane[lane] & 0xFFFF;
      if (ranks == 0 || ranks >> cta.cluster->size) {
        fault(w, op, Fault::Kind::illegal_instruction, "a multicast to the CTAs of mask " + hex(ranks) + " in a cluster of " + std::to_string(cta.cluster->size));
      }
    }
    Event event;
    event.kind = Event::Kind::commit;
    event.cta = &cta;
    event.warp = uint16_t(w.index);
    event.lane = uint16_t(lane);
    event.address = place.address;
    event.op = op;
    for (; ranks; ranks &= ranks - 1) {
      event.target = cta.cluster->ctas[std::countr_zero(ranks)];
      require_alive(w, op, *event.target);
      if (!find_mbarrier(*event.target, place.address)) {
        fault(w, op, Fault::Kind::poison, "no mbarrier is initialised at " + shared_name(*event.target, place.address) + of_cta(cta, *event.target));
      }
      event.time = std::max(w.last_mma_done[lane], w.time + kIssue) + (cta.random ? delay(cta, kLatencyShared) : 0);
      if (cta.observer) event.token = cta.observer->commit_issued(w, event);
      send(cta, event);
    }
    ++w.counters.commits;
    if (cta.traced) {
      fa4sim_event e{};
      e.kind = FA4SIM_EVENT_COMMIT;
      e.begin = w.time;
      e.end = event.time;
      e.warp = w.index;
      e.address = event.address;
      cta.trace(e);
    }
  }
  return op + 1;
}

}  // namespace

std::string decode_descriptor(uint64_t bits, MatrixDescriptor* d) {
  d->start = uint32_t(bits & 0x3FFF) << 4;
  d->leading = uint32_t(bits >> 16 & 0x3FFF) << 4;
  d->stride = uint32_t(bits >> 32 & 0x3FFF) << 4;
  if ((bits >> 46 & 7) != 1) return "bits 46-48 of the matrix descriptor must be 0b001";
  if (bits >> 49 & 7) return "a matrix base offset other than 0 is not supported: align tiles to the swizzle's period";
  if ((bits >> 14 & 3) || (bits >> 30 & 3) || (bits >> 52 & 0x1FF)) return "reserved bits of the matrix descriptor are set";
  switch (bits >> 61) {
    case 0: d->swizzle_shift = 4; break;
    case 6: d->swizzle_shift = 5; break;
    case 4: d->swizzle_shift = 6; break;
    case 2: d->swizzle_shift = 7; break;
    default: return "swizzle " + std::to_string(bits >> 61) + " of the matrix descriptor is not one of 0, 2, 4, 6";
  }
  return {};
}

namespace {

// The operands in shared memory are what was there at issue: no copy has overwritten them, nor will one in flight.
void check_operands(const Event& event, const MmaWork& work, const Shape& shape) {
  const Cta& cta = *event.cta;
  if (work.invalidations == cta.shared_invalidations) return;
  const auto check = [&](const char* name, uint64_t descriptor, bool mn_major, uint32_t rows) {
    MatrixDescriptor d{};
    decode_descriptor(descriptor, &d);
    const std::string e = operand_problem(cta, d, mn_major, rows);
    if (!e.empty()) fault(cta, event.warp, event.op, Fault::Kind::poison, std::string(name) + " was overwritten while the MMA was in flight: " + e);
  };
  if (!work.a_in_tmem) check("A", work.a_descriptor, shape.a_mn_major, shape.m);
  check("B", work.b_descriptor, shape.b_mn_major, shape.n);
}

void read_a(const Cta& cta, const MmaWork& work, const Shape& shape, uint16_t* a) {
  if (!work.a_in_tmem) {
    MatrixDescriptor d{};
    decode_descriptor(work.a_descriptor, &d);
    gather_a(cta, d, shape.a_mn_major, shape.m, a);
    return;
  }
  for (uint32_t pair = 0; pair < kDepth / 2; ++pair) {
    const uint32_t* words = cta.tmem.cells->word[work.a_column + pair];
    for (uint32_t m = 0; m < shape.m; ++m) {
      const uint32_t lane = shape.m == 128 ? m : m / 16 * 32 + m % 16;
      a[2 * pair * 128 + m] = uint16_t(words[lane]);
      a[(2 * pair + 1) * 128 + m] = uint16_t(words[lane] >> 16);
    }
  }
}

void read_b(const Cta& cta, const MmaWork& work, const Shape& shape, uint16_t* b) {
  MatrixDescriptor d{};
  decode_descriptor(work.b_descriptor, &d);
  gather_b(cta, d, shape.b_mn_major, shape.n, b);
}

}  // namespace

void read_mma_operand(const Event& event) {
  Cta& cta = *event.cta;
  const MmaWork& work = cta.mmas[event.slot];
  MmaOperands& operands = *cta.mma_operands[event.slot];
  Shape shape{};
  decode_instruction(work.instruction, &shape);
  check_operands(event, work, shape);
  const AsyncView view(cta);
  if (event.kind == Event::Kind::mma_read_a) read_a(cta, work, shape, operands.a);
  else read_b(cta, work, shape, operands.b);
}

void land_mma(const Event& event) {
  Cta& cta = *event.cta;
  const MmaWork work = cta.mmas[event.slot];
  cta.free_mmas.push_back(event.slot);
  Shape shape{};
  decode_instruction(work.instruction, &shape);
  MmaOperands now;
  TensorMemory& tmem = cta.tmem;
  const Mask used = lanes_used(shape.m);
  check_operands(event, work, shape);
  if (!cta.random) {
    read_a(cta, work, shape, now.a);
    read_b(cta, work, shape, now.b);
  }
  if (work.a_in_tmem) {
    for (uint32_t c = work.a_column; c < work.a_column + kDepth / 2; ++c) --tmem.mma_reading[c];
  }
  const MmaOperands& operands = cta.random ? *cta.mma_operands[event.slot] : now;
  MmaStep step{shape.a, shape.b, shape.negate_a, shape.negate_b, work.accumulate, shape.m, shape.n, operands.a, operands.b, nullptr, 0};
  if (shape.m == 128) {
    step.d = reinterpret_cast<float*>(tmem.cells->word[work.d_column]);
    step.d_pitch = TensorMemory::lanes;
    mma_step(step);
  } else {
    // Row m of a 64-row accumulator lies in lane 32 * (m / 16) + m % 16.
    alignas(64) uint32_t compact[256 * 64];
    for (uint32_t n = 0; n < shape.n; ++n) {
      for (uint32_t m = 0; m < 64; ++m) compact[n * 64 + m] = tmem.cells->word[work.d_column + n][m / 16 * 32 + m % 16];
    }
    step.d = reinterpret_cast<float*>(compact);
    step.d_pitch = 64;
    mma_step(step);
    for (uint32_t n = 0; n < shape.n; ++n) {
      for (uint32_t m = 0; m < 64; ++m) tmem.cells->word[work.d_column + n][m / 16 * 32 + m % 16] = compact[n * 64 + m];
    }
  }
  for (uint32_t c = work.d_column; c < work.d_column + shape.n; ++c) {
    --tmem.mma_in_flight[c];
    for (uint32_t q = 0; q < TensorMemory::partitions; ++q) tmem.valid[c][q] |= used;
  }
}

void land_commit(const Event& event) {
  Cta &cta = *event.cta, &target = *event.target;
  MBarrier* barrier = find_mbarrier(target, event.address);
  if (!barrier) fault(cta, event.warp, event.op, Fault::Kind::poison, "the commit arrives but its mbarrier is gone");
  if (cta.observer) cta.observer->commit_landed(event);
  barrier->signalled_by(cta.rank, event.warp);
  const std::string e = arrive(target, *barrier, 1, event.time);
  if (!e.empty()) fault(cta, event.warp, event.op, Fault::Kind::poison, e);
  ++cta.warps[event.warp].counters.barrier_arrivals;
}

void build_mma(Builder& b, Modifiers& m) {
  if (m.take("cta_group::2")) b.refuse("cta_group::2 is not supported");
  if (!m.take("cta_group::1")) b.refuse("tcgen05.mma says .cta_group::1");
  if (m.take("ws") || m.take("sp") || m.take("block_scale")) b.refuse("this form of tcgen05.mma is not supported");
  if (!m.take("kind::f16")) b.refuse("of the kinds of tcgen05.mma kind::f16 is supported");
  m.take_prefix("collector::a::");  // a hint about operand reuse
  const Virtual d = b.address_value(b.operand(0));
  const bool in_tmem = b.operand(1).kind == Operand::Kind::address;
  const Virtual a = in_tmem ? b.address_value(b.operand(1)) : b.source(b.operand(1), Type::b64);
  const Virtual bd = b.source(b.operand(2), Type::b64);
  const Virtual instruction = b.source(b.operand(3), Type::b32);
  std::vector<Virtual> lanes;
  size_t at = 4;
  if (b.operand(at).kind == Operand::Kind::vector) {
    if (b.operand(at).elements.size() != 4) b.refuse("disable-output-lane has 4 words");
    for (const Operand& e : b.operand(at).elements) lanes.push_back(b.source(e, Type::b32));
    ++at;
  }
  bool negated = false;
  const uint16_t accumulate = b.predicate(b.operand(at), &negated);
  if (b.operand_count() > at + 1) b.refuse("scale-input-d is not supported");
  Op& op = b.emit(mma);
  op.size = in_tmem;
  op.pa = accumulate;
  op.pa_not = negated;
  op.cycles = kIssue;
  b.use(Field::a, d);
  b.use(Field::b, a);
  b.use(Field::c, bd);
  b.aux_use(instruction);
  for (Virtual v : lanes) b.aux_use(v);
}

void build_commit(Builder& b, Modifiers& m) {
  if (!m.take("cta_group::1")) b.refuse("tcgen05.commit says .cta_group::1; cta_group::2 is not supported");
  if (!m.take("mbarrier::arrive::one")) b.refuse("tcgen05.commit says .mbarrier::arrive::one");
  m.take("shared::cluster");
  const bool multicast = m.take("multicast::cluster");
  if (m.type() != Type::b64) b.refuse("tcgen05.commit has type .b64");
  if (b.operand_count() > 1u + multicast) b.refuse("an operand more than the modifiers ask for");
  const Virtual ranks = multicast ? b.source(b.operand(1), Type::b16) : kNoVirtual;
  b.emit(commit).cycles = kIssue;
  if (multicast) b.aux_use(ranks);
  const bool wide = b.address(b.operand(0), AddressSpace::shared);
  b.newest().mode = wide;
}

}  // namespace fa4::sim
