// SPDX-License-Identifier: Apache-2.0
// Control flow with a program counter for each lane, and what a warp asks of its SM: registers, time, an end.
#include <algorithm>
#include <bit>

#include "builder.h"
#include "control.h"
#include "convergence.h"
#include "hex.h"
#include "machine.h"

namespace fa4::sim {

using ptx::Type;
using Field = Builder::Field;

const Op* branch(Warp& w, const Op* op, Mask taken) {
  Fragment& f = w.fragment();
  const Op* ops = w.code->ops.data();
  if (Observer* observer = w.cta->observer) observer->branched(w, op, f.mask, taken, ops + op->target);
  if (taken == f.mask) return ops + op->target;
  const Op* meet = op->join < w.code->ops.size() ? ops + op->join : nullptr;
  if (lanes_are_independent(*w.cta) && drawn(*w.cta, 2) == 0) meet = nullptr;
  int16_t join = f.join;
  if (meet && !(join >= 0 && w.joins[join].at == meet)) {
    auto free = std::find_if(w.joins.begin(), w.joins.end(), [](const Join& j) { return !j.live; });
    if (free == w.joins.end()) free = w.joins.insert(w.joins.end(), Join{});
    *free = {meet, f.mask, 0, f.join, true};
    join = int16_t(free - w.joins.begin());
  }
  Fragment other = f;
  other.mask = f.mask & ~taken;
  other.pc = op + 1;
  other.join = join;
  f.mask = taken;
  f.pc = ops + op->target;
  f.join = join;
  const bool first_joins = f.pc == meet, second_joins = other.pc == meet;
  w.fragments.push_back(other);
  const int32_t second = int32_t(w.fragments.size() - 1);
  // One side may be at the meeting point already.
  if (first_joins) {
    arrive_at_join(w);
  } else if (second_joins) {
    w.current = second;
    arrive_at_join(w);
  }
  return nullptr;
}

const Op* branch_uniform(Warp& w, const Op* op, Mask taken) {
  if (taken != w.fragment().mask) {
    fault(w, op, Fault::Kind::illegal_instruction, "bra.uni is taken by lanes " + hex(taken) + " of " + hex(w.fragment().mask));
  }
  const Op* target = w.code->ops.data() + op->target;
  if (Observer* observer = w.cta->observer) observer->branched(w, op, taken, taken, target);
  return target;
}

const Op* exit_lanes(Warp& w, const Op* op, Mask lanes) {
  w.alive &= ~lanes;
  const int16_t join = w.fragment().join;
  if (w.fragment().mask == lanes) {
    w.fragments.erase(w.fragments.begin() + w.current);
  } else {
    w.fragment().mask &= ~lanes;
    w.fragment().pc = op + 1;
  }
  leave_joins(w, join, lanes);
  regroup(w);
  leave_barriers(w, lanes);
  ++w.cta->scheduler->progress;
  return nullptr;
}

namespace {

const Op* trap(Warp& w, const Op* op, Mask) {
  fault(w, op, Fault::Kind::trap, "trap");
}
const Op* nothing(Warp&, const Op* op, Mask) { return op + 1; }

const Op* sleep(Warp& w, const Op* op, Mask mask) {
  w.time += w.rows[op->a].lane[first_lane(mask)];
  return op + 1;
}
const Op* clock64(Warp& w, const Op* op, Mask mask) {
  for (; mask; mask &= mask - 1) {
    const int i = first_lane(mask);
    w.rows[op->d].lane[i] = uint32_t(w.time);
    if (op->size == 8) w.rows[op->d + 1].lane[i] = uint32_t(w.time >> 32);
  }
  return op + 1;
}

// setmaxnreg: .dec gives registers to a pool of the CTA, in which there are none at launch; .inc waits until it has enough (mode 1).
const Op* setmaxnreg(Warp& w, const Op* op, Mask mask) {
  if (!whole_warp(w, op, mask)) return nullptr;
  Cta& cta = *w.cta;
  const uint32_t wanted = uint32_t(op->imm);
  std::vector<uint32_t>& history = cta.setmaxnreg_history[w.index / 4];
  const bool differs = w.setmaxnreg_count < history.size() && history[w.setmaxnreg_count] != wanted;
  if (differs && cta.launch->model != Model::silicon) {
    fault(w, op, Fault::Kind::illegal_instruction, "setmaxnreg " + std::to_string(wanted) + " where another warp of the warpgroup asked for " +
          std::to_string(history[w.setmaxnreg_count]));
  }
  if (differs && cta.observer) cta.observer->register_counts_differ(w, op, history[w.setmaxnreg_count]);
  if (op->mode == 1) {
    if (wanted < w.registers) fault(w, op, Fault::Kind::illegal_instruction, "setmaxnreg.inc to " + std::to_string(wanted) + " below the present " + std::to_string(w.registers));
    const uint32_t more = (wanted - w.registers) * kLanes;
    if (more > cta.register_pool) {
      Fragment& f = w.fragment();
      f.state = Fragment::State::registers;
      f.wait_object = more;
      f.wait_begin = w.time;
      f.pc = op;
      return nullptr;
    }
    cta.register_pool -= more;
  } else {
    if (wanted > w.registers) fault(w, op, Fault::Kind::illegal_instruction, "setmaxnreg.dec to " + std::to_string(wanted) + " above the present " + std::to_string(w.registers));
    cta.register_pool += (w.registers - wanted) * kLanes;
    for (Warp& other : cta.warps) {
      for (Fragment& f : other.fragments) {
        if (f.state == Fragment::State::registers) {
          f.state = Fragment::State::ready;
          other.time = std::max(other.time, w.time);
        }
      }
    }
    cta.scheduler->slice_end = w.time;
  }
  ++cta.scheduler->progress;
  if (w.setmaxnreg_count == history.size()) history.push_back(wanted);
  ++w.setmaxnreg_count;
  w.registers = wanted;
  return op + 1;
}

// ---- from PTX ------------------------------------------------------------------------------------------------------------

void build_branch(Builder& b, Modifiers& m) {
  const bool uniform = m.take("uni");
  if (b.operand(0).kind != ptx::Operand::Kind::label) b.refuse("bra needs a label");
  b.emit(uniform ? branch_uniform : branch).target = uint32_t(b.operand(0).label);
}
void build_exit(Builder& b, Modifiers& m) {
  m.take("uni");
  b.emit(exit_lanes);
}
void build_trap(Builder& b, Modifiers&) { b.emit(trap); }
void build_nanosleep(Builder& b, Modifiers& m) {
  if (m.type() != Type::u32) b.refuse("nanosleep works on .u32");
  const Virtual n = b.source(b.operand(0), Type::u32);
  b.emit(sleep);
  b.use(Field::a, n);
}
// brx.idx index, list: a branch for each label, by comparison; an index beyond the list is a fault.
void build_indexed_branch(Builder& b, Modifiers& m) {
  m.take("uni");
  if (!m.take("idx")) b.refuse("brx is brx.idx");
  if (b.operand(1).kind != ptx::Operand::Kind::branch_table) b.refuse("brx.idx needs a .branchtargets list");
  const std::vector<int32_t>& labels = b.function().branch_tables[size_t(b.operand(1).label)];
  const Virtual index = b.source(b.operand(0), Type::u32);
  const uint16_t taken = b.scratch_predicate();
  for (size_t i = 0; i < labels.size(); ++i) {
    const Virtual number = b.constant(i, 1);
    Op& compare = b.emit(LaneCode::setp_u32);
    compare.mode = uint8_t(Compare::eq);
    compare.pd = taken;
    const uint16_t guard = compare.guard;
    const bool guard_not = compare.guard_not;
    compare.guard = 0, compare.guard_not = false;
    b.use(Field::a, index);
    b.use(Field::b, number);
    if (guard) {  // the instruction's own guard holds for each of its branches
      Op& both = b.emit(LaneCode::pred_and);
      both.pa = taken, both.pb = guard, both.pb_not = guard_not, both.pd = taken;
      both.guard = 0, both.guard_not = false;
    }
    Op& jump = b.emit(branch);
    jump.target = uint32_t(labels[i]);
    jump.guard = taken, jump.guard_not = false;
  }
  b.emit(trap);
}

void build_setmaxnreg(Builder& b, Modifiers& m) {
  const bool inc = m.take("inc");
  if ((!inc && !m.take("dec")) || !m.take("sync") || !m.take("aligned") || m.type() != Type::u32) {
    b.refuse("setmaxnreg is setmaxnreg.{inc,dec}.sync.aligned.u32");
  }
  const ptx::Operand& n = b.operand(0);
  if (n.kind != ptx::Operand::Kind::immediate || n.bits < 24 || n.bits > 256 || n.bits % 8 != 0) {
    b.refuse("setmaxnreg takes an immediate from 24 to 256, a multiple of 8");
  }
  Op& op = b.emit(setmaxnreg);
  op.mode = inc;
  op.imm = int64_t(n.bits);
}

void build_griddepcontrol(Builder& b, Modifiers& m) {
  // Grids run one after the other: what they depend on has finished.
  if (!m.take("wait") && !m.take("launch_dependents")) b.refuse("griddepcontrol is .wait or .launch_dependents");
  b.emit(nothing);
}

}  // namespace

bool read_clock(Builder& b, const ptx::Operand& operand, uint32_t rows) {
  const std::string& name = b.function().names[operand.symbol];
  if (name != "%clock64" && name != "%clock" && name != "%globaltimer") return false;
  if ((name == "%clock") != (rows == 1)) b.refuse(name + " does not have this width");
  const Virtual d = b.destination(b.operand(0), rows);
  b.emit(clock64).size = uint8_t(rows * 4);
  b.def(Field::d, d);
  return true;
}

std::vector<FamilyRow> control_rows() {
  return {{"bra", build_branch}, {"brx", build_indexed_branch}, {"exit", build_exit}, {"ret", build_exit},
          {"trap", build_trap}, {"setmaxnreg", build_setmaxnreg}, {"nanosleep", build_nanosleep},
          {"griddepcontrol", build_griddepcontrol}};
}

}  // namespace fa4::sim
