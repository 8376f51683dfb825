// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk and cp.async.bulk.tensor: boxes and runs of bytes that the TMA engine moves while the threads go on.
#include "bulk.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "builder.h"
#include "bulk_groups.h"
#include "hex.h"
#include "mbarrier.h"
#include "reduction.h"
#include "remote.h"
#include "shared_memory.h"
#include "thread_copy.h"
#include "visibility.h"

namespace fa4::sim {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

namespace {

// Nominal times of the TMA engine in cycles.
constexpr uint64_t kLoadLatency = 600, kStoreReadLatency = 250, kStoreLatency = 600;

uint32_t map_slot(Cta& cta) {
  if (cta.free_maps.empty()) {
    cta.maps.emplace_back();
    return uint32_t(cta.maps.size() - 1);
  }
  const uint32_t slot = cta.free_maps.back();
  cta.free_maps.pop_back();
  return slot;
}

// The tensor map at a generic address: in the kernel's parameters or in global memory.
void read_map(Warp& w, const Op* op, uint64_t address, TensorMap* map) {
  const LaunchState& launch = *w.cta->launch;
  const std::byte* bytes = nullptr;
  if (address % 64 != 0) fault(w, op, Fault::Kind::misaligned_address, "the tensor map's address " + hex(address) + " is not 64-byte aligned");
  if (address >= kParamWindow && address < kParamWindow + kWindowBytes) {
    const uint64_t offset = address - kParamWindow;
    if (offset + sizeof(CUtensorMap) <= launch.launch->params.size()) bytes = launch.launch->params.data() + offset;
  } else {
    bytes = launch.memory->at(address, sizeof(CUtensorMap));
  }
  if (!bytes) fault(w, op, Fault::Kind::illegal_address, "no tensor map at address " + hex(address));
  if (!decode(bytes, map)) fault(w, op, Fault::Kind::illegal_instruction, "the 128 bytes at " + hex(address) + " are no tensor map that cuTensorMapEncodeTiled made");
}

// A box's place in shared memory, whose address is event.shared. Takes a slot for its map.
void place_box(Warp& w, const Op* op, const TensorMap& map, const Cta& owner, Event& event) {
  const uint32_t shared = event.shared, extent = map.shared_bytes();
  const std::string outside = outside_shared(owner, shared, extent);
  if (!outside.empty()) fault(w, op, Fault::Kind::illegal_address, "the box's " + outside);
  if (shared % 128 != 0) fault(w, op, Fault::Kind::misaligned_address, "the box's shared address " + hex(shared) + " is not 128-byte aligned");
  if (const MBarrier* barrier = mbarrier_in(owner, shared, extent)) {
    fault(w, op, Fault::Kind::poison, "the box covers the live barrier " + barrier_name(owner, barrier->address) + of_cta(*w.cta, owner));
  }
  event.bytes = map.box_bytes();
  event.extent = extent;
  event.slot = map_slot(*w.cta);
  w.cta->maps[event.slot] = map;
}

// What loads and stores of boxes share. Rows: b tensor map, aux coordinates.
void prepare_box(Warp& w, const Op* op, int lane, Event& event, TensorMap* map_of_box) {
  Cta& cta = *w.cta;
  TensorMap& map = *map_of_box;
  read_map(w, op, lane_bits(w.rows + op->b, lane, true), &map);
  const uint16_t* rows = w.code->aux.data() + op->aux;
  if (map.rank != op->count) {
    fault(w, op, Fault::Kind::illegal_instruction, "the instruction has " + std::to_string(op->count) + " coordinates, the tensor map rank " + std::to_string(map.rank));
  }
  for (uint32_t i = 0; i < op->count; ++i) event.coordinates[i] = int32_t(w.rows[rows[i]].lane[lane]);
  event.cta = &cta;
  event.warp = uint16_t(w.index);
  event.lane = uint16_t(lane);
  event.op = op;
}

// The runs of shared memory that a box's rows occupy: one, unless a swizzle's span is wider than a row.
template <class F>
void each_run(const TensorMap& map, uint32_t shared, F f) {
  const uint32_t row = map.box_elements(0) * map.element_bytes(), pitch = map.row_pitch();
  if (row == pitch) return f(shared, map.box_bytes());
  for (uint32_t at = 0; at < map.shared_bytes(); at += pitch) {
    for (uint32_t chunk = 0; chunk < row; chunk += 16) f(swizzled(map.swizzle, shared + at + chunk), 16u);
  }
}


int64_t first_invalid_in_box(const Cta& cta, const TensorMap& map, uint32_t shared) {
  int64_t bad = -1;
  each_run(map, shared, [&](uint32_t at, uint32_t bytes) {
    if (bad < 0) bad = first_invalid_shared(cta, at, bytes);
  });
  return bad;
}

void trace(const Event& event, uint32_t kind, uint64_t begin) {
  if (!event.cta->traced) return;
  fa4sim_event e{};
  e.kind = kind;
  e.begin = begin;
  e.end = event.time;
  e.warp = event.warp;
  e.address = event.shared;
  e.bytes = event.bytes;
  std::copy(std::begin(event.coordinates), std::end(event.coordinates), e.coordinates);
  event.cta->trace(e);
}

// Under adversarial timing, something that happens somewhere between `from` and the event itself.
void schedule_within(Cta& cta, Event event, uint64_t from, Event::Kind kind) {
  if (!cta.random) return;
  event.time = moment(cta, from, event.time);
  event.kind = kind;
  send(cta, event);
}

// Calls issue(target) for each CTA that a load writes: its destination's, or with .multicast::cluster those whose ranks
// are in the mask of the op's last row (Op::size 1). Data and signal go to the same offsets in each.
template <class F>
void each_target(Warp& w, const Op* op, int lane, Event& event, F issue) {
  Cta& cta = *w.cta;
  const uint64_t to = lane_bits(w.rows + op->a, lane, op->mode & 1), barrier = lane_bits(w.rows + op->c, lane, op->mode & 2);
  if (op->space == AddressSpace::shared) {
    event.shared = own_shared(cta, to);
    event.address = own_shared(cta, barrier);
    return issue(cta);
  }
  const SharedPlace destination = require_place(w, op, to), signal = require_place(w, op, barrier);
  event.shared = destination.address;
  event.address = signal.address;
  if (op->size == 0) {
    if (destination.cta != signal.cta) {
      fault(w, op, Fault::Kind::illegal_address, "the copy's destination lies in the shared memory of CTA " + std::to_string(destination.cta->id) +
            ", its mbarrier in that of CTA " + std::to_string(signal.cta->id) + ": they must be in one");
    }
    return issue(*destination.cta);
  }
  const uint32_t ranks = w.rows[w.code->aux[op->aux + op->aux_count - 1]].lane[lane] & 0xFFFF;
  if (ranks == 0 || ranks >> cta.cluster->size) {
    fault(w, op, Fault::Kind::illegal_instruction, "a multicast to the CTAs of mask " + hex(ranks) + " in a cluster of " + std::to_string(cta.cluster->size));
  }
  for (uint32_t m = ranks; m; m &= m - 1) {
    Cta& target = *cta.cluster->ctas[std::countr_zero(m)];
    require_alive(w, op, target);
    issue(target);
  }
}

// The load is on its way to the target; what one multicast writes elsewhere is on its way for as long, or as chance wills.
void send_load(Warp& w, const Op* op, Cta& target, Event& event) {
  Cta& cta = *w.cta;
  const bool first = event.target == nullptr;
  event.target = &target;
  if (!find_mbarrier(target, event.address)) {
    fault(w, op, Fault::Kind::poison, "no mbarrier is initialised at " + shared_name(target, event.address) + of_cta(cta, target));
  }
  if (cta.observer) event.token = cta.observer->copy_in_issued(w, event);
  if (first || cta.random) event.time = engine_time(cta, w.time, event.bytes, kLoadLatency);
  trace(event, FA4SIM_EVENT_BOX_LOAD, w.time);
  schedule_within(cta, event, w.time, Event::Kind::load_fetch);
  send(cta, event);
}

[[noreturn]] void copy_fault(const Event& event, const CopyError& error) {
  fault(*event.cta, event.warp, event.op, error.unreachable ? Fault::Kind::illegal_address : Fault::Kind::illegal_instruction, error.text);
}

const Op* box_load(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    Event event;
    TensorMap map;
    event.kind = Event::Kind::box_load;
    prepare_box(w, op, lane, event, &map);
    each_target(w, op, lane, event, [&](Cta& target) {
      place_box(w, op, map, target, event);
      each_run(map, event.shared, [&](uint32_t at, uint32_t bytes) { claim_shared(target, at, bytes); });
      send_load(w, op, target, event);
    });
    ++w.counters.box_loads;
    w.counters.box_load_bytes += event.bytes;
  }
  return op + 1;
}

// Reads of shared memory begin now; the bulk group of the lane has one more.
void issue_store(Warp& w, const Op* op, int lane, Event& event) {
  Cta& cta = *w.cta;
  event.kind = Event::Kind::box_store_read;
  event.op = op;
  if (const int64_t bad = first_invalid_in_box(cta, cta.maps[event.slot], event.shared); bad >= 0) {
    fault(w, op, Fault::Kind::poison, "the box to store holds " + invalid_name(cta, cta, uint32_t(bad)));
  }
  BulkGroups& g = groups(w, lane);
  event.group = g.newest;
  ++g.unread[g.newest % BulkGroups::capacity];
  ++g.unfinished[g.newest % BulkGroups::capacity];
  if (cta.observer) cta.observer->copy_out_issued(w, event);
  event.time = engine_time(cta, w.time, event.bytes, kStoreReadLatency);
  trace(event, FA4SIM_EVENT_BOX_STORE, w.time);
  schedule_within(cta, event, w.time, Event::Kind::store_fetch);
  send(cta, event);
  ++w.counters.box_stores;
  w.counters.box_store_bytes += event.bytes;
}

const Op* box_store(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    Event event;
    TensorMap map;
    prepare_box(w, op, lane, event, &map);
    event.shared = own_shared(*w.cta, lane_bits(w.rows + op->a, lane, op->mode & 1));
    place_box(w, op, map, *w.cta, event);
    issue_store(w, op, lane, event);
  }
  return op + 1;
}

// cp.async.bulk.global.shared: a shared, b global, aux: bytes. The same as a box of rank 1, whose elements are bytes or, for a
// reduction, of its type.
const Op* bulk_store(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    Event event;
    event.cta = &cta;
    event.warp = uint16_t(w.index);
    event.lane = uint16_t(lane);
    const uint32_t shared = own_shared(cta, lane_bits(w.rows + op->a, lane, op->mode & 1));
    const uint64_t global = lane_bits(w.rows + op->b, lane, true);
    event.bytes = event.extent = w.rows[w.code->aux[op->aux]].lane[lane];
    const std::string outside = outside_shared(cta, shared, event.bytes);
    if (!outside.empty()) fault(w, op, Fault::Kind::illegal_address, outside);
    if (shared % 16 || global % 16 || event.bytes % 16 || event.bytes == 0) {
      fault(w, op, Fault::Kind::misaligned_address, "a bulk copy's addresses and size are multiples of 16 bytes");
    }
    if (!cta.launch->memory->at(global, event.bytes)) {
      fault(w, op, Fault::Kind::illegal_address, "the bulk copy writes " + hex(global) + ": " + cta.launch->memory->describe(global));
    }
    const auto combining = combining_of(op);
    const uint32_t size = combining ? ptx::size_in_bytes(combining->type) : 1;
    event.shared = shared;
    event.global = global;
    event.slot = map_slot(cta);
    TensorMap map{};
    map.type = size == 8 ? CU_TENSOR_MAP_DATA_TYPE_UINT64 : size == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32 : size == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16 : CU_TENSOR_MAP_DATA_TYPE_UINT8;
    map.rank = 1;
    map.address = global;
    std::fill(std::begin(map.extents), std::end(map.extents), 1);
    std::fill(std::begin(map.box), std::end(map.box), 1);
    std::fill(std::begin(map.element_strides), std::end(map.element_strides), 1);
    map.extents[0] = map.box[0] = event.bytes / size;
    map.strides[0] = size;
    cta.maps[event.slot] = map;
    issue_store(w, op, lane, event);
  }
  return op + 1;
}

// cp.async.bulk.shared.global: a shared, b global, c mbarrier, aux: bytes
const Op* bulk_load(Warp& w, const Op* op, Mask mask) {
  Cta& cta = *w.cta;
  for (; mask; mask &= mask - 1) {
    const int lane = first_lane(mask);
    Event event;
    event.kind = Event::Kind::bulk_load;
    event.cta = &cta;
    event.warp = uint16_t(w.index);
    event.lane = uint16_t(lane);
    event.op = op;
    event.global = lane_bits(w.rows + op->b, lane, true);
    event.bytes = event.extent = w.rows[w.code->aux[op->aux]].lane[lane];
    each_target(w, op, lane, event, [&](Cta& target) {
      require_run(w, op, target, event);
      if (event.global % 16) fault(w, op, Fault::Kind::misaligned_address, kBulkAlignment);
      if (!cta.launch->memory->at(event.global, event.bytes)) {
        fault(w, op, Fault::Kind::illegal_address, "the bulk copy reads " + hex(event.global) + ": " + cta.launch->memory->describe(event.global));
      }
      claim_shared(target, event.shared, event.bytes);
      send_load(w, op, target, event);
    });
  }
  return op + 1;
}

const Op* nothing(Warp&, const Op* op, Mask) { return op + 1; }

}  // namespace

uint64_t engine_time(Cta& cta, uint64_t now, uint32_t bytes, uint64_t latency) {
  constexpr uint64_t kBytesPerCycle = 128;
  cta.tma_free = std::max(cta.tma_free, now) + bytes / kBytesPerCycle;
  return (cta.random ? now : cta.tma_free) + delay(cta, latency);
}

void require_run(const Warp& w, const Op* op, const Cta& owner, const Event& event) {
  const std::string outside = outside_shared(owner, event.shared, event.bytes);
  if (!outside.empty()) fault(w, op, Fault::Kind::illegal_address, outside);
  if (event.shared % 16 || event.bytes % 16 || event.bytes == 0) fault(w, op, Fault::Kind::misaligned_address, kBulkAlignment);
  if (const MBarrier* barrier = mbarrier_in(owner, event.shared, event.bytes)) {
    fault(w, op, Fault::Kind::poison, "the copy covers the live barrier " + barrier_name(owner, barrier->address) + of_cta(*w.cta, owner));
  }
}

// Until a load completes nobody may look at its destination, so that it may be written as soon as the source is read.
void fetch_load(const Event& event) {
  Cta &cta = *event.cta, &target = *event.target;
  const AsyncView view(cta);
  if (event.op->run == bulk_load) {
    const std::byte* source = cta.launch->memory->at(event.global, event.bytes);
    if (!source) fault(cta, event.warp, event.op, Fault::Kind::illegal_address, "the bulk copy's source was freed");
    std::memcpy(target.shared.data() + event.shared, source, event.bytes);
    return;
  }
  const TensorMap& map = cta.maps[event.slot];
  const CopyError error = load_box(map, *cta.launch->memory, {event.coordinates, map.rank}, target.shared, event.shared);
  if (!error.text.empty()) copy_fault(event, error);
}

void complete_copy(const Event& event) {
  Cta &cta = *event.cta, &target = *event.target;
  MBarrier* barrier = find_mbarrier(target, event.address);
  if (!barrier) fault(cta, event.warp, event.op, Fault::Kind::poison, "the copy lands but its mbarrier is gone");
  if (cta.observer) cta.observer->copy_in_landed(event);
  barrier->signalled_by(cta.rank, event.warp);
  const std::string tx = complete_tx(target, *barrier, event.bytes, event.time);
  if (!tx.empty()) fault(cta, event.warp, event.op, Fault::Kind::poison, tx);
}

void land_box_load(const Event& event) {
  Cta &cta = *event.cta, &target = *event.target;
  if (!cta.random) fetch_load(event);
  each_run(cta.maps[event.slot], event.shared, [&](uint32_t at, uint32_t bytes) { set_shared_valid(target, at, bytes, true); });
  cta.free_maps.push_back(event.slot);
  complete_copy(event);
}

void land_bulk_load(const Event& event) {
  if (!event.cta->random) fetch_load(event);
  set_shared_valid(*event.target, event.shared, event.bytes, true);
  complete_copy(event);
}

namespace {

// Writes what a store has read; `from` holds it from byte `at` on.
void put(const Event& event, std::span<const std::byte> from, uint32_t at) {
  Cta& cta = *event.cta;
  const TensorMap& map = cta.maps[event.slot];
  GlobalMemory& memory = *cta.launch->memory;
  const std::span<const int32_t> coordinates(event.coordinates, map.rank);
  CopyError error;
  if (const auto combining = combining_of(event.op)) {
    error = reduce_box(map, memory, coordinates, from, at, combining->reduction, combining->type, combining->keep_subnormals);
  } else if (event.op->run == bulk_store) {
    std::byte* to = memory.at(event.global, event.bytes);
    if (to) std::memcpy(to, from.data() + at, event.bytes);
    else error = {"the bulk copy's destination was freed", true};
  } else {
    error = store_box(map, memory, coordinates, from, at);
  }
  if (!error.text.empty()) copy_fault(event, error);
  cta.free_maps.push_back(event.slot);
}

// The swizzle depends on the address modulo this.
constexpr uint32_t kSwizzlePeriod = 1024;

}  // namespace

void fetch_store(const Event& event) {
  Cta& cta = *event.cta;
  if (cta.store_images.size() <= event.slot) cta.store_images.resize(event.slot + 1);
  const uint32_t begin = event.shared / kSwizzlePeriod * kSwizzlePeriod, end = std::min<uint32_t>(event.shared + event.extent + kSwizzlePeriod, uint32_t(cta.shared.size()));
  const AsyncView view(cta);
  cta.store_images[event.slot].assign(cta.shared.begin() + begin, cta.shared.begin() + end);
}

void write_store(const Event& event) { put(event, event.cta->store_images[event.slot], event.shared % kSwizzlePeriod); }

void land_box_store_read(const Event& event) {
  Cta& cta = *event.cta;
  const TensorMap& map = cta.maps[event.slot];
  if (const int64_t bad = first_invalid_in_box(cta, map, event.shared); bad >= 0) {
    fault(cta, event.warp, event.op, Fault::Kind::poison, "the box being stored was overwritten by a copy before it was read: " + shared_name(cta, uint32_t(bad)));
  }
  if (!cta.random) put(event, cta.shared, event.shared);
  BulkGroups& g = cta.warps[event.warp].bulk[event.lane];
  --g.unread[event.group % BulkGroups::capacity];
  Event done = event;
  done.kind = Event::Kind::box_store_done;
  done.time = event.time + delay(cta, kStoreLatency - kStoreReadLatency);
  schedule_within(cta, done, event.time, Event::Kind::store_write);
  send(cta, done);
  wake_bulk_waiters(event);
}

void land_box_store_done(const Event& event) {
  BulkGroups& g = event.cta->warps[event.warp].bulk[event.lane];
  --g.unfinished[event.group % BulkGroups::capacity];
  retire(g);
  wake_bulk_waiters(event);
}

namespace {

void build_cp(Builder& b, Modifiers& m) {
  const bool reduce = m.take("reduce");
  if (!m.take("async")) b.refuse("cp is cp.async or cp.reduce.async");
  if (!m.take("bulk")) return reduce ? b.refuse("cp.reduce.async is cp.reduce.async.bulk") : build_thread_copy(b, m);
  if (!reduce && m.take("commit_group")) {
    b.emit(commit_bulk_group);
    return;
  }
  if (!reduce && m.take("wait_group")) {
    const bool read = m.take("read");
    if (b.operand(0).kind != Operand::Kind::immediate) b.refuse("wait_group takes an immediate");
    Op& op = b.emit(wait_bulk_group);
    op.mode = read;
    op.imm = int64_t(b.operand(0).bits);
    return;
  }
  if (!reduce && m.take("prefetch")) {  // changes no value
    if (m.take("tensor")) {
      if (m.take_any({"1d", "2d", "3d", "4d", "5d"}).empty()) b.refuse("cp.async.bulk.prefetch.tensor says .1d to .5d");
      m.take("tile");
    }
    m.take("L2::cache_hint");
    if (!m.take("L2") || !m.take("global")) b.refuse("a bulk prefetch is of .global into .L2");
    b.emit(nothing);
    return;
  }
  const bool tensor = m.take("tensor");
  uint8_t rank = 0;
  if (tensor) {
    const auto dim = m.take_any({"1d", "2d", "3d", "4d", "5d"});
    if (dim.empty()) b.refuse("cp.async.bulk.tensor says .1d to .5d");
    rank = uint8_t(dim[0] - '0');
    m.take("tile");
  }
  // The destination's space stands before the source's.
  const auto& parts = b.instruction().parts;
  const auto at = [&](std::string_view name) {
    return std::find(parts.begin(), parts.end(), name) - parts.begin();
  };
  const bool store = at("global") < std::min(at("shared::cta"), at("shared::cluster"));
  const bool between = at("shared::cluster") < at("shared::cta") && at("shared::cta") < std::ptrdiff_t(parts.size());
  if (between && !tensor) return build_shared_copy(b, m, reduce);
  m.take("global");
  const bool to_own = m.take("shared::cta");
  if (m.take("shared::cluster") && (store || to_own)) b.refuse(store ? "a store reads .shared::cta" : "a box is loaded from .global");
  const bool multicast = m.take("multicast::cluster");
  if (multicast && (store || to_own)) b.refuse("a multicast is a load into .shared::cluster");
  const bool hint = m.take("L2::cache_hint");
  if (store) {
    if (!m.take("bulk_group")) b.refuse("a bulk store completes by .bulk_group");
    uint32_t combining = 0;
    if (reduce) {
      b.mark_communicates();
      const auto kind = take_reduction(m);
      const bool noftz = m.take("noftz");
      const Type t = tensor ? Type::none : m.type();
      if (!kind || *kind > Reduction::xor_ || (!tensor && !can_reduce(*kind, t))) b.refuse("this reduction is not supported");
      if (noftz && t != Type::f16 && t != Type::bf16) b.refuse(".noftz goes with .f16 and .bf16");
      combining = encoded({*kind, t, noftz});
    }
    if (!tensor) {
      const Virtual to = b.address_value(b.operand(0)), from = b.address_value(b.operand(1)), bytes = b.source(b.operand(2), Type::u32);
      if (b.rows(to) != 2) b.refuse("the destination's address has 64 bits");
      if (b.operand_count() > 3u + hint) b.refuse("an operand more than the modifiers ask for");
      Op& op = b.emit(bulk_store);
      op.mode = b.rows(from) == 2;
      op.cycles = 50;
      op.target = combining;
      b.use(Field::a, from);
      b.use(Field::b, to);
      b.aux_use(bytes);
      return;
    }
    const Operand& target = b.operand(0);
    if (target.kind != Operand::Kind::tensor || target.elements.size() != rank) b.refuse("a [map, {coordinates}] of the instruction's rank is needed");
    const Virtual map = b.address_value(target), shared = b.address_value(b.operand(1));
    std::vector<Virtual> coordinates;
    for (const Operand& c : target.elements) coordinates.push_back(b.source(c, Type::s32));
    if (b.rows(map) != 2) b.refuse("a tensor map's address has 64 bits");
    Op& op = b.emit(box_store);
    op.target = combining;
    op.count = rank;
    op.mode = b.rows(shared) == 2;
    op.cycles = 50;
    b.use(Field::a, shared);
    b.use(Field::b, map);
    for (Virtual c : coordinates) b.aux_use(c);
    return;
  }
  if (reduce) b.refuse("a reduction goes to .global, or from .shared::cta to .shared::cluster");
  if (!m.take("mbarrier::complete_tx::bytes")) b.refuse("a bulk load completes by .mbarrier::complete_tx::bytes");
  if (tensor) m.take("cta_group::1");  // the signalled barrier is in the CTA of the destination, as without it
  const Virtual shared = b.address_value(b.operand(0));
  const Virtual source = b.address_value(b.operand(1));
  const size_t barrier_at = tensor ? 2 : 3;
  const Virtual barrier = b.address_value(b.operand(barrier_at));
  if (b.operand_count() > barrier_at + 1 + multicast + hint) b.refuse("an operand more than the modifiers ask for");
  if (b.rows(source) != 2) b.refuse("the source's address has 64 bits");
  std::vector<Virtual> values;
  if (tensor) {
    const Operand& from = b.operand(1);
    if (from.kind != Operand::Kind::tensor || from.elements.size() != rank) b.refuse("a [map, {coordinates}] of the instruction's rank is needed");
    for (const Operand& c : from.elements) values.push_back(b.source(c, Type::s32));
  } else {
    values.push_back(b.source(b.operand(2), Type::u32));
  }
  if (multicast) values.push_back(b.source(b.operand(barrier_at + 1), Type::b16));
  Op& op = b.emit(tensor ? box_load : bulk_load);
  op.space = to_own ? AddressSpace::shared : AddressSpace::shared_cluster;
  op.size = multicast;
  op.count = rank;
  op.mode = uint8_t((b.rows(shared) == 2 ? 1 : 0) | (b.rows(barrier) == 2 ? 2 : 0));
  op.cycles = 50;
  b.use(Field::a, shared);
  b.use(Field::b, source);
  b.use(Field::c, barrier);
  for (Virtual v : values) b.aux_use(v);
}

void build_createpolicy(Builder& b, Modifiers& m) {
  // A policy is opaque and has no effect on values.
  m.take("fractional");
  m.take_prefix("L2::");
  m.take_prefix("L2::");
  if (m.type() != Type::b64) b.refuse("createpolicy gives a .b64");
  const Virtual d = b.destination(b.operand(0), 2), zero = b.constant(0, 2);
  b.emit(LaneCode::mov64);
  b.use(Field::a, zero);
  b.def(Field::d, d);
}

}  // namespace

std::vector<FamilyRow> bulk_rows() { return {{"cp", build_cp}, {"createpolicy", build_createpolicy}}; }

}  // namespace fa4::sim
