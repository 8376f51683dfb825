// SPDX-License-Identifier: Apache-2.0
// Vector clocks. A component is a lane of a CTA of the cluster, the stream of its MMAs, a warp's stream of wgmmas, a barrier
// (for the copies that complete on it), or a lane's stream of bulk stores. A lane knows an access when its clock has reached the
// access's time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "../core/op.h"

namespace fa4::sim::check {

using Time = uint32_t;
constexpr Time kPending = 0xFFFFFFFF;  // an access that is not over yet: nobody can know it

using Component = uint32_t;
constexpr Component kMmaStream = 0;      // + rank; time n: the n-th MMA of the CTA has completed
constexpr Component kBegun = 16;         // + rank; time 1: the CTA has begun to run
constexpr Component kFirstBarrier = 32;  // time p: phase p - 1 of the barrier has completed
constexpr Component kBarriers = 480;
constexpr Component kFirstStore =
    512;  // times of a lane's bulk stores: 2 components a stream, read and finished
constexpr Component kStoreStreams = 64;
constexpr Component kFirstLane = kFirstStore + 2 * kStoreStreams;
// Behind the lanes, for each warp the stream of its wgmma operations; time n: its n-th has completed.

// Lanes of other CTAs, by CTA. Empty unless CTAs talk to each other.
using ForeignClocks = std::map<uint64_t, std::vector<Time>>;

// An empty clock knows nothing.
inline void join(std::vector<Time>& a, const std::vector<Time>& b) {
  if (b.empty()) return;
  if (a.empty()) a.resize(b.size());
  Time* x = a.data();
  const Time* y = b.data();
  const size_t n = a.size();
  for (size_t i = 0; i < n; ++i) x[i] = x[i] > y[i] ? x[i] : y[i];
}
inline void join(ForeignClocks& a, const ForeignClocks& b) {
  for (const auto& [cta, clock] : b) join(a[cta], clock);
}

// What a thread knows, and in which sense.
struct Clock {
  std::vector<Time> plain;         // happened before
  std::vector<Time> proxy;         // ... with a generic -> async proxy fence for shared memory on the way
  std::vector<Time> proxy_global;  // ... with one for global memory; empty before the first such fence
  std::vector<Time> proxy_cluster; // ... with one for the memory of all CTAs of a cluster; likewise
  std::vector<Time> inits;         // of a cluster: ... or as far as fence.mbarrier_init goes; likewise
  std::vector<Time> cause;         // came before, without an order of memory; empty: no more than `plain`
  std::vector<Time> tensor;        // ... with tcgen05.fence::before and ::after at the hand-overs
  ForeignClocks foreign;
  std::vector<uint32_t> sources;   // of a clock that is handed over, if asked for: who released into it (provenance.h)

  explicit Clock(uint32_t lanes = 0)
      : plain(size(lanes)), proxy(size(lanes)), tensor(size(lanes)) {}
  static size_t size(uint32_t lanes) { return kFirstLane + lanes + lanes / kLanes; }
  void reset() {
    std::fill(plain.begin(), plain.end(), 0);
    std::fill(proxy.begin(), proxy.end(), 0);
    std::fill(tensor.begin(), tensor.end(), 0);
    proxy_global.clear();
    proxy_cluster.clear();
    inits.clear();
    cause.clear();
    foreign.clear();
    sources.clear();
  }
  void join_untensored(const Clock& other) {
    join(plain, other.plain);
    join(proxy, other.proxy);
    join(proxy_global, other.proxy_global);
    join(proxy_cluster, other.proxy_cluster);
    join(inits, other.inits);
    join(cause, other.cause);
    if (!other.foreign.empty()) join(foreign, other.foreign);
    for (uint32_t source : other.sources) {
      if (std::find(sources.begin(), sources.end(), source) == sources.end()) sources.push_back(source);
    }
  }
  void join_all(const Clock& other) {
    join_untensored(other);
    join(tensor, other.tensor);
  }
};

}  // namespace fa4::sim::check
