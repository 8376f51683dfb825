// SPDX-License-Identifier: Apache-2.0
#include "parameters.h"

#include <cmath>
#include <iterator>

#include "sass.h"

namespace fa4::time {

namespace {

// Sources: [H] measured by us on an H200, whole kernels of exact machine code (docs/time.md); [S]
// SemiAnalysis microbenchmarks of a B200, 2026; [Q] QuickRunCUDA's instruction catalogue of a B300; [F] the
// FlashAttention-4 paper; [=H] not known there, the H200's; [?] nobody's number, an assumption.
constexpr Parameter kParameters[] = {
    {"clock", "MHz", &Gpu::clock_mhz, 1850, 1920, 1980, 0, 0, "boost; [F] B200's, [?] B300's, [H]"},
    {"SMs", "", &Gpu::sm_count, 148, 148, 132, 0, 0, "data sheets"},
    {"launch and end of a grid", "cycles", &Gpu::launch, 2600, 2600, 2600, 0, 0,
     "[H] an empty kernel: 2820 elapsed, of which an SM is active for 200 to 350; [=H]"},
    {"FFMA, FADD, FMUL", "cycles a warp", &Gpu::ffma, 1, 1, 1, 0, 0, "[Q] [H]"},
    {"FFMA2, FADD2, FMUL2", "cycles a warp", &Gpu::ffma_pair, 2, 2, 2, 0, 0, "[Q] 64 lanes a cycle and SM"},
    {"IMAD", "cycles a warp", &Gpu::imad, 2, 2, 2, 0, 0, "[Q] [H]"},
    {"ALU", "cycles a warp", &Gpu::alu, 2, 2, 2, 0, 0, "[Q] 64 lanes a cycle and SM, [H]"},
    {"uniform", "cycles a warp", &Gpu::uniform, 2, 2, 2, 0, 0, "[?]"},
    {"memory instructions", "cycles a warp", &Gpu::memory_issue, 2, 2, 2, 0, 0, "[H] LDS"},
    {"EX2", "cycles a warp", &Gpu::mufu_exp2, 8, 4, 8, 0, 0, "[F] 16 a cycle and SM; [Q] 32; [H]"},
    {"MUFU, other", "cycles a warp", &Gpu::mufu, 8, 8, 8, 0, 0, "[Q] 16 a cycle and SM, [H]"},
    {"MUFU latency", "cycles", &Gpu::mufu_latency, 17, 17, 17, 14, 40, "[H]; [Q] 14-18"},
    {"MUFU queue", "instructions", &Gpu::mufu_credits, 2, 2, 2, 0, 0, "[H], [=H]"},
    {"MUFU queue, place free", "cycles after start", &Gpu::mufu_credit_return, 13, 9, 13, 0, 0,
     "[H], [=H]; B300: 4 less, as its interval"},
    {"taken branch", "cycles", &Gpu::taken_branch, 10, 10, 10, 0, 0, "[H], [=H]"},
    {"arbitration: memory of the last warp", "cycles", &Gpu::arbitration_memory, 2, 2, 2, 0, 0, "[H], [=H]"},
    {"register banks are two", "", &Gpu::register_ports, 0, 0, 1, 0, 0,
     "[H]; Blackwell's are not known, [Q] says fewer conflicts"},
    {"LDS to use, 32 bit", "cycles", &Gpu::shared_32, 28, 28, 23, 0, 0, "[Q] [H]"},
    {"LDS to use, 64 bit", "cycles", &Gpu::shared_64, 29, 29, 26, 0, 0, "[Q] [H]"},
    {"LDS to use, 128 bit", "cycles", &Gpu::shared_128, 33, 33, 32, 0, 0, "[Q] [H]"},
    {"SHFL, VOTE, REDUX to use", "cycles", &Gpu::shuffle, 24, 24, 24, 0, 0, "[Q] [H]"},
    {"constant to use", "cycles", &Gpu::constant, 28, 28, 28, 0, 0, "[H], [=H]"},
    {"S2R to use", "cycles", &Gpu::special_register, 24, 24, 24, 0, 0, "[H], [=H]"},
    {"S2UR to use", "cycles", &Gpu::special_uniform, 39, 39, 39, 0, 0, "[H], [=H]"},
    {"LDG from L2 to use", "cycles", &Gpu::global_load, 301, 301, 247, 0, 0,
     "[Q]; [H] of one SM, hangs on which part of L2"},
    {"other variable latency", "cycles", &Gpu::other, 30, 30, 30, 0, 0, "[?]"},
    {"try_wait of a complete phase, to use", "cycles", &Gpu::wait_latency, 38, 38, 38, 0, 0, "[H], [=H]"},
    {"arrive to the waiter's use", "cycles", &Gpu::wake_latency, 39, 39, 39, 39, 118,
     "[H]: 44 with the branch behind it; [Q] 123 by test_wait"},
    {"arrive to the use of each further waiter", "cycles more", &Gpu::wake_further, 2, 2, 2, 0, 0,
     "[H] 44-50 for four waiters, 44-66 for eleven; [=H]"},
    {"bar.sync", "cycles", &Gpu::bar_base, 22, 22, 23, 0, 0,
     "[Q]; [H] a chain with loads behind the barriers"},
    {"bar.sync, each warp", "tenths of a cycle", &Gpu::bar_warp_tenths, 20, 20, 21, 0, 0, "[Q] [H]"},
    {"fence.proxy.async", "cycles", &Gpu::proxy_fence, 12, 12, 2, 0, 0,
     "[H] behind the fence of the CTA that comes with it; [?] nobody's, for tensor memory"},
    {"fence, CTA", "cycles", &Gpu::membar, 11, 11, 11, 0, 0, "[H] behind a store; [=H]"},
    {"TMEM load", "bytes a cycle and warp", &Gpu::tmem_load_rate, 128, 128, 0, 53, 128,
     "by structure; [Q] saw 53 to 57, with which [F]'s polynomial would gain nothing"},
    {"TMEM store", "bytes a cycle and warp", &Gpu::tmem_store_rate, 128, 128, 0, 0, 0,
     "[Q] about twice the load's"},
    {"TMEM load latency", "cycles", &Gpu::tmem_load_latency, 30, 30, 0, 30, 420,
     "[?] a comment in a public kernel says 420 under load"},
    {"TMEM store latency", "cycles", &Gpu::tmem_store_latency, 20, 20, 0, 0, 0, "[?]"},
    {"MMA issue", "cycles", &Gpu::mma_issue, 11, 11, 12, 0, 0,
     "arXiv 2512.02189: 11 between issues; [H] the stall on HGMMA"},
    {"MMA, 16 bit", "FLOP a cycle and SM", &Gpu::mma_flop_per_cycle, 8192, 8192, 4096, 0, 0, "[S] [H]"},
    {"MMA end to arrival, A in shared memory", "cycles", &Gpu::mma_latency_shared, 92, 92, 55, 0, 0,
     "[S] 200 for N = 128 from issue to wait, less 64 and the wake-up; [H]"},
    {"MMA end to arrival, A elsewhere", "cycles", &Gpu::mma_latency_other, 60, 60, 45, 0, 0, "[S] 168; [H]"},
    {"MMA queue of a warpgroup", "instructions", &Gpu::mma_queue, 0, 0, 7, 0, 0,
     "[H]; Blackwell's is not known: none"},
    {"beside MMAs, arithmetic once every", "cycles", &Gpu::mma_window, 1, 1, 4, 0, 0,
     "[H]: their accumulators lie in the register file; Blackwell's do not"},
    {"beside MMAs, arithmetic may begin in", "cycles of those", &Gpu::mma_window_open, 1, 1, 2, 0, 0, "[H]"},
    {"shared memory", "bytes a cycle and SM", &Gpu::shared_rate, 128, 128, 128, 0, 0, "[Q] [H]"},
    {"TMA issue", "cycles", &Gpu::tma_issue, 52, 52, 66, 0, 0,
     "[Q] 48-65; [H] boxes of three to five dimensions one behind the other, 34 with two"},
    {"TMA load, first byte", "cycles", &Gpu::tma_latency, 400, 400, 400, 0, 0,
     "[H] 16 KiB from L2: 550 with all SMs, less its bytes; [=H]"},
    {"TMA load", "bytes a cycle and SM", &Gpu::tma_rate, 70, 70, 53, 0, 0,
     "[Q] L2's share of an SM; [H] all SMs read the same 128 KiB, 32 KiB each in flight; 72 with 64 KiB"},
    {"TMA store, source free", "cycles", &Gpu::tma_store_latency, 149, 149, 149, 0, 0,
     "[H] 661 for 16 KiB, less its bytes; [=H]"},
    {"TMA store", "bytes a cycle and SM", &Gpu::tma_store_rate, 32, 32, 32, 0, 0, "[H]; [=H]"},
};

constexpr const char* kHeldAgainstNothing =
    "nobody has timed a Blackwell beside it; docs/time.md says what is known";
constexpr const char* kHeldAgainstH200 =
    "18 launches that nothing was fitted to, timed on an H200 afterwards: off by 4.2 % in the mean, 9.7 % at "
    "most (docs/time.md)";

}  // namespace

std::span<const Parameter> parameters() {
  return kParameters;
}

Gpu gpu_of(std::string_view name) {
  Gpu gpu{};
  uint32_t Parameter::*column = nullptr;
  if (name == "b200") column = &Parameter::b200, gpu.name = "B200", gpu.held = kHeldAgainstNothing;
  if (name == "b300") column = &Parameter::b300, gpu.name = "B300", gpu.held = kHeldAgainstNothing;
  if (name == "h200")
    column = &Parameter::h200, gpu.name = "H200", gpu.held = kHeldAgainstH200, gpu.measured = true;
  if (!column)
    throw Error("there are no numbers for a GPU '" + std::string(name) +
                "'; b200, b300 and h200 are accepted");
  for (const Parameter& p : kParameters) gpu.*p.member = p.*column;
  return gpu;
}

void set_measured(Gpu& gpu, std::string_view name, double value) {
  static_assert(std::size(kParameters) <= 64);
  for (size_t i = 0; i < std::size(kParameters); ++i) {
    if (kParameters[i].name != name) continue;
    if (!(value >= 0.5 && value < 1e6))
      throw Error("'" + std::string(name) + "' was measured as " + std::to_string(value) +
                  "; from 0.5 to below 1000000 is accepted");
    gpu.*kParameters[i].member = uint32_t(std::lround(value));
    gpu.replaced |= uint64_t(1) << i;
    return;
  }
  throw Error("the model has no number '" + std::string(name) + "'");
}

}  // namespace fa4::time
