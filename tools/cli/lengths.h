// SPDX-License-Identifier: Apache-2.0
// Lengths of batch entries as options give them, in lists or .npy files, checked against each other and
// against the problem.
#pragma once

#include <string>

#include "run.h"
#include "support/problem.h"

namespace fa4::cli {

// One side's, Q's or K's and V's.
struct SideLengths {
  support::Lengths lengths;
  std::string packed_by, used_by;  // what gave them, for sentences: "--lengths-q"
};

struct BatchLengths {
  SideLengths q, kv;
  int64_t entries = 0;   // of every list; 0: none is given
  std::string given_by;  // the list that says so

  // K and V are packed as Q is.
  void pack_kv_as_q();
};

// Reads the lists of a request. Throws Refusal or NpyError.
BatchLengths read_lengths(const RunRequest& request);

// Puts them into the problem, whose extents of (batch, sequence) tensors are set: the bound of packed entries
// becomes the longest length unless the request has one. Throws Refusal.
void set_lengths(const BatchLengths& batch, const RunRequest& request, support::Problem& problem);

}  // namespace fa4::cli
