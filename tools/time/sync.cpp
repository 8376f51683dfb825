// SPDX-License-Identifier: Apache-2.0
#include "sync.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace fa4::time {

namespace {

struct Kind {
  Sync sync;
  uint32_t size = 0;
};

// ".x32" -> 32, among the parts of an opcode; 1 without.
template <class Parts>
uint32_t repeats(const Parts& parts) {
  for (std::string_view part : parts) {
    uint32_t n = 0;
    if (part.size() > 1 && part[0] == 'x' &&
        std::from_chars(part.data() + 1, part.data() + part.size(), n).ptr == part.data() + part.size())
      return n;
  }
  return 1;
}

std::vector<std::string_view> split(std::string_view opcode) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t dot = opcode.find('.');
    parts.push_back(opcode.substr(0, dot));
    if (dot == std::string_view::npos) return parts;
    opcode = opcode.substr(dot + 1);
  }
}

std::optional<Kind> kind_of(const Instruction& x) {
  const std::string_view base = x.base();
  if (base == "SYNCS") {
    if (x.is("PHASECHK")) return Kind{Sync::wait};
    // A1T0: one arrival, ART0: as many as a register says; the others announce bytes.
    if (x.is("ARRIVE")) return Kind{x.is("A1T0") || x.is("ART0") ? Sync::arrive : Sync::arrive_tx};
    return std::nullopt;
  }
  if (base == "LDTM") return Kind{Sync::tmem_load, repeats(split(x.opcode))};
  if (base == "STTM") return Kind{Sync::tmem_store, repeats(split(x.opcode))};
  if (base == "UTCHMMA" || base == "UTCQMMA")
    return Kind{x.operands.starts_with("gdesc") ? Sync::mma_shared : Sync::mma_other};
  if (base == "UTCBAR") return Kind{Sync::commit};
  if (base == "UTMALDG" || base == "UBLKCP") {
    // Bulk copies between spaces: the destination stands first.
    if (base == "UBLKCP" && x.is("G") && x.opcode.find(".G.S") != std::string::npos)
      return Kind{Sync::copy_out};
    return Kind{Sync::copy_in};
  }
  if (base == "UTMASTG") return Kind{Sync::copy_out};
  if (base == "HGMMA")
    return Kind{x.operands.find("gdesc") < x.operands.find(", R") ? Sync::mma_shared : Sync::mma_other};
  if (base == "BAR") return Kind{x.is("ARV") ? Sync::bar_arrive : Sync::bar_sync};
  if (base == "UCGABAR_ARV") return Kind{Sync::cluster_arrive};
  if (base == "UCGABAR_WAIT") return Kind{Sync::cluster_wait};
  return std::nullopt;
}

std::optional<Kind> kind_of(const sim::ptx::Instruction& x) {
  const auto has = [&](std::string_view part) {
    return std::find(x.parts.begin(), x.parts.end(), part) != x.parts.end();
  };
  const std::string_view base = x.parts[0];
  if (base == "mbarrier") {
    if (has("test_wait") || has("try_wait")) return Kind{Sync::wait};
    if (has("expect_tx")) return Kind{Sync::arrive_tx};
    if (has("arrive") || has("arrive_drop")) return Kind{Sync::arrive};
    return std::nullopt;
  }
  if (base == "tcgen05") {
    if (has("ld")) return Kind{Sync::tmem_load, repeats(x.parts)};
    if (has("st")) return Kind{Sync::tmem_store, repeats(x.parts)};
    if (has("mma"))
      return Kind{x.operands.size() > 1 && x.operands[1].kind == sim::ptx::Operand::Kind::address
                      ? Sync::mma_other
                      : Sync::mma_shared};
    if (has("commit")) return Kind{Sync::commit};
    return std::nullopt;
  }
  if (base == "cp" && has("bulk")) {
    if (has("prefetch") || has("commit_group") || has("wait_group")) return std::nullopt;
    const bool in = x.opcode.find(".shared::cluster.global") != std::string_view::npos ||
                    x.opcode.find(".shared::cta.global") != std::string_view::npos ||
                    x.opcode.find(".shared::cluster.shared::cta") != std::string_view::npos;
    return Kind{in ? Sync::copy_in : Sync::copy_out};
  }
  if (base == "wgmma" && has("mma_async")) {
    const bool registers = x.operands.size() > 1 && x.operands[1].kind == sim::ptx::Operand::Kind::vector;
    return Kind{registers ? Sync::mma_other : Sync::mma_shared};
  }
  if (base == "bar" || base == "barrier") {
    if (has("warp")) return std::nullopt;
    if (has("cluster")) return Kind{has("arrive") ? Sync::cluster_arrive : Sync::cluster_wait};
    return Kind{has("arrive") ? Sync::bar_arrive : Sync::bar_sync};
  }
  return std::nullopt;
}

// A guard may be false, and a test of an mbarrier, unlike a wait, may fail and is then not recorded.
bool may_be_passed(const Instruction& x) {
  return (!x.guard.empty() && x.guard != "@PT") || (x.is("PHASECHK") && !x.is("TRYWAIT"));
}
bool is_test(const sim::ptx::Instruction& x) {
  return x.parts[0] == "mbarrier" && x.parts[1] == "test_wait";
}

// The graph of the nodes that are given. `ends`: which instructions end the program.
SyncGraph connect(std::vector<SyncNode> nodes, const std::vector<std::vector<uint32_t>>& following,
                  const std::vector<bool>& ends) {
  SyncGraph graph;
  graph.retries.assign(following.size(), false);
  graph.nodes = std::move(nodes);
  graph.node_of.assign(following.size(), -1);
  for (uint32_t n = 2; n < graph.nodes.size(); ++n) graph.node_of[graph.nodes[n].instruction] = int32_t(n);
  // [instruction]: the node from which it was reached last without passing another node, and so or otherwise.
  std::vector<uint32_t> seen_directly(following.size(), ~0u), seen(following.size(), ~0u), queue, passed;
  const auto unique = [](std::vector<uint32_t>& all) {
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
  };
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    if (n == 1) continue;
    SyncNode& node = graph.nodes[n];
    // What may follow `first`, as far as the next node; `pass`: also beyond guarded ones, from where the
    // others go on.
    const auto reach = [&](std::vector<uint32_t>& mark, const std::vector<uint32_t>& first, bool pass) {
      queue.clear();
      const auto visit = [&](uint32_t i) {
        if (mark[i] == n) return;
        mark[i] = n;
        queue.push_back(i);
      };
      for (uint32_t i : first) visit(i);
      bool end = false;
      while (!queue.empty()) {
        const uint32_t i = queue.back();
        queue.pop_back();
        if (const int32_t found = graph.node_of[i]; found >= 0) {
          node.next.push_back(uint32_t(found));
          if (!graph.nodes[size_t(found)].guarded) continue;
          if (!pass) {
            passed.push_back(i);
            continue;
          }
        }
        end |= ends[i];
        for (uint32_t k : following[i]) visit(k);
      }
      if (end) node.next.push_back(1);
    };
    passed.clear();
    std::vector<uint32_t> first;
    if (n != 0)
      first = following[node.instruction];
    else if (!following.empty())
      first = {0};
    reach(seen_directly, first, false);
    unique(node.next);
    node.next_directly = node.next;
    reach(seen, passed, true);
    unique(node.next);
  }
  return graph;
}

std::vector<SyncNode> first_nodes() {
  std::vector<SyncNode> nodes(2);
  nodes[1].sync = Sync::end;
  return nodes;
}

}  // namespace

const char* name_of(Sync sync) {
  switch (sync) {
    case Sync::entry:
      return "entry";
    case Sync::end:
      return "end";
    case Sync::arrive:
      return "arrive";
    case Sync::arrive_tx:
      return "arrive with bytes";
    case Sync::wait:
      return "wait";
    case Sync::commit:
      return "commit";
    case Sync::mma_shared:
      return "MMA, A in shared memory";
    case Sync::mma_other:
      return "MMA, A in tensor memory or registers";
    case Sync::tmem_load:
      return "tensor-memory load";
    case Sync::tmem_store:
      return "tensor-memory store";
    case Sync::copy_in:
      return "bulk copy in";
    case Sync::copy_out:
      return "bulk copy out";
    case Sync::bar_sync:
      return "bar.sync";
    case Sync::bar_arrive:
      return "bar.arrive";
    case Sync::cluster_arrive:
      return "cluster arrive";
    case Sync::cluster_wait:
      return "cluster wait";
  }
  return "";
}

std::string describe(const SyncNode& node) {
  return node.size ? name_of(node.sync) + std::string(" x") + std::to_string(node.size) : name_of(node.sync);
}

namespace {

// Removes the attempts of a wait that only stand behind attempts of the same wait: the loop that ptxas puts
// out of the way.
void remove_retries(SyncGraph& graph, const Function& function) {
  const auto operands = [&](uint32_t n) {  // behind the predicate
    const std::string_view all = function.code[graph.nodes[n].instruction].operands;
    return all.substr(std::min(all.find(','), all.size()));
  };
  std::vector<std::vector<uint32_t>> previous(graph.nodes.size());
  for (uint32_t n = 0; n < graph.nodes.size(); ++n)
    for (uint32_t k : graph.nodes[n].next) previous[k].push_back(n);
  std::vector<bool> gone(graph.nodes.size());
  for (uint32_t n = 2; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].sync != Sync::wait) continue;
    bool others = false;
    for (uint32_t b : previous[n]) others |= b != n;
    gone[n] = others && std::ranges::all_of(previous[n], [&](uint32_t b) {
                return graph.nodes[b].sync == Sync::wait && operands(b) == operands(n);
              });
  }
  std::vector<uint32_t> renumbered(graph.nodes.size());
  std::vector<SyncNode> kept;
  for (uint32_t n = 0; n < graph.nodes.size(); ++n) {
    renumbered[n] = uint32_t(kept.size());
    if (gone[n])
      graph.retries[graph.nodes[n].instruction] = true;
    else
      kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
  for (SyncNode& node : graph.nodes) {
    for (std::vector<uint32_t>* next : {&node.next, &node.next_directly}) {
      std::erase_if(*next, [&](uint32_t k) { return gone[k]; });
      for (uint32_t& k : *next) k = renumbered[k];
    }
  }
  std::ranges::fill(graph.node_of, -1);
  for (uint32_t n = 2; n < graph.nodes.size(); ++n) graph.node_of[graph.nodes[n].instruction] = int32_t(n);
}

}  // namespace

SyncGraph sync_graph(const Function& function) {
  std::vector<SyncNode> nodes = first_nodes();
  std::vector<bool> ends(function.code.size());
  for (uint32_t i = 0; i < function.code.size(); ++i) {
    const Instruction& x = function.code[i];
    ends[i] = x.base() == "EXIT";
    if (const auto kind = kind_of(x)) nodes.push_back({kind->sync, kind->size, i, may_be_passed(x), {}, {}});
  }
  SyncGraph graph = connect(std::move(nodes), successors(function), ends);
  remove_retries(graph, function);
  return graph;
}

SyncGraph sync_graph(const sim::ptx::Function& function) {
  std::vector<SyncNode> nodes = first_nodes();
  const size_t count = function.instructions.size();
  std::vector<bool> ends(count);
  std::vector<std::vector<uint32_t>> following(count);
  for (uint32_t i = 0; i < count; ++i) {
    const sim::ptx::Instruction& x = function.instructions[i];
    const std::string_view base = x.parts[0];
    if (base == "call")
      throw Error("entry " + function.name + " calls a function, which is not followed: PTX line " +
                  std::to_string(x.location.line));
    const bool always = x.guard < 0;
    bool falls_through = true;
    const auto jump = [&](int32_t label) {
      const uint32_t to = function.labels[size_t(label)].instruction;
      if (to < count)
        following[i].push_back(to);
      else
        ends[i] = true;
    };
    if (base == "bra") {
      jump(x.operands.at(0).label);
      falls_through = !always;
    } else if (base == "brx") {
      for (int32_t label : function.branch_tables[size_t(x.operands.at(1).label)]) jump(label);
      falls_through = !always;
    } else if (base == "ret" || base == "exit") {
      ends[i] = true;
      falls_through = !always;
    } else if (base == "trap") {
      falls_through = !always;
    }
    if (falls_through) {
      if (i + 1 < count)
        following[i].push_back(i + 1);
      else
        ends[i] = true;
    }
    if (const auto kind = kind_of(x))
      nodes.push_back({kind->sync, kind->size, i, !always || is_test(x), {}, {}});
  }
  return connect(std::move(nodes), following, ends);
}

}  // namespace fa4::time
