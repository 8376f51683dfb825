// SPDX-License-Identifier: Apache-2.0
// Where knowledge came from: the synchronisations of a CTA in the order in which they happened, and the
// shortest chain of them from one access to another. Found by search, not by vector clocks, so that each
// confirms the other. Kept on request only: it is not fast and grows with the execution.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "clock.h"

namespace fa4::sim::check {

class Provenance {
 public:
  // Clocks carry what they were released by: places in the list of releases.
  using Sources = std::vector<uint32_t>;

  void clear();
  // How lanes release: a thread itself; all of a warp at bar.warp.sync, where tcgen05 operations need no
  // fences; by issuing an MMA, for whoever waits for a commit that covers it.
  enum class By : uint8_t { thread, warp_barrier, mma };
  // Lanes of a warp release what they know and did up to `time`.
  void released(Sources& into, By by, uint32_t warp, Mask lanes, Time time, uint32_t op);
  // Asynchronous work is over: of `component` everything up to `time` is known to whoever acquires it.
  void completed(Sources& into, Component component, Time time, uint32_t op);
  void acquired(const Sources& from, uint32_t warp, Mask lanes, uint32_t op, const std::string& object,
                bool warp_barrier = false);
  // tcgen05.fence::before_thread_sync or ::after_thread_sync
  void fenced(uint32_t warp, Mask lanes, Time time, uint32_t op, bool before);

  // An access of a lane of the CTA, or of an asynchronous component.
  struct From {
    bool by_lane;
    uint32_t index;
    Time time;
  };
  struct Step {
    uint32_t op;
    int32_t warp;        // -1: the completion of asynchronous work
    std::string object;  // that it waits for, "" where it waits for none
  };
  // From the access to where the lane is now; empty: nothing orders them. `tensor`: with tcgen05 fences at
  // the hand-overs.
  std::vector<Step> path(const From& from, uint32_t lane, bool tensor) const;

 private:
  struct Release {
    uint64_t sequence;
    bool by_lanes;
    By by;
    uint32_t warp;  // or the component
    Mask lanes;
    Time time;
    uint32_t op;
  };
  struct Acquire {
    uint64_t sequence;
    Mask lanes;
    uint32_t op;
    bool warp_barrier;
    std::string object;
    Sources from;
  };
  struct Fence {
    uint64_t sequence;
    Mask lanes;
    Time time;
    uint32_t op;
    bool before;
  };
  // What a thread knew when it released, and how the search came there.
  struct Place {
    uint32_t warp;
    Mask lanes;
    uint64_t sequence;
    int32_t later;  // the place that acquired what was released here; -1: the end of the path
    uint32_t release, acquire;
  };
  const Fence* newest_after(uint32_t warp, Mask lanes, uint64_t sequence) const;
  const Fence* before_release(const From& from, const Release& release) const;
  bool is(const From& from, const Release& release, bool tensor) const;
  std::vector<Step> steps(const From& from, const std::vector<Place>& places, int32_t at, uint32_t release,
                          uint32_t acquire, bool tensor) const;

  uint64_t sequence_ = 0;
  std::vector<Release> releases_;
  std::vector<std::vector<Acquire>> acquires_;  // [warp]
  std::vector<std::vector<Fence>> fences_;      // [warp]
};

}  // namespace fa4::sim::check
