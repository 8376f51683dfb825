// SPDX-License-Identifier: Apache-2.0
#include "builder.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "machine.h"
#include "targets.h"

namespace fa4::sim {

using ptx::Operand;
using ptx::Type;

Modifiers::Modifiers(const ptx::Instruction& instruction)
    : instruction_(instruction), taken_(instruction.parts.size(), false) {
  taken_[0] = true;
}

bool Modifiers::take(std::string_view name) {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (!taken_[i] && instruction_.parts[i] == name) return taken_[i] = true;
  }
  return false;
}

std::string_view Modifiers::take_any(std::initializer_list<std::string_view> names) {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    for (std::string_view name : names) {
      if (instruction_.parts[i] == name) {
        taken_[i] = true;
        return instruction_.parts[i];
      }
    }
  }
  return {};
}

std::string_view Modifiers::take_prefix(std::string_view prefix) {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (!taken_[i] && instruction_.parts[i].substr(0, prefix.size()) == prefix) {
      taken_[i] = true;
      return instruction_.parts[i];
    }
  }
  return {};
}

Type Modifiers::type() {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    const Type type = ptx::type_from_suffix(instruction_.parts[i]);
    if (type != Type::none) {
      taken_[i] = true;
      return type;
    }
  }
  return Type::none;
}

std::string_view Modifiers::first_left() const {
  for (size_t i = 1; i < taken_.size(); ++i) {
    if (!taken_[i]) return instruction_.parts[i];
  }
  return {};
}

namespace {

const std::unordered_map<std::string_view, Family>& families() {
  static const auto& table = *new auto([] {  // never destroyed: programs load modules in static destructors
    std::unordered_map<std::string_view, Family> t;
    for (auto rows : {integer_rows, bit_rows, half_rows, float_rows, approx_rows, memory_rows, control_rows, barrier_rows, warp_rows, cluster_rows, mbarrier_rows, bulk_rows, tcgen05_rows, warp_matrix_rows, wgmma_rows, system_call_rows}) {
      for (const FamilyRow& row : rows()) t.emplace(row.opcode, row.build);
    }
    return t;
  }());
  return table;
}

}  // namespace

std::vector<std::string_view> known_opcodes() {
  std::vector<std::string_view> list;
  for (const auto& [opcode, build] : families()) list.push_back(opcode);
  list.push_back("call");  // replaced before the families see it
  std::sort(list.begin(), list.end());
  return list;
}

namespace {

constexpr uint64_t align_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

}  // namespace

Builder::Builder(const ptx::Module& module, const ptx::Function& function, Rows rows)
    : module_(module), function_(function), sharing_(rows) {}

void Builder::refuse(const std::string& message) const {
  const auto& at = instruction_ ? instruction_->location : function_.location;
  throw ptx::Error(at.line, at.column, message, ptx::line_text(module_, at.line));
}

const Operand& Builder::operand(size_t index) const {
  if (index >= instruction_->operands.size()) {
    refuse("'" + std::string(instruction_->opcode) + "' has " + std::to_string(instruction_->operands.size()) +
           " operands; more are needed");
  }
  return instruction_->operands[index];
}

Op& Builder::emit(Handler handler) {
  Op op;
  op.run = handler;
  if (instruction_->guard >= 0) {
    op.guard = predicate_of(instruction_->guard);
    op.guard_not = instruction_->guard_negated;
  }
  op.aux = uint32_t(code_.aux.size());
  code_.ops.push_back(op);
  code_.locations.push_back(instruction_->location);
  code_.instruction.push_back(instruction_index_);
  return code_.ops.back();
}

uint32_t Builder::rows_of(Type type) {
  const uint32_t bytes = ptx::size_in_bytes(type);
  return bytes <= 4 ? 1 : bytes / 4;
}

Type Builder::register_type(const Operand& operand) const {
  return operand.kind == Operand::Kind::reg ? function_.registers[operand.reg].type : Type::none;
}

Virtual Builder::scratch(uint32_t rows) {
  virtual_rows_.push_back(uint8_t(rows));
  fixed_words_.emplace_back();
  return Virtual(virtual_rows_.size() - 1);
}

Virtual Builder::fixed_virtual(FixedRow::Kind low, uint32_t low_value, FixedRow::Kind high, uint32_t high_value,
                               uint32_t rows) {
  const Virtual v = scratch(rows);
  fixed_words_[v].push_back({low, low_value, 0});
  if (rows > 1) fixed_words_[v].push_back({high, high_value, 0});
  for (uint32_t i = 2; i < rows; ++i) fixed_words_[v].push_back({FixedRow::Kind::zero, 0, 0});
  return v;
}

Virtual Builder::constant(uint64_t bits, uint32_t rows) {
  if (rows == 1) bits &= 0xFFFFFFFF;
  const auto [it, added] = constants_.try_emplace({bits, rows}, kNoVirtual);
  if (added) {
    it->second = fixed_virtual(FixedRow::Kind::constant, uint32_t(bits), FixedRow::Kind::constant,
                               uint32_t(bits >> 32), rows);
  }
  return it->second;
}

// The shared address of an offset in the own CTA: it names the CTA's rank in the cluster too.
Virtual Builder::shared_address(uint64_t offset, uint32_t rows) {
  const auto [it, added] = shared_addresses_.try_emplace({offset, rows}, kNoVirtual);
  if (added) it->second = fixed_virtual(FixedRow::Kind::shared_address, uint32_t(offset), FixedRow::Kind::zero, 0, rows);
  return it->second;
}

std::optional<Builder::Symbol> Builder::symbol(int32_t name) const {
  const auto it = symbols_.find(function_.names[name]);
  if (it == symbols_.end()) return std::nullopt;
  return it->second;
}

Virtual Builder::source(const Operand& operand, Type type, bool may_be_wider) {
  const uint32_t rows = rows_of(type);
  switch (operand.kind) {
    case Operand::Kind::reg: {
      const Type declared = register_type(operand);
      if (declared == Type::pred) refuse("predicate register " + function_.registers[operand.reg].name + " as a value");
      const uint32_t have = ptx::size_in_bytes(declared), want = ptx::size_in_bytes(type);
      if (have < want || (have > want && !may_be_wider)) {
        refuse("register " + function_.registers[operand.reg].name + " has " + std::to_string(8 * have) + " bits; the instruction takes " + std::to_string(8 * want));
      }
      return operand.reg;
    }
    case Operand::Kind::immediate: {
      uint64_t bits = operand.bits;
      if (operand.is_float && operand.is_double && ptx::size_in_bytes(type) == 4) {
        bits = std::bit_cast<uint32_t>(float(std::bit_cast<double>(bits)));
      }
      if (ptx::size_in_bytes(type) == 2) bits &= 0xFFFF;
      if (ptx::size_in_bytes(type) == 1) bits &= 0xFF;
      return constant(bits, rows);
    }
    case Operand::Kind::special: {
      static const auto& kinds = *new std::unordered_map<std::string_view, FixedRow::Kind>{
          {"%tid.x", FixedRow::Kind::tid_x},       {"%tid.y", FixedRow::Kind::tid_y},
          {"%tid.z", FixedRow::Kind::tid_z},       {"%ntid.x", FixedRow::Kind::ntid_x},
          {"%ntid.y", FixedRow::Kind::ntid_y},     {"%ntid.z", FixedRow::Kind::ntid_z},
          {"%ctaid.x", FixedRow::Kind::ctaid_x},   {"%ctaid.y", FixedRow::Kind::ctaid_y},
          {"%ctaid.z", FixedRow::Kind::ctaid_z},   {"%nctaid.x", FixedRow::Kind::nctaid_x},
          {"%nctaid.y", FixedRow::Kind::nctaid_y}, {"%nctaid.z", FixedRow::Kind::nctaid_z},
          {"%laneid", FixedRow::Kind::laneid},     {"%warpid", FixedRow::Kind::warpid},
          {"%nwarpid", FixedRow::Kind::nwarpid},   {"%smid", FixedRow::Kind::smid},
          {"%nsmid", FixedRow::Kind::nsmid},       {"%lanemask_eq", FixedRow::Kind::lanemask_eq},
          {"%lanemask_lt", FixedRow::Kind::lanemask_lt}, {"%lanemask_le", FixedRow::Kind::lanemask_le},
          {"%lanemask_gt", FixedRow::Kind::lanemask_gt}, {"%lanemask_ge", FixedRow::Kind::lanemask_ge},
          {"%dynamic_smem_size", FixedRow::Kind::dynamic_shared_bytes},
          {"%total_smem_size", FixedRow::Kind::total_shared_bytes},
          {"%cluster_ctaid.x", FixedRow::Kind::cluster_ctaid_x},   {"%cluster_ctaid.y", FixedRow::Kind::cluster_ctaid_y},
          {"%cluster_ctaid.z", FixedRow::Kind::cluster_ctaid_z},   {"%cluster_ctarank", FixedRow::Kind::cluster_ctarank},
          {"%cluster_nctaid.x", FixedRow::Kind::cluster_nctaid_x}, {"%cluster_nctaid.y", FixedRow::Kind::cluster_nctaid_y},
          {"%cluster_nctaid.z", FixedRow::Kind::cluster_nctaid_z}, {"%cluster_nctarank", FixedRow::Kind::cluster_nctarank},
          {"%clusterid.x", FixedRow::Kind::clusterid_x},           {"%clusterid.y", FixedRow::Kind::clusterid_y},
          {"%clusterid.z", FixedRow::Kind::clusterid_z},           {"%nclusterid.x", FixedRow::Kind::nclusterid_x},
          {"%nclusterid.y", FixedRow::Kind::nclusterid_y},         {"%nclusterid.z", FixedRow::Kind::nclusterid_z},
          {"%is_explicit_cluster", FixedRow::Kind::is_explicit_cluster},
      };
      const std::string& name = function_.names[operand.symbol];
      const auto it = kinds.find(name);
      if (it == kinds.end()) refuse("special register " + name + " is not supported here");
      if (rows > 2) refuse("special register " + name + " as a 128-bit value");
      if (type != Type::pred && it->second == FixedRow::Kind::is_explicit_cluster) refuse(name + " is a predicate");
      const auto [entry, added] = specials_.try_emplace({int(it->second), rows}, kNoVirtual);
      if (added) entry->second = fixed_virtual(it->second, 0, FixedRow::Kind::zero, 0, rows);
      return entry->second;
    }
    case Operand::Kind::symbol: {
      const auto found = symbol(operand.symbol);
      if (!found) refuse("'" + function_.names[operand.symbol] + "' is no variable with an address");
      if (found->global >= 0) {
        if (rows != 2) refuse("the address of '" + function_.names[operand.symbol] + "' has 64 bits");
        if (operand.offset != 0) refuse("an offset to the address of a global variable");
        const auto [entry, added] = specials_.try_emplace({-1 - found->global, rows}, kNoVirtual);
        if (added) {
          entry->second = fixed_virtual(FixedRow::Kind::global_address_low, uint32_t(found->global),
                                        FixedRow::Kind::global_address_high, uint32_t(found->global), rows);
        }
        return entry->second;
      }
      if (found->space == ptx::Space::shared) return shared_address(found->address + uint64_t(operand.offset), rows);
      return constant(found->address + uint64_t(operand.offset), rows);
    }
    default: refuse("operand cannot be a source value");
  }
}

Virtual Builder::destination(const Operand& operand, Type type) {
  const Virtual v = wide_destination(operand, rows_of(type));
  const uint32_t have = ptx::size_in_bytes(register_type(operand)), want = ptx::size_in_bytes(type);
  if (operand.kind == Operand::Kind::reg && have != want) {
    refuse("register " + function_.registers[operand.reg].name + " has " + std::to_string(8 * have) + " bits; the instruction's result has " + std::to_string(8 * want));
  }
  return v;
}

Virtual Builder::destination(const Operand& operand, uint32_t rows) {
  return destination(operand, rows == 1 ? Type::b32 : rows == 2 ? Type::b64 : Type::b128);
}

Virtual Builder::wide_destination(const Operand& operand, uint32_t rows) {
  if (operand.kind == Operand::Kind::sink) return scratch(rows);
  if (operand.kind != Operand::Kind::reg) refuse("the destination must be a register");
  const Type declared = register_type(operand);
  if (declared == Type::pred) refuse("predicate register as the destination of a value");
  if (rows_of(declared) != rows) {
    refuse("register " + function_.registers[operand.reg].name + " does not have the width of the instruction's result");
  }
  return operand.reg;
}

uint16_t Builder::predicate_of(int32_t reg) {
  if (function_.registers[reg].type != Type::pred) refuse(function_.registers[reg].name + " is no predicate");
  if (predicate_index_[reg] < 0) predicate_index_[reg] = int32_t(code_.predicates++);
  return uint16_t(predicate_index_[reg]);
}

uint16_t Builder::carry_predicate() {
  if (carry_ == 0) carry_ = scratch_predicate();
  return carry_;
}

uint16_t Builder::scratch_predicate() { return uint16_t(code_.predicates++); }

uint16_t Builder::predicate(const Operand& operand, bool* negated) {
  if (operand.kind == Operand::Kind::immediate && !operand.is_float) {
    *negated = operand.bits == 0;  // predicate 0 is the constant true
    return 0;
  }
  if (operand.kind != Operand::Kind::reg) refuse("a predicate is needed here");
  *negated = operand.negated;
  return predicate_of(operand.reg);
}

uint16_t Builder::predicate_destination(const Operand& operand) {
  if (operand.kind == Operand::Kind::sink) return 0;
  if (operand.kind != Operand::Kind::reg) refuse("a predicate register is needed here");
  return predicate_of(operand.reg);
}

void Builder::def(Field field, Virtual v, uint32_t row, bool partial) {
  slots_.push_back({uint32_t(code_.ops.size() - 1), 0, v, field, uint8_t(row), true, partial});
}
void Builder::use(Field field, Virtual v, uint32_t row) {
  slots_.push_back({uint32_t(code_.ops.size() - 1), 0, v, field, uint8_t(row), false, true});
}
void Builder::aux_def(Virtual v, uint32_t row) {
  slots_.push_back({uint32_t(code_.ops.size() - 1), uint32_t(code_.aux.size()), v, Field::aux, uint8_t(row), true, false});
  code_.aux.push_back(0);
  ++code_.ops.back().aux_count;
}
void Builder::aux_use(Virtual v, uint32_t row) {
  slots_.push_back({uint32_t(code_.ops.size() - 1), uint32_t(code_.aux.size()), v, Field::aux, uint8_t(row), false, true});
  code_.aux.push_back(0);
  ++code_.ops.back().aux_count;
}
void Builder::aux_def_use(Virtual v) {
  aux_use(v);
  slots_.back().is_def = true;
}

uint16_t Builder::row_of(const Slot& slot) const {
  const Op& op = code_.ops[slot.op];
  switch (slot.field) {
    case Field::d: return op.d;
    case Field::a: return op.a;
    case Field::b: return op.b;
    case Field::c: return op.c;
    case Field::aux: break;
  }
  return code_.aux[slot.aux];
}

// A slot names one row of a register; most ops touch the rows behind it too.
uint32_t Builder::rows_touched(const Slot& slot) const {
  if (slot.field == Field::aux) return 1;
  const Handler run = code_.ops[slot.op].run;
  const uint32_t most = run == lane_handler(LaneCode::mov32) ? 1 : run == lane_handler(LaneCode::mov64) ? 2 : 4;
  return std::min<uint32_t>(most, virtual_rows_[slot.v] - slot.row);
}

bool Builder::address(const Operand& operand, AddressSpace space) {
  if (operand.kind != Operand::Kind::address && operand.kind != Operand::Kind::tensor) refuse("an address is needed here");
  Op& op = code_.ops.back();
  op.space = space;
  op.imm = operand.offset;
  if (operand.reg >= 0) {
    const uint32_t rows = rows_of(function_.registers[operand.reg].type);
    if (function_.registers[operand.reg].type == Type::pred) refuse("a predicate as an address");
    use(Field::a, operand.reg);
    return rows == 2;
  }
  if (operand.symbol >= 0) {
    const auto found = symbol(operand.symbol);
    if (!found) refuse("'" + function_.names[operand.symbol] + "' is no variable with an address");
    if (found->global >= 0) {
      Operand name;
      name.kind = Operand::Kind::symbol;
      name.symbol = operand.symbol;
      const Virtual v = source(name, Type::u64);
      use(Field::a, v);
      return true;
    }
    code_.ops.back().imm = int64_t(uint64_t(code_.ops.back().imm) + found->address);  // may wrap: the access is checked
    if (found->space == ptx::Space::shared) {
      use(Field::a, shared_address(0, 2));
      return true;
    }
  }
  use(Field::a, constant(0, 2));
  return true;
}

Virtual Builder::address_value(const Operand& operand) {
  if (operand.kind != Operand::Kind::address && operand.kind != Operand::Kind::tensor) refuse("an address is needed here");
  Virtual base;
  if (operand.reg >= 0) {
    if (function_.registers[operand.reg].type == Type::pred) refuse("a predicate as an address");
    base = operand.reg;
  } else if (operand.symbol >= 0) {
    Operand name;
    name.kind = Operand::Kind::symbol;
    name.symbol = operand.symbol;
    const auto found = symbol(operand.symbol);
    const bool param = found && found->space == ptx::Space::param;
    base = found && !param && found->global < 0 ? source(name, Type::u32) : source(name, Type::u64);
    if (param) base = constant(found->address + kParamWindow, 2);  // a tensor map given by its parameter's name
  } else {
    return constant(uint64_t(operand.offset), 1);
  }
  if (operand.offset == 0) return base;
  const uint32_t width = virtual_rows_[base];
  const Virtual sum = scratch(width), offset = constant(uint64_t(operand.offset), width);
  emit(width == 2 ? LaneCode::add_64 : LaneCode::add_32);
  use(Field::a, base);
  use(Field::b, offset);
  def(Field::d, sum);
  return sum;
}

constexpr uint64_t kMaxLocalBytes = 512 << 10;  // a thread
constexpr uint64_t kMaxParamBytes = 32764;      // of an entry (PTX ISA 5.1.6.1)

// Static shared variables from the first user byte, the dynamic ones behind them; parameters and locals by their order.
void Builder::lay_out_variables() {
  uint64_t shared = kSharedBase, local = 0, param = 0;
  std::vector<const ptx::Variable*> dynamic;
  const auto place = [&](const ptx::Variable& v) {
    if (v.alignment == 0 || !std::has_single_bit(v.alignment)) refuse("alignment of '" + v.name + "' is no power of two");
    switch (v.space) {
      case ptx::Space::shared:
        if (v.is_extern || v.size == 0) {
          dynamic.push_back(&v);
        } else {
          shared = align_up(shared, v.alignment);
          symbols_[v.name] = {v.space, shared, -1};
          shared += v.size;
        }
        break;
      case ptx::Space::local:
        local = align_up(local, v.alignment);
        symbols_[v.name] = {v.space, local, -1};
        local += v.size;
        break;
      case ptx::Space::param: {
        const uint32_t alignment = std::max(v.alignment, ptx::size_in_bytes(v.type));
        param = align_up(param, alignment);
        symbols_[v.name] = {v.space, param, -1};
        param += v.size;
        break;
      }
      default: refuse("variable '" + v.name + "' is in a space that a function cannot declare");
    }
  };
  int32_t global = 0;
  for (const ptx::Variable& v : module_.variables) {
    if (v.space == ptx::Space::global || v.space == ptx::Space::constant) {
      symbols_[v.name] = {v.space, 0, global++};
    } else {
      place(v);
    }
  }
  for (const ptx::Variable& v : function_.params) place(v);
  for (const ptx::Variable& v : function_.variables) place(v);
  code_.static_shared_bytes = uint32_t(shared - kSharedBase);
  uint32_t alignment = 16;  // all dynamic variables are the same bytes
  for (const ptx::Variable* v : dynamic) alignment = std::max(alignment, v->alignment);
  code_.dynamic_shared = uint32_t(align_up(shared, alignment));
  for (const ptx::Variable* v : dynamic) symbols_[v->name] = {v->space, code_.dynamic_shared, -1};
  if (local > kMaxLocalBytes) refuse("local variables of " + std::to_string(local) + " bytes; a thread has at most " + std::to_string(kMaxLocalBytes));
  if (param > kMaxParamBytes) refuse("parameters of " + std::to_string(param) + " bytes; at most " + std::to_string(kMaxParamBytes) + " are possible");
  code_.local_bytes = uint32_t(align_up(local, 16));
  code_.param_bytes = uint32_t(param);
  if (shared > kSharedBase + kSharedLimit) refuse("static shared memory exceeds 232448 bytes");
}

void Builder::decode_instruction() {
  const auto family = families().find(instruction_->parts[0]);
  if (family == families().end()) refuse("the instruction '" + std::string(instruction_->opcode) + "' is not simulated");
  if (const std::string missing = missing_in_target(*instruction_, module_); !missing.empty()) refuse(missing);
  Modifiers modifiers(*instruction_);
  family->second(*this, modifiers);
  if (!modifiers.first_left().empty()) {
    refuse("unknown modifier '." + std::string(modifiers.first_left()) + "' of '" + std::string(instruction_->opcode) + "'");
  }
}

void Builder::decode() {
  virtual_rows_.reserve(function_.registers.size() + 64);
  for (const ptx::Register& r : function_.registers) virtual_rows_.push_back(uint8_t(rows_of(r.type)));
  fixed_words_.resize(virtual_rows_.size());
  predicate_index_.assign(function_.registers.size(), -1);
  op_of_instruction_.resize(function_.instructions.size() + 1);
  std::vector<ptx::Error> refused;
  std::unordered_set<std::string_view> opcodes;  // of these: each is named once
  for (size_t i = 0; i < function_.instructions.size(); ++i) {
    op_of_instruction_[i] = uint32_t(code_.ops.size());
    instruction_ = &function_.instructions[i];
    instruction_index_ = uint32_t(i);
    try {
      decode_instruction();
    } catch (const ptx::Error& error) {
      if (opcodes.insert(instruction_->opcode).second) refused.push_back(error);
    }
  }
  if (refused.size() == 1) throw refused.front();
  if (!refused.empty()) throw ptx::Error(std::to_string(refused.size()) + " instructions of " + function_.name, refused);
  op_of_instruction_.back() = uint32_t(code_.ops.size());
  // Falling off the end is an exit.
  static const ptx::Instruction& end = *new ptx::Instruction;
  instruction_ = &end;
  instruction_index_ = uint32_t(function_.instructions.size());
  emit(exit_lanes);
  if (code_.predicates > 65535) refuse("more than 65535 predicates");
}

Code Builder::build() {
  code_.name = function_.name;
  code_.function = &function_;
  lay_out_variables();
  decode();
  link_branches();
  find_blocks();
  find_joins();
  find_undelivered_uses();
  allocate_rows();
  find_flows();
  guard_undelivered_uses();
  uint64_t threads = 1;
  const bool required = function_.required_threads[0] != 0;
  const uint32_t* limits = required ? function_.required_threads : function_.max_threads;
  for (int i = 0; i < 3; ++i) threads *= std::max(1u, limits[i]);
  std::copy(function_.cluster, function_.cluster + 3, code_.cluster);
  code_.max_cluster_rank = function_.max_cluster_rank;
  code_.explicit_cluster = function_.explicit_cluster || function_.cluster[0] != 0;
  code_.max_threads = limits[0] ? uint32_t(std::min<uint64_t>(threads, 1024)) : 1024;
  const uint32_t per_thread = kRegisterFile / (align_up(code_.max_threads, 128) * std::max(1u, function_.min_ctas));
  code_.launch_registers = function_.max_registers ? function_.max_registers : std::min(255u, per_thread / 8 * 8);
  return std::move(code_);
}

}  // namespace fa4::sim
