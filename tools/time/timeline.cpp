// SPDX-License-Identifier: Apache-2.0
#include "timeline.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace fa4::time {

namespace {

std::string span(uint64_t begin, uint64_t end) {
  return "cycles " + std::to_string(begin) + " to " + std::to_string(end) + " (" +
         std::to_string(end - begin) + ")";
}

// Consecutive MMAs into one accumulator are one product. Of accumulators that are used in the same way the
// lowest column is stage 0; those of a warpgroup lie in its registers, and the first warpgroup is stage 0.
Lane tensor_lane(const Timing& timing, const Names& names) {
  Lane lane{"tensor core", {}};
  using Accumulator = std::pair<uint32_t, uint32_t>;
  const auto accumulator = [](const MmaTime& mma) { return Accumulator{mma.d_column, mma.warp / 4}; };
  std::set<Accumulator> accumulators[2];  // [A in shared memory]
  for (const MmaTime& mma : timing.mmas) accumulators[mma.a_shared].insert(accumulator(mma));
  const auto same = [&](const MmaTime& a, const MmaTime& b) {
    return accumulator(a) == accumulator(b) && a.a_shared == b.a_shared;
  };
  constexpr BarKind scores[] = {BarKind::score0, BarKind::score1, BarKind::score2},
                    values[] = {BarKind::value0, BarKind::value1, BarKind::value2};
  for (size_t i = 0; i < timing.mmas.size();) {
    const MmaTime& first = timing.mmas[i];
    size_t end = i + 1;
    // A pause inside a product shows.
    while (end < timing.mmas.size() && same(first, timing.mmas[end]) &&
           timing.mmas[end].begin <= timing.mmas[end - 1].end + 32)
      ++end;
    const std::set<Accumulator>& alike = accumulators[first.a_shared];
    const auto stage = size_t(std::distance(alike.begin(), alike.find(accumulator(first))));
    const bool both =
        !accumulators[0].empty() && !accumulators[1].empty() && alike.size() <= std::size(scores);
    Bar bar{first.begin, timing.mmas[end - 1].end, BarKind::product, "", ""};
    if (both) {
      bar.kind = first.a_shared ? scores[stage] : values[stage];
      bar.label = (first.a_shared ? "S" : "O") + std::to_string(stage);
      bar.title = first.a_shared ? bar.label + " = Q K^T" : bar.label + " += P V";
    } else {
      bar.title = "MMA into " + names.column(first.d_column);
    }
    bar.title += ", " + std::to_string(end - i) + " MMAs, " + span(bar.begin, bar.end);
    lane.bars.push_back(std::move(bar));
    i = end;
  }
  return lane;
}

// What a warp of a warpgroup that issues MMAs computed: it has no tensor memory, whose loads would tell.
BarKind kind_of(const Work& work) {
  constexpr int32_t some = 16;  // of a block of keys a thread has many more
  if (work.mufu >= some) return work.select >= some ? BarKind::masked : BarKind::unmasked;
  if (work.memory >= some / 2) return BarKind::epilogue;
  return work.fma >= some ? BarKind::rescale : BarKind::work;
}

// What a warp did between the waits that held it up.
Lane role_lane(const Names::Role& role, const Replay& replay, const Timing& timing, const Names& names,
               const std::map<uint32_t, BarKind>& loops, bool warpgroup) {
  Lane lane{role.name, {}};
  const uint32_t w = role.begin;
  const WarpWay& way = replay.program.warps[w];
  const std::vector<Mark>& marks = timing.marks[w];
  uint64_t begin = 0;
  size_t mark = 0;
  std::string since = "start";
  const auto close = [&](uint64_t end, const std::string& until) {
    Bar bar{begin, end, BarKind::work, "", ""};
    uint32_t loads = 0, stores = 0;
    Work work;
    std::string what;
    for (; mark < marks.size() && marks[mark].time < end; ++mark) {
      const Step& step = way.steps[marks[mark].step];
      work += replay.work[w][marks[mark].step];
      for (uint32_t r = step.first_record; r < step.first_record + step.records; ++r) {
        const fa4sim_sync& record = way.records[r];
        loads += record.kind == FA4SIM_SYNC_TMEM_LOAD;
        stores += record.kind == FA4SIM_SYNC_TMEM_STORE;
        const auto loop = loops.find(record.instruction);
        if (record.kind == FA4SIM_SYNC_TMEM_LOAD && loop != loops.end()) bar.kind = loop->second;
      }
    }
    if (warpgroup) bar.kind = kind_of(work);
    if (bar.kind == BarKind::work && loads) bar.kind = stores ? BarKind::rescale : BarKind::epilogue;
    switch (bar.kind) {
      case BarKind::masked:
        bar.label = "masked", what = "softmax of a masked block";
        break;
      case BarKind::unmasked:
        bar.label = "softmax", what = "softmax of a block";
        break;
      case BarKind::rescale:
        bar.label = "rescale", what = "rescales O";
        break;
      case BarKind::epilogue:
        bar.label = "O", what = "epilogue: O to shared memory";
        break;
      default:
        what = "works";
        break;
    }
    bar.title = role.name + " " + what + ": " + since + " to " + until + ", " + span(bar.begin, bar.end);
    if (bar.end > bar.begin) lane.bars.push_back(std::move(bar));
  };
  for (const Blocked& blocked : timing.blocked[w]) {
    const std::string name = names.barrier(blocked.address);
    close(blocked.begin, name);
    begin = blocked.end;
    since = name;
  }
  close(timing.warps[w].end, "end");
  return lane;
}

Lane copy_lane(const Timing& timing, const Names& names, bool out, const char* name) {
  Lane lane{name, {}};
  for (const CopyTime& copy : timing.copies) {
    if (copy.out != out) continue;
    Bar bar{copy.begin, copy.end, out ? BarKind::store : BarKind::load, "", ""};
    const std::string barrier = out ? "" : names.barrier(copy.address);
    bar.title = std::to_string(copy.bytes) + " bytes " + (out ? "to global memory" : "for " + barrier) +
                ", issued at " + std::to_string(copy.issue) + ", " + span(bar.begin, bar.end);
    // In flight together they would overlap: the lane shows when each had the engine.
    if (!lane.bars.empty() && lane.bars.back().end > bar.begin) lane.bars.back().end = bar.begin;
    lane.bars.push_back(std::move(bar));
  }
  return lane;
}

// The loops that a softmax has: where two copies of the same loads stand in the PTX, the first is for masked
// blocks.
std::map<uint32_t, BarKind> softmax_loops(const SyncGraph& ptx) {
  // A row of scores is loaded in wider pieces than what the correction takes.
  uint32_t widest = 0;
  for (const SyncNode& node : ptx.nodes)
    if (node.sync == Sync::tmem_load) widest = std::max(widest, node.size);
  std::vector<uint32_t> loads;
  for (const SyncNode& node : ptx.nodes)
    if (node.sync == Sync::tmem_load && node.size == widest) loads.push_back(node.instruction);
  std::map<uint32_t, BarKind> kinds;
  for (size_t i = 0; i < loads.size(); ++i)
    kinds[loads[i]] = loads.size() > 1 && i < loads.size() / 2 ? BarKind::masked : BarKind::unmasked;
  return kinds;
}

}  // namespace

Timeline timeline(const Replay& replay, const Timing& timing, const Names& names, const Report& report) {
  Timeline t;
  t.cycles = timing.cycles;
  const std::map<uint32_t, BarKind> loops = softmax_loops(replay.ptx);
  if (!timing.mmas.empty()) t.lanes.push_back(tensor_lane(timing, names));
  std::set<uint32_t> issuers;  // of MMAs and copies: their engines' lanes show them
  for (const MmaTime& mma : timing.mmas) issuers.insert(mma.warp);
  for (const CopyTime& copy : timing.copies) issuers.insert(copy.warp);
  std::map<size_t, size_t> lane_of;  // role -> lane
  for (size_t r = 0; r < names.roles().size(); ++r) {
    const Names::Role& role = names.roles()[r];
    if (role.end == role.begin + 1 && issuers.contains(role.begin)) continue;
    const bool warpgroup = std::ranges::any_of(
        issuers, [&](uint32_t w) { return w >= role.begin && w < role.end && role.end - role.begin > 1; });
    Lane lane = role_lane(role, replay, timing, names, loops, warpgroup);
    const bool works =
        std::ranges::any_of(lane.bars, [](const Bar& bar) { return bar.kind != BarKind::work; });
    if (!works) continue;
    lane_of[r] = t.lanes.size();
    t.lanes.push_back(std::move(lane));
  }
  const size_t load_lane = t.lanes.size();
  t.lanes.push_back(copy_lane(timing, names, false, "load (TMA)"));
  t.lanes.push_back(copy_lane(timing, names, true, "store (TMA)"));

  // Hand-overs: from where a part of the chain ended to where the next one began; warps without a lane are
  // passed over.
  bool open = false;
  size_t from = 0;
  uint64_t since = 0;
  std::string what;
  for (const Link& link : report.chain) {
    size_t lane = ~size_t{0};
    if (link.kind == Link::Kind::tensor)
      lane = 0;
    else if (link.kind == Link::Kind::copy)
      lane = load_lane;
    else if (link.kind == Link::Kind::work || link.kind == Link::Kind::start) {
      const auto found = lane_of.find(names.role_index(link.warp));
      if (found != lane_of.end()) lane = found->second;
    }
    if (lane == ~size_t{0}) {
      if (link.kind == Link::Kind::hand_over && what.empty()) what = link.what;
      continue;
    }
    // The tensor core's part begins with the issue; the bar begins when the core is free.
    if (open && from != lane)
      t.arrows.push_back({from, lane, since, std::max(since, link.begin),
                          what.empty() ? t.lanes[from].name + " to " + t.lanes[lane].name : what});
    open = true;
    from = lane;
    since = link.end;
    what.clear();
  }
  return t;
}

}  // namespace fa4::time
