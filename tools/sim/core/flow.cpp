// SPDX-License-Identifier: Apache-2.0
// How undefined bits go through each op of a function: what the handlers are, and which operands they have.
#include <algorithm>
#include <unordered_set>

#include "builder.h"

namespace fa4::sim {

namespace {

// Operands of `bits` that say which bits of the others count.
enum Controls : uint8_t { kNone = 0, kA = 1, kB = 2, kC = 4, kAux = 8, kPredicate = 16 };

struct Bitwise {
  LaneCode code;
  uint8_t controls;
};
using enum LaneCode;
constexpr Bitwise kBitwise[] = {
    {mov16, kNone}, {mov32, kNone}, {mov64, kNone}, {mov128, kNone}, {low_half, kNone}, {high_half, kNone}, {pack_halves, kNone},
    {selp32, kPredicate}, {selp64, kPredicate}, {predicate_to_01, kNone},
    {and_16, kNone}, {and_32, kNone}, {and_64, kNone}, {or_16, kNone}, {or_32, kNone}, {or_64, kNone},
    {xor_16, kNone}, {xor_32, kNone}, {xor_64, kNone}, {not_16, kNone}, {not_32, kNone}, {not_64, kNone}, {lop3, kNone},
    {shl_16, kB}, {shl_32, kB}, {shl_64, kB}, {shr_s16, kB}, {shr_u16, kB}, {shr_s32, kB}, {shr_u32, kB}, {shr_s64, kB}, {shr_u64, kB},
    {shf_l_wrap, kC}, {shf_l_clamp, kC}, {shf_r_wrap, kC}, {shf_r_clamp, kC}, {brev_32, kNone}, {brev_64, kNone},
    {bfe_u32, kB | kC}, {bfe_s32, kB | kC}, {bfe_u64, kB | kC}, {bfe_s64, kB | kC}, {prmt, kC},
    {cvt_s8, kNone}, {cvt_u8, kNone}, {cvt_s16, kNone}, {cvt_u16, kNone}, {cvt_s32, kNone}, {cvt_u32, kNone}, {cvt_s64, kNone}, {cvt_u64, kNone},
    {pred_and, kNone}, {pred_or, kNone}, {pred_xor, kNone}, {pred_mov, kNone}};
// The same of handlers that several opcodes share.
constexpr std::pair<std::string_view, uint8_t> kBitwiseOpcodes[] = {{"bfi", kC | kAux}, {"szext", kB}, {"prmt", kC}, {"slct", kC}};

bool is_comparison(Handler run) {
  constexpr LaneCode all[] = {setp_u16, setp_s16, setp_u32, setp_s32, setp_u64, setp_s64, setp_f32, setp_f64};
  return std::any_of(std::begin(all), std::end(all), [&](LaneCode code) { return lane_handler(code) == run; });
}

// Opcodes whose results depend on nothing but the lane's own registers and predicates.
bool is_lane_wise(std::string_view opcode) {
  static const auto& all = *new auto([] {  // never destroyed: programs load modules in static destructors
    std::unordered_set<std::string_view> opcodes{"cvta", "isspacep"};
    for (auto rows : {integer_rows, bit_rows, half_rows, float_rows, approx_rows}) {
      for (const FamilyRow& row : rows()) opcodes.insert(row.opcode);
    }
    return opcodes;
  }());
  return all.count(opcode) != 0;
}

}  // namespace

void Builder::find_flows() {
  std::unordered_map<Handler, uint8_t> bitwise;
  for (const Bitwise& row : kBitwise) bitwise.emplace(lane_handler(row.code), row.controls);
  code_.flows.resize(code_.ops.size());
  std::vector<uint8_t> controls(code_.ops.size(), kNone);
  for (size_t i = 0; i < code_.ops.size(); ++i) {
    const Op& op = code_.ops[i];
    OpFlow& flow = code_.flows[i];
    flow.run = op.run;
    if (code_.instruction[i] >= function_.instructions.size()) continue;
    const auto& parts = function_.instructions[code_.instruction[i]].parts;
    const std::string_view opcode = parts[0], type = parts.back();
    const auto says = [&](std::string_view part) { return std::find(parts.begin(), parts.end(), part) != parts.end(); };
    if (opcode == "ld" || opcode == "ldu") flow.flow = Flow::loads;
    if (opcode == "st" && !says("async")) flow.flow = Flow::stores;
    if (opcode == "shfl") {
      flow.flow = Flow::shuffles;
      controls[i] = kB | kC | kAux;
    }
    if (!is_lane_wise(opcode)) continue;
    const auto by_opcode = std::find_if(std::begin(kBitwiseOpcodes), std::end(kBitwiseOpcodes), [&](const auto& row) { return row.first == opcode; });
    const auto by_handler = bitwise.find(op.run);
    if (by_handler != bitwise.end() || by_opcode != std::end(kBitwiseOpcodes)) {
      flow.flow = Flow::bits;
      controls[i] = by_handler != bitwise.end() ? by_handler->second : by_opcode->second;
      flow.predicate_controls = controls[i] & kPredicate;
    } else if (is_comparison(op.run) || opcode == "setp" || opcode == "set" || opcode == "testp" || opcode == "isspacep") {
      flow.flow = Flow::compares;
    } else {
      const bool pair = type == "f16x2" || type == "bf16x2" || type == "u16x2" || type == "s16x2";
      flow.flow = type == "f32x2" ? Flow::words : pair && opcode != "cvt" ? Flow::halves : Flow::computes;
      flow.reads_carry = opcode == "addc" || opcode == "subc" || opcode == "madc";
      flow.writes_carry = says("cc");
    }
  }
  for (const Slot& slot : slots_) {  // in the order of their ops
    OpFlow& flow = code_.flows[slot.op];
    if (flow.operand_count++ == 0) flow.operands = uint32_t(code_.flow_operands.size());
    const uint8_t bit = slot.field == Field::a ? kA : slot.field == Field::b ? kB : slot.field == Field::c ? kC : slot.field == Field::aux ? kAux : kNone;
    const bool memory = flow.flow == Flow::loads || flow.flow == Flow::stores;
    code_.flow_operands.push_back({row_of(slot), uint8_t(rows_touched(slot)), reads(slot), slot.is_def, (controls[slot.op] & bit) != 0, memory && slot.field == Field::a});
  }
}

}  // namespace fa4::sim
