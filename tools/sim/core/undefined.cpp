// SPDX-License-Identifier: Apache-2.0
#include "undefined.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "lane_handlers.h"
#include "shared_memory.h"

namespace fa4::sim {

namespace {

const OpFlow& flow_of(const Warp& w, const Op* op) { return w.code->flows[size_t(op - w.code->ops.data())]; }
std::span<const FlowOperand> operands(const Warp& w, const OpFlow& flow) {
  return {w.code->flow_operands.data() + flow.operands, flow.operand_count};
}

Undefined& make(Warp& w) {
  if (w.undefined) return *w.undefined;
  w.undefined = std::make_unique<Undefined>();
  Undefined& u = *w.undefined;
  u.rows.assign(w.code->rows, Row{});
  u.lanes.assign(w.code->rows, 0);
  u.sources.assign(size_t(w.code->rows) * kLanes, 0);
  u.predicates.assign(w.code->predicates, 0);
  u.predicate_sources.assign(size_t(w.code->predicates) * kLanes, 0);
  return u;
}

void set_bits(Undefined& u, uint16_t row, int lane, uint32_t bits, uint32_t source) {
  u.rows[row].lane[lane] = bits;
  u.lanes[row] = (u.lanes[row] & ~(1u << lane)) | Mask(bits != 0) << lane;
  if (bits) u.sources[size_t(row) * kLanes + size_t(lane)] = source;
}
void clear_row(Undefined& u, uint16_t row, Mask mask) {
  for (Mask m = u.lanes[row] & mask; m; m &= m - 1) u.rows[row].lane[first_lane(m)] = 0;
  u.lanes[row] &= ~mask;
}
void set_predicate(Undefined& u, uint16_t index, Mask mask, Mask undefined, const std::array<uint32_t, kLanes>& sources) {
  if (index == 0) return;
  u.predicates[index] = (u.predicates[index] & ~mask) | undefined;
  for (Mask m = undefined; m; m &= m - 1) u.predicate_sources[size_t(index) * kLanes + size_t(first_lane(m))] = sources[first_lane(m)];
}

// Lanes of the mask in which some bit of an operand is undefined.
Mask undefined_lanes(const Undefined& u, const FlowOperand& operand) {
  Mask lanes = 0;
  for (uint16_t r = 0; r < operand.rows; ++r) lanes |= u.lanes[operand.row + r];
  return lanes;
}
uint32_t source_of(const Undefined& u, const FlowOperand& operand, int lane) {
  for (uint16_t r = 0; r < operand.rows; ++r) {
    if (u.lanes[operand.row + r] >> lane & 1) return u.sources[size_t(operand.row + r) * kLanes + size_t(lane)];
  }
  return 0;
}

[[noreturn]] void refuse(const Warp& w, const Op* op, int lane, const char* what, uint32_t source) {
  fault(w, op, Fault::Kind::poison, "lane " + std::to_string(lane) + ": " + what + ": " + undefined_source(*w.cta, source));
}
void require_defined(const Warp& w, const Op* op, const FlowOperand& operand, Mask mask) {
  const Undefined& u = *w.undefined;
  if (const Mask bad = undefined_lanes(u, operand) & mask)
    refuse(w, op, first_lane(bad), operand.address ? "the address is undefined" : "an operand is undefined", source_of(u, operand, first_lane(bad)));
}
void require_defined_predicate(const Warp& w, const Op* op, uint16_t index, Mask mask, const char* what) {
  const Undefined& u = *w.undefined;
  if (const Mask bad = u.predicates[index] & mask)
    refuse(w, op, first_lane(bad), what, u.predicate_sources[size_t(index) * kLanes + size_t(first_lane(bad))]);
}

// What an op's undefined sources do to its results. Made before the op runs, put into effect after it.
class Step {
 public:
  Step(Warp& w, const Op* op, Mask mask) : w_(w), u_(*w.undefined), op_(op), mask_(mask), flow_(flow_of(w, op)) {
    sources_.fill(0);
    for (const FlowOperand& o : operands(w, flow_)) {
      if (!o.source) continue;
      const Mask lanes = undefined_lanes(u_, o) & mask;
      note(lanes, [&](int lane) { return source_of(u_, o, lane); });
      if (o.control) controlled_ |= lanes;
    }
    const bool compares = flow_.flow == Flow::compares, bits = flow_.flow == Flow::bits;
    if (compares || bits || flow_.reads_carry) predicate(op->pa);
    if (bits) predicate(op->pb);
    if (bits && flow_.predicate_controls) controlled_ |= u_.predicates[op->pa] & mask;
  }

  const Op* run() {
    if (any_ == 0) {
      for (const FlowOperand& o : operands(w_, flow_)) {
        for (uint16_t r = 0; o.destination && r < o.rows; ++r) clear_row(u_, uint16_t(o.row + r), mask_);
      }
      const Op* const next = op_->run(w_, op_, mask_);
      set_predicates(0);
      return next;
    }
    switch (flow_.flow) {
      case Flow::bits: return run_bits();
      case Flow::compares: {
        const Mask data = data_lanes(), third = u_.predicates[op_->pa] & mask_;
        const Mask value = op_->pa_not ? ~w_.predicates[op_->pa] : w_.predicates[op_->pa];
        // A defined predicate may decide the result alone.
        Mask decided = 0;
        if (Combine(op_->size) == Combine::with_and) decided = ~third & ~value;
        if (Combine(op_->size) == Combine::with_or) decided = ~third & value;
        const Op* const next = op_->run(w_, op_, mask_);
        set_predicates((data | (Combine(op_->size) == Combine::none ? 0 : third)) & ~decided);
        return next;
      }
      default: return run_computing();
    }
  }

 private:
  template <class F>
  void note(Mask lanes, F source) {
    for (Mask m = lanes & ~any_; m; m &= m - 1) sources_[size_t(first_lane(m))] = source(first_lane(m));
    any_ |= lanes;
  }
  void predicate(uint16_t index) {
    note(u_.predicates[index] & mask_, [&](int lane) { return u_.predicate_sources[size_t(index) * kLanes + size_t(lane)]; });
  }
  Mask data_lanes() const {
    Mask lanes = 0;
    for (const FlowOperand& o : operands(w_, flow_)) {
      if (o.source) lanes |= undefined_lanes(u_, o) & mask_;
    }
    return lanes;
  }
  void set_predicates(Mask undefined) {
    switch (flow_.flow) {
      case Flow::compares: set_predicate(u_, op_->pb, mask_, undefined, sources_); [[fallthrough]];
      case Flow::bits: set_predicate(u_, op_->pd, mask_, undefined, sources_); break;
      default:
        if (flow_.writes_carry) set_predicate(u_, op_->pd, mask_, undefined, sources_);
    }
  }
  void put(uint16_t row, const Row& bits) {
    for (Mask m = mask_; m; m &= m - 1) set_bits(u_, row, first_lane(m), bits.lane[first_lane(m)], sources_[size_t(first_lane(m))]);
  }

  // Results of which any, or any in the same part, is undefined.
  const Op* run_computing() {
    constexpr uint16_t kMostRows = 4;
    std::array<Row, kMostRows> bits{};
    Mask carry = flow_.reads_carry ? u_.predicates[op_->pa] & mask_ : 0;
    for (const FlowOperand& o : operands(w_, flow_)) {
      if (!o.source) continue;
      for (uint16_t r = 0; r < o.rows; ++r) {
        for (Mask m = u_.lanes[o.row + r] & mask_; m; m &= m - 1) {
          const int lane = first_lane(m);
          const uint32_t x = u_.rows[o.row + r].lane[lane];
          if (flow_.flow == Flow::halves) bits[r].lane[lane] |= (x & 0xFFFF ? 0xFFFFu : 0) | (x >> 16 ? 0xFFFF0000u : 0);
          if (flow_.flow == Flow::words) bits[r].lane[lane] = ~0u;
        }
      }
      if (flow_.flow == Flow::computes) carry |= undefined_lanes(u_, o) & mask_;
    }
    for (Row& row : bits) {
      for (Mask m = carry; m; m &= m - 1) row.lane[first_lane(m)] = ~0u;
    }
    const Op* const next = op_->run(w_, op_, mask_);
    for (const FlowOperand& o : operands(w_, flow_)) {
      for (uint16_t r = 0; o.destination && r < o.rows; ++r) put(uint16_t(o.row + r), bits[r]);
    }
    set_predicates(carry);
    return next;
  }

  // Each bit of a result depends on no more than one bit of each operand, where the controls are defined: it is undefined
  // if some way to flip undefined bits of the operands flips it.
  const Op* run_bits() {
    struct Copy {
      uint16_t row;
      Row value;
    };
    std::vector<Copy> kept;
    std::vector<const FlowOperand*> data;
    std::vector<uint16_t> results;
    for (const FlowOperand& o : operands(w_, flow_)) {
      for (uint16_t r = 0; r < o.rows; ++r) {
        kept.push_back({uint16_t(o.row + r), w_.rows[o.row + r]});
        if (o.destination) results.push_back(uint16_t(o.row + r));
      }
      if (o.source && !o.control && (undefined_lanes(u_, o) & mask_)) data.push_back(&o);
    }
    const size_t rows = data.size();
    const bool logic = !flow_.predicate_controls;
    const Mask pa = logic ? u_.predicates[op_->pa] & mask_ : 0, pb = logic ? u_.predicates[op_->pb] & mask_ : 0;
    const Mask kept_pa = w_.predicates[op_->pa], kept_pb = w_.predicates[op_->pb], kept_pd = w_.predicates[op_->pd];
    const auto restore = [&] {
      for (const Copy& copy : kept) w_.rows[copy.row] = copy.value;
      w_.predicates[op_->pd] = kept_pd;
      w_.predicates[op_->pa] = kept_pa;
      w_.predicates[op_->pb] = kept_pb;
    };
    std::vector<Row> flipped;  // the results of each trial, one behind the other
    std::vector<Mask> flipped_predicates;
    const uint32_t trials = 1u << (rows + (pa != 0) + (pb != 0));
    for (uint32_t trial = 1; trial < trials; ++trial) {
      for (size_t i = 0; i < rows; ++i) {
        for (uint16_t r = 0; (trial >> i & 1) && r < data[i]->rows; ++r) {
          const uint16_t row = uint16_t(data[i]->row + r);
          for (Mask m = u_.lanes[row] & mask_; m; m &= m - 1) w_.rows[row].lane[first_lane(m)] ^= u_.rows[row].lane[first_lane(m)];
        }
      }
      if (pa && (trial >> rows & 1)) w_.predicates[op_->pa] ^= pa;
      if (pb && (trial >> (rows + (pa != 0)) & 1)) w_.predicates[op_->pb] ^= pb;
      flow_.run(w_, op_, mask_);
      for (uint16_t row : results) flipped.push_back(w_.rows[row]);
      flipped_predicates.push_back(w_.predicates[op_->pd]);
      restore();
    }
    const Op* const next = op_->run(w_, op_, mask_);
    for (size_t i = 0; i < results.size(); ++i) {
      Row bits{};
      for (size_t at = i; at < flipped.size(); at += results.size()) {
        for (Mask m = mask_; m; m &= m - 1) bits.lane[first_lane(m)] |= flipped[at].lane[first_lane(m)] ^ w_.rows[results[i]].lane[first_lane(m)];
      }
      for (Mask m = controlled_; m; m &= m - 1) bits.lane[first_lane(m)] = ~0u;
      put(results[i], bits);
    }
    Mask undefined = 0;
    for (Mask p : flipped_predicates) undefined |= (p ^ w_.predicates[op_->pd]) & mask_;
    set_predicates(undefined);
    return next;
  }

  Warp& w_;
  Undefined& u_;
  const Op* op_;
  const Mask mask_;
  const OpFlow& flow_;
  Mask any_ = 0;         // lanes in which a source is undefined
  Mask controlled_ = 0;  // ... one that says which bits of the others count
  std::array<uint32_t, kLanes> sources_;
};

}  // namespace

const Op* step_undefined(Warp& w, const Op* op, Mask lanes) {
  Undefined& u = *w.undefined;
  if (op->guard) require_defined_predicate(w, op, op->guard, lanes, "the predicate that decides about this instruction is undefined");
  const Mask mask = lanes & (op->guard_not ? ~w.predicates[op->guard] : w.predicates[op->guard]);
  if (mask == 0) return op + 1;
  const OpFlow& flow = flow_of(w, op);
  switch (flow.flow) {
    case Flow::shuffles:
    case Flow::stores:
    case Flow::loads:
    case Flow::observes:
      for (const FlowOperand& o : operands(w, flow)) {
        const bool moved = (flow.flow == Flow::stores && !o.address) || (flow.flow == Flow::shuffles && !o.control);
        if (o.source && !moved) require_defined(w, op, o, mask);
      }
      require_defined_predicate(w, op, op->pa, mask, "a predicate that it takes is undefined");
      require_defined_predicate(w, op, op->pb, mask, "a predicate that it takes is undefined");
      for (const FlowOperand& o : operands(w, flow)) {
        for (uint16_t r = 0; o.destination && flow.flow != Flow::shuffles && r < o.rows; ++r) clear_row(u, uint16_t(o.row + r), mask);
      }
      if (op->pd) u.predicates[op->pd] &= ~mask;
      return op->run(w, op, mask);
    default: return Step(w, op, mask).run();
  }
}

bool holds_undefined(const Warp& w) {
  const auto held = [&](Mask lanes) { return (lanes & w.alive) != 0; };
  const Undefined& u = *w.undefined;
  return !u.local.empty() || std::any_of(u.lanes.begin(), u.lanes.end(), held) || std::any_of(u.predicates.begin(), u.predicates.end(), held);
}

namespace {

constexpr uint32_t kMostBytes = 32;  // of one access

// The value of element e's word, of bytes that stand for a register's each; as load and store take values apart.
struct Access {
  const uint16_t* rows;
  uint32_t bytes, words;
};
Access access_of(const Warp& w, const Op* op) {
  return {w.code->aux.data() + op->aux, uint32_t(op->size) * op->count, op->aux_count / op->count};
}

uint64_t local_word(int lane, uint32_t address) { return uint64_t(lane) << 32 | address / 4; }

// A source that is told as often as it is met, once.
uint32_t number_of(Warp& w, const UndefinedSource& source) {
  Cluster& cluster = *w.cta->cluster;
  const uint64_t key = uint64_t(source.op - w.code->ops.data()) << 32 | source.rank << kRankShift | source.address;
  const auto [number, added] = cluster.undefined_numbers.try_emplace(key, uint32_t(cluster.undefined.size()));
  if (added) cluster.undefined.push_back(source);
  return number->second;
}

}  // namespace

void load_undefined(Warp& w, const Op* op, int lane, const Touched& touched) {
  const auto [rows, bytes, words] = access_of(w, op);
  std::array<uint8_t, kMostBytes> undefined{};
  uint32_t source = 0;
  bool any = false;
  for (uint32_t i = bytes; i-- > 0;) {  // the first of them is told
    const uint32_t at = touched.address + i;
    if (touched.owner && first_invalid_shared(*touched.owner, at, 1) >= 0) {
      const auto stored = touched.owner->undefined_words.find(at / 4);
      source = stored != touched.owner->undefined_words.end()
                   ? stored->second
                   : number_of(w, {op, touched.owner->rank, at, w.cta->rank, w.index, uint32_t(lane)});
    } else if (touched.local && !w.undefined->local.empty() && w.undefined->local[size_t(lane) * w.code->local_bytes + at]) {
      source = w.undefined->local_sources.at(local_word(lane, at));
    } else {
      continue;
    }
    undefined[i] = 0xFF;
    any = true;
  }
  if (!any) return;
  Undefined& u = make(w);
  for (uint32_t e = 0; e < op->count; ++e) {
    uint64_t value[2] = {};
    std::memcpy(value, undefined.data() + e * op->size, op->size);
    if ((op->mode & 2) && op->size < 8) {  // the sign is as undefined as the byte that it comes from
      const int shift = 64 - 8 * op->size;
      value[0] = uint64_t(int64_t(value[0] << shift) >> shift);
    }
    for (uint32_t word = 0; word < words; ++word)
      set_bits(u, rows[e * words + word], lane, uint32_t(value[word / 2] >> (32 * (word % 2))), source);
  }
}

bool stores_undefined(const Warp& w, const Op* op, int lane) {
  const uint16_t* const rows = w.code->aux.data() + op->aux;
  return std::any_of(rows, rows + op->aux_count, [&](uint16_t row) { return w.undefined->lanes[row] >> lane & 1; });
}

void store_undefined(Warp& w, const Op* op, int lane, const Touched& touched) {
  Undefined& u = *w.undefined;
  const auto [rows, bytes, words] = access_of(w, op);
  std::array<uint8_t, kMostBytes> undefined{};
  std::array<uint32_t, kMostBytes> sources{};
  bool any = false;
  for (uint32_t e = 0; e < op->count; ++e) {
    for (uint32_t i = 0; i < op->size; ++i) {
      const uint16_t row = rows[e * words + i / 4];
      if (!(u.rows[row].lane[lane] >> (8 * (i % 4)) & 0xFF)) continue;
      undefined[e * op->size + i] = 1;
      sources[e * op->size + i] = u.sources[size_t(row) * kLanes + size_t(lane)];
      any = true;
    }
  }
  const auto first = size_t(std::find(undefined.begin(), undefined.end(), 1) - undefined.begin());
  if (any && !touched.owner && !touched.local) refuse(w, op, lane, "undefined data is stored to global memory", sources[first]);
  if (touched.local && any && u.local.empty()) u.local.assign(w.local.size(), 0);
  for (uint32_t i = 0; i < bytes; ++i) {
    const uint32_t at = touched.address + i;
    if (touched.local && !u.local.empty()) {
      u.local[size_t(lane) * w.code->local_bytes + at] = undefined[i];
      if (undefined[i]) u.local_sources[local_word(lane, at)] = sources[i];
    } else if (touched.owner && undefined[i]) {
      set_shared_valid(*touched.owner, at, 1, false);
    }
  }
  for (uint32_t i = 0; touched.owner && i < bytes; ++i) {
    if (undefined[i]) touched.owner->undefined_words[(touched.address + i) / 4] = sources[i];
  }
}

void shuffle_undefined(Warp& w, const Op* op, Mask members, const int* sources) {
  Undefined& u = *w.undefined;
  if (!(u.lanes[op->a] & members) && !(u.lanes[op->d] & members)) return;
  const Row bits = u.rows[op->a];
  std::array<uint32_t, kLanes> from;
  std::copy_n(u.sources.begin() + std::ptrdiff_t(op->a) * kLanes, kLanes, from.begin());
  for (Mask m = members; m; m &= m - 1) {
    const int lane = first_lane(m);
    set_bits(u, op->d, lane, bits.lane[sources[lane]], from[size_t(sources[lane])]);
  }
}

void require_defined_local(const Warp& w, const Op* op, int lane, uint64_t address, uint64_t bytes) {
  if (!w.undefined || w.undefined->local.empty()) return;
  for (uint64_t at = address; at < address + bytes; ++at) {
    if (w.undefined->local[size_t(lane) * w.code->local_bytes + at])
      refuse(w, op, lane, "an argument of the call is undefined", w.undefined->local_sources.at(local_word(lane, uint32_t(at))));
  }
}

std::string undefined_source(const Cta& reader, uint32_t source) {
  const UndefinedSource& s = reader.cluster->undefined[source];
  const Cta& owner = *reader.cluster->ctas[s.rank];
  const Cta& loader = *reader.cluster->ctas[s.reader];
  return "it comes from " + shared_name(owner, s.address) + of_cta(reader, owner) + ", which nobody has written; lane " + std::to_string(s.lane) +
         " of " + role_name(loader, s.warp) + of_cta(reader, loader) + " loads it at " + place(loader, s.op);
}

}  // namespace fa4::sim
