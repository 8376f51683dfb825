// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace fa4::time {

namespace {

struct Row {
  std::string_view opcode;  // without modifiers
  int32_t Work::*kind;
};
constexpr Row kMachineCode[] = {
    {"MUFU", &Work::mufu},     {"FFMA", &Work::fma},      {"FADD", &Work::fma},     {"FMUL", &Work::fma},
    {"FFMA2", &Work::fma},     {"FADD2", &Work::fma},     {"FMUL2", &Work::fma},    {"FMNMX", &Work::minmax},
    {"FMNMX3", &Work::minmax}, {"SHFL", &Work::shuffle},  {"VOTE", &Work::shuffle}, {"VOTEU", &Work::shuffle},
    {"REDUX", &Work::shuffle}, {"MATCH", &Work::shuffle}, {"LDS", &Work::memory},   {"LDSM", &Work::memory},
    {"STS", &Work::memory},    {"STSM", &Work::memory},   {"LDG", &Work::memory},   {"LD", &Work::memory},
    {"STG", &Work::memory},    {"ST", &Work::memory},     {"ATOM", &Work::memory},  {"ATOMG", &Work::memory},
    {"ATOMS", &Work::memory},  {"RED", &Work::memory},    {"REDG", &Work::memory},
};
constexpr Row kPtx[] = {
    {"ex2", &Work::mufu},        {"lg2", &Work::mufu},        {"rcp", &Work::mufu},
    {"rsqrt", &Work::mufu},      {"sqrt", &Work::mufu},       {"sin", &Work::mufu},
    {"cos", &Work::mufu},        {"tanh", &Work::mufu},       {"fma", &Work::fma},
    {"add", &Work::fma},         {"sub", &Work::fma},         {"mul", &Work::fma},
    {"mad", &Work::fma},         {"min", &Work::minmax},      {"max", &Work::minmax},
    {"shfl", &Work::shuffle},    {"vote", &Work::shuffle},    {"redux", &Work::shuffle},
    {"match", &Work::shuffle},   {"ld", &Work::memory},       {"st", &Work::memory},
    {"ldmatrix", &Work::memory}, {"stmatrix", &Work::memory}, {"atom", &Work::memory},
    {"red", &Work::memory},      {"selp", &Work::select},
};

template <class Rows>
int32_t Work::*kind_of(const Rows& rows, std::string_view opcode) {
  for (const Row& row : rows)
    if (row.opcode == opcode) return row.kind;
  return nullptr;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  mufu += other.mufu;
  fma += other.fma;
  minmax += other.minmax;
  shuffle += other.shuffle;
  memory += other.memory;
  select += other.select;
  all += other.all;
  return *this;
}

Work Work::operator-(const Work& other) const {
  return {mufu - other.mufu,     fma - other.fma,       minmax - other.minmax, shuffle - other.shuffle,
          memory - other.memory, select - other.select, all - other.all};
}

Work work_of(const Instruction& x) {
  Work work;
  work.all = 1;
  if (const auto kind = kind_of(kMachineCode, x.base())) work.*kind = x.base() == "FMNMX3" ? 2 : 1;
  return work;
}

Work work_of(const sim::ptx::Instruction& x) {
  const auto has = [&](std::string_view part) { return std::ranges::find(x.parts, part) != x.parts.end(); };
  Work work;
  work.all = 1;
  const auto kind = kind_of(kPtx, x.parts[0]);
  const bool of_f32 = has("f32") || has("f32x2");
  if (kind && !has("param") &&
      ((kind != &Work::fma && kind != &Work::minmax && kind != &Work::select) || of_f32))
    work.*kind = kind == &Work::minmax && x.operands.size() == 4 ? 2 : 1;
  return work;
}

int32_t distance(const Work& a, const Work& b) {
  const auto apart = [&](int32_t Work::*kind) { return std::abs(a.*kind - b.*kind); };
  return 16 * apart(&Work::mufu) + 4 * (apart(&Work::fma) + apart(&Work::minmax)) +
         8 * (apart(&Work::shuffle) + apart(&Work::memory)) + apart(&Work::all);
}

WorkOfWarp::WorkOfWarp(const sim::ptx::Function& function) {
  before_.emplace_back();
  for (uint32_t i = 0; i < function.instructions.size(); ++i) {
    const sim::ptx::Instruction& x = function.instructions[i];
    before_.push_back(before_.back());
    before_.back() += work_of(x);
    if (x.parts[0] == "mbarrier" && (x.parts[1] == "test_wait" || x.parts[1] == "try_wait"))
      waits_.push_back(i);
    if (x.guard < 0 && (x.parts[0] == "ret" || x.parts[0] == "exit")) ends_.push_back(i);
  }
}

Work WorkOfWarp::walk(uint32_t from, uint32_t to) const {
  return from <= to ? before_[to + 1] - before_[from] : Work{};
}

// Lanes that stand together have come here in a row since their last branch; where some joined others on the
// way, those with the longest way did what all of them did. Another round of a wait that fails is no work:
// how often it fails is a property of the simulator.
Work WorkOfWarp::arrive(const fa4sim_sync& r) {
  Work most;
  for (const Lanes& lanes : lanes_) {
    if ((lanes.mask & r.together) == 0) continue;
    if (r.kind == FA4SIM_SYNC_BRANCH && lanes.again) {
      const auto wait = std::ranges::lower_bound(waits_, lanes.next);
      if (wait != waits_.end() && *wait <= r.instruction) continue;
    }
    const Work work = walk(lanes.next, r.instruction);
    if (work.all > most.all) most = work;
  }
  for (Lanes& lanes : lanes_) lanes.mask &= ~r.together;
  std::erase_if(lanes_, [](const Lanes& lanes) { return lanes.mask == 0; });
  last_ = r.together;
  return most;
}

Work WorkOfWarp::next(const fa4sim_sync& r) {
  if (r.instruction + 1 >= before_.size() || (r.kind == FA4SIM_SYNC_BRANCH && r.address >= before_.size()))
    throw Error("a record speaks of an instruction that the entry does not have: PTX line " +
                std::to_string(r.line));
  since_ += arrive(r);
  if (r.kind != FA4SIM_SYNC_BRANCH) {
    lanes_.push_back({r.together, r.instruction + 1, false});
    return r.kind == FA4SIM_SYNC_INIT ? Work{} : std::exchange(since_, {});
  }
  if (r.taken) lanes_.push_back({r.taken, r.address, r.address <= r.instruction});
  if (r.together & ~r.taken) lanes_.push_back({r.together & ~r.taken, r.instruction + 1, false});
  return {};
}

// Of the lanes that were there last: others have left, or the warp never had them.
Work WorkOfWarp::rest() {
  Work most;
  for (const Lanes& lanes : lanes_) {
    if ((lanes.mask & last_) == 0) continue;
    const auto end = std::ranges::lower_bound(ends_, lanes.next);
    const Work work = end == ends_.end() ? Work{} : walk(lanes.next, *end);
    if (work.all > most.all) most = work;
  }
  since_ += most;
  return since_;
}

}  // namespace fa4::time
