// SPDX-License-Identifier: Apache-2.0
// What the model of time knows about a GPU: one table, each number with where it comes from. What is not
// known of a GPU has a range: predictions are made for both ends, and the answer is a band.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fa4::time {

// Cycles of the SM's clock unless a row of the table says otherwise.
struct Gpu {
  const char* name = "";
  const char* held = "";  // what predictions for it were held against, a sentence
  bool measured =
      false;  // the numbers of this GPU were measured by us on one; else what follows is a prediction
  uint64_t replaced =
      0;  // [bit: index into parameters()]: the number was measured on the very GPU (set_measured)
  uint32_t clock_mhz = 0, sm_count = 0;
  uint32_t launch = 0;  // before the first instruction and behind the last
  // Issue.
  uint32_t ffma, ffma_pair, imad, alu, uniform, memory_issue;
  uint32_t mufu_exp2, mufu, mufu_latency, mufu_credits, mufu_credit_return;
  uint32_t taken_branch, arbitration_memory, register_ports;
  // Variable latencies, from issue to the issue of a user.
  uint32_t shared_32, shared_64, shared_128, shuffle, constant, special_register, special_uniform, global_load, other;
  // Barriers.
  uint32_t wait_latency, wake_latency, wake_further, bar_base, bar_warp_tenths, proxy_fence, membar;
  // Tensor memory: of a warp.
  uint32_t tmem_load_rate, tmem_store_rate, tmem_load_latency, tmem_store_latency;
  // The tensor core.
  uint32_t mma_issue, mma_flop_per_cycle, mma_latency_shared, mma_latency_other, mma_queue, mma_window,
      mma_window_open;
  // Shared memory, TMA, L2.
  uint32_t shared_rate, tma_issue, tma_latency, tma_rate, tma_store_latency, tma_store_rate;
};

struct Parameter {
  const char* name;
  const char* unit;
  uint32_t Gpu::*member;
  uint32_t b200, b300, h200;
  uint32_t low, high;  // on a Blackwell, where it is not known; both 0: it is
  const char* source;
};
std::span<const Parameter> parameters();

// Whose numbers there are, and the compute capability of each, 10 * major + minor.
struct Chip {
  std::string_view name;
  uint32_t arch;
};
inline constexpr Chip kChips[] = {{"b200", 100}, {"b300", 103}, {"h200", 90}};

// "b200", "b300" or "h200". Throws Error for another name.
Gpu gpu_of(std::string_view name);

// Numbers that were measured on the very GPU, by name; fractions are rounded. Such a number has no range any
// more. Throws Error for a name that the table does not have, and for a value that no GPU can have.
void set_measured(Gpu& gpu, std::string_view name, double value);

// How a scheduler chooses among warps that could issue, where the last one does not go on.
enum class Arbitration : uint8_t { round_robin, descending, oldest };
// Three and four warps of an H200's scheduler with short groups rotate this way, and of the three it misses
// the measured bodies least.
inline constexpr Arbitration kNominalArbitration = Arbitration::descending;

}  // namespace fa4::time
