// SPDX-License-Identifier: Apache-2.0
// Vector clocks. A component is a lane of the CTA, the stream of its MMAs, a barrier (for the copies that complete on
// it), or a lane's stream of bulk stores. A lane knows an access when its clock has reached the access's time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fa4::sim::check {

using Time = uint32_t;
constexpr Time kPending = 0xFFFFFFFF;  // an access that is not over yet: nobody can know it

using Component = uint32_t;
constexpr Component kMmaStream = 0;      // time n: the n-th MMA of the CTA has completed
constexpr Component kFirstBarrier = 1;   // time p: phase p - 1 of the barrier has completed
constexpr Component kBarriers = 511;
constexpr Component kFirstStore = 512;   // times of a lane's bulk stores: 2 components a stream, read and finished
constexpr Component kStoreStreams = 64;
constexpr Component kFirstLane = kFirstStore + 2 * kStoreStreams;

inline void join(std::vector<Time>& a, const std::vector<Time>& b) {
  Time* x = a.data();
  const Time* y = b.data();
  const size_t n = a.size();
  for (size_t i = 0; i < n; ++i) x[i] = x[i] > y[i] ? x[i] : y[i];
}

// What a thread knows, and in which sense.
struct Clock {
  std::vector<Time> plain;   // happened before
  std::vector<Time> proxy;   // happened before, with a generic -> async proxy fence on the way
  std::vector<Time> tensor;  // happened before, with tcgen05.fence::before and ::after at the hand-overs

  explicit Clock(uint32_t lanes = 0)
      : plain(kFirstLane + lanes), proxy(kFirstLane + lanes), tensor(kFirstLane + lanes) {}
  void reset() {
    std::fill(plain.begin(), plain.end(), 0);
    std::fill(proxy.begin(), proxy.end(), 0);
    std::fill(tensor.begin(), tensor.end(), 0);
  }
  void join_all(const Clock& other) {
    join(plain, other.plain);
    join(proxy, other.proxy);
    join(tensor, other.tensor);
  }
};

}  // namespace fa4::sim::check
