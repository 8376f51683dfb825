// SPDX-License-Identifier: Apache-2.0
// Branches, basic blocks, and where lanes that a branch separates meet again.
#include <algorithm>

#include "builder.h"

namespace fa4::sim {

void Builder::link_branches() {
  for (Op& op : code_.ops) {
    if (op.run == branch || op.run == branch_uniform) {
      op.target = op_of_instruction_[function_.labels[op.target].instruction];
    }
  }
}

void Builder::find_blocks() {
  const uint32_t n = uint32_t(code_.ops.size());
  const auto is_branch = [&](const Op& op) { return op.run == branch || op.run == branch_uniform; };
  std::vector<bool> leader(n + 1, false);
  leader[0] = true;
  for (uint32_t i = 0; i < n; ++i) {
    if (is_branch(code_.ops[i])) leader[code_.ops[i].target] = leader[i + 1] = true;
    if (code_.ops[i].run == exit_lanes) leader[i + 1] = true;
  }
  block_of_op_.resize(n);
  for (uint32_t i = 0; i < n; ++i) {
    if (leader[i]) blocks_.push_back({i, i, {}, {}});
    blocks_.back().end = i + 1;
    block_of_op_[i] = uint32_t(blocks_.size() - 1);
  }
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    const Op& last = code_.ops[blocks_[b].end - 1];
    const bool guarded = last.guard != 0;
    std::vector<uint32_t>& next = blocks_[b].successors;
    if (is_branch(last)) next.push_back(block_of_op_[last.target]);
    const bool falls = is_branch(last) || last.run == exit_lanes ? guarded : true;
    if (falls && blocks_[b].end < n) next.push_back(block_of_op_[blocks_[b].end]);
    if (next.size() == 2 && next[0] == next[1]) next.pop_back();
  }
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    for (uint32_t s : blocks_[b].successors) blocks_[s].predecessors.push_back(b);
  }
}

// Lanes that a branch separates meet again at its immediate post-dominator (Cooper, Harvey and Kennedy's iteration on
// the reversed graph, whose root is a virtual exit).
void Builder::find_joins() {
  const uint32_t n = uint32_t(blocks_.size()), root = n;
  std::vector<uint32_t> order;              // reverse post-order of the reversed graph, root first
  std::vector<uint32_t> number(n + 1, ~0u);
  std::vector<std::vector<uint32_t>> reverse(n + 1);  // successors in the reversed graph
  for (uint32_t b = 0; b < n; ++b) {
    reverse[b] = blocks_[b].predecessors;
    const Op& last = code_.ops[blocks_[b].end - 1];
    if (blocks_[b].successors.empty() || last.run == exit_lanes) reverse[root].push_back(b);
  }
  std::vector<std::pair<uint32_t, size_t>> stack{{root, 0}};
  std::vector<bool> seen(n + 1, false);
  seen[root] = true;
  while (!stack.empty()) {
    auto& [b, i] = stack.back();
    if (i < reverse[b].size()) {
      const uint32_t next = reverse[b][i++];
      if (!seen[next]) {
        seen[next] = true;
        stack.push_back({next, 0});
      }
    } else {
      order.push_back(b);
      stack.pop_back();
    }
  }
  std::reverse(order.begin(), order.end());
  for (uint32_t i = 0; i < order.size(); ++i) number[order[i]] = i;
  std::vector<uint32_t> ipdom(n + 1, ~0u);
  ipdom[root] = root;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b : order) {
      if (b == root) continue;
      uint32_t best = ~0u;
      const auto merge = [&](uint32_t s) {
        if (ipdom[s] == ~0u) return;
        if (best == ~0u) {
          best = s;
          return;
        }
        uint32_t x = s, y = best;
        while (x != y) {
          while (number[x] > number[y]) x = ipdom[x];
          while (number[y] > number[x]) y = ipdom[y];
        }
        best = x;
      };
      for (uint32_t s : blocks_[b].successors) merge(s);
      const Op& last = code_.ops[blocks_[b].end - 1];
      if (blocks_[b].successors.empty() || last.run == exit_lanes) merge(root);
      if (best != ipdom[b]) {
        ipdom[b] = best;
        changed = true;
      }
    }
  }
  for (Block& block : blocks_) {
    Op& last = code_.ops[block.end - 1];
    if (last.run != branch) continue;
    const uint32_t meet = ipdom[block_of_op_[block.end - 1]];
    // Nobody waits for others in order to exit with them: those may be waiting for the exit, at a barrier.
    const auto only_exits = [&](const Op& op) { return op.run == exit_lanes && op.guard == 0; };
    const bool apart = meet == ~0u || meet == root || only_exits(code_.ops[blocks_[meet].begin]);
    last.join = apart ? uint32_t(code_.ops.size()) : blocks_[meet].begin;
  }
}

}  // namespace fa4::sim
