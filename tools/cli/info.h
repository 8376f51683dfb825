// SPDX-License-Identifier: Apache-2.0
// `fa4 info`: devices, what the image holds, and the kernel's own tables.
#pragma once

#include <string>
#include <vector>

namespace fa4::cli {

// One entry of the cubin, as ptxas reported it when the image was built.
struct AssembledKernel {
  std::string name, target;
  int registers = 0, stack_bytes = 0, spill_store_bytes = 0, spill_load_bytes = 0, named_barriers = 0;
};
// Reads the text of `ptxas -v`. Throws std::runtime_error when an entry lacks one of its lines.
std::vector<AssembledKernel> parse_ptxas_log(const std::string& log);

// `driver`: the simulator's library in place of the one that is found; "" to search. `gpu`: which one is
// simulated, "" for the default. Returns an exit code.
int info(const std::string& driver, const std::string& gpu);

}  // namespace fa4::cli
