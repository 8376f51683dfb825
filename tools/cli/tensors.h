// SPDX-License-Identifier: Apache-2.0
// From what the user gave, a shape or files, to a checked problem with packed inputs; and back to files.
#pragma once

#include "run.h"
#include "support/compare.h"
#include "support/placement.h"

namespace fa4::cli {

// The request cannot be run as it stands; what() names the field, its value and what would be accepted.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Loaded {
  support::Problem problem;
  support::Inputs inputs;
  std::string source;  // "seed 1" or the files' names
};

// Checks everything that can be known before a launch, reads or makes the inputs. Throws Refusal or NpyError.
Loaded load(const RunRequest& request);

// Writes the outputs that were asked for. Throws NpyError.
void save(const RunRequest& request, const support::Problem& problem, const std::vector<uint16_t>& o,
          const std::vector<float>& lse);

// What the request's names are in the ABI.
fa4_scheduler scheduler_of(const RunRequest& request);
fa4_exp2 exp2_of(const RunRequest& request);

// fa4_forward_params of the problem, in the request's layout, order of tasks and exponentials, for a device that has not allocated
// yet: enough for fa4_supported and the plan.
fa4_forward_params dry_params(const support::Problem& problem, const RunRequest& request);

// 4 FLOP a column for each pair of a query and a key that it sees: 2 in Q K^T, 2 in P V.
double mma_flop(const support::Problem& problem);

}  // namespace fa4::cli
