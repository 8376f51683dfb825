// SPDX-License-Identifier: Apache-2.0
// Sentences about faults: where an instruction stands in PTX and source, who waits for what.
#include <algorithm>
#include <cstdio>
#include <map>

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
        if (b->tx > 0 && cta.in_flight == 0) text += ", which no copy in flight will bring";
        if (b->tx < 0) text += " and " + std::to_string(-b->tx) + " bytes more than expected";
        text += lateness(*b, w, f.wait_value);
        if (b->signallers == 0 && b->signaller_ctas == 0) text += "; nothing has signalled it so far";
      }
      return text;
    }
    case State::cta_barrier: {
      const CtaBarrier& b = cta.barriers[f.wait_object];
      return "waits at barrier " + std::to_string(f.wait_object) + ": " + std::to_string(b.arrived) + " of " + std::to_string(b.expected) + " threads came";
    }
    case State::cluster_barrier: {
      const Cluster& c = *cta.cluster;
      return "waits at the barrier of the cluster: " + std::to_string(c.arrived) + " of " + std::to_string(c.live) + " threads came";
    }
    case State::bulk_group: return std::string("waits for bulk groups") + (f.wait_object ? " to be read" : "") + ", all but the newest " + std::to_string(f.wait_value);
    case State::warp_sync: {
      char text[64];
      std::snprintf(text, sizeof text, "waits for lanes 0x%08x of its warp", f.members);
      return text;
    }
    case State::copy_group: return "waits for cp.async" + (f.wait_value == ~0u ? std::string() : " groups, all but the newest " + std::to_string(f.wait_value));
    case State::wgmma_group: return "waits for wgmma groups, all but the newest " + std::to_string(f.wait_value);
    case State::registers: return "waits for " + std::to_string(f.wait_object) + " registers; the pool has " + std::to_string(cta.register_pool);
    case State::joining: return "waits for the other lanes to reconverge: " + lanes(w.joins[f.join].expected & ~w.joins[f.join].arrived);
  }
  return {};
}

// Warps that signal a barrier, as far as it is known: those that did so before; for one that nobody has signalled yet,
// those that signalled its kin of the same name ("s_ready[1]" for "s_ready[0]").
uint32_t signallers(const Cta& cta, const MBarrier& b) {
  if (b.signallers) return b.signallers;
  const std::string name = barrier_name(cta, b.address);
  const size_t stem = name.find('[');
  if (stem == std::string::npos) return 0;
  uint32_t kin = 0;
  for (const MBarrier& other : cta.mbarriers) {
    if (other.live && barrier_name(cta, other.address).compare(0, stem + 1, name, 0, stem + 1) == 0) kin |= other.signallers;
  }
  return kin;
}

// A mask of the warps that have to act before this fragment can go on, as far as it is known.
uint32_t awaited(const Cta& cta, const Warp& w, const Fragment& f) {
  using State = Fragment::State;
  const uint32_t self = 1u << w.index;
  if (f.state == State::mbarrier) {
    const MBarrier* b = find_mbarrier(const_cast<Cta&>(cta), f.wait_object);
    if (!b) return 0;
    const uint32_t all = signallers(cta, *b), missing = all & ~b->signallers_now;
    return missing ? missing : all;
  }
  if (f.state == State::cta_barrier) {
    const CtaBarrier& b = cta.barriers[f.wait_object];
    uint32_t users = cta.barrier_users[f.wait_object];
    for (const Warp& other : cta.warps) {
      if (b.whole_cta && other.alive) users |= 1u << other.index;
    }
    return users & ~b.warps & ~self;
  }
  return 0;
}

std::string object_of(const Cta& cta, const Fragment& f) {
  return f.state == Fragment::State::mbarrier ? barrier_name(cta, f.wait_object) : "barrier " + std::to_string(f.wait_object);
}

// The shortest cycle of warps that wait for each other, as a sentence; or the warp that has exited and is waited for.
std::string cycle(const Cta& cta) {
  const size_t n = cta.warps.size();
  const auto for_each_awaited = [&](uint32_t warp, auto f) {
    for (const Fragment& fragment : cta.warps[warp].fragments) {
      for (uint32_t m = awaited(cta, cta.warps[warp], fragment); m; m &= m - 1) f(fragment, uint32_t(__builtin_ctz(m)));
    }
  };
  std::vector<uint32_t> best;
  for (uint32_t start = 0; start < n; ++start) {
    std::vector<int32_t> from(n, -1);
    std::vector<uint32_t> queue{start};
    bool closed = false;
    for (size_t i = 0; i < queue.size() && !closed; ++i) {
      for_each_awaited(queue[i], [&](const Fragment&, uint32_t next) {
        if (closed || from[next] >= 0) return;
        from[next] = int32_t(queue[i]);
        closed = next == start;
        if (!closed) queue.push_back(next);
      });
    }
    if (!closed) continue;
    std::vector<uint32_t> path{start};
    for (uint32_t at = uint32_t(from[start]); at != start; at = uint32_t(from[at])) path.push_back(at);
    std::reverse(path.begin() + 1, path.end());
    if (best.empty() || path.size() < best.size()) best = path;
  }
  const auto edge = [&](uint32_t warp, uint32_t next) {
    std::string object;
    for_each_awaited(warp, [&](const Fragment& f, uint32_t to) {
      if (to == next && object.empty()) object = object_of(cta, f);
    });
    return object;
  };
  if (!best.empty()) {
    std::string text = "  cycle: " + role_name(cta, best[0]);
    for (size_t i = 0; i < best.size(); ++i) {
      const uint32_t next = best[(i + 1) % best.size()];
      text += (i ? ", which waits on " : " waits on ") + edge(best[i], next) + " for " + role_name(cta, next);
    }
    return text + "\n";
  }
  for (uint32_t warp = 0; warp < n; ++warp) {
    std::string text;
    for_each_awaited(warp, [&](const Fragment& f, uint32_t to) {
      if (text.empty() && !cta.warps[to].alive) {
        text = "  cause: " + role_name(cta, warp) + " waits on " + object_of(cta, f) + " for " + role_name(cta, to) + ", which has exited\n";
      }
    });
    if (!text.empty()) return text;
  }
  for (uint32_t warp = 0; warp < n; ++warp) {
    for (const Fragment& f : cta.warps[warp].fragments) {
      if (f.state != Fragment::State::mbarrier || awaited(cta, cta.warps[warp], f)) continue;
      if (const MBarrier* b = find_mbarrier(const_cast<Cta&>(cta), f.wait_object); b && b->signaller_ctas) continue;
      return "  cause: " + role_name(cta, warp) + " waits on " + object_of(cta, f) + ", which nothing has signalled so far\n";
    }
  }
  return {};
}

}  // namespace

std::string describe_waiters(const std::vector<const Cta*>& ctas) {
  std::string text;
  size_t shown = 0;
  for (const Cta* cta : ctas) {
    if (shown++ == 4) {
      text += "  ... and " + std::to_string(ctas.size() - 4) + " more CTAs\n";
      break;
    }
    text += "CTA " + std::to_string(cta->id) + " of " + cta->launch->code->name + "\n" + cycle(*cta);
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
