// SPDX-License-Identifier: Apache-2.0
// A decoded instruction and the program that holds it. An Op works on 32 lanes at once: its operands are rows, one
// 32-bit cell for each lane; a 64-bit register is two neighbouring rows (low words, high words).
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "../ptx/module.h"

namespace fa4::sim {

constexpr int kLanes = 32;
using Mask = uint32_t;  // one bit a lane
constexpr Mask kAllLanes = 0xFFFFFFFFu;
inline int first_lane(Mask mask) { return __builtin_ctz(mask); }  // mask must not be empty

struct alignas(64) Row {
  uint32_t lane[kLanes];
};

struct Warp;
struct Op;

// Executes `op` for the lanes of `mask` (never empty). Returns the next op, or nullptr when the fragment that ran it
// stops for now (it parked, diverged, joined or exited).
using Handler = const Op* (*)(Warp& warp, const Op* op, Mask mask);

// What the address of a memory instruction means.
enum class AddressSpace : uint8_t { generic, global, shared, shared_cluster, local, param };

// How an access to memory takes part in the memory model. An access without kStrong is weak.
enum MemoryOrder : uint8_t {
  kStrong = 1,    // relaxed, acquire, release, volatile, or an atomic operation
  kAcquire = 2,
  kRelease = 4,
  kAtomic = 8,    // reads and writes as one
  kBeyondCta = 16,  // its scope reaches other CTAs: .gpu or .sys
  kReduction = 32,  // red: its read makes nothing known
  kScopeUnnamed = 128,   // an mbarrier instruction that leaves its scope to the default
  kBeyondCtaInCluster = 64,  // its scope reaches other CTAs of the cluster: .cluster, .gpu or .sys
};

struct Op {
  Handler run = nullptr;
  uint16_t d = 0, a = 0, b = 0, c = 0;  // rows: destination and sources
  uint16_t guard = 0;                   // predicate; 0 is the constant true
  uint16_t pd = 0, pa = 0, pb = 0;      // predicates: destination, sources
  bool guard_not = false, pa_not = false, pb_not = false;
  uint8_t cycles = 2;                   // nominal issue time
  uint8_t size = 0, count = 0;          // memory: bytes of an element, elements; tcgen05: registers
  AddressSpace space = AddressSpace::generic;
  uint8_t order = 0;                    // memory, fences, mbarriers: MemoryOrder
  uint8_t mode = 0;                     // comparison, rounding, shuffle kind, ...
  uint32_t aux = 0, aux_count = 0;      // Code::aux[aux ...]: rows of vector operands
  uint32_t target = 0;                  // branches: index of the op; divergent ones reconverge at `join`
  uint32_t join = 0;
  int64_t imm = 0;                      // address offset, immediate
};

// Rows with a fixed content, written when a warp starts.
struct FixedRow {
  enum class Kind : uint8_t {
    constant, tid_x, tid_y, tid_z, ntid_x, ntid_y, ntid_z, ctaid_x, ctaid_y, ctaid_z, nctaid_x, nctaid_y, nctaid_z,
    laneid, warpid, nwarpid, smid, nsmid, dynamic_shared_bytes, total_shared_bytes, lanemask_eq, lanemask_lt,
    lanemask_le, lanemask_gt, lanemask_ge, zero, global_address_low, global_address_high, shared_address,
    clusterid_x, clusterid_y, clusterid_z, nclusterid_x, nclusterid_y, nclusterid_z, cluster_ctaid_x, cluster_ctaid_y,
    cluster_ctaid_z, cluster_nctaid_x, cluster_nctaid_y, cluster_nctaid_z, cluster_ctarank, cluster_nctarank,
    is_explicit_cluster
  };
  Kind kind;
  uint32_t value;  // constant: the word; global_address_*: index of the module variable; shared_address: the offset
  uint16_t row;
};

// An op that may meet a register in flight (delivery.h): what it does once that is checked.
struct DeliveryCheck {
  struct Register {
    uint16_t row;
    bool noted;                           // the access counts for a wgmma.fence
  };
  Handler run;
  bool move;                              // copies registers, which is allowed: the copy is in flight as well
  std::vector<Register> sources, destinations;
};

// How undefined bits of its sources go through an op (undefined.h).
enum class Flow : uint8_t {
  observes,  // not at all: what it does would depend on them
  computes,  // a result of which any source bit is undefined is undefined
  halves,    // the same for each 16 bits
  words,     // ... for each 32 bits
  bits,      // bit by bit: moves, shifts, selections, logic
  compares,  // into predicates pd and pb, with the predicate pa
  shuffles,  // from lane to lane
  loads,
  stores,
};
struct FlowOperand {
  uint16_t row;
  uint8_t rows;
  bool source, destination;
  bool control;                           // bits: it says which bits of the others count
  bool address;
};
struct OpFlow {
  Flow flow = Flow::observes;
  bool predicate_controls = false;        // bits: pa says which operand counts
  bool reads_carry = false;               // computes: pa is a source
  bool writes_carry = false;
  Handler run = nullptr;                  // the op without a DeliveryCheck
  uint32_t operands = 0, operand_count = 0;  // Code::flow_operands[operands ...]
};

// The executable form of one entry.
struct Code {
  std::string name;
  std::vector<Op> ops;                    // ends with an exit
  std::vector<uint16_t> aux;
  std::vector<ptx::Location> locations;   // one an op
  std::vector<uint32_t> instruction;      // one an op: index into the function's instructions
  std::vector<FixedRow> fixed;
  std::unordered_map<uint32_t, DeliveryCheck> delivery;  // by op; empty when a wait stands before every use
  bool tracks_registers = false;          // warps keep shadow state of registers in flight
  std::vector<OpFlow> flows;              // one an op
  std::vector<FlowOperand> flow_operands;
  uint32_t rows = 0;                      // register file of a warp
  uint32_t predicates = 1;                // [0] is the constant true
  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared = 0;            // shared address of the first dynamic byte
  uint32_t local_bytes = 0;               // a thread
  uint32_t param_bytes = 0;
  uint32_t launch_registers = 0;          // registers a thread at launch, for setmaxnreg's budget
  uint32_t max_threads = 1024;
  uint32_t cluster[3] = {0, 0, 0};        // .reqnctapercluster; 0: not given
  uint32_t max_cluster_rank = 0;          // .maxclusterrank; 0: not given
  bool cluster_barriers = false;          // it uses barrier.cluster
  bool explicit_cluster = false;          // a launch has to say the size of its clusters, or the entry does
  bool communicates = false;              // CTAs may talk to each other: run them in one order of simulated time
  const ptx::Function* function = nullptr;
};

}  // namespace fa4::sim
