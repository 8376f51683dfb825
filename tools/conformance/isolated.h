// SPDX-License-Identifier: Apache-2.0
// Work that may end its process or lose its GPU: jobs run one after the other in a child process, and what a
// job leaves broken ends with the child. A real driver cannot be used again in a process after a kernel has
// faulted.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace fa4::conformance {

class Worker {
 public:
  virtual ~Worker() = default;
  // The job's result. `broken` asks for a fresh process for the jobs that follow.
  virtual std::string work(size_t job, bool* broken) = 0;
};

struct JobEnd {
  bool ended_process = false;  // no result: `result` says how the process ended
  std::string result;
};

// Makes a worker in a child (its exceptions come back as std::runtime_error of this function) and lets it do
// the jobs 0 to count - 1. A job that takes longer than `seconds` is ended. The calling process must not have
// opened a GPU.
void run_isolated(size_t count, int seconds, const std::function<std::unique_ptr<Worker>()>& make,
                  const std::function<void(size_t job, const JobEnd& end)>& done);

}  // namespace fa4::conformance
