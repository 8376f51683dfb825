// SPDX-License-Identifier: Apache-2.0
// A problem on a device: what fa4_forward_params says of it, its tensors and arrays in device memory, and
// what a kernel made of them. Whose memory that is, a driver's or a simulated GPU's without one, the caller
// says.
#pragma once

#include <fa4/fa4.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "placement.h"

namespace fa4::support {

// Shape, lengths, mask and scores of the problem, with everything else 0. `array` places what lies on the
// device, 32-bit words under the name of their field, and returns their address.
using PlaceArray = std::function<uint64_t(const char* name, const std::vector<uint32_t>& words)>;
fa4_forward_params params_of(const Problem& problem, const Inputs& inputs, const PlaceArray& array);

struct DeviceMemory {
  // Copies to an allocation of its own, as aligned as the device's are, and returns its address.
  std::function<uint64_t(const void* from, uint64_t bytes)> put;
  std::function<void(void* to, uint64_t from, uint64_t bytes)> get;
};

struct Output {
  // Rows that a batch entry has not are poison.
  std::vector<uint16_t> o;  // packed (batch, seq_q, q_heads, head dimension of V)
  std::vector<float> lse;   // packed (batch, q_heads, seq_q); empty unless wanted
  std::string
      damage;  // "" or a sentence about elements beside the outputs that changed, or inputs that changed
};

// The problem and the memory outlive it.
class StagedProblem {
 public:
  // beside: what lies beside the views of Q, K and V in their buffers, and in rows that do not count.
  StagedProblem(const Problem& problem, const Inputs& inputs, Layout layout, bool lse, uint16_t beside,
                const DeviceMemory& memory);
  // Zeros, so many bytes, which must be zero again.
  void add_workspace(uint64_t bytes);
  // After the kernel.
  Output read() const;

  // Scheduler, exponentials and number of CTAs are the caller's to set.
  fa4_forward_params params{};

 private:
  // 32-bit words between words of poison.
  struct Array {
    std::string name;
    uint64_t address;  // of the poison
    std::vector<uint32_t> words;
  };
  uint64_t add_array(const std::string& name, const std::vector<uint32_t>& words, size_t guard);
  void read_o(Output& output) const;
  void read_lse(Output& output) const;

  const Problem& problem_;
  const DeviceMemory& memory_;
  Placement placement_;
  std::vector<std::vector<uint16_t>> buffers_;  // as they were put
  std::vector<uint64_t> addresses_;             // of the buffers
  std::vector<uint32_t> lse_;
  uint64_t lse_address_ = 0;
  std::vector<Array> arrays_;
};

}  // namespace fa4::support
