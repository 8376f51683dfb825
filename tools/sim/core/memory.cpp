// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics of threads, in global, shared, local and parameter space.
#include <cstring>

#include "builder.h"
#include "hex.h"
#include "machine.h"
#include "reduction.h"
#include "remote.h"
#include "shared_memory.h"
#include "undefined.h"
#include "visibility.h"
#include "warp_wide.h"
#include "wide_atomic.h"

namespace fa4::sim {
namespace {

using ptx::Operand;
using ptx::Type;
using Field = Builder::Field;

}  // namespace

// A store that is held back leaves its bytes as they are for now.
std::byte* locate(Warp& w, const Op* op, int lane, uint64_t address, uint32_t bytes, bool write, bool held, Touched* touched) {
  Cta& cta = *w.cta;
  AddressSpace space = op->space;
  if (space == AddressSpace::generic) {
    if (address >= kSharedWindow && address < kSharedWindow + kWindowBytes) {
      space = AddressSpace::shared_cluster;
      address -= kSharedWindow;
    } else if (address >= kLocalWindow && address < kLocalWindow + kWindowBytes) {
      space = AddressSpace::local;
      address -= kLocalWindow;
    } else if (address >= kParamWindow && address < kParamWindow + kWindowBytes) {
      space = AddressSpace::param;
      address -= kParamWindow;
    } else {
      space = AddressSpace::global;
    }
  }
  if (address % bytes != 0) {
    fault(w, op, Fault::Kind::misaligned_address, "lane " + std::to_string(lane) + ": address " + hex(address) +
          " is not aligned to the access's " + std::to_string(bytes) + " bytes");
  }
  switch (space) {
    case AddressSpace::global: {
      if (address < w.cached_start || address > w.cached_end || bytes > w.cached_end - address) {
        uint64_t start = 0, size = 0;
        if (!cta.launch->memory->find(address, &start, &size) || bytes > start + size - address) {
          fault(w, op, Fault::Kind::illegal_address, "lane " + std::to_string(lane) + (write ? " writes " : " reads ") +
                std::to_string(bytes) + " bytes at global address " + hex(address) + ": " + cta.launch->memory->describe(address));
        }
        w.cached_start = start;
        w.cached_end = start + size;
        w.cached_host = cta.launch->memory->at(start, size);
      }
      if (cta.observer) cta.observer->global_access(w, op, lane, address, bytes, write);
      std::byte* const at = w.cached_host + (address - w.cached_start);
      if (!w.held.empty()) publish_overlapping(w, lane, at, bytes);
      return at;
    }
    case AddressSpace::shared:
    case AddressSpace::shared_cluster: {
      const SharedPlace place = require_place(w, op, address);
      Cta& owner = *place.cta;
      const uint32_t at = place.address;
      if (&owner != &cta && space == AddressSpace::shared) {
        fault(w, op, Fault::Kind::illegal_instruction, "lane " + std::to_string(lane) + ": address " + hex(address) + " lies in the shared memory" +
              of_cta(cta, owner) + ", which .shared does not reach: .shared::cluster does");
      }
      const std::string outside = outside_shared(owner, at, bytes);
      if (!outside.empty()) fault(w, op, Fault::Kind::illegal_address, "lane " + std::to_string(lane) + ": " + outside);
      if (const MBarrier* barrier = mbarrier_in(owner, at, bytes)) {
        fault(w, op, Fault::Kind::poison, "lane " + std::to_string(lane) + (write ? " writes" : " reads") +
              " the live barrier " + barrier_name(owner, barrier->address) + of_cta(cta, owner) + " as data");
      }
      if (cta.observer) cta.observer->shared_access(w, op, lane, owner, at, bytes, write);
      if (!w.held.empty()) publish_overlapping(w, lane, owner.shared.data() + at, bytes);
      if (write) {
        if (!held) set_shared_valid(owner, at, bytes, true);
      } else if (int64_t bad = first_invalid_shared(owner, at, bytes); bad >= 0) {
        while (touched && bad >= 0 && !is_claimed(owner, uint32_t(bad))) {
          touched->unwritten = true;
          bad = first_invalid_shared(owner, uint32_t(bad) + 1, at + bytes - uint32_t(bad) - 1);
        }
        if (bad >= 0) fault(w, op, Fault::Kind::poison, "lane " + std::to_string(lane) + " reads " + invalid_name(cta, owner, uint32_t(bad)));
      }
      if (touched) touched->owner = &owner, touched->address = at;
      return owner.shared.data() + at;
    }
    case AddressSpace::local: {
      const uint32_t size = w.code->local_bytes;
      if (address > size || bytes > size - address) fault(w, op, Fault::Kind::illegal_address, "local address " + hex(address) + " beyond the " + std::to_string(size) + " bytes of local memory");
      if (touched) touched->local = true, touched->address = uint32_t(address);
      return w.local.data() + size_t(lane) * size + address;
    }
    default: {
      if (write) fault(w, op, Fault::Kind::illegal_address, "a store to parameter space");
      const uint64_t size = cta.launch->launch->params.size();
      if (address > size || bytes > size - address) fault(w, op, Fault::Kind::illegal_address, "parameter address " + hex(address) + " beyond the parameters");
      return const_cast<std::byte*>(cta.launch->launch->params.data()) + address;
    }
  }
}

namespace {

// Element of Op::size bytes into a register of the rows that Op::aux names; sign extension if mode bit 1.
const Op* load(Warp& w, const Op* op, Mask mask) {
  const uint32_t bytes = uint32_t(op->size) * op->count;
  const bool wide = op->mode & 1, is_signed = op->mode & 2;
  uint64_t addresses[kLanes];
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    addresses[lane] = lane_bits(w.rows + op->a, lane, wide) + uint64_t(op->imm);
    if (!wide) addresses[lane] = uint32_t(addresses[lane]);
  }
  const uint16_t* rows = w.code->aux.data() + op->aux;
  const uint32_t words = op->aux_count / op->count;
  const bool defined_before = !w.undefined;
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    Touched touched;
    const std::byte* at = locate(w, op, lane, addresses[lane], bytes, false, false, &touched);
    if (touched.unwritten || (touched.local && w.undefined)) load_undefined(w, op, lane, touched);
    for (uint32_t e = 0; e < op->count; ++e) {
      uint64_t value[2] = {};
      std::memcpy(value, at + e * op->size, op->size);
      if (is_signed && op->size < 8) {
        const int shift = 64 - 8 * op->size;
        value[0] = uint64_t(int64_t(value[0] << shift) >> shift);
      }
      for (uint32_t word = 0; word < words; ++word) {
        w.rows[rows[e * words + word]].lane[lane] = uint32_t(value[word / 2] >> (32 * (word % 2)));
      }
    }
  }
  if (defined_before && w.undefined) {  // from here on the engine looks at what becomes of it
    w.fragment().pc = op + 1;
    return nullptr;
  }
  return op + 1;
}

const Op* load_param(Warp& w, const Op* op, Mask mask) {
  const std::byte* at = w.cta->launch->launch->params.data() + op->imm;
  const uint16_t* rows = w.code->aux.data() + op->aux;
  const uint32_t words = op->aux_count / op->count;
  for (uint32_t e = 0; e < op->count; ++e) {
    uint64_t value[2] = {};
    std::memcpy(value, at + e * op->size, op->size);
    if ((op->mode & 2) && op->size < 8) {
      const int shift = 64 - 8 * op->size;
      value[0] = uint64_t(int64_t(value[0] << shift) >> shift);
    }
    for (uint32_t word = 0; word < words; ++word) {
      for (Mask m = mask; m; m &= m - 1) {
        w.rows[rows[e * words + word]].lane[first_lane(m)] = uint32_t(value[word / 2] >> (32 * (word % 2)));
      }
    }
  }
  return op + 1;
}

const Op* store(Warp& w, const Op* op, Mask mask) {
  const uint32_t bytes = uint32_t(op->size) * op->count;
  const bool wide = op->mode & 1;
  const uint16_t* rows = w.code->aux.data() + op->aux;
  const uint32_t words = op->aux_count / op->count;
  if (op->order & kRelease) publish(w, mask);
  const bool holds = w.cta->random && op->space != AddressSpace::local;
  const auto is_local = [&](uint64_t address) { return op->space == AddressSpace::generic && address >= kLocalWindow && address < kLocalWindow + kWindowBytes; };
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    uint64_t address = lane_bits(w.rows + op->a, lane, wide) + uint64_t(op->imm);
    if (!wide) address = uint32_t(address);
    const bool undefined = w.undefined && stores_undefined(w, op, lane);
    const bool held = !undefined && holds && !is_local(address) && holds_back(w, op, bytes);
    Touched touched;
    std::byte* const at = locate(w, op, lane, address, bytes, true, held, &touched);
    if (undefined || (w.undefined && touched.local)) store_undefined(w, op, lane, touched);
    std::byte later[sizeof HeldStore::data];
    std::byte* const to = held ? later : at;
    for (uint32_t e = 0; e < op->count; ++e) {
      uint64_t value[2] = {};
      for (uint32_t word = 0; word < words; ++word) {
        value[word / 2] |= uint64_t(w.rows[rows[e * words + word]].lane[lane]) << (32 * (word % 2));
      }
      std::memcpy(to + e * op->size, value, op->size);
    }
    if (held) hold_back(w, lane, at, touched.owner, later, bytes);
  }
  return op + 1;
}

// Lanes one after the other, in order. mode bit 0: 64-bit address; bits 1..: the reduction; count: the type.
const Op* atomic(Warp& w, const Op* op, Mask mask) {
  const bool wide = op->mode & 1;
  const auto kind = Reduction(op->mode >> 1);
  const auto type = Type(op->count);
  const uint32_t rows = op->size == 8 ? 2 : 1;
  bool changed = false;
  if (op->order & kRelease) publish(w, mask);
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    uint64_t address = lane_bits(w.rows + op->a, lane, wide) + uint64_t(op->imm);
    if (!wide) address = uint32_t(address);
    locate(w, op, lane, address, op->size, false);
    std::byte* at = locate(w, op, lane, address, op->size, true);
    uint64_t old = 0;
    std::memcpy(&old, at, op->size);
    const uint64_t x = lane_bits(w.rows + op->b, lane, rows == 2), y = lane_bits(w.rows + op->c, lane, rows == 2);
    const bool shared = op->space == AddressSpace::shared || op->space == AddressSpace::shared_cluster || (op->space == AddressSpace::generic && address >= kSharedWindow && address < kSharedWindow + kWindowBytes);
    const uint64_t next = reduced(kind, type, !shared, old, x, y);
    changed |= next != old;
    std::memcpy(at, &next, op->size);
    for (uint32_t r = 0; r < rows; ++r) w.rows[op->d + r].lane[lane] = uint32_t(old >> (32 * r));
  }
  if (changed) ++w.cta->scheduler->progress;  // a compare-and-swap that fails is a spin
  return op + 1;
}

const Op* add_window(Warp& w, const Op* op, Mask mask) {
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    const uint64_t v = lane_bits(w.rows + op->a, lane, true) + uint64_t(op->imm);
    w.rows[op->d].lane[lane] = uint32_t(v);
    w.rows[op->d + 1].lane[lane] = uint32_t(v >> 32);
  }
  return op + 1;
}
const Op* nothing(Warp&, const Op* op, Mask) { return op + 1; }

// ---- from PTX ------------------------------------------------------------------------------------------------------------

AddressSpace take_space(Modifiers& m) {
  if (m.take("global")) return AddressSpace::global;
  if (m.take("shared") || m.take("shared::cta")) return AddressSpace::shared;
  if (m.take("local")) return AddressSpace::local;
  if (m.take("param")) return AddressSpace::param;
  if (m.take("const")) return AddressSpace::global;
  if (m.take("shared::cluster")) return AddressSpace::shared_cluster;
  return AddressSpace::generic;
}

// The MemoryOrder of an instruction, without kStrong. `relaxed` stands for an instruction that names no scope.
uint8_t take_semantics(Modifiers& m, bool beyond_cta_by_default) {
  const auto semantics = m.take_any({"relaxed", "acquire", "release", "acq_rel"});
  const auto scope = m.take_any({"cta", "cluster", "gpu", "sys"});
  const bool beyond = scope.empty() ? beyond_cta_by_default : scope == "gpu" || scope == "sys";
  return uint8_t((semantics == "acquire" || semantics == "acq_rel" ? kAcquire : 0) |
                 (semantics == "release" || semantics == "acq_rel" ? kRelease : 0) | (semantics.empty() ? 0 : kStrong) |
                 (beyond ? kBeyondCta : 0) | (beyond || scope == "cluster" ? kBeyondCtaInCluster : 0));
}

bool is_shared(AddressSpace space) { return space == AddressSpace::shared || space == AddressSpace::shared_cluster; }

// Ordering and caching have no effect on what a load returns here: a thread sees memory in one order. The
// happens-before checker is where they count. An access that asks for an order at all may take part in a conversation
// between CTAs.
uint8_t take_ordering(Builder& b, Modifiers& m, AddressSpace space) {
  const bool is_volatile = m.take("volatile");
  uint8_t order = take_semantics(m, false);
  if (is_volatile) order = kStrong | kBeyondCta | kBeyondCtaInCluster;
  const bool ordered = order & kStrong;
  m.take("weak");
  m.take_any({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"});
  m.take_prefix("L1::");
  m.take_prefix("L2::");
  m.take("nc");
  if (ordered && !is_shared(space) && space != AddressSpace::local) b.mark_communicates();
  return order;
}

uint8_t take_vector(Modifiers& m) {
  const auto v = m.take_any({"v2", "v4", "v8"});
  return v.empty() ? 1 : uint8_t(v[1] - '0');
}

bool is_signed(Type t) { return t == Type::s8 || t == Type::s16 || t == Type::s32 || t == Type::s64; }

std::vector<const Operand*> elements(Builder& b, const Operand& operand, uint8_t count) {
  std::vector<const Operand*> list;
  if (operand.kind == Operand::Kind::vector) {
    for (const Operand& e : operand.elements) list.push_back(&e);
  } else {
    list.push_back(&operand);
  }
  if (list.size() != count) b.refuse("the vector has " + std::to_string(list.size()) + " elements; the instruction says " + std::to_string(count));
  return list;
}

uint32_t register_rows(Builder& b, const Operand& operand, Type type) {
  const Type declared = b.register_type(operand);
  return Builder::rows_of(declared == Type::none ? type : declared);
}

// Parameters of calls are local variables once the call is inlined.
AddressSpace space_of_parameter(Builder& b, const Operand& at) {
  const auto found = at.symbol >= 0 ? b.symbol(at.symbol) : std::nullopt;
  return found && found->space == ptx::Space::local ? AddressSpace::local : AddressSpace::param;
}

void build_load(Builder& b, Modifiers& m) {
  AddressSpace space = take_space(m);
  if (space == AddressSpace::param) space = space_of_parameter(b, b.operand(1));
  const uint8_t order = take_ordering(b, m, space);
  const uint8_t count = take_vector(m);
  const Type t = m.type();
  const uint32_t size = ptx::size_in_bytes(t);
  if (size == 0) b.refuse("a load needs a type");
  const auto list = elements(b, b.operand(0), count);
  uint32_t rows = 0;
  for (const Operand* e : list) rows = std::max(rows, register_rows(b, *e, t));
  if (rows * 4 < size) b.refuse("a destination register is narrower than the loaded type");
  std::vector<Virtual> v;
  for (const Operand* e : list) v.push_back(b.wide_destination(*e, rows));
  Op& op = b.emit(space == AddressSpace::param ? load_param : load);
  op.size = uint8_t(size);
  op.count = count;
  op.order = order;
  op.cycles = space == AddressSpace::param ? 2 : 4;
  if (space == AddressSpace::param) {
    const Operand& at = b.operand(1);
    if (at.kind == Operand::Kind::address && at.symbol >= 0 && at.reg < 0) {
      const auto found = b.symbol(at.symbol);
      if (!found || found->space != ptx::Space::param) b.refuse("'" + b.function().names[at.symbol] + "' is no parameter");
      b.newest().imm = int64_t(found->address + uint64_t(at.offset));
      if (b.newest().imm < 0 || uint64_t(b.newest().imm) > b.param_bytes() || size * count > b.param_bytes() - uint64_t(b.newest().imm)) b.refuse("the load leaves the parameters");
    } else {
      b.newest().run = load;
      const bool wide = b.address(at, AddressSpace::param);
      b.newest().mode = wide;
    }
  } else {
    const bool wide = b.address(b.operand(1), space);
    b.newest().mode = wide;
  }
  b.newest().mode |= is_signed(t) ? 2 : 0;
  for (Virtual x : v) {
    for (uint32_t r = 0; r < rows; ++r) b.aux_def(x, r);
  }
}

void build_store(Builder& b, Modifiers& m) {
  if (m.take("async")) return build_remote_store(b, m, false);
  AddressSpace space = take_space(m);
  if (space == AddressSpace::param) space = space_of_parameter(b, b.operand(0));
  if (space == AddressSpace::param) b.refuse("a kernel's parameters cannot be written");
  const uint8_t order = take_ordering(b, m, space);
  const uint8_t count = take_vector(m);
  const Type t = m.type();
  const uint32_t size = ptx::size_in_bytes(t);
  if (size == 0) b.refuse("a store needs a type");
  std::vector<Virtual> v;
  for (const Operand* e : elements(b, b.operand(1), count)) v.push_back(b.source(*e, t, true));
  Op& op = b.emit(store);
  op.size = uint8_t(size);
  op.count = count;
  op.order = order;
  op.cycles = 4;
  const bool wide = b.address(b.operand(0), space);
  b.newest().mode = wide;
  for (Virtual x : v) {
    for (uint32_t r = 0; r < Builder::rows_of(t); ++r) b.aux_use(x, r);
  }
}

void build_atomic(Builder& b, Modifiers& m, bool returns) {
  if (m.take("async")) return build_remote_store(b, m, true);
  const AddressSpace space = take_space(m);
  const uint8_t order = uint8_t(take_semantics(m, true) | kStrong | kAtomic | (returns ? 0 : kReduction));
  const auto kind = take_reduction(m);
  const auto vector = m.take_any({"v2", "v4", "v8"});
  const WideAtomic wide_atomic{kind.value_or(Reduction::add), space, order, returns, vector.empty() ? 1u : uint32_t(vector[1] - '0')};
  if (kind && !vector.empty()) return build_vector_atomic(b, m, wide_atomic);
  const bool noftz = m.take("noftz");
  const Type t = m.type();
  if (kind && t == Type::b128) return build_atomic_128(b, wide_atomic);
  const uint32_t size = ptx::size_in_bytes(t);
  const bool half = t == Type::f16 || t == Type::bf16 || t == Type::f16x2 || t == Type::bf16x2;
  if (!kind || !can_reduce(*kind, t) || noftz != half || (half && *kind != Reduction::add)) b.refuse("this atomic operation is not supported");
  const uint32_t rows = size == 8 ? 2 : 1;
  const size_t first = returns ? 1 : 0;
  const Virtual d = returns ? b.destination(b.operand(0), t) : b.scratch(rows);
  const Virtual x = b.source(b.operand(first + 1), t);
  const Virtual y = *kind == Reduction::cas ? b.source(b.operand(first + 2), t) : b.constant(0, rows);
  Op& op = b.emit(atomic);
  op.size = uint8_t(size);
  op.order = order;
  op.cycles = 20;
  const bool wide = b.address(b.operand(first), space);
  b.newest().mode = uint8_t(wide | int(*kind) << 1);
  b.newest().count = uint8_t(t);
  b.use(Field::b, x);
  b.use(Field::c, y);
  b.def(Field::d, d);
  if (!is_shared(space)) b.mark_communicates();
}
void build_atom(Builder& b, Modifiers& m) { build_atomic(b, m, true); }
void build_red(Builder& b, Modifiers& m) { build_atomic(b, m, false); }

void build_cvta(Builder& b, Modifiers& m) {
  const bool to = m.take("to");
  const AddressSpace space = take_space(m);
  if (m.type() != Type::u64 || space == AddressSpace::generic) b.refuse("cvta is cvta{.to}.space.u64");
  const uint64_t window = is_shared(space) ? kSharedWindow : space == AddressSpace::local ? kLocalWindow : space == AddressSpace::param ? kParamWindow : 0;
  const Virtual x = b.source(b.operand(1), Type::u64), d = b.destination(b.operand(0), 2);
  b.emit(add_window).imm = to ? -int64_t(window) : int64_t(window);
  b.use(Field::a, x);
  b.def(Field::d, d);
}

// Prefetches and priorities change no value.
void build_prefetch(Builder& b, Modifiers& m) {
  if (m.take("tensormap")) {
    m.take_any({"param", "const"});
  } else {
    take_space(m);
    if (m.take_any({"L1", "L2", "L2::evict_last", "L2::evict_normal"}).empty()) b.refuse("a prefetch names its cache");
  }
  b.emit(nothing);
}

const Op* fence(Warp& w, const Op* op, Mask mask) {
  if (op->order & kRelease) publish(w, mask);
  if (w.cta->observer) w.cta->observer->fence(w, op, mask, FenceKind::memory);
  return op + 1;
}
// isspacep: whether a generic address lies in a window. Op::mode: the space.
const Op* is_in_space(Warp& w, const Op* op, Mask mask) {
  const auto window = [](uint64_t address, uint64_t start) { return address >= start && address < start + kWindowBytes; };
  Mask r = 0;
  for (Mask m = mask; m; m &= m - 1) {
    const int lane = first_lane(m);
    const uint64_t address = lane_bits(w.rows + op->a, lane, true);
    const bool shared = window(address, kSharedWindow), local = window(address, kLocalWindow), param = window(address, kParamWindow);
    const auto space = AddressSpace(op->mode);
    const bool own = shared && uint32_t(address) >> kRankShift == w.cta->rank;
    const bool in = space == AddressSpace::shared ? own : space == AddressSpace::shared_cluster ? shared : space == AddressSpace::local ? local : space == AddressSpace::param ? param : !shared && !local && !param;
    r |= Mask(in) << lane;
  }
  w.predicates[op->pd] = (w.predicates[op->pd] & ~mask) | r;
  return op + 1;
}
void build_isspacep(Builder& b, Modifiers& m) {
  const bool constant = m.take("const");  // constant memory lies in global memory here, and no address of it is generic
  const AddressSpace space = constant ? AddressSpace::generic : take_space(m);
  if (!constant && space == AddressSpace::generic) b.refuse("isspacep names a space");
  const Virtual address = b.source(b.operand(1), Type::u64);
  const uint16_t p = b.predicate_destination(b.operand(0));
  if (constant) {
    Op& op = b.emit(LaneCode::pred_mov);
    op.pa_not = true, op.pd = p ? p : b.scratch_predicate();
    return;
  }
  Op& op = b.emit(is_in_space);
  op.mode = uint8_t(space);
  op.pd = p ? p : b.scratch_predicate();
  b.use(Field::a, address);
}

void build_membar(Builder& b, Modifiers& m) {
  const auto scope = m.take_any({"cta", "gl", "sys"});
  if (scope.empty()) b.refuse("membar is .cta, .gl or .sys");
  b.emit(fence).order = uint8_t(kAcquire | kRelease | (scope == "cta" ? 0 : kBeyondCta | kBeyondCtaInCluster));
}

}  // namespace

std::vector<FamilyRow> memory_rows() {
  return {{"ld", build_load}, {"ldu", build_load}, {"st", build_store}, {"atom", build_atom}, {"red", build_red},
          {"cvta", build_cvta}, {"prefetch", build_prefetch},
          {"prefetchu", build_prefetch}, {"applypriority", build_prefetch}, {"isspacep", build_isspacep}, {"membar", build_membar}};
}

}  // namespace fa4::sim
