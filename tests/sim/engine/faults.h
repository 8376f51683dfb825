// SPDX-License-Identifier: Apache-2.0
// What a kernel with a mistake must come to: a Fault of a kind whose report says certain things.
#pragma once

#include <string>
#include <vector>

#include "async.h"
#include "support/catch.h"

namespace fa4::sim::test {

// "" if running `kernel` (parameters: out, and what `args` are for) faults as said, otherwise what happened
// instead.
template <class... Args>
std::string fault_of(Kernel& kernel, const Shape& shape, Fault::Kind kind,
                     const std::vector<std::string>& says, const Args&... args) {
  try {
    kernel.run("kernel", shape, args...);
  } catch (const Fault& fault) {
    const std::string report = fault.what();
    if (fault.kind != kind)
      return "a fault of kind " + std::to_string(int(fault.kind)) + ", not " + std::to_string(int(kind)) +
             ": " + report;
    for (const std::string& text : says) {
      if (report.find(text) == std::string::npos)
        return "the report does not say \"" + text + "\": " + report;
    }
    return {};
  }
  return "the kernel ran to its end";
}

// A body on 128 threads with 64 KiB of shared memory, %d1 an address of 64 KiB of device memory.
inline std::string fault_in(const std::string& body, Fault::Kind kind, const std::vector<std::string>& says,
                            uint32_t threads = 128, uint64_t budget = 1 << 22) {
  Kernel kernel(entry_of(".param .u64 out, .param .u64 from",
                         prologue() + "  ld.param.u64 %d1, [from];\n" + body + "  ret;\n", threads),
                1, 4, budget);
  const uint64_t out = kernel.buffer<uint32_t>(1024), from = kernel.buffer<uint32_t>(16384);
  return fault_of(kernel, {{1, 1, 1}, {threads, 1, 1}, 65536}, kind, says, out, from);
}

}  // namespace fa4::sim::test
