// SPDX-License-Identifier: Apache-2.0
// `fa4 bench`: times of fa4_forward on a real GPU, and what a call costs the host.
#pragma once

#include <string>
#include <vector>

#include "devices.h"
#include "run.h"
#include "support/attention_device.h"
#include "support/problem.h"

namespace fa4::cli {

struct BenchRequest {
  RunRequest problem;     // all but files of Q, K and V, and outputs
  std::string list_path;  // a JSON array of problems in place of one
  bool table = false;     // the built-in list in place of one
  int32_t max_ctas = 0;
  bool lse = false;
  double seconds = 1;  // of measurement, for each problem
  bool host = false;   // the cost of a call on the host in place of times on the GPU
  int calls = 10000;   // that are timed with `host`
  std::string json_path;
};

int bench(const BenchRequest& request);

struct BenchProblem {
  support::Problem problem;
  support::Inputs arrays;  // sinks and slopes alone
};

// What both kinds of measurement start from: a problem on the device that was chosen.
struct BenchDevice {
  support::Gpu& gpu;
  const fa4_context* context;
  const BenchRequest& request;
  // Everything but the tensors' addresses. Throws Refusal when the library has no kernel for the problem.
  fa4_forward_params params(const support::Problem& problem) const;
  uint64_t workspace_bytes(const fa4_forward_params& params) const;
  void forward(const fa4_forward_params& params) const;
};

// Sorted values: the one that the share `p` of them does not exceed.
double percentile(const std::vector<double>& sorted, double p);

// `fa4 bench --host`: prints and returns what --json gets.
std::string bench_host(const BenchDevice& bench, const BenchProblem& problem);

}  // namespace fa4::cli
