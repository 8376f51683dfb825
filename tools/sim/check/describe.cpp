// SPDX-License-Identifier: Apache-2.0
// The checker's sentences: who did what where, on which memory, what ordered them, and what the ISA asks for.
#include <algorithm>
#include <cstdio>

#include "../core/shared_memory.h"
#include "checker.h"

namespace fa4::sim::check {

std::string Checker::describe_access(const Access& a, bool wrote) const {
  const Op* op = cta_->launch->code->ops.data() + a.op;
  std::string who;
  switch (a.agent) {
    case Agent::nobody: return {};
    case Agent::lane: who = role(a.index / kLanes) + ", lane " + std::to_string(a.index % kLanes) + ":"; break;
    case Agent::warp:
    case Agent::owner: who = role(a.index) + ", the whole warp:"; break;
    case Agent::mma: who = "an MMA that " + role(a.index / kLanes) + " issued:"; break;
    case Agent::thread_copy: who = "a cp.async of " + role(a.lanes) + ":"; break;
    case Agent::wgmma: who = "a wgmma that the warpgroup of " + role(a.lanes & ~kWarpgroup) + " issued:"; break;
    case Agent::copy_in:
    case Agent::copy_out: who = "a copy that " + role(a.lanes) + " issued:"; break;
  }
  return who + (wrote ? " write" : " read") + " at " + place(*cta_, op);
}

std::string Checker::memory_name(const Cell* cell) const {
  char text[64];
  if (cell >= shared_.data() && cell < shared_.data() + shared_.size()) return shared_text(uint32_t(cell - shared_.data()) * 4);
  if (cell >= tmem_.data() && cell < tmem_.data() + tmem_.size()) {
    const uint32_t at = uint32_t(cell - tmem_.data()) % kTmemCells, partition = at % TensorMemory::partitions;
    std::snprintf(text, sizeof text, ", lanes %u..%u", 32 * partition, 32 * partition + 31);
    return tmem_name(*cta_, at / TensorMemory::partitions) + text;
  }
  for (const auto& [word, bytes] : bytes_of_word_) {
    if (cell >= bytes.data() && cell < bytes.data() + bytes.size()) return shared_text(word * 4 + uint32_t(cell - bytes.data()));
  }
  std::snprintf(text, sizeof text, "global memory 0x%llx: ", static_cast<unsigned long long>(memory_at_));
  return text + cta_->launch->memory->describe(memory_at_);
}

std::string Checker::last_sync(const Actor& who, const Access& before) const {
  uint32_t warp;
  Time seen = 0;
  if (before.agent == Agent::lane) {
    warp = before.index / kLanes;
    seen = who.group->clock.plain[kFirstLane + before.index];
  } else if (before.agent == Agent::warp || before.agent == Agent::owner) {
    warp = before.index;
    seen = kPending;
    for (int l = 0; l < kLanes; ++l) seen = std::min(seen, who.group->clock.plain[kFirstLane + warp * kLanes + uint32_t(l)]);
  } else if (before.agent == Agent::mma) {
    const Time mma = who.group->clock.plain[kMmaStream + rank_of(before.index)];
    return mma == 0 ? "no commit of the MMA warp has been seen" : "the newest MMA whose completion it has seen is number " + std::to_string(mma) + "; this one is number " + std::to_string(before.time);
  } else if (before.agent == Agent::wgmma) {
    const uint32_t warps = before.lanes & kWarpgroup ? 4 : 1, first = before.lanes & ~kWarpgroup;
    const Time* const streams = who.group->clock.plain.data() + before.index;
    const Time* const oldest = std::min_element(streams, streams + warps);
    return "the newest wgmma of " + role(first + uint32_t(oldest - streams)) + " whose completion it has seen is number " + std::to_string(*oldest) +
           "; this one is number " + std::to_string(before.time);
  } else {
    return before.time == kPending ? "the copy has not completed" : "the completion of that copy has not been waited for";
  }
  std::string text;
  for (const auto& [time, op] : warps_[warp].releases) {
    if (time <= seen) text = "the newest release of " + role(warp) + " that it has seen is " + place(*cta_, cta_->launch->code->ops.data() + op);
  }
  return text.empty() ? "nothing that " + role(warp) + " released has been seen" : text;
}

namespace {

// The documented chain at a hand-over, by what comes first and what comes second.
std::string chain(bool first_tensor, char first, bool first_wrote, char second, bool second_writes) {
  const std::string arrive = "mbarrier.arrive or a barrier | wait";
  if (first == 'c') return "wait for the mbarrier phase that the copy completes (complete_tx), then access";
  if (first == 'o') return "cp.async.bulk.commit_group, cp.async.bulk.wait_group.read by the thread that issued the copy, then " + arrive + ", then write";
  if (first == 't') return "cp.async.commit_group, cp.async.wait_group by the thread that issued the copy (or cp.async.mbarrier.arrive | wait), then " + arrive + ", then " + (second_writes ? "write" : "read");
  if (first == 'g') return "wgmma.commit_group, wgmma.wait_group by every warp of the warpgroup, then " + arrive + ", then write";
  if (first == 'm') {
    if (second == 'c') return "tcgen05.commit to an mbarrier | wait for that phase, then issue the copy";
    return "tcgen05.commit to an mbarrier | wait for that phase, tcgen05.fence::after_thread_sync, then access";
  }
  if (first == 'w') {
    return std::string(first_wrote ? "tcgen05.st, tcgen05.wait::st" : "tcgen05.ld, tcgen05.wait::ld") +
           ", tcgen05.fence::before_thread_sync, " + arrive + ", tcgen05.fence::after_thread_sync, then " +
           (second == 'm' ? "tcgen05.mma" : "access");
  }
  if (first_tensor) return {};
  if (second == 'm' || second == 'g' || second == 'c' || second == 'o') {
    if (first_wrote) return "st.shared, fence.proxy.async.shared::cta, " + arrive + ", then the asynchronous " + (second == 'm' ? "MMA" : second == 'g' ? "wgmma" : "copy");
    return "ld.shared, " + arrive + ", then the asynchronous copy";
  }
  return std::string(first_wrote ? "write" : "read") + ", " + arrive + " (within a warp: bar.warp.sync), then " + (second_writes ? "write" : "read");
}

}  // namespace

void Checker::explain(const std::set<std::pair<uint32_t, uint32_t>>& pairs) {
  provenance_.emplace();
  explained_pairs_ = pairs;
}

// Of what a warp or its lanes did together, the chain of the first lane is told.
void Checker::explain_order(const Actor& who, const Access& before, const Access& now, const Cell* cell, bool before_wrote,
                            bool now_writes, bool tensor) {
  constexpr uint32_t kTimes = 4;  // that a pair of lines is explained in a CTA
  const bool by_warp = before.agent == Agent::warp || before.agent == Agent::owner, by_lane = before.agent == Agent::lane || by_warp;
  if (by_warp ? before.index == who.warp_index : by_lane && before.index == who.lane) return;  // program order
  const Code& code = *cta_->launch->code;
  const std::pair<uint32_t, uint32_t> lines{code.locations[before.op].line, code.locations[now.op].line};
  if (!explained_pairs_.empty() && !explained_pairs_.count(lines)) return;
  if (explained_[lines]++ >= kTimes) return;
  const uint32_t index = by_warp ? before.index * kLanes + uint32_t(first_lane(before.lanes)) : before.agent == Agent::mma ? kMmaStream + rank_of(before.index) : before.index;
  Ordering o;
  o.kernel = code.name;
  o.first_line = lines.first;
  o.second_line = lines.second;
  o.memory = memory_name(cell);
  o.first = describe_access(before, before_wrote);
  o.second = describe_access(now, now_writes);
  for (const Provenance::Step& step : provenance_->path({by_lane, index, before.time}, who.lane, tensor)) {
    o.steps.push_back((step.warp < 0 ? "completion of " : role(uint32_t(step.warp)) + ": ") + place(*cta_, code.ops.data() + step.op) +
                      (step.object.empty() ? "" : ", on " + step.object));
    o.lines.push_back(code.locations[step.op].line);
  }
  orderings_.push_back(std::move(o));
}

uint32_t Checker::first_of_place(uint32_t op) {
  const Code* const code = cta_->launch->code;
  if (std::exchange(places_of_, code) != code) places_.clear();
  const auto [place, added] = places_.try_emplace(op, 0);
  if (!added) return place->second;
  const std::vector<ptx::Location>& all = code->locations;
  const auto same = [&](const ptx::Location& l) {
    return all[op].source_file ? l.source_file == all[op].source_file && l.source_line == all[op].source_line : l.line == all[op].line;
  };
  return place->second = uint32_t(std::find_if(all.begin(), all.begin() + op, same) - all.begin());
}

void Checker::deviate(FindingKind kind, const Actor& who, const Access& before, const Access& now, const Cell* cell, bool before_wrote,
                      bool now_writes) {
  const uint32_t at = first_of_place(before.op);
  if (again(kind, at, at)) return;
  Finding f = new_finding(kind, at, at);
  f.warning = true;
  fill(f, who, before, now, cell, before_wrote, now_writes);
  findings_.push_back(std::move(f));
}

void Checker::report(FindingKind kind, bool warning, const Actor& who, const Access& before, const Access& now, const Cell* cell,
                     bool before_wrote, bool now_writes) {
  if (again(kind, before.op, now.op)) return;
  Finding f = new_finding(kind, before.op, now.op);
  f.warning = warning;
  fill(f, who, before, now, cell, before_wrote, now_writes);
  findings_.push_back(std::move(f));
}

void Checker::fill(Finding& f, const Actor& who, const Access& before, const Access& now, const Cell* cell, bool before_wrote,
                   bool now_writes) const {
  const FindingKind kind = f.kind;
  // Every agent's letter in the table above.
  const auto letter = [](Agent a) {
    switch (a) {
      case Agent::warp: return 'w';
      case Agent::mma: return 'm';
      case Agent::wgmma: return 'g';
      case Agent::thread_copy: return 't';
      case Agent::copy_in: return 'c';
      case Agent::copy_out: return 'o';
      default: return 'l';
    }
  };
  f.cta = cta_->cluster->ctas[who.rank]->id;
  f.cycle = time_of(who.warp_index);
  const bool on_barrier = kind == FindingKind::barrier_init || kind == FindingKind::barrier_init_fence || kind == FindingKind::barrier_reuse || kind == FindingKind::phase_skipped;
  f.memory = on_barrier ? barrier_text(uint32_t(cell - shared_.data()) * 4) : memory_name(cell);
  f.first = describe_access(before, before_wrote);
  f.second = describe_access(now, now_writes);
  f.last_sync = last_sync(who, before);
  if (kind == FindingKind::barrier_init) {
    f.chain = size_ == 1 ? "mbarrier.init, a barrier of the CTA | then use"
                         : "mbarrier.init, fence.mbarrier_init.release.cluster, a barrier of the cluster (or of the CTA, for its own) | then use";
  } else if (kind == FindingKind::barrier_init_fence) {
    f.chain = "mbarrier.init, fence.mbarrier_init.release.cluster (or fence.proxy.async), a barrier of the CTA | then the bulk copy";
  } else if (kind == FindingKind::barrier_reuse) {
    f.chain = "a barrier of the CTA, or a wait for what the others do last with it, then mbarrier.inval or mbarrier.init";
  } else if (kind == FindingKind::phase_skipped) {
    f.last_sync = "it waits for phase " + std::to_string(phases_.first) + " while the barrier is in phase " + std::to_string(phases_.second);
    f.chain = "a wait while its phase is the current one or the one before: whoever completes the phases has to wait for this thread too";
  } else {
    const bool apart = size_ > 1 && before.agent == Agent::lane && rank_of(before.index) != who.rank;
    f.chain = apart ? std::string(before_wrote ? "write" : "read") + ", barrier.cluster or an mbarrier.arrive.release.cluster | wait of .cluster scope, then " + (now_writes ? "write" : "read")
                    : chain(false, letter(before.agent), before_wrote, letter(now.agent), now_writes);
  }
}

}  // namespace fa4::sim::check
