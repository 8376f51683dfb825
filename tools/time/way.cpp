// SPDX-License-Identifier: Apache-2.0
#include "way.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>

namespace fa4::time {

namespace {

// Ways between synchronising instructions: all of them, found once for each pair, and the one that computes
// what the warp computed.
class Ways {
 public:
  Ways(const Function& function, const SyncGraph& graph, Program& program)
      : function_(function), graph_(graph), program_(program), following_(successors(function)) {
    for (const Instruction& x : function.code) work_.push_back(work_of(x));
  }

  // `carried`: what the warp has done in the PTX before `from` and not yet in the machine code, or the other
  // way round, for ptxas moves arithmetic past what synchronises. It fades, because some is never done.
  uint32_t segment(uint32_t from, uint32_t to, const Work& work, Work& carried) {
    std::unique_ptr<Pair>& pair = pairs_[uint64_t(from) << 32 | to];
    if (!pair) pair = std::make_unique<Pair>(enumerate(from, to));
    Work wanted = work;
    wanted += carried;
    wanted.select = 0;
    if (wanted.all > pair->longest)
      throw Error("from " + place(from) + " to " + place(to) + " a warp executed " +
                  std::to_string(work.all) + " instructions of the PTX, and the machine code of " +
                  function_.name + " has too many ways to find one like it; those of up to " +
                  std::to_string(pair->longest) + " instructions are known");
    const auto [at, fresh] = pair->chosen.try_emplace(wanted, 0);
    if (fresh) at->second = closest(*pair, wanted);
    const Work left = wanted - work_of_segment_[at->second];
    carried = {left.mufu / 2, left.fma / 2, left.minmax / 2, left.shuffle / 2, left.memory / 2, 0, 0};
    return at->second;
  }
  uint32_t pairs() const { return uint32_t(pairs_.size()); }
  uint32_t pairs_with_choice() const {
    uint32_t count = 0;
    for (const auto& [key, pair] : pairs_) count += pair->ends.size() > 1;
    return count;
  }

 private:
  // A way up to and with an instruction; ways there that compute alike are one, the first found.
  struct Place {
    uint32_t instruction;
    int32_t before;  // index of the place before it
    Work work;
  };
  struct Pair {
    std::vector<Place> places;
    std::vector<uint32_t> ends;             // places at the next synchronising instruction
    int32_t longest = INT32_MAX;            // all ways with so many instructions are in `places`
    std::map<Work, uint32_t> chosen;        // the work of a warp: its segment
    std::map<uint32_t, uint32_t> segments;  // end: its segment
  };
  // Loops that do not synchronise have ways without end.
  static constexpr size_t kMostPlaces = 1 << 18;

  // Whether a way that does not stop at instruction i may lead through it.
  bool open(uint32_t i) const {
    // A guarded one is passed where the first attempt did not fail.
    if (graph_.retries[i]) return !function_.code[i].guard.empty();
    const int32_t n = graph_.node_of[i];
    return n < 0 || graph_.nodes[size_t(n)].guarded;
  }
  bool is_target(uint32_t i, uint32_t to) const {
    return to == 1 ? function_.code[i].base() == "EXIT" : graph_.node_of[i] == int32_t(to);
  }

  std::span<const uint32_t> starts(uint32_t from) const {
    static constexpr uint32_t first[] = {0};
    if (from == 0) return first;
    return following_[graph_.nodes[from].instruction];
  }

  std::string place(uint32_t n) const {
    return describe(graph_.nodes[n]) +
           (n > 1 ? " (instruction " + std::to_string(graph_.nodes[n].instruction) + ")" : "");
  }

  // In the order of their lengths.
  Pair enumerate(uint32_t from, uint32_t to) const {
    Pair pair;
    std::set<std::pair<uint32_t, Work>> seen;
    const std::vector<bool> useful = leads_to(to);
    const auto visit = [&](uint32_t i, int32_t before) {
      if (!useful[i]) return;
      Work work = work_[i];
      if (before >= 0) work += pair.places[size_t(before)].work;
      if (!seen.emplace(i, work).second) return;
      pair.places.push_back({i, before, work});
    };
    for (uint32_t i : starts(from)) visit(i, -1);
    for (uint32_t p = 0; p < pair.places.size() && pair.places.size() < kMostPlaces; ++p) {
      const uint32_t i = pair.places[p].instruction;
      const bool end = is_target(i, to);
      if (end) pair.ends.push_back(p);
      // An EXIT may be passed, too: that of other lanes, or of other warps.
      if (end ? to == 1 && !function_.code[i].guard.empty() : open(i))
        for (uint32_t k : following_[i]) visit(k, int32_t(p));
    }
    if (pair.places.size() >= kMostPlaces) pair.longest = pair.places.back().work.all - 1;
    if (pair.ends.empty())
      throw Error((pair.longest < INT32_MAX
                       ? "no way of up to " + std::to_string(pair.longest) + " instructions leads"
                       : "no way leads") +
                  std::string(" from ") + place(from) + " to " + place(to) + " in the machine code of " +
                  function_.name);
    return pair;
  }

  // [instruction]: whether a way leads on from it to the target.
  std::vector<bool> leads_to(uint32_t to) const {
    std::vector<std::vector<uint32_t>> before(following_.size());
    std::vector<bool> useful(following_.size());
    std::vector<uint32_t> queue;
    for (uint32_t i = 0; i < following_.size(); ++i) {
      if (is_target(i, to)) {
        useful[i] = true;
        queue.push_back(i);
      } else if (open(i)) {
        for (uint32_t k : following_[i]) before[k].push_back(i);
      }
    }
    while (!queue.empty()) {
      const uint32_t i = queue.back();
      queue.pop_back();
      for (uint32_t b : before[i])
        if (!useful[b]) {
          useful[b] = true;
          queue.push_back(b);
        }
    }
    return useful;
  }

  uint32_t closest(Pair& pair, const Work& work) {
    const uint32_t end = *std::ranges::min_element(
        pair.ends, {}, [&](uint32_t p) { return distance(pair.places[p].work, work); });
    const auto [at, fresh] = pair.segments.try_emplace(end, uint32_t(program_.segments.size()));
    if (fresh) {
      Segment segment;
      for (int32_t p = int32_t(end); p >= 0; p = pair.places[size_t(p)].before)
        segment.code.push_back(pair.places[size_t(p)].instruction);
      std::ranges::reverse(segment.code);
      for (size_t i = 0; i < segment.code.size(); ++i)
        segment.jumps.push_back(i + 1 < segment.code.size() && segment.code[i + 1] != segment.code[i] + 1);
      program_.segments.push_back(std::move(segment));
      work_of_segment_.push_back(pair.places[end].work);
    }
    return at->second;
  }

  const Function& function_;
  const SyncGraph& graph_;
  Program& program_;
  const std::vector<std::vector<uint32_t>> following_;
  std::vector<Work> work_;             // [instruction]
  std::vector<Work> work_of_segment_;  // [segment]
  std::map<uint64_t, std::unique_ptr<Pair>> pairs_;
};

}  // namespace

Replay make_replay(const Function& sass, const sim::ptx::Function& ptx,
                   const std::vector<fa4sim_sync>& records, const Gpu& gpu) {
  Replay replay;
  replay.ptx = sync_graph(ptx);
  replay.sass = sync_graph(sass);
  replay.matching = match(replay.ptx, replay.sass);
  for (const Instruction& x : sass.code) replay.program.code.push_back(decode(x, gpu));
  uint32_t warps = 0;
  for (const fa4sim_sync& r : records)
    if ((r.flags & FA4SIM_SYNC_REMOTE) || r.kind == FA4SIM_SYNC_CLUSTER_ARRIVE ||
        r.kind == FA4SIM_SYNC_CLUSTER_WAIT)
      throw Error("PTX line " + std::to_string(r.line) +
                  " synchronises with another CTA of a cluster: one CTA is modelled");
  for (const fa4sim_sync& r : records) warps = std::max(warps, r.warp + 1u);
  replay.program.warps.resize(warps);
  const WorkOfWarp from_the_start(ptx);
  std::vector<WorkOfWarp> work_of(warps, from_the_start);
  std::vector<std::vector<Work>> work(warps);  // [warp][record]: since the one before
  for (const fa4sim_sync& r : records) {
    const Work since = work_of[r.warp].next(r);
    if (r.kind == FA4SIM_SYNC_BRANCH || r.kind == FA4SIM_SYNC_INIT) continue;
    replay.program.warps[r.warp].records.push_back(r);
    work[r.warp].push_back(since);
  }
  Ways ways(sass, replay.sass, replay.program);
  for (uint32_t w = 0; w < warps; ++w) {
    WarpWay& way = replay.program.warps[w];
    std::vector<uint32_t> executed, first;
    for (uint32_t r = 0; r < way.records.size(); ++r) {
      if (way.records[r].flags & FA4SIM_SYNC_CONTINUED) continue;
      const int32_t node = way.records[r].instruction < replay.ptx.node_of.size()
                               ? replay.ptx.node_of[way.records[r].instruction]
                               : -1;
      if (node < 0)
        throw Error("PTX line " + std::to_string(way.records[r].line) +
                    " synchronises, and this model does not know how");
      executed.push_back(uint32_t(node));
      first.push_back(r);
    }
    std::vector<uint32_t> nodes;
    try {
      nodes = follow(replay.ptx, replay.sass, replay.matching, executed);
    } catch (const Error& error) {
      throw Error("warp " + std::to_string(w) + ": " + error.what());
    }
    first.push_back(uint32_t(way.records.size()));
    uint32_t from = 0;
    Work carried;
    std::vector<Work>& done = replay.work.emplace_back();
    for (size_t i = 0; i < nodes.size(); ++i) {
      done.push_back(work[w][first[i]]);
      way.steps.push_back(
          {ways.segment(from, nodes[i], work[w][first[i]], carried), first[i], first[i + 1] - first[i]});
      from = nodes[i];
    }
    done.push_back(work_of[w].rest());
    way.steps.push_back({ways.segment(from, 1, done.back(), carried), first.back(), 0});
    nodes.push_back(1);
    replay.nodes.push_back(std::move(nodes));
  }
  replay.stretches = ways.pairs();
  replay.stretches_with_choice = ways.pairs_with_choice();
  return replay;
}

}  // namespace fa4::time
