// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "asm/attention/names.h"

namespace fa4::time {

namespace {

constexpr uint32_t kDynamicShared = 0x400;  // where the simulated GPU puts it

std::string hexadecimal(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

}  // namespace

Names::Names(const sim::ptx::Module& module, const std::string& kernel, const Replay& replay) {
  const auto warps = uint32_t(replay.program.warps.size());
  for (const sim::ptx::Variable& v : module.variables) {
    if (v.name != kernel + "_names") continue;
    NameRecord record;
    for (size_t at = 0; at + sizeof record <= v.initializer.size(); at += sizeof record) {
      std::memcpy(&record, v.initializer.data() + at, sizeof record);
      if (record.kind == NameKind::end) break;
      const std::string name(record.name, strnlen(record.name, sizeof record.name));
      if (record.kind == NameKind::role && record.begin < warps)
        roles_.push_back({name, record.begin, std::min(record.end, warps)});
      if (record.kind == NameKind::barrier) barriers_.emplace_back(kDynamicShared + record.begin, name);
      if (record.kind == NameKind::tmem) columns_.emplace_back(record.begin, name);
    }
  }
  role_index_.assign(warps, ~size_t{0});
  for (size_t r = 0; r < roles_.size(); ++r)
    for (uint32_t w = roles_[r].begin; w < roles_[r].end; ++w) role_index_[w] = r;
  for (uint32_t w = 0; w < warps; ++w) {
    if (role_index_[w] != ~size_t{0}) continue;
    uint32_t end = w + 1;
    // Which nodes they pass counts, not how often.
    const auto kinds = [&](uint32_t warp) {
      std::vector<uint32_t> all = replay.nodes[warp];
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
      return all;
    };
    while (end < warps && end % 4 != 0 && role_index_[end] == ~size_t{0} && kinds(end) == kinds(w)) ++end;
    for (uint32_t i = w; i < end; ++i) role_index_[i] = roles_.size();
    roles_.push_back({end == w + 1 ? "warp " + std::to_string(w)
                                   : "warps " + std::to_string(w) + "-" + std::to_string(end - 1),
                      w, end});
  }
}

std::string Names::barrier(uint32_t address) const {
  if (address == kMmaGroup) return "MMAs of its warpgroup";
  if (address & kCtaBarrier) return "bar.sync " + std::to_string(address & ~kCtaBarrier);
  for (const auto& [at, name] : barriers_)
    if (at == address) return name;
  return "mbarrier " + hexadecimal(address);
}

std::string Names::column(uint32_t column) const {
  for (const auto& [at, name] : columns_)
    if (at == column) return name;
  return "column " + std::to_string(column);
}

namespace {

RoleReport role_report(const Names::Role& role, const Timing& timing, const Names& names) {
  RoleReport r{role.name, role.begin, role.end, 0, {}, {}};
  const double warps = role.end - role.begin;
  std::map<std::string, double> barriers;
  for (uint32_t w = role.begin; w < role.end; ++w) {
    const WarpTime& t = timing.warps[w];
    r.issued += double(t.issued) / warps;
    for (size_t c = 0; c < t.cycles.size(); ++c) r.cycles[c] += double(t.cycles[c]) / warps;
    for (const auto& [address, cycles] : t.barriers)
      barriers[names.barrier(address)] += double(cycles) / warps;
  }
  r.barriers.assign(barriers.begin(), barriers.end());
  std::ranges::sort(r.barriers, [](const auto& a, const auto& b) { return a.second > b.second; });
  return r;
}

// Goes back from the end: each event began when the last of what it needed was there.
class Chain {
 public:
  Chain(const Timing& timing, const Gpu& gpu, const Names& names)
      : timing_(timing), gpu_(gpu), names_(names) {}

  std::vector<Link> walk() {
    uint32_t last = 0;
    for (uint32_t w = 0; w < timing_.warps.size(); ++w)
      if (timing_.warps[w].end > timing_.warps[last].end) last = w;
    warp(last, timing_.warps[last].end, "end");
    std::reverse(links_.begin(), links_.end());
    return std::move(links_);
  }

 private:
  // The warp stands at `time`, where it did `towards`.
  void warp(uint32_t w, uint64_t time, std::string towards) {
    for (;;) {
      const std::vector<Blocked>& blocked = timing_.blocked[w];
      const auto after = std::upper_bound(blocked.begin(), blocked.end(), time,
                                          [](uint64_t t, const Blocked& b) { return t < b.end; });
      if (after == blocked.begin()) {
        add(Link::Kind::start, names_.role_of(w) + ": start -> " + towards, w, 0, time);
        return;
      }
      const Blocked& b = *(after - 1);
      const std::string name = names_.barrier(b.address);
      add(Link::Kind::work, names_.role_of(w) + ": " + name + " -> " + towards, w, b.end, time);
      const Signal& s = b.signal;
      switch (s.from) {
        case Signal::From::nobody:
          return;
        case Signal::From::warp:
          add(Link::Kind::hand_over, name + ": wake-up", w, s.time, b.end);
          w = s.warp;
          time = s.time;
          towards = name;
          break;
        case Signal::From::tensor: {
          const MmaTime* mma = &timing_.mmas[s.index];
          add(Link::Kind::hand_over, name + ": end of the MMAs to wake-up", w, mma->end, b.end);
          // Back through MMAs that waited for each other.
          uint64_t index = s.index;
          const uint64_t end = mma->end;
          while (index > 0 && timing_.mmas[index - 1].end == timing_.mmas[index].begin &&
                 timing_.mmas[index].begin > timing_.mmas[index].issue + gpu_.mma_issue)
            --index;
          mma = &timing_.mmas[index];
          add(Link::Kind::tensor, "tensor core, before " + name, mma->warp, mma->issue, end);
          w = mma->warp;
          time = mma->issue;
          towards = "MMA";
          break;
        }
        case Signal::From::copy: {
          uint64_t index = s.index;
          while (index > 0 && !timing_.copies[index].out &&
                 timing_.copies[index].begin > timing_.copies[index].issue + gpu_.tma_issue) {
            --index;
            while (index > 0 && timing_.copies[index].out) --index;
          }
          const CopyTime& copy = timing_.copies[index];
          add(Link::Kind::copy, "TMA, before " + name, copy.warp, copy.issue, b.end);
          w = copy.warp;
          time = copy.issue;
          towards = "TMA";
          break;
        }
      }
    }
  }

  void add(Link::Kind kind, std::string what, uint32_t w, uint64_t begin, uint64_t end) {
    if (end > begin) links_.push_back({kind, std::move(what), w, begin, end});
  }

  const Timing& timing_;
  const Gpu& gpu_;
  const Names& names_;
  std::vector<Link> links_;
};

std::vector<ChainPart> together(const std::vector<Link>& chain, uint64_t from, uint64_t to) {
  std::vector<ChainPart> parts;
  for (const Link& link : chain) {
    if (link.begin < from || link.begin >= to) continue;
    const auto found = std::ranges::find(parts, link.what, &ChainPart::what);
    if (found == parts.end())
      parts.push_back({link.what, link.kind, 1, link.end - link.begin});
    else
      ++found->count, found->cycles += link.end - link.begin;
  }
  return parts;
}

// The sequence between two occurrences of a link that occurs most often, in the middle of the chain.
std::vector<ChainPart> repeating(const std::vector<Link>& chain, uint64_t from, uint64_t to) {
  std::map<std::string, std::pair<uint32_t, std::pair<size_t, size_t>>>
      loops;  // by text: how often, the first one
  std::map<std::string, size_t> previous;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (chain[i].begin < from || chain[i].begin >= to) continue;
    const auto [at, fresh] = previous.try_emplace(chain[i].what, i);
    if (!fresh) {
      std::string text;
      // The same loop may be entered anywhere: it begins with its least link.
      size_t least = at->second;
      for (size_t k = at->second; k < i; ++k)
        if (chain[k].what < chain[least].what) least = k;
      if (chain[least].what == chain[at->second].what) {
        for (size_t k = at->second; k < i; ++k) text += chain[k].what + "\n";
        auto& loop = loops[text];
        if (loop.first++ == 0) loop.second = {at->second, i};
      }
      at->second = i;
    }
  }
  const std::string* best = nullptr;
  uint64_t most = 1;
  for (const auto& [text, loop] : loops) {
    // Weighted by the time that it explains.
    const uint64_t weight = loop.first * (chain[loop.second.second].begin - chain[loop.second.first].begin);
    if (loop.first > 1 && weight > most) most = weight, best = &text;
  }
  std::vector<ChainPart> parts;
  if (!best) return parts;
  const auto& [count, place] = loops[*best];
  for (size_t k = place.first; k < place.second; ++k)
    parts.push_back({chain[k].what, chain[k].kind, count, chain[k].end - chain[k].begin});
  return parts;
}

std::vector<Bound> bounds_of(const Program& program, const Timing& timing, const Gpu& gpu) {
  std::vector<Bound> bounds;
  const auto add = [&](std::string part, double cycles) {
    if (cycles > 0) bounds.push_back({std::move(part), cycles});
  };
  add("tensor core", double(timing.tensor_busy));
  std::array<std::array<uint64_t, size_t(Unit::count)>, 4> busy{};
  std::array<uint64_t, 4> tmem{};
  for (size_t w = 0; w < timing.warps.size(); ++w) {
    for (size_t u = 0; u < size_t(Unit::count); ++u) busy[w % 4][u] += timing.warps[w].busy[u];
    for (const fa4sim_sync& r : program.warps[w].records) {
      if (r.kind == FA4SIM_SYNC_TMEM_LOAD) tmem[w % 4] += r.bytes / gpu.tmem_load_rate;
      if (r.kind == FA4SIM_SYNC_TMEM_STORE) tmem[w % 4] += r.bytes / gpu.tmem_store_rate;
    }
  }
  const auto most = [&](auto value) {
    uint64_t m = 0;
    for (size_t s = 0; s < 4; ++s) m = std::max<uint64_t>(m, value(s));
    return double(m);
  };
  add("issue, busiest scheduler", most([&](size_t s) { return timing.issued[s]; }));
  add("FMA pipe, busiest scheduler",
      most([&](size_t s) { return busy[s][size_t(Unit::ffma)] + busy[s][size_t(Unit::ffma_pair)]; }));
  for (Unit unit : {Unit::mufu, Unit::alu, Unit::imad, Unit::uniform})
    add(name_of(unit) + std::string(" pipe, busiest scheduler"),
        most([&](size_t s) { return busy[s][size_t(unit)]; }));
  add("tensor-memory port, busiest scheduler", most([&](size_t s) { return tmem[s]; }));
  add("shared memory: operands of MMAs and TMA",
      double(timing.shared_operand_bytes + timing.copy_in_bytes + timing.copy_out_bytes) / gpu.shared_rate);
  add("TMA loads", double(timing.copy_in_bytes) / gpu.tma_rate);
  add("TMA stores", double(timing.copy_out_bytes) / gpu.tma_store_rate);
  std::ranges::sort(bounds, [](const Bound& a, const Bound& b) { return a.cycles > b.cycles; });
  return bounds;
}

}  // namespace

Report report(const Program& program, const Timing& timing, const Gpu& gpu, const Names& names) {
  Report r{};
  r.cycles = timing.cycles;
  r.tensor_share = timing.cycles ? double(timing.tensor_busy) / double(timing.cycles) : 0;
  r.tiles = double(timing.tensor_busy) * gpu.mma_flop_per_cycle / (2.0 * 2 * 128 * 128 * 128);
  for (const Names::Role& role : names.roles()) r.roles.push_back(role_report(role, timing, names));
  r.chain = Chain(timing, gpu, names).walk();
  r.parts = together(r.chain, timing.cycles / 4, timing.cycles - timing.cycles / 4);
  std::ranges::sort(r.parts, [](const ChainPart& a, const ChainPart& b) { return a.cycles > b.cycles; });
  r.loop = repeating(r.chain, timing.cycles / 4, timing.cycles - timing.cycles / 4);
  r.bounds = bounds_of(program, timing, gpu);
  return r;
}

}  // namespace fa4::time
