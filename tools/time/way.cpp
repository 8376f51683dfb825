// SPDX-License-Identifier: Apache-2.0
#include "way.h"

#include <algorithm>
#include <deque>
#include <map>
#include <span>

namespace fa4::time {

namespace {

// Ways between synchronising instructions, found once for each pair.
class Ways {
 public:
  Ways(const Function& function, const SyncGraph& graph, Program& program)
      : function_(function), graph_(graph), program_(program), following_(successors(function)) {}

  uint32_t segment(uint32_t from, uint32_t to) {
    const auto [at, fresh] =
        found_.try_emplace(uint64_t(from) << 32 | to, uint32_t(program_.segments.size()));
    if (fresh) program_.segments.push_back(find(from, to));
    return at->second;
  }
  uint32_t choices() const { return choices_; }
  std::vector<Segment> take_longest() { return std::move(longest_); }

 private:
  // Whether a way that does not stop at instruction i may lead through it.
  bool open(uint32_t i) const {
    if (graph_.retries[i]) return false;
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

  // The way with the fewest instructions.
  Segment find(uint32_t from, uint32_t to) {
    std::vector<int32_t> before(following_.size(), -2);
    std::deque<uint32_t> queue;
    const auto visit = [&](uint32_t i, int32_t b) {
      if (before[i] != -2) return;
      before[i] = b;
      queue.push_back(i);
    };
    for (uint32_t i : starts(from)) visit(i, -1);
    uint32_t end = ~0u;
    while (!queue.empty() && end == ~0u) {
      const uint32_t i = queue.front();
      queue.pop_front();
      if (is_target(i, to))
        end = i;
      else if (open(i))
        for (uint32_t k : following_[i]) visit(k, int32_t(i));
    }
    if (end == ~0u)
      throw Error("no way leads from " + describe(graph_.nodes[from]) + " to " + describe(graph_.nodes[to]) +
                  " in the machine code of " + function_.name);
    std::vector<uint32_t> code;
    for (int32_t i = int32_t(end); i >= 0; i = before[size_t(i)]) code.push_back(uint32_t(i));
    std::reverse(code.begin(), code.end());
    longest_.push_back(longest(from, end));
    choices_ += longest_.back().code != code;
    return with_jumps(std::move(code));
  }

  static Segment with_jumps(std::vector<uint32_t> code) {
    Segment segment{std::move(code), {}};
    for (size_t i = 0; i < segment.code.size(); ++i)
      segment.jumps.push_back(i + 1 < segment.code.size() && segment.code[i + 1] != segment.code[i] + 1);
    return segment;
  }

  // The way to `end` with the most instructions that passes none twice.
  Segment longest(uint32_t from, uint32_t end) const {
    constexpr int32_t unseen = -3, on_the_way = -2, leads_nowhere = -1;
    std::vector<int32_t> next(following_.size(), unseen), length(following_.size(), 0);
    next[end] = int32_t(end);
    length[end] = 1;
    // Depth first; an instruction is done when all that follows it is.
    struct Place {
      uint32_t instruction;
      size_t follower;
    };
    std::vector<Place> stack;
    const auto enter = [&](uint32_t i) {
      if (next[i] != unseen) return;
      next[i] = on_the_way;
      stack.push_back({i, 0});
    };
    for (uint32_t start : starts(from)) {
      enter(start);
      while (!stack.empty()) {
        Place& place = stack.back();
        const uint32_t i = place.instruction;
        if (open(i) && place.follower < following_[i].size()) {
          enter(following_[i][place.follower++]);
          continue;
        }
        int32_t best = leads_nowhere;
        for (uint32_t k : following_[i])
          if (open(i) && next[k] >= 0 && (best < 0 || length[k] > length[size_t(best)])) best = int32_t(k);
        next[i] = best;
        length[i] = best < 0 ? 0 : length[size_t(best)] + 1;
        stack.pop_back();
      }
    }
    uint32_t first = starts(from).front();
    for (uint32_t start : starts(from))
      if (length[start] > length[first]) first = start;
    std::vector<uint32_t> code{first};
    while (code.back() != end) code.push_back(uint32_t(next[code.back()]));
    return with_jumps(std::move(code));
  }

  const Function& function_;
  const SyncGraph& graph_;
  Program& program_;
  std::vector<std::vector<uint32_t>> following_;
  std::vector<Segment> longest_;  // [segment]
  std::map<uint64_t, uint32_t> found_;
  uint32_t choices_ = 0;
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
  for (const fa4sim_sync& r : records) replay.program.warps[r.warp].records.push_back(r);
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
    for (size_t i = 0; i < nodes.size(); ++i) {
      way.steps.push_back({ways.segment(from, nodes[i]), first[i], first[i + 1] - first[i]});
      from = nodes[i];
    }
    way.steps.push_back({ways.segment(from, 1), first.back(), 0});
    nodes.push_back(1);
    replay.nodes.push_back(std::move(nodes));
  }
  replay.segments_with_choice = ways.choices();
  replay.longest = ways.take_longest();
  return replay;
}

}  // namespace fa4::time
