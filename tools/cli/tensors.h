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

// The problem of the options alone, without files of Q, K and V; what the library takes of it is not checked.
// Throws Refusal or NpyError.
support::Problem problem_of(const RunRequest& request);

// Checks everything that can be known before a launch, reads or makes the inputs. Throws Refusal or NpyError.
Loaded load(const RunRequest& request);

// "", or why no device takes the problem: the library's sentence.
std::string why_unsupported(const support::Problem& problem, const RunRequest& request);

// Sinks and slopes, seeded or from files, into the inputs, and into the problem whether each entry has its
// own. Throws Refusal or NpyError. The library must take the problem.
void load_score_arrays(const RunRequest& request, support::Problem& problem, support::Inputs& inputs);

// Rows of one side's tensors, of all batch entries.
int64_t rows_of(const support::Problem& problem, const support::Lengths& lengths, int64_t bound);

// Writes the outputs that were asked for. Throws NpyError.
void save(const RunRequest& request, const support::Problem& problem, const std::vector<uint16_t>& o,
          const std::vector<float>& lse);

// What the request's names are in the ABI.
fa4_scheduler scheduler_of(const RunRequest& request);
fa4_exp2 exp2_of(const RunRequest& request);

// fa4_forward_params of the problem, in the request's layout, order of tasks and exponentials, for a device
// that has not allocated yet: enough for fa4_supported and the plan.
fa4_forward_params dry_params(const support::Problem& problem, const RunRequest& request);

// Pairs of a query and a key that it sees, of all batch entries and one query head.
double visible_pairs(const support::Problem& problem);

// 4 FLOP a column for each pair, of all query heads: 2 in Q K^T, 2 in P V.
double mma_flop(const support::Problem& problem);

}  // namespace fa4::cli
