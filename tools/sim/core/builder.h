// SPDX-License-Identifier: Apache-2.0
// Turns one PTX function into Code. Each family of instructions (families.h) reads its modifiers and operands here and
// emits ops on virtual registers; build() then finds reconvergence points, allocates rows and patches them in.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../engine/device.h"
#include "lane_handlers.h"
#include "op.h"

namespace fa4::sim {

// A virtual register: `rows` cells a lane (1, 2 or 4), or a fixed row.
using Virtual = int32_t;
constexpr Virtual kNoVirtual = -1;

// The modifiers of one opcode. Every one has to be taken by the family; finish() refuses the rest.
class Modifiers {
 public:
  explicit Modifiers(const ptx::Instruction& instruction);
  bool take(std::string_view name);                  // true and consumed if present
  std::string_view take_any(std::initializer_list<std::string_view> names);  // "" if none is present
  std::string_view take_prefix(std::string_view prefix);  // first one that starts so, "" if none
  ptx::Type type();                                  // next type suffix; Type::none if there is none
  std::string_view first_left() const;               // "" when all are taken
 private:
  const ptx::Instruction& instruction_;
  std::vector<bool> taken_;
};

class Builder {
 public:
  Builder(const ptx::Module& module, const ptx::Function& function, Rows rows);
  Code build();

  // ---- for the families ----
  const ptx::Instruction& instruction() const { return *instruction_; }
  const ptx::Operand& operand(size_t index) const;   // refuses when missing
  size_t operand_count() const { return instruction_->operands.size(); }
  [[noreturn]] void refuse(const std::string& message) const;

  Op& emit(Handler handler);
  Op& emit(LaneCode code) { return emit(lane_handler(code)); }
  Op& newest() { return code_.ops.back(); }

  // Rows a value of this type needs.
  static uint32_t rows_of(ptx::Type type);
  // A source operand of a type: register of its width, immediate, special register or address of a symbol. Of st and cvt,
  // registers may be wider.
  Virtual source(const ptx::Operand& operand, ptx::Type type, bool may_be_wider = false);
  // A register for a result; `_` gives a scratch register.
  Virtual destination(const ptx::Operand& operand, ptx::Type type);
  Virtual destination(const ptx::Operand& operand, uint32_t rows);       // of 32 bits a row
  Virtual wide_destination(const ptx::Operand& operand, uint32_t rows);  // of ld and cvt: also of less than a row
  Virtual constant(uint64_t bits, uint32_t rows);
  Virtual shared_address(uint64_t offset, uint32_t rows);
  Virtual scratch(uint32_t rows);
  uint16_t predicate(const ptx::Operand& operand, bool* negated);   // source
  uint16_t predicate_destination(const ptx::Operand& operand);      // `_`: 0
  uint16_t predicate_of(int32_t reg);                               // register index -> predicate
  uint16_t scratch_predicate();
  uint16_t carry_predicate();                                       // the thread's condition code, for .cc and addc
  ptx::Type register_type(const ptx::Operand& operand) const;       // Type::none if it is no register

  // Ties an operand field of the newest op to a virtual register.
  enum class Field : uint8_t { d, a, b, c, aux };
  void def(Field field, Virtual v, uint32_t row = 0, bool partial = false);
  void use(Field field, Virtual v, uint32_t row = 0);
  // Appends a row to the op's aux list.
  void aux_def(Virtual v, uint32_t row = 0);
  void aux_use(Virtual v, uint32_t row = 0);
  void aux_def_use(Virtual v);

  // [base + offset] into field a and Op::imm; returns true when the address register has 64 bits.
  bool address(const ptx::Operand& operand, AddressSpace space);
  // The whole address of [base + offset] as a register of 1 or 2 rows, for instructions with several addresses.
  Virtual address_value(const ptx::Operand& operand);
  uint32_t rows(Virtual v) const { return virtual_rows_[v]; }
  // Values of symbols.
  struct Symbol {
    ptx::Space space;
    uint64_t address;    // shared, local, param: offset in the space
    int32_t global = -1; // .global / .const: index of the module variable
  };
  std::optional<Symbol> symbol(int32_t name) const;

  uint64_t param_bytes() const { return code_.param_bytes; }
  void mark_communicates() { code_.communicates = true; }
  void mark_cluster_barriers() { code_.cluster_barriers = true; }
  const ptx::Module& module() const { return module_; }
  const ptx::Function& function() const { return function_; }

 private:
  struct Slot {
    uint32_t op, aux;
    Virtual v;
    Field field;
    uint8_t row;
    bool is_def, is_use;
  };
  struct Block {
    uint32_t begin, end;
    std::vector<uint32_t> successors, predecessors;
  };

  void lay_out_variables();
  void decode();              // refuses all that it does not know together
  void decode_instruction();
  void link_branches();
  void find_blocks();
  void find_joins();
  void allocate_rows();
  void find_undelivered_uses();
  void guard_undelivered_uses();
  // Once rows are allocated: a slot's first row, and how many of its register's an op touches there.
  uint16_t row_of(const Slot& slot) const;
  uint32_t rows_touched(const Slot& slot) const;
  static bool reads(const Slot& slot) { return slot.is_use && !(slot.is_def && slot.field == Field::d); }
  void find_flows();

  const ptx::Module& module_;
  const ptx::Function& function_;
  const Rows sharing_;
  const ptx::Instruction* instruction_ = nullptr;
  uint32_t instruction_index_ = 0;
  Code code_;
  std::vector<uint8_t> virtual_rows_;                  // by Virtual
  std::map<std::pair<uint64_t, uint32_t>, Virtual> constants_, shared_addresses_;
  std::map<std::pair<int, uint32_t>, Virtual> specials_;
  uint16_t carry_ = 0;                                 // predicate, 0: not used yet
  std::vector<int32_t> predicate_index_;               // by register
  std::vector<Slot> slots_;
  std::vector<uint32_t> op_of_instruction_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> block_of_op_;
  std::vector<bool> guarded_;                          // by op: see delivery.cpp
  std::vector<std::pair<uint32_t, uint32_t>> held_;    // by Virtual: first and last op at which nobody else may have its rows
  std::vector<bool> lacks_fence_;                      // by Virtual: some wgmma may use it without a wgmma.fence
  std::unordered_map<std::string, Symbol> symbols_;
  Virtual fixed_virtual(FixedRow::Kind low, uint32_t low_value, FixedRow::Kind high, uint32_t high_value,
                        uint32_t rows);
  std::vector<std::vector<FixedRow>> fixed_words_;     // by Virtual: the words of a fixed register, empty otherwise
};

// Control flow: the ops by which the builder knows the ends of basic blocks.
const Op* branch(Warp& warp, const Op* op, Mask mask);
const Op* branch_uniform(Warp& warp, const Op* op, Mask mask);
const Op* exit_lanes(Warp& warp, const Op* op, Mask mask);
// Delivery of tensor memory loads: the ops by which the builder knows where registers are in flight.
const Op* tmem_load(Warp& warp, const Op* op, Mask mask);
const Op* tmem_wait_load(Warp& warp, const Op* op, Mask mask);
// The same of wgmma's accumulators and A registers.
const Op* wgmma_mma_async(Warp& warp, const Op* op, Mask mask);
const Op* wgmma_commit_group(Warp& warp, const Op* op, Mask mask);
const Op* wgmma_wait_group(Warp& warp, const Op* op, Mask mask);
const Op* wgmma_fence(Warp& warp, const Op* op, Mask mask);

// How a base opcode is read.
using Family = void (*)(Builder&, Modifiers&);
struct FamilyRow {
  std::string_view opcode;
  Family build;
};
// True if the instruction's type is a floating-point one, which it then built (add, sub, mul, mad, div, min, max, neg, abs).
bool float_arithmetic(Builder& builder, Modifiers& modifiers);
// Takes rcp.approx, div.full and the other approximate forms; false when it is none that is known.
bool approximate_function(Builder& builder, Modifiers& modifiers);
// Any conversion (cvt), through exact numbers; refuses what it does not know.
void general_conversion(Builder& builder, Modifiers& modifiers);
// f16 and bf16 arithmetic, and min and max of every format in every form; false for other types and opcodes.
bool half_arithmetic(Builder& builder, Modifiers& modifiers);
// What atomics and reductions of floating-point types do with memory.
uint64_t add_floats(ptx::Type type, bool by_memory, uint64_t a, uint64_t b);
uint64_t extreme_of_floats(ptx::Type type, bool maximum, uint64_t a, uint64_t b);
// setp of halves and with .ftz, operands from `first_source` on; false for other types.
bool half_comparison(Builder& builder, ptx::Type type, Compare comparison, Combine combine, uint16_t p, uint16_t q, uint16_t third,
                     bool third_not, bool ftz, size_t first_source);
// add.cc, addc and their like; false without a carry.
bool carry_arithmetic(Builder& builder, Modifiers& modifiers);
// .u16x2, .s16x2, .sat and .relu of integers; false for other forms.
bool packed_or_saturated(Builder& builder, Modifiers& modifiers);
bool multiply_add_high_any(Builder& builder, ptx::Type type);
bool permutation_mode(Builder& builder, Modifiers& modifiers);
// mov from %clock, %clock64 or %globaltimer, which change while the warp runs; false for other special registers.
bool read_clock(Builder& builder, const ptx::Operand& operand, uint32_t rows);
// The opcodes that have a family, sorted.
std::vector<std::string_view> known_opcodes();
std::vector<FamilyRow> integer_rows();    // integer, logic, shifts, selection, predicates
std::vector<FamilyRow> float_rows();      // f32, f64, f32x2, conversions
std::vector<FamilyRow> approx_rows();     // ex2, rsqrt, lg2, sin, cos, tanh
std::vector<FamilyRow> bit_rows();        // integer instructions of rarer use
std::vector<FamilyRow> half_rows();       // testp, copysign, slct
std::vector<FamilyRow> memory_rows();     // ld, st, atom, red, cvta, prefetch
std::vector<FamilyRow> control_rows();    // bra, exit, setmaxnreg
std::vector<FamilyRow> barrier_rows();    // bar, barrier
std::vector<FamilyRow> warp_rows();       // elect, vote, shfl, match, redux, activemask
std::vector<FamilyRow> cluster_rows();    // mapa, getctarank
std::vector<FamilyRow> mbarrier_rows();   // mbarrier.*, fence.*
std::vector<FamilyRow> bulk_rows();       // cp.async.bulk*, prefetch.tensormap
std::vector<FamilyRow> tcgen05_rows();    // tcgen05.*
std::vector<FamilyRow> system_call_rows();  // calls of vprintf and __assertfail
std::vector<FamilyRow> wgmma_rows();      // wgmma.*
std::vector<FamilyRow> warp_matrix_rows();  // mma, ldmatrix, stmatrix, movmatrix

}  // namespace fa4::sim
