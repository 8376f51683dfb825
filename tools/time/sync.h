// SPDX-License-Identifier: Apache-2.0
// The synchronising instructions of a program (the inits of mbarriers, which wait for nobody, aside) and
// which may follow which: the view in which PTX and machine code are the same. ptxas moves arithmetic freely,
// but keeps the order of these along every path; it may duplicate one, merge two, or turn a branch around one
// into a guard.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sass.h"
#include "tools/sim/ptx/module.h"

namespace fa4::time {

// What a synchronising instruction is, in words that PTX and machine code share.
enum class Sync : uint8_t {
  entry,
  end,
  arrive,
  arrive_tx,
  wait,
  commit,
  mma_shared,
  mma_other,
  tmem_load,
  tmem_store,
  copy_in,
  copy_out,
  bar_sync,
  bar_arrive,
  cluster_arrive,
  cluster_wait
};
const char* name_of(Sync sync);

struct SyncNode {
  Sync sync = Sync::entry;
  uint32_t size = 0;           // of a tensor-memory access: registers a thread
  uint32_t instruction = 0;    // index into the code
  bool guarded = false;        // a path may pass it without executing it, or it may fail: a test_wait
  std::vector<uint32_t> next;  // nodes that may be executed next, ascending
  std::vector<uint32_t> next_directly;  // ... and pass no guarded node on the way
};

// Node 0 is the entry, node 1 the end.
struct SyncGraph {
  std::vector<SyncNode> nodes;
  std::vector<int32_t> node_of;  // [instruction]: its node, -1
  // [instruction]: another attempt of a wait that has just failed. No node: a warp is told when the phase is
  // complete.
  std::vector<bool> retries;
};

SyncGraph sync_graph(const Function& function);
// Throws Error where it has calls.
SyncGraph sync_graph(const sim::ptx::Function& function);

// "wait", "tmem_load x32".
std::string describe(const SyncNode& node);

}  // namespace fa4::time
