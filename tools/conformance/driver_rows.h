// SPDX-License-Identifier: Apache-2.0
// What the driver answers to calls with bad arguments: recorded from a real driver, asserted on the simulated
// one.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "harness.h"
#include "tests/support/gpu.h"

namespace fa4::conformance {

struct DriverRow {
  std::string name;
  // Makes the call and gives its CUresult.
  std::function<CUresult(support::Gpu& gpu)> call;
  std::string_view
      stricter;  // why the simulated driver refuses what a real one lets pass; "" where both answer alike
  bool faults = false;  // the process cannot use the GPU any more
};

const std::vector<DriverRow>& driver_rows();
void add_cluster_calls(std::vector<DriverRow>& rows);  // those about clusters

// Makes the calls in child processes on a device of the library; kEndedProcess where a call ended its
// process.
void run_driver_rows(const Source& source, const std::function<void(const DriverRow& row, int result)>& done);

}  // namespace fa4::conformance
