// SPDX-License-Identifier: Apache-2.0
#include "remote.h"

#include <cstring>

#include "builder.h"
#include "bulk.h"
#include "hex.h"
#include "mbarrier.h"
#include "reduction.h"
#include "shared_memory.h"
#include "visibility.h"

namespace fa4::sim {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

namespace {

// Nominal times in cycles.
constexpr uint64_t kCopyLatency = 400, kStoreLatency = 200;

// Destination and mbarrier, rows a and c, lie in one CTA of the cluster. Op::mode bits 0 and 1: their
// addresses have 64 bits.
Cta& find_target(Warp& w, const Op* op, int lane, Event& event) {
  const SharedPlace to = require_place(w, op, lane_bits(w.rows + op->a, lane, op->mode & 1));
  const SharedPlace signal = require_place(w, op, lane_bits(w.rows + op->c, lane, op->mode & 2));
  if (to.cta != signal.cta) {
    fault(w, op, Fault::Kind::illegal_address,
          "the destination lies in the shared memory of CTA " + std::to_string(to.cta->id) +
              ", the mbarrier in that of CTA " + std::to_string(signal.cta->id) + ": they must be in one");
  }
  if (op->space == AddressSpace::shared && to.cta != w.cta)
    fault(w, op, Fault::Kind::illegal_address,
          "the destination lies in the shared memory" + of_cta(*w.cta, *to.cta) +
              ", which .shared::cta does not reach");
  if (!find_mbarrier(*signal.cta, signal.address)) {
    fault(w, op, Fault::Kind::poison,
          "no mbarrier is initialised at " + shared_name(*signal.cta, signal.address) +
              of_cta(*w.cta, *signal.cta));
  }
  event.cta = w.cta;
  event.target = to.cta;
  event.warp = uint16_t(w.index);
  event.lane = uint16_t(lane);
  event.op = op;
  event.shared = to.address;
  event.address = signal.address;
  return *to.cta;
}

// b source, aux: bytes
const Op* shared_copy(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    Event event;
    event.kind = Event::Kind::shared_copy;
    Cta& target = find_target(w, op, lane, event);
    event.bytes = event.extent = w.rows[w.code->aux[op->aux]].lane[lane];
    event.source = own_shared(cta, lane_bits(w.rows + op->b, lane, op->mode & 4));
    require_run(w, op, target, event);
    const std::string outside = outside_shared(cta, event.source, event.bytes);
    if (!outside.empty()) fault(w, op, Fault::Kind::illegal_address, "of the source, " + outside);
    if (event.source % 16) fault(w, op, Fault::Kind::misaligned_address, kBulkAlignment);
    if (const int64_t bad = first_invalid_shared(cta, event.source, event.bytes); bad >= 0) {
      fault(w, op, Fault::Kind::poison,
            "the copy reads " + invalid_name(cta, cta, uint32_t(bad)));
    }
    if (op->target == 0) claim_shared(target, event.shared, event.bytes);
    if (cta.observer) event.token = cta.observer->copy_in_issued(w, event);
    event.time = engine_time(cta, w.time, event.bytes, kCopyLatency);
    if (cta.random && op->target == 0) {
      Event fetch = event;
      fetch.kind = Event::Kind::copy_fetch;
      fetch.time = moment(cta, w.time, event.time);
      send(cta, fetch);
    }
    send(cta, event);
  }
  return op + 1;
}

// Op::size bytes an element, Op::count elements; aux: their rows.
const Op* remote_store(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    Event event;
    event.kind = Event::Kind::remote_store;
    Cta& target = find_target(w, op, lane, event);
    event.bytes = event.extent = uint32_t(op->size) * op->count;
    const std::string outside = outside_shared(target, event.shared, event.bytes);
    if (!outside.empty()) fault(w, op, Fault::Kind::illegal_address, outside);
    if (event.shared % event.bytes)
      fault(w, op, Fault::Kind::misaligned_address,
            "shared address " + hex(event.shared) + " is not aligned to the store's " +
                std::to_string(event.bytes) + " bytes");
    if (const MBarrier* barrier = mbarrier_in(target, event.shared, event.bytes)) {
      fault(w, op, Fault::Kind::poison,
            "the store covers the live barrier " + barrier_name(target, barrier->address) +
                of_cta(cta, target));
    }
    for (uint32_t i = 0; i < op->aux_count; ++i)
      event.coordinates[i] = int32_t(w.rows[w.code->aux[op->aux + i]].lane[lane]);
    if (op->target == 0) claim_shared(target, event.shared, event.bytes);
    if (cta.observer) event.token = cta.observer->copy_in_issued(w, event);
    event.time = w.time + delay(cta, kStoreLatency);
    send(cta, event);
  }
  return op + 1;
}

// Combines what arrives with what is there, element by element.
void reduce(const Event& event, const std::byte* from) {
  Cta& target = *event.target;
  const Combining combining = *combining_of(event.op);
  const Type type = combining.type;
  const uint32_t size = ptx::size_in_bytes(type);
  if (const int64_t bad = first_invalid_shared(target, event.shared, event.bytes); bad >= 0) {
    fault(*event.cta, event.warp, event.op, Fault::Kind::poison,
          "the reduction meets " + invalid_name(*event.cta, target, uint32_t(bad)));
  }
  std::byte* to = target.shared.data() + event.shared;
  for (uint32_t at = 0; at < event.bytes; at += size) {
    uint64_t old = 0, x = 0;
    std::memcpy(&old, to + at, size);
    std::memcpy(&x, from + at, size);
    const uint64_t next = reduced(combining.reduction, type, false, old, x, 0);
    std::memcpy(to + at, &next, size);
  }
}

// The reductions in shared memory that complete on an mbarrier.
bool can_reduce_remotely(Reduction kind, Type type) {
  switch (kind) {
    case Reduction::add:
      return type == Type::u32 || type == Type::s32 || type == Type::u64;
    case Reduction::inc:
    case Reduction::dec:
      return type == Type::u32;
    case Reduction::min:
    case Reduction::max:
      return type == Type::u32 || type == Type::s32;
    case Reduction::and_:
    case Reduction::or_:
    case Reduction::xor_:
      return type == Type::b32;
    default:
      return false;
  }
}

uint32_t take_combining(Builder& b, Modifiers& m, const char* opcode) {
  const auto kind = take_reduction(m);
  const Type t = m.type();
  const bool signed_add = kind == Reduction::add && t == Type::s64 && b.instruction().parts[0] == "red";
  if (!kind || (!can_reduce_remotely(*kind, t) && !signed_add)) {
    b.refuse(std::string(opcode) +
             " is .add of .u32, .s32 or .u64, .min or .max of .u32 or .s32, .inc or .dec of .u32, .and, .or "
             "or .xor of .b32");
  }
  return encoded({*kind, signed_add ? Type::u64 : t});
}

}  // namespace

// The source is read, and the destination, at which nobody may look yet, written. Reductions wait for their
// landing.
void fetch_copy(const Event& event) {
  const AsyncView view(*event.cta);
  std::memcpy(event.target->shared.data() + event.shared, event.cta->shared.data() + event.source,
              event.bytes);
}

void land_shared_copy(const Event& event) {
  Cta& cta = *event.cta;
  if (const int64_t bad = first_invalid_shared(cta, event.source, event.bytes); bad >= 0) {
    fault(cta, event.warp, event.op, Fault::Kind::poison,
          "what is copied was overwritten by a copy before it was read: " + shared_name(cta, uint32_t(bad)));
  }
  if (event.op->target != 0) {
    const AsyncView view(cta);
    reduce(event, cta.shared.data() + event.source);
  } else {
    if (!cta.random) fetch_copy(event);
    set_shared_valid(*event.target, event.shared, event.bytes, true);
  }
  complete_copy(event);
}

void land_remote_store(const Event& event) {
  const auto* from = reinterpret_cast<const std::byte*>(event.coordinates);
  if (event.op->target != 0) {
    reduce(event, from);
  } else {
    std::memcpy(event.target->shared.data() + event.shared, from, event.bytes);
    set_shared_valid(*event.target, event.shared, event.bytes, true);
  }
  complete_copy(event);
}

void build_shared_copy(Builder& b, Modifiers& m, bool reduces) {
  m.take("shared::cluster");
  m.take("shared::cta");
  if (!m.take("mbarrier::complete_tx::bytes"))
    b.refuse("a copy into .shared::cluster completes by .mbarrier::complete_tx::bytes");
  const uint32_t target = reduces ? take_combining(b, m, "cp.reduce.async.bulk into .shared::cluster") : 0;
  const Virtual to = b.address_value(b.operand(0)), from = b.address_value(b.operand(1)),
                bytes = b.source(b.operand(2), Type::u32);
  const Virtual barrier = b.address_value(b.operand(3));
  if (b.operand_count() > 4) b.refuse("an operand more than the modifiers ask for");
  Op& op = b.emit(shared_copy);
  op.target = target;
  op.space = AddressSpace::shared_cluster;
  op.mode = uint8_t((b.rows(to) == 2 ? 1 : 0) | (b.rows(barrier) == 2 ? 2 : 0) | (b.rows(from) == 2 ? 4 : 0));
  op.cycles = 50;
  b.use(Field::a, to);
  b.use(Field::b, from);
  b.use(Field::c, barrier);
  b.aux_use(bytes);
}

void build_remote_store(Builder& b, Modifiers& m, bool reduces) {
  const char* const opcode = reduces ? "red.async" : "st.async";
  if (reduces ? !m.take("relaxed") || !m.take("cluster") : m.take("release") || m.take("mmio")) {
    b.refuse(reduces ? "red.async is red.async.relaxed.cluster"
                     : "st.async is .weak and completes on an mbarrier");
  }
  m.take("weak");
  const auto space = m.take_any({"shared::cluster", "shared::cta", "global"});
  if (space == "global") b.refuse(std::string(opcode) + " writes shared memory");
  if (!m.take("mbarrier::complete_tx::bytes"))
    b.refuse(std::string(opcode) + " completes by .mbarrier::complete_tx::bytes");
  const auto vector = reduces ? std::string_view() : m.take_any({"v2", "v4"});
  const uint8_t count = vector.empty() ? 1 : uint8_t(vector[1] - '0');
  uint32_t target = 0;
  Type t;
  if (reduces) {
    target = take_combining(b, m, opcode);
    t = Type(target >> 8);
  } else {
    t = m.type();
  }
  const uint32_t size = ptx::size_in_bytes(t);
  if ((size != 4 && size != 8) || size * count > 16)
    b.refuse("st.async stores elements of 4 or 8 bytes, 16 bytes at most");
  std::vector<Virtual> values;
  const Operand& value = b.operand(1);
  if ((value.kind == Operand::Kind::vector ? value.elements.size() : 1) != count)
    b.refuse("the vector does not have as many elements as the instruction says");
  if (value.kind == Operand::Kind::vector) {
    for (const Operand& e : value.elements) values.push_back(b.source(e, t));
  } else {
    values.push_back(b.source(value, t));
  }
  const Virtual to = b.address_value(b.operand(0)), barrier = b.address_value(b.operand(2));
  if (b.operand_count() > 3) b.refuse("an operand more than the modifiers ask for");
  Op& op = b.emit(remote_store);
  op.target = target;
  op.size = uint8_t(size);
  op.count = count;
  op.space = space == "shared::cta" ? AddressSpace::shared : AddressSpace::shared_cluster;
  op.mode = uint8_t((b.rows(to) == 2 ? 1 : 0) | (b.rows(barrier) == 2 ? 2 : 0));
  op.order = reduces ? kStrong | kAtomic | kReduction | kBeyondCtaInCluster : 0;
  op.cycles = 4;
  b.use(Field::a, to);
  b.use(Field::c, barrier);
  for (Virtual v : values) {
    for (uint32_t r = 0; r < Builder::rows_of(t); ++r) b.aux_use(v, r);
  }
}

}  // namespace fa4::sim
