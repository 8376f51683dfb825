// SPDX-License-Identifier: Apache-2.0
// Runs rows on a device behind the driver API and compares what they give.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "row.h"
#include "tests/support/gpu.h"

namespace fa4::conformance {

// What a row gave: the driver's answer to load, launch or synchronisation, and the output if all was well.
struct Answer {
  int status = 0;       // CUresult
  bool lost = false;    // the kernel faulted: the process cannot use the GPU any more
  std::string failure;  // the function that failed and the driver's text; a refusal of the simulated GPU with
                        // its line
  std::vector<std::byte> output;
};

class Runner {
 public:
  explicit Runner(support::Gpu& gpu) : gpu_(gpu) {}
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;
  // Throws only where memory cannot be had or copied.
  Answer run(const Row& row);

 private:
  CUfunction load(const Row& row, Answer& answer);
  void unload();
  bool failed(CUresult result, const char* function, Answer& answer);

  support::Gpu& gpu_;
  std::string loaded_;  // text of the loaded module
  CUmodule module_ = nullptr;
};

// A device of a driver library.
struct Source {
  std::string library;
  int ordinal = 0;
  std::string simulated = {};  // which GPU it is to be if it is a simulated one ("sm_90"); "": as the environment says
};
// Before the library is opened, in the process that opens it.
void choose_gpu(const Source& source);
// The simulated GPU that has the row: a Hopper for all but a Blackwell's own.
std::string gpu_of(const Row& row);

struct DeviceText {
  std::string name, driver;  // "NVIDIA H200", "CUDA 13.0"
  int major = 0, minor = 0, count = 0;
};
// What the library's device is, asked in a child process. Throws std::runtime_error with a sentence when
// there is none.
DeviceText ask_device(const Source& source);

// Status of a row whose process ended before it answered.
constexpr int kEndedProcess = -1;

// Runs rows in child processes (isolated.h), in order. The device must have them. The calling process must not have opened a
// GPU.
void run_rows(const Source& source, const std::vector<const Row*>& rows, const std::function<void(const Row& row, const Answer& answer)>& done);
// The same on simulated GPUs, each row on the one that has it (gpu_of).
void run_rows_simulated(const std::string& library, const std::vector<const Row*>& rows,
                        const std::function<void(const Row& row, const Answer& answer)>& done);

// The first element that differs, with its inputs and both results; "" when they agree.
std::string difference(const Row& row, const Answer& expected, const Answer& got, const char* expected_name,
                       const char* got_name);

}  // namespace fa4::conformance
