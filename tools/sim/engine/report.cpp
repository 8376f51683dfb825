// SPDX-License-Identifier: Apache-2.0
// Sentences about faults: where an instruction stands in PTX and source, who waits for what.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>

#include "../core/machine.h"
#include "../core/mbarrier.h"
#include "../core/names.h"
#include "../core/shared_memory.h"
#include "group.h"
#include "program.h"

namespace fa4::sim {

namespace {

const LoadedProgram& program_of(const Cta& cta) { return static_cast<const LoadedProgram&>(*cta.launch->launch->program); }

std::string short_path(const std::string& path) {
  const size_t at = path.rfind("asm/");
  return at == std::string::npos ? path : path.substr(at);
}

std::string lanes(Mask mask) {
  if (mask == kAllLanes) return "all lanes";
  if ((mask & (mask - 1)) == 0) return "lane " + std::to_string(__builtin_ctz(mask));
  char text[32];
  std::snprintf(text, sizeof text, "lanes 0x%08x", mask);
  return text;
}

}  // namespace

std::string role_name(const Cta& cta, uint32_t warp) {
  const std::string name = cta.launch->names->find(NameKind::role, warp);
  return "warp " + std::to_string(warp) + (name.empty() ? "" : " (" + name + ")");
}

std::string place(const Cta& cta, const Op* op) {
  const Code& code = *cta.launch->code;
  const size_t index = size_t(op - code.ops.data());
  const ptx::Location& at = code.locations[index];
  const ptx::Module& module = program_of(cta).module();
  std::string text;
  if (at.source_file && at.source_file < module.files.size()) {
    text = short_path(module.files[at.source_file]) + ":" + std::to_string(at.source_line) + ", ";
  }
  text += "PTX line " + std::to_string(at.line);
  const uint32_t instruction = code.instruction[index];
  if (instruction < code.function->instructions.size()) {
    text += " '" + std::string(code.function->instructions[instruction].opcode) + "'";
  }
  return text;
}

void fault(const Cta& cta, uint32_t warp, const Op* op, Fault::Kind kind, const std::string& message) {
  std::string text = cta.launch->code->name + ", CTA " + std::to_string(cta.id) + ", " + role_name(cta, warp);
  if (op) text += "\n  at " + place(cta, op);
  throw Fault(kind, text + "\n  " + message);
}

void fault(const Warp& w, const Op* op, Fault::Kind kind, const std::string& message) {
  fault(*w.cta, w.index, op, kind, message);
}

namespace {

// Why a wait on a phase that has parity `parity` cannot be satisfied, beyond what is pending.
std::string lateness(const MBarrier& b, const Warp& w, uint32_t parity) {
  const uint32_t seen = b.seen[w.index];
  if ((seen & 1) != (parity & 1) || b.phase < seen + 2) return {};
  return "; this warp has seen " + std::to_string(seen) + (seen == 1 ? " phase" : " phases") + " complete and " + std::to_string(b.phase - seen) +
         " more have since: the wait came too late, its phase is no longer the one before";
}

bool nothing_in_flight(const Cluster& cluster) {
  return std::none_of(cluster.ctas, cluster.ctas + cluster.size, [](const Cta* cta) { return cta->in_flight != 0; });
}

std::string waits_for(const Cta& cta, const Warp& w, const Fragment& f) {
  using State = Fragment::State;
  switch (f.state) {
    case State::ready: return "can run";
    case State::mbarrier: {
      Cta& mutable_cta = const_cast<Cta&>(cta);
      const MBarrier* b = find_mbarrier(mutable_cta, f.wait_object);
      std::string text = "waits on " + barrier_name(cta, f.wait_object) + " for the phase of parity " + std::to_string(f.wait_value & 1);
      if (b) {
        text += "; the barrier is in phase " + std::to_string(b->phase) + " with " + std::to_string(b->pending) + " of " +
                std::to_string(b->expected) + " arrivals pending";
        if (b->tx > 0) text += " and " + std::to_string(b->tx) + " bytes missing";
        if (b->tx > 0 && nothing_in_flight(*cta.cluster)) text += ", which no copy in flight will bring";
        if (b->tx < 0) text += " and " + std::to_string(-b->tx) + " bytes more than expected";
        text += lateness(*b, w, f.wait_value);
        if (!b->signalled()) text += "; nothing has signalled it so far";
      }
      return text;
    }
    case State::cta_barrier: {
      const CtaBarrier& b = cta.barriers[f.wait_object];
      if (!f.counted) return "waits at barrier " + std::to_string(f.wait_object) + " for the other lanes of its warp, which have neither come nor exited";
      return "waits at barrier " + std::to_string(f.wait_object) + ": " + std::to_string(b.arrived) + " of " + std::to_string(b.expected) + " threads came";
    }
    case State::cluster_barrier: {
      const Cluster& c = *cta.cluster;
      return "waits at the barrier of the cluster: " + std::to_string(c.arrived) + " of " + std::to_string(c.live) + " threads came";
    }
    case State::bulk_group: return std::string("waits for bulk groups") + (f.wait_object ? " to be read" : "") + ", all but the newest " + std::to_string(f.wait_value);
    case State::warp_sync: {
      char text[64];
      std::snprintf(text, sizeof text, "waits for lanes 0x%08x of its warp", f.members & w.alive);
      return text;
    }
    case State::whole_warp: return "waits for the other lanes of its warp, which have neither come nor exited";
    case State::copy_group: return "waits for cp.async" + (f.wait_value == ~0u ? std::string() : " groups, all but the newest " + std::to_string(f.wait_value));
    case State::wgmma_group: return "waits for wgmma groups, all but the newest " + std::to_string(f.wait_value);
    case State::registers: return "waits for " + std::to_string(f.wait_object) + " registers; the pool has " + std::to_string(cta.register_pool);
    case State::joining: return "waits for the other lanes to reconverge: " + lanes(w.joins[f.join].expected & ~w.joins[f.join].arrived);
  }
  return {};
}

// Warps of a cluster: a mask for each of its CTAs, by rank.
using Warps = std::array<uint32_t, kMaxClusterSize>;
bool none(const Warps& warps) {
  return std::ranges::all_of(warps, [](uint32_t mask) { return mask == 0; });
}

// Warps that signal a barrier, as far as it is known: those that did so before; for one that nobody has signalled yet,
// those that signalled its kin of the same name ("s_ready[1]" for "s_ready[0]").
Warps signallers(const Cta& cta, const MBarrier& b) {
  Warps all = std::to_array(b.signallers);
  if (!none(all)) return all;
  const std::string name = barrier_name(cta, b.address);
  const size_t stem = name.find('[');
  if (stem == std::string::npos) return all;
  for (const MBarrier& other : cta.mbarriers) {
    if (!other.live || barrier_name(cta, other.address).compare(0, stem + 1, name, 0, stem + 1) != 0) continue;
    for (uint32_t rank = 0; rank < kMaxClusterSize; ++rank) all[rank] |= other.signallers[rank];
  }
  return all;
}

// All arrivals of the barrier's phase have come and its bytes do not add up, with nothing in flight that could change that: "with
// 32 bytes missing, which no copy in flight will bring". Empty if it is not so.
std::string unbalanced(const Cta& cta, const MBarrier& b) {
  if (b.pending != 0 || b.tx == 0 || !nothing_in_flight(*cta.cluster)) return {};
  if (b.tx < 0) return "with " + std::to_string(-b.tx) + " bytes more than were announced";
  return "with " + std::to_string(b.tx) + " bytes missing, which no copy in flight will bring";
}

// The warps that have to act before this fragment can go on, as far as it is known. Where all who ever signalled an mbarrier
// have done so in its present phase, `guess` takes any of them, but for this warp, for the one that is missing.
Warps awaited(const Cta& cta, const Warp& w, const Fragment& f, bool guess) {
  using State = Fragment::State;
  Warps warps{};
  if (f.state == State::mbarrier) {
    const MBarrier* b = find_mbarrier(const_cast<Cta&>(cta), f.wait_object);
    if (!b) return warps;
    Warps all = signallers(cta, *b);
    for (uint32_t rank = 0; rank < kMaxClusterSize; ++rank) warps[rank] = all[rank] & ~b->signallers_now[rank];
    if (!none(warps) || !guess || !unbalanced(cta, *b).empty()) return warps;
    all[cta.rank] &= ~(1u << w.index);
    return all;
  }
  if (f.state == State::cta_barrier) {
    const CtaBarrier& b = cta.barriers[f.wait_object];
    uint32_t users = cta.barrier_users[f.wait_object];
    for (const Warp& other : cta.warps) {
      if (b.whole_cta && other.alive) users |= 1u << other.index;
    }
    warps[cta.rank] = users & ~b.warps & ~(1u << w.index);
  }
  if (f.state == State::cluster_barrier) {
    for (uint32_t rank = 0; rank < cta.cluster->size; ++rank) {
      for (const Warp& other : cta.cluster->ctas[rank]->warps) {
        if (&other != &w && (other.alive & ~other.cluster_arrived)) warps[rank] |= 1u << other.index;
      }
    }
  }
  return warps;
}

std::string object_of(const Cta& cta, const Fragment& f) {
  if (f.state == Fragment::State::mbarrier) return barrier_name(cta, f.wait_object);
  return f.state == Fragment::State::cluster_barrier ? "the barrier of the cluster" : "barrier " + std::to_string(f.wait_object);
}

std::string name_in_cluster(const Warp& w) {
  const Cta& cta = *w.cta;
  const std::string role = role_name(cta, w.index);
  return cta.cluster->size == 1 ? role : role + " of CTA " + std::to_string(cta.id) + " (rank " + std::to_string(cta.rank) + ")";
}

struct Wait {
  const Fragment* fragment;
  uint32_t on;  // a warp that it waits for
};

// The shortest cycle in waits[warp], empty if there is none.
std::vector<uint32_t> shortest_cycle(const std::vector<std::vector<Wait>>& waits) {
  std::vector<uint32_t> best;
  for (uint32_t start = 0; start < waits.size(); ++start) {
    std::vector<int32_t> from(waits.size(), -1);
    std::vector<uint32_t> queue{start};
    for (size_t i = 0; i < queue.size() && from[start] < 0; ++i) {
      for (const Wait& wait : waits[queue[i]]) {
        if (from[wait.on] >= 0) continue;
        from[wait.on] = int32_t(queue[i]);
        if (wait.on != start) queue.push_back(wait.on);
      }
    }
    if (from[start] < 0) continue;
    std::vector<uint32_t> path{start};
    for (uint32_t at = uint32_t(from[start]); at != start; at = uint32_t(from[at])) path.push_back(at);
    std::reverse(path.begin() + 1, path.end());
    if (best.empty() || path.size() < best.size()) best = path;
  }
  return best;
}

// What keeps the warps of a cluster, as a line: the shortest cycle of warps that wait for each other; or a barrier whose bytes
// nothing in flight will bring; or a warp that has exited and is waited for; or a barrier whose arrivals nobody is known to owe.
std::string cause(const Cluster& cluster) {
  const uint32_t a_cta = uint32_t(cluster.ctas[0]->warps.size()), n = cluster.size * a_cta;
  const auto warp_at = [&](uint32_t i) -> const Warp& { return cluster.ctas[i / a_cta]->warps[i % a_cta]; };
  std::vector<std::vector<Wait>> waits;  // [warp]
  const auto find_waits = [&](bool guess, bool at_cluster_barrier) {
    waits.assign(n, {});
    for (uint32_t i = 0; i < n; ++i) {
      const Warp& w = warp_at(i);
      for (const Fragment& f : w.fragments) {
        if (f.state == Fragment::State::cluster_barrier && !at_cluster_barrier) continue;
        const Warps warps = awaited(*w.cta, w, f, guess);
        for (uint32_t rank = 0; rank < cluster.size; ++rank) {
          for (uint32_t m = warps[rank]; m; m &= m - 1) waits[i].push_back({&f, rank * a_cta + uint32_t(std::countr_zero(m))});
        }
      }
    }
    return shortest_cycle(waits);
  };
  const auto cycle = [&](const std::vector<uint32_t>& found) {
    std::string text = "  cycle: " + name_in_cluster(warp_at(found[0]));
    for (size_t i = 0; i < found.size(); ++i) {
      const uint32_t next = found[(i + 1) % found.size()];
      const Wait& wait = *std::ranges::find(waits[found[i]], next, &Wait::on);
      text += (i ? ", which waits on " : " waits on ") + object_of(*warp_at(found[i]).cta, *wait.fragment) + " for " + name_in_cluster(warp_at(next));
    }
    return text + "\n";
  };
  // The first wait of which `say` has something to say.
  const auto first_wait = [&](auto say) {
    for (uint32_t i = 0; i < n; ++i) {
      const Warp& w = warp_at(i);
      for (const Fragment& f : w.fragments) {
        const std::string text = say(w, f);
        if (!text.empty()) return "  cause: " + name_in_cluster(w) + " waits on " + object_of(*w.cta, f) + text + "\n";
      }
    }
    return std::string();
  };
  const auto barrier_of = [](const Warp& w, const Fragment& f) -> const MBarrier* {
    return f.state == Fragment::State::mbarrier ? find_mbarrier(*w.cta, f.wait_object) : nullptr;
  };

  if (const auto found = find_waits(false, false); !found.empty()) return cycle(found);
  const std::string bytes = first_wait([&](const Warp& w, const Fragment& f) {
    const MBarrier* b = barrier_of(w, f);
    const std::string wrong = b ? unbalanced(*w.cta, *b) : std::string();
    return wrong.empty() ? wrong : ", " + wrong;
  });
  if (!bytes.empty()) return bytes;
  if (const auto found = find_waits(true, false); !found.empty()) return cycle(found);
  // Lanes with nothing left to do wait at the cluster's barrier and seem to be in a cycle with any others: a cycle without
  // that barrier says more.
  if (cluster.size > 1) {
    if (const auto found = find_waits(true, true); !found.empty()) return cycle(found);
  }
  for (uint32_t i = 0; i < n; ++i) {
    for (const Wait& wait : waits[i]) {
      if (warp_at(wait.on).alive) continue;
      return "  cause: " + name_in_cluster(warp_at(i)) + " waits on " + object_of(*warp_at(i).cta, *wait.fragment) + " for " + name_in_cluster(warp_at(wait.on)) +
             ", which has exited\n";
    }
  }
  // Of arrivals that are missing: first of barriers where some came.
  for (const bool some : {true, false}) {
    const std::string arrivals = first_wait([&](const Warp& w, const Fragment& f) -> std::string {
      const MBarrier* b = barrier_of(w, f);
      if (!b || !none(awaited(*w.cta, w, f, false)) || b->signalled() != some) return {};
      if (!some) return ", which nothing has signalled so far";
      return ", with " + std::to_string(b->pending) + " of " + std::to_string(b->expected) + " arrivals pending, though all warps that ever signalled it have done so in this phase";
    });
    if (!arrivals.empty()) return arrivals;
  }
  return first_wait([&](const Warp& w, const Fragment& f) -> std::string {
    if (f.state != Fragment::State::cta_barrier || !f.counted) return {};
    const CtaBarrier& b = w.cta->barriers[f.wait_object];
    return ", where " + std::to_string(b.arrived) + " of " + std::to_string(b.expected) + " threads came and no others ever did";
  });
}

}  // namespace

std::string describe_waiters(const std::vector<const Cta*>& ctas) {
  std::string text;
  size_t shown = 0;
  const Cluster* before = nullptr;
  for (const Cta* cta : ctas) {
    if (shown++ == 4) {
      text += "  ... and " + std::to_string(ctas.size() - 4) + " more CTAs\n";
      break;
    }
    text += "CTA " + std::to_string(cta->id) + " of " + cta->launch->code->name + "\n";
    if (cta->cluster != before) text += cause(*cta->cluster);
    before = cta->cluster;
    for (const Warp& w : cta->warps) {
      if (w.alive == 0) {
        text += "  " + role_name(*cta, w.index) + ": has exited\n";
        continue;
      }
      for (const Fragment& f : w.fragments) {
        text += "  " + role_name(*cta, w.index) + ", " + lanes(f.mask) + ": " + waits_for(*cta, w, f) + "\n      at " + place(*cta, f.pc) + "\n";
      }
    }
  }
  return text;
}

}  // namespace fa4::sim
