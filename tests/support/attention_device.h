// SPDX-License-Identifier: Apache-2.0
// Runs attention problems through libfa4's C ABI on a device, simulated or real: places the tensors among
// NaN, launches, reads the output back and reports whatever was written beside it. A workspace is given
// zeroed and must be left so.
#pragma once

#include <fa4/fa4.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>

#include "gpu.h"
#include "staging.h"

namespace fa4::support {

// fa4_forward or fa4_create refused, or a driver call failed. what() is the library's sentence.
struct AttentionError : std::runtime_error {
  AttentionError(fa4_status s, const std::string& message, bool fault_ = false)
      : std::runtime_error(message), status(s), fault(fault_) {}
  fa4_status status;
  bool fault;  // a kernel ran and ended in a fault; otherwise nothing was executed
};

struct RunOptions {
  Layout layout = Layout::bshd;
  fa4_scheduler scheduler = FA4_SCHEDULER_AUTO;
  bool lse = true;
  uint32_t sm_count = 0;  // simulated: SMs of the device. Real: an upper bound on CTAs. 0: all there are
  uint16_t beside =
      kPoison16;  // what lies beside the views of Q, K and V in their buffers, and in rows that do not count
  fa4_exp2 exp2 = FA4_EXP2_AUTO;
};

struct RunResult : Output {
  double seconds = 0;  // of the launch: host time when simulated, the GPU's clock otherwise
};

class AttentionDevice {
 public:
  AttentionDevice(const std::string& driver_library, int ordinal) : gpu_(driver_library, ordinal) {}
  ~AttentionDevice();

  Gpu& gpu() { return gpu_; }
  bool simulated() const { return gpu_.simulated(); }
  // 0: all cores. Simulated device only.
  void set_host_threads(uint32_t host_threads) { host_threads_ = host_threads; }

  // Throws AttentionError, after which the device is reset and can be used again.
  RunResult run(const Problem& problem, const Inputs& inputs, const RunOptions& options);
  fa4_context* context(uint32_t sm_count);
  // A fatbinary, or PTX with a NUL behind it, in place of the built-in image; from the next new context on.
  void set_image(std::vector<char> image) { image_ = std::move(image); }

 private:
  void configure(uint32_t sm_count);
  void drop_contexts();
  [[noreturn]] void fail(fa4_status status);
  // After a driver call that failed: resets the device and throws FA4_ERROR_DRIVER.
  [[noreturn]] void give_up(const std::string& message);

  Gpu gpu_;
  uint32_t host_threads_ = 0;
  std::vector<char> image_;                    // empty: the built-in one
  std::map<uint32_t, fa4_context*> contexts_;  // by SM count: a context remembers how many its device has
};

}  // namespace fa4::support
