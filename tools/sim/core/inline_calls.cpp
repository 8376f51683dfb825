// SPDX-License-Identifier: Apache-2.0
#include "inline_calls.h"

#include <algorithm>
#include <unordered_map>

namespace fa4::sim {

using ptx::Function;
using ptx::Instruction;
using ptx::Module;
using ptx::Operand;

namespace {

constexpr size_t kMostInstructions = 1'000'000;
constexpr std::string_view kBranch[] = {"bra"};

bool is_call(const Instruction& i) {
  return i.parts[0] == "call";
}

[[noreturn]] void refuse(const Module& module, const Instruction& at, const std::string& message) {
  throw ptx::Error(at.location.line, at.location.column, message, ptx::line_text(module, at.location.line));
}

struct Call {
  std::vector<Operand> returns, arguments;
  const Operand* name = nullptr;
};
Call parts_of(const Module& module, const Instruction& i) {
  Call call;
  for (const Operand& o : i.operands) {
    if (o.kind == Operand::Kind::call_list)
      (call.name ? call.arguments : call.returns) = o.elements;
    else if (o.kind == Operand::Kind::symbol && !call.name)
      call.name = &o;
    else
      refuse(module, i, "only calls of a named function are supported");
  }
  if (!call.name) refuse(module, i, "only calls of a named function are supported");
  return call;
}

class Expansion {
 public:
  Expansion(const Module& module, const Function& source) : module_(module), result_(source) {
    result_.instructions.clear();
    for (ptx::Variable& v : result_.variables) {
      if (v.space == ptx::Space::param) v.space = ptx::Space::local;
    }
    stack_.push_back(&source);
  }

  Function run(const Function& source) {
    Mapping same;
    append(source, same, -1);
    return std::move(result_);
  }

 private:
  // Where the parts of a function go in the result.
  struct Mapping {
    bool identity = true;
    int32_t registers = 0, labels = 0, tables = 0;
    std::vector<int32_t> names;
  };

  [[noreturn]] void refuse(const Instruction& at, const std::string& message) const {
    sim::refuse(module_, at, message);
  }

  int32_t intern(const std::string& name) {
    result_.names.push_back(name);
    return int32_t(result_.names.size() - 1);
  }

  Operand moved(Operand o, const Mapping& m) const {
    if (m.identity) return o;
    if (o.reg >= 0) o.reg += m.registers;
    if (o.reg2 >= 0) o.reg2 += m.registers;
    if (o.symbol >= 0) o.symbol = m.names[size_t(o.symbol)];
    if (o.label >= 0) o.label += o.kind == Operand::Kind::branch_table ? m.tables : m.labels;
    for (Operand& e : o.elements) e = moved(std::move(e), m);
    return o;
  }

  Instruction branch_to(int32_t label, const Instruction& from, int32_t guard, bool negated) const {
    Instruction i;
    i.opcode = kBranch[0];
    i.parts = kBranch;
    i.location = from.location;
    i.guard = guard;
    i.guard_negated = negated;
    Operand target;
    target.kind = Operand::Kind::label;
    target.label = label;
    i.operands.push_back(std::move(target));
    return i;
  }

  int32_t new_label(const std::string& name) {
    result_.labels.push_back({name, 0});
    return int32_t(result_.labels.size() - 1);
  }
  void put(Instruction i) {
    if (result_.instructions.size() >= kMostInstructions)
      refuse(i, "with the functions that it calls the kernel has more than a million instructions");
    result_.instructions.push_back(std::move(i));
  }

  // The instructions of `f`, its labels already at m.labels; `end` is where a ret goes, -1: it stays.
  void append(const Function& f, const Mapping& m, int32_t end) {
    std::vector<std::vector<int32_t>> labels_at(f.instructions.size() + 1);
    for (size_t l = 0; l < f.labels.size(); ++l)
      labels_at[f.labels[l].instruction].push_back(int32_t(l) + (m.identity ? 0 : m.labels));
    for (size_t n = 0; n <= f.instructions.size(); ++n) {
      for (int32_t label : labels_at[n])
        result_.labels[size_t(label)].instruction = uint32_t(result_.instructions.size());
      if (n == f.instructions.size()) break;
      Instruction i = f.instructions[n];
      if (!m.identity && i.guard >= 0) i.guard += m.registers;
      for (Operand& o : i.operands) o = moved(std::move(o), m);
      if (is_call(i)) {
        call(std::move(i));
      } else if (end >= 0 && i.parts[0] == "ret") {
        put(branch_to(end, i, i.guard, i.guard_negated));
      } else {
        put(std::move(i));
      }
    }
  }

  void call(Instruction i) {
    const auto [returns, arguments, name] = parts_of(module_, i);
    const std::string& callee_name = result_.names[size_t(name->symbol)];
    const Function* callee = nullptr;
    for (const Function& f : module_.functions) {
      if (f.name == callee_name) callee = &f;
    }
    if (!callee || !callee->has_body) return put(std::move(i));  // a system call: others are refused when the module is loaded
    if (std::find(stack_.begin(), stack_.end(), callee) != stack_.end())
      refuse(i, "the function '" + callee_name + "' calls itself, which is not supported");
    if (returns.size() != callee->returns.size() || arguments.size() != callee->params.size())
      refuse(i, "the call does not have the parameters of '" + callee_name + "'");

    const std::string suffix = "@" + std::to_string(++calls_);
    Mapping m;
    m.identity = false;
    m.registers = int32_t(result_.registers.size());
    m.labels = int32_t(result_.labels.size());
    m.tables = int32_t(result_.branch_tables.size());
    std::unordered_map<std::string, std::string> renamed;
    const auto bind = [&](const std::vector<ptx::Variable>& formal, const std::vector<Operand>& actual) {
      for (size_t k = 0; k < formal.size(); ++k) {
        if (actual[k].kind != Operand::Kind::symbol)
          refuse(i, "parameters of a call are variables in .param space");
        renamed[formal[k].name] = result_.names[size_t(actual[k].symbol)];
      }
    };
    bind(callee->returns, returns);
    bind(callee->params, arguments);
    for (ptx::Variable v : callee->variables) {
      if (v.space != ptx::Space::local && v.space != ptx::Space::param)
        refuse(i, "'" + callee_name + "' declares a variable that is not local");
      v.space = ptx::Space::local;
      renamed[v.name] = v.name + suffix;
      v.name += suffix;
      result_.variables.push_back(std::move(v));
    }
    for (const ptx::Register& r : callee->registers) result_.registers.push_back({r.name + suffix, r.type});
    for (const ptx::Label& l : callee->labels) result_.labels.push_back({l.name + suffix, 0});
    for (std::vector<int32_t> table : callee->branch_tables) {
      for (int32_t& label : table) label += m.labels;
      result_.branch_tables.push_back(std::move(table));
    }
    for (const std::string& n : callee->names) {
      const auto found = renamed.find(n);
      m.names.push_back(intern(found == renamed.end() ? n : found->second));
    }
    const int32_t end = new_label("return" + suffix);
    if (i.guard >= 0) put(branch_to(end, i, i.guard, !i.guard_negated));
    stack_.push_back(callee);
    append(*callee, m, end);
    stack_.pop_back();
    result_.labels[size_t(end)].instruction = uint32_t(result_.instructions.size());
  }

  const Module& module_;
  Function result_;
  std::vector<const Function*> stack_;
  size_t calls_ = 0;
};

}  // namespace

bool has_calls(const Function& f) {
  return std::any_of(f.instructions.begin(), f.instructions.end(), is_call);
}

void check_callees(const Module& module) {
  std::unordered_map<std::string_view, bool> has_body;
  for (const Function& f : module.functions) has_body[f.name] |= f.has_body;
  for (const Function& f : module.functions) {
    for (const Instruction& i : f.instructions) {
      if (!is_call(i)) continue;
      const Call call = parts_of(module, i);
      const std::string& name = f.names[size_t(call.name->symbol)];
      const auto callee = has_body.find(name);
      if ((callee != has_body.end() && callee->second) || is_system_call(name, call.returns.size(), call.arguments.size())) continue;
      refuse(module, i, "the function '" + name + "' has no body here");
    }
  }
}

Function inline_calls(const Module& module, const Function& function) {
  return Expansion(module, function).run(function);
}

}  // namespace fa4::sim
