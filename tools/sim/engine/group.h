// SPDX-License-Identifier: Apache-2.0
// A group of CTAs under one clock: a discrete-event loop in which warps run in slices, in the order of their simulated
// time, and the asynchronous agents' work lands when it is due. CTAs that may talk to each other share a group; others
// have a group each, so that host threads can run them side by side with the same result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../core/machine.h"

namespace fa4::sim {

// Who of many is earliest: a tournament, in which a change costs as many matches as there are rounds. The first wins a draw.
class Race {
 public:
  static constexpr uint64_t kNever = ~0ull;
  struct Times {
    uint64_t first = kNever, second = kNever;  // of one entrant's earliest two
  };
  explicit Race(size_t entrants);
  void set(size_t entrant, const Times& times);
  size_t winner() const { return rounds_[1]; }
  uint64_t second() const;  // the second earliest of all

 private:
  size_t leaves_ = 1;
  std::vector<Times> times_;      // [entrant]
  std::vector<uint32_t> rounds_;  // [1]: the final; [2 i], [2 i + 1]: those whose winners meet in i
};

class Group final : public Scheduler {
 public:
  // observers(i), if there are any, watches the resident cluster in place i. A cluster has as many slots as CTAs, side by side.
  Group(LaunchState& launch, const std::function<Observer*(uint32_t)>& observers, uint32_t resident_clusters);
  ~Group();
  // Runs the clusters that next_cluster gives (-1: no more) to their end, at most resident_clusters at a time; calls done
  // for each CTA. Throws Fault.
  void run(const std::function<int64_t()>& next_cluster, const std::function<void(const Cta&)>& done);

  void schedule(Event event) override;

 private:
  void start_cluster(size_t place, uint64_t index);
  void start(size_t slot, uint32_t rank, Cluster& cluster);
  void run_warp(Warp& warp);
  template <bool undefined>  // the warp holds undefined bits
  void run_slice(Warp& warp);
  bool pick_fragment(Warp& warp);
  void find_ready(size_t place);
  size_t place_of(const Cta& cta) const { return size_t(cta.cluster - clusters_.data()); }
  void land(const Event& event);
  bool let_go();
  void check_nothing_in_flight(const Cta& cta) const;
  void finish(Cta& cta);
  void end_ctas(size_t place, const std::function<void(const Cta&)>& done);
  std::vector<const Cta*> resident() const;

  LaunchState& launch_;
  std::vector<Observer*> observers_;        // [place of a cluster]
  uint32_t cluster_size_ = 1;
  std::vector<std::unique_ptr<Cta>> ctas_;  // resident ones; a slot is used again
  std::vector<bool> occupied_;              // [slot]: a CTA that is not done
  uint32_t occupied_ctas_ = 0;
  std::vector<Cluster> clusters_;           // resident ones
  Race race_;                               // of the clusters by their earliest warps
  std::vector<Warp*> earliest_;             // [place of a cluster]
  std::vector<Event> events_;               // a heap, earliest first
  uint64_t sequence_ = 0;
  uint64_t progress_at_let_go_ = ~0ull;
  int let_go_stage_ = 0;
  std::string deadlock_report_;
};

// "every warp with what it waits for", for a deadlock or an exhausted budget.
std::string describe_waiters(const std::vector<const Cta*>& ctas);

}  // namespace fa4::sim
