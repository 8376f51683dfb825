// SPDX-License-Identifier: Apache-2.0
// One attention problem in device memory, for tests of how calls are made rather than of what they compute:
// tensors that can be rewritten, an output that is poisoned, and a judgement of it.
#pragma once

#include <memory>
#include <string>

#include "attention/harness.h"

namespace fa4::test {

class Work {
 public:
  // Buffers on the device whose context is current; nothing is in them yet.
  Work(support::Gpu& gpu, const support::Problem& problem);

  // Seeded inputs, and poison for the outputs. Waits for the device.
  void refill(uint64_t seed);
  fa4_forward_params params(CUstream stream) const;
  // Whether no element of O or the LSE was written since refill(). Waits for the device.
  bool untouched() const;
  // "" or what is wrong with O and the LSE for the inputs of the last refill(). Waits for the device.
  std::string verdict() const;
  std::vector<uint16_t> o() const;

 private:
  support::Gpu& gpu_;
  support::Problem problem_;
  support::Inputs inputs_;
  support::DeviceBuffer q_, k_, v_, o_, lse_;
};

}  // namespace fa4::test
