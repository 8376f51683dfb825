// SPDX-License-Identifier: Apache-2.0
// A thousand adversarial seeds on small causal GQA problems with tails, and on some whose entries have lengths of their own: whatever
// the timing, the same bits.
#include <cstring>
#include <stdexcept>

#include "asm/attention/kernels.h"
#include "support/attention_device.h"
#include "support/catch.h"
#include "support/compare.h"
#include "support/inputs.h"

using namespace fa4;
using support::Dtype;

namespace {

constexpr uint64_t kSeeds = 1000;

void same_bits_for_every_seed(support::AttentionDevice& device, const support::Problem& problem, uint32_t sms) {
  const support::SimulatorApi& simulator = device.gpu().simulator();
  const support::Inputs inputs = support::make_inputs(problem, 21);
  support::RunOptions options;
  options.sm_count = sms;
  const support::RunResult nominal = device.run(problem, inputs, options);
  REQUIRE(nominal.damage == "");
  const support::Reference expected = support::reference_double(problem, inputs);
  const support::Tolerance tolerance =
      support::tolerance_of(problem, expected, support::reference_same_precision(problem, inputs));
  REQUIRE(support::compare_o(problem, nominal.o, expected).max_error <= tolerance.o);
  uint64_t different = 0, damaged = 0, cycles_differ = 0;
  fa4sim_counters counters{};
  REQUIRE(simulator.get_counters(&counters) == 0);
  const uint64_t nominal_cycles = counters.total_cta_cycles;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    REQUIRE(simulator.set_adversarial(seed, FA4SIM_INDEPENDENT_LANES) == 0);
    const support::RunResult result = device.run(problem, inputs, options);
    different += result.o != nominal.o ||
                 std::memcmp(result.lse.data(), nominal.lse.data(), nominal.lse.size() * sizeof(float)) != 0;
    damaged += !result.damage.empty();
    REQUIRE(simulator.get_counters(&counters) == 0);
    cycles_differ += counters.total_cta_cycles != nominal_cycles;
  }
  REQUIRE(simulator.set_adversarial(0, 0) == 0);
  CHECK(different == 0);
  CHECK(damaged == 0);
  CHECK(cycles_differ > kSeeds * 9 / 10);  // the timing was another one indeed
}

// A problem of a few tasks of one and two key blocks, with tails of both sequences, that the kernel is chosen for; the scale makes
// maxima move by more than 8.
support::Problem problem_for(const KernelList& kernels, const Kernel& kernel) {
  const Config& c = kernel.config;
  support::Problem p{c.element == ElementType::f16 ? Dtype::fp16 : Dtype::bf16, true, 1, 0, 140, 4, 1, 0.5, c.qk_dim, c.v_dim};
  if (c.general()) {  // more tasks than the ring has slots, taken as CTAs become free; an entry has no query, one no key
    p.batch = 6;
    p.seq_q = 40;
    p.q_lengths.packed = {40, 3, 0, 33, 9, 1};
    p.kv_lengths.used = {140, 20, 50, 130, 0, 7};
    p.sinks = true;
    return p;
  }
  for (const int64_t seq_q : {130, 260}) {  // of four heads that share a KV head
    p.seq_q = seq_q;
    if (kernels.find(c.element, c.mask, c.qk_dim, c.v_dim, 4 * seq_q) == &kernel) return p;
  }
  throw std::logic_error(std::string("no problem for ") + kernel.entry);
}

// Of all causal and general kernels of that element type that the simulated GPU runs.
void same_bits_for_every_seed(ElementType element) {
  support::AttentionDevice device(FA4SIM_LIBRARY_DEFAULT, 0);
  const KernelList& kernels = *kernels_for(device.gpu().properties().arch());
  for (const Kernel& kernel : kernels) {
    if (kernel.config.element != element || kernel.config.mask == MaskKind::full) continue;
    const support::Problem problem = problem_for(kernels, kernel);
    for (const uint32_t sms : {1u, 3u}) {
      INFO(kernel.entry << ", SMs " << sms);
      same_bits_for_every_seed(device, problem, sms);
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
