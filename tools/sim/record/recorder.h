// SPDX-License-Identifier: Apache-2.0
// Keeps what the warps of a launch did to synchronise, in the order of each warp: the instruction, what it
// synchronised on, and the phase in which that counted. A model of time replays it; see fa4sim_sync.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "../driver/fa4sim.h"

namespace fa4::sim {

class Observer;

namespace record {
class CtaRecorder;
}

// The recorders of a launch, one for each cluster (or CTA without one) that runs at a time. All functions are
// thread-safe.
class Recorder {
 public:
  Recorder();                       // of every CTA that runs
  explicit Recorder(uint64_t cta);  // of this one
  ~Recorder();
  Observer* observer(uint32_t slot);  // owned here
  // Of a CTA that has ended; gathers over launches until taken. Empty when there is none.
  std::vector<fa4sim_sync> take(uint64_t cta);
  size_t count(uint64_t cta) const;
  bool wants(uint64_t cta) const { return all_ || cta == only_; }
  void keep(uint64_t cta, std::vector<fa4sim_sync> records);

 private:
  const bool all_;
  const uint64_t only_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<record::CtaRecorder>> recorders_;
  std::map<uint64_t, std::vector<fa4sim_sync>> records_;
};

}  // namespace fa4::sim
