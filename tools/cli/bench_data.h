// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of `fa4 bench`: copies of Q, K, V and O on the device, filled with seeded normal values
// that can be had again one by one, and a comparison of sampled rows of O with attention in double precision.
#pragma once

#include <fa4/fa4.h>

#include <memory>
#include <string>
#include <vector>

#include "bench.h"
#include "support/inputs.h"

namespace fa4::cli {

// Standard normal values, cut at 4.2 standard deviations: 2^16 quantiles, drawn with a counter-based
// generator, so that element `index` of a tensor is a function of the seed, the tensor and the index.
class NormalValues {
 public:
  NormalValues(support::Dtype dtype, uint64_t seed);
  // Elements `begin` and on of tensor number `tensor`.
  void fill(uint64_t tensor, uint64_t begin, uint16_t* values, size_t count) const;

 private:
  std::vector<uint16_t> quantiles_;
  uint64_t seed_;
};

class BenchData {
 public:
  // As many copies as it takes for a call to find nothing of its own in the L2 cache, all others having
  // passed through it since: at least two, and no more than fit in 90 % of the memory that is free. Throws
  // Refusal when not even one fits.
  BenchData(const BenchDevice& bench, const BenchProblem& problem, const fa4_forward_params& params,
            uint64_t l2_bytes);

  int copies() const { return int(copies_.size()); }
  int copies_wanted() const { return copies_wanted_; }
  uint64_t bytes() const;  // of all copies
  // Sets the addresses of a call that works on a copy.
  void point(fa4_forward_params& params, int copy) const;

  struct RowCheck {
    int rows = 0;
    double max_error = 0, allowed = 0;
    bool right() const { return max_error <= allowed; }
  };
  // Compares `rows` rows of O of every copy, drawn by the seed from those that count, among them the first
  // and the last. What was never written is infinitely far off.
  RowCheck check_rows(int rows) const;

 private:
  struct Copy {
    std::unique_ptr<support::DeviceBuffer> q, k, v, o, lse;
  };
  // |O - O in double precision|, at most, of a row of a copy; raises `allowed` to what it may be.
  double row_error(uint64_t copy, int64_t entry, int64_t position, int64_t head, double& allowed) const;

  support::Gpu& gpu_;
  support::Problem problem_;
  support::Inputs arrays_;  // sinks and slopes
  uint64_t seed_;
  NormalValues values_;
  int64_t q_rows_, kv_rows_;                      // of the tensors
  std::vector<int64_t> first_query_, first_key_;  // rows of the tensors at which batch entries begin
  std::vector<int64_t> queries_before_;           // that count, of the entries before each; and all of them
  // What all copies share: arrays, with the field that points at each, and the workspace.
  struct Array {
    uint64_t fa4_forward_params::*field;
    std::unique_ptr<support::DeviceBuffer> buffer;
  };
  std::vector<Array> arrays_on_device_;
  std::unique_ptr<support::DeviceBuffer> workspace_;
  int copies_wanted_ = 0;
  std::vector<Copy> copies_;
};

}  // namespace fa4::cli
