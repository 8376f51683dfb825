// SPDX-License-Identifier: Apache-2.0
// A thousand adversarial seeds on small causal GQA problems with tails: whatever the timing, the same bits.
#include <cstring>

#include "asm/attention/kernels.h"
#include "support/attention_device.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/inputs.h"

using namespace fa4;
using support::Dtype;

namespace {

constexpr uint64_t kSeeds = 1000;

void same_bits_for_every_seed(support::AttentionDevice& device, Dtype dtype, int64_t seq_q, uint32_t sms,
                              int64_t head_dim) {
  const support::SimulatorApi& simulator = device.gpu().simulator();
  // A few tasks of one and two key blocks, with tails of both sequences; the scale makes maxima move by more
  // than 8.
  const support::Problem problem{dtype, true, 1, seq_q, 140, 4, 1, 0.5, head_dim};
  const support::Inputs inputs = support::make_inputs(problem, 21);
  support::RunOptions options;
  options.sm_count = sms;
  const support::RunResult nominal = device.run(problem, inputs, options);
  const support::Reference expected = support::reference_double(problem, inputs);
  const support::Tolerance tolerance =
      support::tolerance_of(problem, expected, support::reference_same_precision(problem, inputs));
  REQUIRE(support::compare_o(problem, nominal.o, expected).max_error <= tolerance.o);
  uint64_t different = 0, cycles_differ = 0;
  fa4sim_counters counters{};
  REQUIRE(simulator.get_counters(&counters) == 0);
  const uint64_t nominal_cycles = counters.total_cta_cycles;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    REQUIRE(simulator.set_adversarial(seed, FA4SIM_INDEPENDENT_LANES) == 0);
    const support::RunResult result = device.run(problem, inputs, options);
    different += result.o != nominal.o ||
                 std::memcmp(result.lse.data(), nominal.lse.data(), nominal.lse.size() * sizeof(float)) != 0;
    REQUIRE(simulator.get_counters(&counters) == 0);
    cycles_differ += counters.total_cta_cycles != nominal_cycles;
  }
  REQUIRE(simulator.set_adversarial(0, 0) == 0);
  CHECK(different == 0);
  CHECK(cycles_differ > kSeeds * 9 / 10);  // the timing was another one indeed
}

// Of all causal kernels of that element type that the simulated GPU runs.
void same_bits_for_every_seed(ElementType element) {
  support::AttentionDevice device(FA4SIM_LIBRARY_DEFAULT, 0);
  const support::Gpu::Properties& gpu = device.gpu().properties();
  const KernelList& kernels = *kernels_for(uint32_t(10 * gpu.major + gpu.minor));
  for (const Kernel& kernel : kernels) {
    const Config& c = kernel.config;
    if (c.element != element || c.mask != MaskKind::causal) continue;
    int64_t seq_q = 130;  // of four heads that share a KV head
    if (kernels.find(element, c.mask, c.qk_dim, c.v_dim, 4 * seq_q) != &kernel) seq_q = 260;
    REQUIRE(kernels.find(element, c.mask, c.qk_dim, c.v_dim, 4 * seq_q) == &kernel);
    for (const uint32_t sms : {1u, 3u}) {
      INFO(kernel.entry << ", SMs " << sms);
      same_bits_for_every_seed(device, element == ElementType::f16 ? Dtype::fp16 : Dtype::bf16, seq_q, sms, c.qk_dim);
    }
  }
}

}  // namespace

TEST_CASE("fp16", "[seeds]") {
  same_bits_for_every_seed(ElementType::f16);
}
TEST_CASE("bf16", "[seeds]") {
  same_bits_for_every_seed(ElementType::bf16);
}
