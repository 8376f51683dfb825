// SPDX-License-Identifier: Apache-2.0
#include "machine.h"

#include <algorithm>
#include <deque>

#include "phases.h"

namespace fa4::time {

namespace {

using Effect = MicroOp::Effect;

constexpr uint64_t kNever = ~0ull;
constexpr size_t kSchedulers = 4;

Cause busy_cause(Unit unit) {
  switch (unit) {
    case Unit::ffma:
    case Unit::ffma_pair:
      return Cause::ffma_busy;
    case Unit::imad:
      return Cause::imad_busy;
    case Unit::alu:
      return Cause::alu_busy;
    case Unit::mufu:
      return Cause::mufu_busy;
    case Unit::uniform:
      return Cause::uniform_busy;
    case Unit::memory:
      return Cause::memory_busy;
    case Unit::tmem:
      return Cause::tmem_busy;
    case Unit::mma:
      return Cause::mma_busy;
    case Unit::tma:
      return Cause::tma_busy;
    default:
      return Cause::other_warp;
  }
}

// Units that share their dispatch: pairs go through the same lanes as single ones.
size_t lane_of(Unit unit) {
  return size_t(unit == Unit::ffma_pair ? Unit::ffma : unit);
}

bool is_arithmetic(Unit unit) {
  return unit == Unit::ffma || unit == Unit::ffma_pair || unit == Unit::imad || unit == Unit::alu;
}

// One MMA of a warpgroup: it begins when all four warps have issued it.
struct WarpgroupMma {
  uint32_t issued = 0;  // warps
  uint64_t begin = kNever, end = kNever;
  uint64_t done = kNever;  // end, as a wait for its group sees it
  uint32_t index = 0;      // into Timing::mmas
};
constexpr uint32_t kWarpgroup = 4;

struct Warp {
  uint32_t index = 0;
  const WarpWay* way = nullptr;
  const Segment* segment = nullptr;  // null: over
  size_t step = 0, position = 0;
  uint64_t ready = 0;  // by its own stall counts
  Cause ready_cause = Cause::dependency;
  uint64_t scoreboard[6] = {};  // free from this cycle on; kNever: a phase is not complete
  Cause scoreboard_cause[6] = {};
  uint32_t scoreboard_address[6] = {};
  bool at_barrier = false;  // named
  uint64_t last_issue = 0;
  bool issued = false, keep = true;
  bool unit_seen = false;       // since its last issue a unit has kept it waiting
  bool registers_seen = false;  // ... MMAs have kept it out of the register file
  Unit unit_waited = Unit::control;
  uint64_t mufu_blocked = 0;  // newest cycle + 1 in which MUFU had no place for it
  uint64_t stores_done = 0;   // tensor memory
  uint64_t open_group = 0;
  std::deque<uint64_t> groups;       // bulk groups: when their sources have been read
  uint64_t last_mma = kNever;        // index into mmas
  uint32_t mmas = 0;                 // of its warpgroup, that it has issued
  std::vector<uint32_t> mma_groups;  // the last MMA of each group that it has closed
  std::vector<uint32_t> phases;      // [record]
};

struct Scheduler {
  std::vector<uint32_t> warps;
  uint64_t free[size_t(Unit::count)] = {};
  uint64_t mufu_free = 0;              // MUFU starts nothing before
  std::vector<uint64_t> mufu_returns;  // when the places in its queue are free, at most mufu_credits
  uint64_t port = 0;                   // register ports
  // Beside MMAs that accumulate in registers: the end of the last window in which arithmetic has issued, how
  // much of it, and where the first one's sources lie.
  uint64_t window_end = 0;
  uint32_t window_issued = 0;
  uint8_t window_sources = 0;
  uint32_t mufu_lost = 0;  // to MMAs and not charged yet, in parts of a cycle
  uint64_t tmem_free = 0;
  int32_t last = -1;  // warp
  uint64_t next = 0;  // nothing happens before
};

class Sm {
 public:
  Sm(const Program& program, const Gpu& gpu, Arbitration arbitration)
      : program_(program), gpu_(gpu), arbitration_(arbitration) {
    warps_.resize(program.warps.size());
    warpgroups_.resize((warps_.size() + kWarpgroup - 1) / kWarpgroup);
    timing_.warps.resize(program.warps.size());
    timing_.blocked.resize(program.warps.size());
    timing_.marks.resize(program.warps.size());
    timing_.issued.resize(kSchedulers);
    for (uint32_t i = 0; i < warps_.size(); ++i) {
      warps_[i].index = i;
      warps_[i].way = &program.warps[i];
      schedulers_[i % kSchedulers].warps.push_back(i);
      enter_step(warps_[i]);
      warps_[i].phases = phases_.of(program.warps[i]);
    }
    for (const Warp& w : warps_) phases_.check(w.index, w.phases);
  }

  Timing run() {
    for (;;) {
      uint64_t now = kNever;
      for (const Scheduler& s : schedulers_) now = std::min(now, s.next);
      if (now == kNever) break;
      for (Scheduler& s : schedulers_)
        if (s.next == now) cycle(s, now);
    }
    for (const Warp& w : warps_)
      if (w.segment) complain();
    for (WarpTime& w : timing_.warps) timing_.cycles = std::max(timing_.cycles, w.end);
    for (WarpTime& w : timing_.warps) w.cycles[size_t(Cause::over)] = timing_.cycles - w.end;
    return std::move(timing_);
  }

 private:
  // ---- phases ----
  void signal(uint32_t id, const Signal& from) {
    if (id == kNoPhase) return;
    Phase& phase = phases_[id];
    if (phase.last.from == Signal::From::nobody || from.time >= phase.time) {
      phase.time = from.time;
      phase.last = from;
    }
    if (--phase.missing) return;
    for (const Phase::Waiter& waiter : phase.waiters) wake(phase, waiter);
    phase.waiters.clear();
  }

  // Waiters go on one after the other.
  void wake(Phase& phase, const Phase::Waiter& waiter) {
    Warp& w = warps_[waiter.warp];
    const uint32_t before = phase.woken++;
    uint64_t end;
    if (waiter.scoreboard == 7) {
      end = phase.time + gpu_.bar_base + gpu_.bar_warp_tenths * (before + 1) / 10;
      w.ready = std::max(w.ready, end);
      w.ready_cause = Cause::cta_barrier;
      w.at_barrier = false;
    } else {
      end = std::max(waiter.begin + gpu_.wait_latency,
                     phase.time + gpu_.wake_latency + gpu_.wake_further * before);
      w.scoreboard[waiter.scoreboard] = end;
    }
    if (end > waiter.begin + gpu_.wait_latency)
      timing_.blocked[waiter.warp].push_back({phase.address, phase.number, waiter.begin, end, phase.last});
    Scheduler& s = schedulers_[waiter.warp % kSchedulers];
    s.next = std::min(s.next, std::max(end, now_ + 1));
  }

  void wait(uint32_t id, const Phase::Waiter& waiter) {
    Phase& phase = phases_[id];
    if (phase.missing)
      phase.waiters.push_back(waiter);
    else
      wake(phase, waiter);
  }

  // ---- issue ----
  void enter_step(Warp& w) {
    w.position = 0;
    w.segment = w.step < w.way->steps.size() ? &program_.segments[w.way->steps[w.step].segment] : nullptr;
  }

  const MicroOp& head(const Warp& w) const { return program_.code[w.segment->code[w.position]]; }

  // The MMA of its warpgroup that an instruction waits for: of the group to be complete, or to begin, so that
  // the queue has room.
  const WarpgroupMma* awaited_mma(const Warp& w, const MicroOp& op) const {
    const std::vector<WarpgroupMma>& all = warpgroups_[w.index / kWarpgroup];
    if (op.effect == Effect::wait_mma && w.mma_groups.size() > op.pending)
      return &all[w.mma_groups[w.mma_groups.size() - 1 - op.pending]];
    if (op.effect == Effect::warpgroup_mma && gpu_.mma_queue && w.mmas >= gpu_.mma_queue)
      return &all[w.mmas - (gpu_.mma_queue - 1)];
    return nullptr;
  }

  // The cycle from which the warp's next instruction has what it needs, and what it needed last; pipes aside.
  uint64_t operands_ready(const Warp& w, const MicroOp& op, Cause& cause, uint32_t& address) const {
    uint64_t at = w.ready;
    cause = w.ready_cause;
    for (uint32_t m = op.waits; m; m &= m - 1) {
      const int sb = __builtin_ctz(m);
      if (w.scoreboard[sb] > at) {
        at = w.scoreboard[sb];
        cause = w.scoreboard_cause[sb];
        address = w.scoreboard_address[sb];
      }
    }
    if (const WarpgroupMma* mma = awaited_mma(w, op)) {
      const uint64_t until = op.effect == Effect::wait_mma ? mma->done : mma->begin;
      if (until > at) {
        at = until;
        cause = Cause::mma_group;
      }
    }
    if (op.effect == Effect::wait_group && w.groups.size() > op.pending) {
      const uint64_t group = w.groups[w.groups.size() - 1 - op.pending];
      if (group > at) {
        at = group;
        cause = Cause::group;
      }
    }
    return at;
  }

  uint64_t unit_free(const Scheduler& s, const MicroOp& op, uint64_t now) const {
    switch (op.unit) {
      case Unit::control:
        return now;
      case Unit::mufu: {
        uint64_t first = kNever;
        uint32_t taken = 0;
        for (uint64_t at : s.mufu_returns) {
          if (at <= now) continue;
          ++taken;
          first = std::min(first, at);
        }
        return taken < gpu_.mufu_credits ? now : first;
      }
      case Unit::mma:
      case Unit::tma:
        return free_[size_t(op.unit)];
      default:
        return s.free[lane_of(op.unit)];
    }
  }

  // Whether MMAs that accumulate in registers run: their accesses to the register file keep arithmetic out of
  // it.
  bool mma_in_registers(uint64_t now) const {
    return gpu_.mma_window > 1 && now >= tensor_from_ && now < tensor_free_;
  }

  static bool takes_window(const MicroOp& op) { return is_arithmetic(op.unit) || op.unit == Unit::mufu; }

  // Of the window beside MMAs in which `now` lies.
  uint64_t window_end(uint64_t now) const {
    return ((now - tensor_from_) / gpu_.mma_window + 1) * gpu_.mma_window + tensor_from_;
  }

  // The cycle from which the register file has room for an instruction. Beside MMAs arithmetic issues in the
  // first mma_window_open cycles of every mma_window: one instruction, or two if none of its sources lies in
  // the bank of the first one's source of the same place. In one window of four the second place of sources
  // is taken.
  uint64_t registers_free(const Scheduler& s, const MicroOp& op, uint64_t now) const {
    if (!takes_window(op) || !mma_in_registers(now)) return now;
    const uint64_t end = window_end(now), next = std::min(end, tensor_free_);
    if (end - now <= gpu_.mma_window - gpu_.mma_window_open) return next;
    if (s.window_end != end) return now;
    const bool fourth = (end - tensor_from_) / gpu_.mma_window % 4 == 0;
    const bool second = s.window_issued == 1 && (s.window_sources & op.sources) == 0 &&
                        !(fourth && (op.sources & MicroOp::second_source));
    return second ? now : next;
  }

  void cycle(Scheduler& s, uint64_t now) {
    now_ = now;
    uint32_t ready[16];
    size_t count = 0;
    uint64_t next = kNever;
    for (uint32_t i : s.warps) {
      Warp& w = warps_[i];
      if (!w.segment || w.at_barrier) continue;
      const MicroOp& op = head(w);
      Cause cause;
      uint32_t address = 0;
      const uint64_t at = operands_ready(w, op, cause, address);
      if (at > now) {
        next = std::min(next, at);
        continue;
      }
      const uint64_t free = unit_free(s, op, now);
      if (free > now) {
        w.unit_seen = true;
        w.unit_waited = op.unit;
        if (op.unit == Unit::mufu) w.mufu_blocked = now + 1;
        next = std::min(next, free);
        continue;
      }
      const uint64_t room = registers_free(s, op, now);
      if (room > now) {
        w.registers_seen = true;
        next = std::min(next, room);
        continue;
      }
      ready[count++] = i;
    }
    if (count == 0) {
      s.next = next;
      return;
    }
    s.next = now + 1;
    const uint32_t chosen = choose(s, ready, count, now);
    const MicroOp& op = head(warps_[chosen]);
    const bool kept = s.last == int32_t(chosen);
    if (s.port > now && (kept || is_arithmetic(op.unit)))
      return;  // the registers of the instruction before are still being read
    issue(s, warps_[chosen], op, now);
  }

  uint32_t choose(const Scheduler& s, const uint32_t* ready, size_t count, uint64_t now) const {
    if (count == 1) return ready[0];
    // Stay with the warp that issued last while it can go on without a pause.
    if (s.last >= 0) {
      const Warp& last = warps_[size_t(s.last)];
      const bool can = std::find(ready, ready + count, uint32_t(s.last)) != ready + count;
      if (can && last.keep && now - last.last_issue <= gpu_.arbitration_memory &&
          !(head(last).unit == Unit::mufu && last.mufu_blocked > last.last_issue))
        return uint32_t(s.last);
    }
    const auto before = [&](uint32_t a, uint32_t b) {
      const Warp &x = warps_[a], &y = warps_[b];
      switch (arbitration_) {
        case Arbitration::round_robin: {
          if (x.issued != y.issued) return !x.issued;
          return x.last_issue != y.last_issue ? x.last_issue < y.last_issue : a > b;
        }
        case Arbitration::descending: {
          const uint32_t n = uint32_t(warps_.size()), from = s.last < 0 ? 0 : uint32_t(s.last);
          return (from + n - a - 1) % n < (from + n - b - 1) % n;
        }
        case Arbitration::oldest:
          return a < b;
      }
      return false;
    };
    return *std::min_element(ready, ready + count, before);
  }

  // Where the cycles since the warp's last instruction went.
  void account(Warp& w, const MicroOp& op, uint64_t now) {
    WarpTime& time = timing_.warps[w.index];
    uint64_t from = w.issued ? w.last_issue + 1 : 0;
    const auto until = [&](uint64_t to) {
      to = std::clamp(to, from, now);
      const uint64_t cycles = to - from;
      from = to;
      return cycles;
    };
    time.cycles[size_t(w.ready_cause)] += until(w.ready);
    Cause cause;
    uint32_t address = 0;
    const uint64_t waited_from = from;
    const uint64_t operands = until(operands_ready(w, op, cause, address));
    time.cycles[size_t(cause)] += operands;
    if (cause == Cause::mma_group && operands) {
      const WarpgroupMma& mma = *awaited_mma(w, op);
      const uint64_t signal = op.effect == Effect::wait_mma ? mma.end : mma.begin;
      timing_.blocked[w.index].push_back({kMmaGroup,
                                          int32_t(mma.index),
                                          waited_from,
                                          from,
                                          {Signal::From::tensor, w.index, mma.index, signal}});
    }
    if (cause == Cause::barrier && operands) {
      const auto found = std::ranges::find(time.barriers, address, &std::pair<uint32_t, uint64_t>::first);
      if (found == time.barriers.end())
        time.barriers.emplace_back(address, operands);
      else
        found->second += operands;
    }
    const Cause last = w.registers_seen ? Cause::registers_busy
                       : w.unit_seen    ? busy_cause(w.unit_waited)
                                        : Cause::other_warp;
    time.cycles[size_t(last)] += until(now);
    ++time.cycles[size_t(Cause::issue)];
    ++time.issued;
    time.busy[size_t(op.unit)] += op.interval;
  }

  void hold(Warp& w, uint8_t scoreboard, uint64_t until, Cause cause) {
    if (scoreboard >= 6) return;
    if (w.scoreboard[scoreboard] != kNever && w.scoreboard[scoreboard] >= until) return;
    w.scoreboard[scoreboard] = until;
    w.scoreboard_cause[scoreboard] = cause;
  }

  void issue(Scheduler& s, Warp& w, const MicroOp& op, uint64_t now) {
    account(w, op, now);
    ++timing_.issued[w.index % kSchedulers];
    w.last_issue = now;
    w.issued = true;
    w.keep = op.keep;
    w.unit_seen = w.registers_seen = false;
    s.last = int32_t(w.index);
    if (op.ports > 1) s.port = now + op.ports;
    const bool beside_mma = mma_in_registers(now);
    if (beside_mma && takes_window(op)) {
      const uint64_t end = window_end(now);
      s.window_issued = s.window_end == end ? 2 : 1;
      s.window_end = end;
      s.window_sources = op.sources;
    }

    Cause cause = Cause::other_result;
    uint64_t done = now + op.latency;
    switch (op.unit) {
      case Unit::mufu:
        done = std::max(now, s.mufu_free);
        s.mufu_free = done + op.interval;
        if (beside_mma) {  // one cycle of each window is not MUFU's
          s.mufu_lost += op.interval;
          s.mufu_free += s.mufu_lost / (gpu_.mma_window - 1);
          s.mufu_lost %= gpu_.mma_window - 1;
        }
        std::erase_if(s.mufu_returns, [&](uint64_t at) { return at <= now; });
        s.mufu_returns.push_back(done + gpu_.mufu_credit_return);
        done += op.latency;
        cause = Cause::mufu_result;
        break;
      case Unit::memory:
        s.free[size_t(op.unit)] = now + op.interval;
        cause = Cause::memory_result;
        break;
      case Unit::mma:
      case Unit::tma:
        free_[size_t(op.unit)] = now + op.interval;
        cause = Cause::tensor_sources;
        break;
      case Unit::control:
        break;
      default:
        s.free[lane_of(op.unit)] = now + op.interval;
        break;
    }

    const bool last_of_step = w.position + 1 == w.segment->code.size();
    const Step* step = last_of_step ? &w.way->steps[w.step] : nullptr;
    bool over = false;
    switch (op.effect) {
      case Effect::none:
        break;
      case Effect::shared: {
        const uint64_t start = std::max(now, shared_free_);
        shared_free_ = start + op.cost;
        done = start + op.latency;
        cause = Cause::shared_result;
        break;
      }
      case Effect::tmem_load: {
        const uint64_t start = std::max(now, s.tmem_free);
        s.tmem_free = start + (op.cost * 32 + gpu_.tmem_load_rate - 1) / gpu_.tmem_load_rate;
        done = s.tmem_free + gpu_.tmem_load_latency;
        cause = Cause::tmem_result;
        break;
      }
      case Effect::tmem_store: {
        const uint64_t start = std::max(now, s.tmem_free);
        s.tmem_free = start + (op.cost * 32 + gpu_.tmem_store_rate - 1) / gpu_.tmem_store_rate;
        done = s.tmem_free;  // the sources have been read
        w.stores_done = s.tmem_free + gpu_.tmem_store_latency;
        cause = Cause::tmem_result;
        break;
      }
      case Effect::tmem_fence:
        done = std::max(done, w.stores_done);
        cause = Cause::tmem_result;
        break;
      case Effect::close_group:
        w.groups.push_back(w.open_group);
        w.open_group = 0;
        while (w.groups.size() > 64) w.groups.pop_front();
        break;
      case Effect::end:
        over = last_of_step;
        break;
      default:
        break;
    }
    hold(w, op.writes, done, cause);
    hold(w, op.reads, op.effect == Effect::tmem_store ? done : now + op.read_latency, cause);
    const bool jumps = w.segment->jumps[w.position];
    w.ready = now + op.stall;
    w.ready_cause = Cause::dependency;
    if (jumps && gpu_.taken_branch > op.stall) {
      w.ready = now + gpu_.taken_branch;
      w.ready_cause = Cause::branch;
    }

    if (step) {
      timing_.marks[w.index].push_back({now, uint32_t(w.step)});
      for (uint32_t r = step->first_record; r < step->first_record + step->records; ++r)
        perform(w, op, w.way->records[r], w.phases[r], now);
      ++w.step;
      enter_step(w);
      if (over || !w.segment) {
        w.segment = nullptr;
        timing_.warps[w.index].end = now + 1;
      }
    } else {
      ++w.position;
    }
  }

  // What a synchronising instruction does.
  void perform(Warp& w, const MicroOp& op, const fa4sim_sync& r, uint32_t phase, uint64_t now) {
    switch (r.kind) {
      case FA4SIM_SYNC_ARRIVE:
        signal(phase, {Signal::From::warp, w.index, 0, now});
        break;
      case FA4SIM_SYNC_WAIT:
        if (op.writes < 6) {
          w.scoreboard[op.writes] = phase == kNoPhase ? now + gpu_.wait_latency : kNever;
          w.scoreboard_cause[op.writes] = Cause::barrier;
          w.scoreboard_address[op.writes] = r.address;
          if (phase != kNoPhase) wait(phase, {w.index, now, op.writes});
        }
        break;
      case FA4SIM_SYNC_MMA:
        if (op.effect == Effect::warpgroup_mma)
          perform_warpgroup_mma(w, op, r, now);
        else
          perform_mma(w, r, now, gpu_.mma_issue);
        break;
      case FA4SIM_SYNC_COMMIT: {
        Signal from{Signal::From::tensor, w.index, 0, now + gpu_.mma_issue};
        if (w.last_mma != kNever) {
          const MmaTime& mma = timing_.mmas[w.last_mma];
          from.index = uint32_t(w.last_mma);
          from.time = std::max(from.time,
                               mma.end + (mma.a_shared ? gpu_.mma_latency_shared : gpu_.mma_latency_other));
        } else {
          from.from = Signal::From::warp;
        }
        signal(phase, from);
        break;
      }
      case FA4SIM_SYNC_COPY_IN: {
        const uint64_t begin = std::max(now + gpu_.tma_issue, copy_in_free_);
        copy_in_free_ = begin + r.bytes / gpu_.tma_rate;
        const uint64_t end = copy_in_free_ + gpu_.tma_latency;
        timing_.copies.push_back({now, begin, end, w.index, r.bytes, r.address, false});
        timing_.copy_in_bytes += r.bytes;
        signal(phase, {Signal::From::copy, w.index, uint32_t(timing_.copies.size() - 1), end});
        break;
      }
      case FA4SIM_SYNC_COPY_OUT: {
        // The uniform datapath issues a copy once, whatever lanes asked for the same one.
        if (r.flags & FA4SIM_SYNC_CONTINUED) break;
        const uint64_t begin = std::max(now + gpu_.tma_issue, copy_out_free_);
        copy_out_free_ = begin + r.bytes / gpu_.tma_store_rate;
        const uint64_t end = copy_out_free_ + gpu_.tma_store_latency;
        timing_.copies.push_back({now, begin, end, w.index, r.bytes, r.address, true});
        timing_.copy_out_bytes += r.bytes;
        w.open_group = std::max(w.open_group, end);
        break;
      }
      case FA4SIM_SYNC_CTA_BARRIER:
        if (op.effect == Effect::bar_sync) w.at_barrier = true;
        signal(phase, {Signal::From::warp, w.index, 0, now});
        if (op.effect == Effect::bar_sync) wait(phase, {w.index, now, 7});
        break;
      default:
        break;
    }
  }

  void perform_mma(Warp& w, const fa4sim_sync& r, uint64_t now, uint64_t issue) {
    const bool a_shared = !(r.flags & FA4SIM_SYNC_A_NOT_SHARED);
    constexpr uint32_t k = 16;  // of 16-bit elements
    const uint32_t rows = gpu_.mma_flop_per_cycle > 4096 ? std::max<uint32_t>(r.m, 128)
                                                         : r.m;  // 64 rows take the time of 128 there
    const uint32_t bytes = ((a_shared ? r.m : 0u) + r.n) * k * 2;
    const uint64_t cycles =
        std::max<uint64_t>(uint64_t(2) * rows * r.n * k / gpu_.mma_flop_per_cycle, bytes / gpu_.shared_rate);
    const uint64_t begin = std::max(now + issue, tensor_free_);
    if (begin != tensor_free_) tensor_from_ = begin;
    tensor_free_ = begin + cycles;
    timing_.tensor_busy += cycles;
    timing_.shared_operand_bytes += bytes;
    timing_.mmas.push_back({now, begin, tensor_free_, w.index, r.address, r.m, r.n, a_shared});
    w.last_mma = timing_.mmas.size() - 1;
  }

  void perform_warpgroup_mma(Warp& w, const MicroOp& op, const fa4sim_sync& r, uint64_t now) {
    std::vector<WarpgroupMma>& all = warpgroups_[w.index / kWarpgroup];
    if (all.size() == w.mmas) all.emplace_back();
    WarpgroupMma& mma = all[w.mmas];
    if (op.pending) w.mma_groups.push_back(w.mmas);
    ++w.mmas;
    if (++mma.issued < kWarpgroup) return;
    perform_mma(w, r, now, 0);  // the stall count on it is its issue
    mma.index = uint32_t(w.last_mma);
    const MmaTime& time = timing_.mmas[mma.index];
    mma.begin = time.begin;
    mma.end = time.end;
    mma.done = time.end + (time.a_shared ? gpu_.mma_latency_shared : gpu_.mma_latency_other);
    for (Scheduler& s : schedulers_)
      s.next = std::min(s.next, now + 1);  // its warps may know now when they go on
  }

  [[noreturn]] void complain() const {
    std::string text = "the replay stands still; the machine code and the recorded run do not fit:";
    for (const Warp& w : warps_)
      if (w.segment)
        text += "\n  warp " + std::to_string(w.index) + " at step " + std::to_string(w.step) + " of " +
                std::to_string(w.way->steps.size());
    throw Error(text);
  }

  const Program& program_;
  const Gpu& gpu_;
  const Arbitration arbitration_;
  std::vector<Warp> warps_;
  std::vector<std::vector<WarpgroupMma>> warpgroups_;
  Phases phases_;
  Scheduler schedulers_[kSchedulers];
  uint64_t free_[size_t(Unit::count)] = {};  // of units that the SM has once
  uint64_t shared_free_ = 0;
  uint64_t tensor_from_ = 0, tensor_free_ = 0;  // busy without a pause since, until
  uint64_t copy_in_free_ = 0, copy_out_free_ = 0;
  uint64_t now_ = 0;
  Timing timing_;
};

}  // namespace

Timing run(const Program& program, const Gpu& gpu, Arbitration arbitration) {
  return Sm(program, gpu, arbitration).run();
}

}  // namespace fa4::time
