// SPDX-License-Identifier: Apache-2.0
// main() of the attention tests, and the judgement of harness.h. Exit code 77 tells Meson that the device is
// absent. With FA4_TEST_CHECK set, the simulated GPU's checker watches, and whatever it finds is wrong.
#ifndef FA4_CATCH2_V3
#define CATCH_CONFIG_RUNNER
#endif
#include "harness.h"

#include "asm/attention/kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <sstream>

namespace fa4::test {
namespace {

std::unique_ptr<support::AttentionDevice> the_device;

// What the happens-before checker has found since it was asked last; "" when it is off.
std::string findings(const support::SimulatorApi& simulator) {
  std::vector<fa4sim_finding> all(simulator.count_findings());
  all.resize(simulator.take_findings(all.data(), all.size()));
  std::ostringstream text;
  for (const fa4sim_finding& f : all)
    text << f.kind << " on " << f.memory << ", first " << f.first << ", then " << f.second << "; ";
  return text.str();
}

}  // namespace

support::AttentionDevice& device() {
  return *the_device;
}

const KernelList& kernels() {
  const support::Gpu::Properties& gpu = device().gpu().properties();
  return *kernels_for(uint32_t(10 * gpu.major + gpu.minor));
}

std::vector<HeadDims> head_dims() {
  std::vector<HeadDims> dims;
  const KernelList& list = kernels();
  for (const Kernel& kernel : list)
    if (list.first_of_head_dim(kernel)) dims.push_back({kernel.config.qk_dim, kernel.config.v_dim});
  return dims;
}

HeadDims head_dims_at(uint64_t turn) {
  const std::vector<HeadDims> dims = head_dims();
  return dims[turn % dims.size()];
}

const Config& config_of(support::Dtype dtype, MaskKind mask, const HeadDims& dims) {
  return kernels().find(dtype == support::Dtype::bf16 ? ElementType::bf16 : ElementType::f16, mask, dims.qk, dims.v, 1)->config;
}

std::string describe(const Case& c) {
  static constexpr const char* schedulers[] = {"auto", "linear", "lpt"};
  static constexpr const char* exp2[] = {"", ", exp2 by MUFU", ", exp2 by polynomial"};
  std::ostringstream text;
  text << support::describe(c.problem) << ", " << support::name_of(c.options.layout) << ", scheduler "
       << schedulers[c.options.scheduler] << ", SMs " << c.options.sm_count
       << (c.options.lse ? "" : ", no LSE") << exp2[c.options.exp2] << ", seed " << c.seed;
  return text.str();
}

std::string verify(const Case& c) {
  support::Inputs inputs = support::make_inputs(c.problem, c.seed);
  if (c.options.layout == support::Layout::broadcast)
    inputs = support::broadcast_kv(c.problem, std::move(inputs));
  return verify(c, inputs);
}

std::string verify(const Case& c, const support::Inputs& inputs, support::RunResult* out) {
  const auto complain = [&](const std::string& what) { return describe(c) + ": " + what; };
  support::RunResult result;
  try {
    result = device().run(c.problem, inputs, c.options);
  } catch (const support::AttentionError& error) {
    return complain(std::string(fa4_status_name(error.status)) + ": " + error.what());
  }
  const support::Reference expected = support::reference_double(c.problem, inputs);
  const support::Reference same_precision = support::reference_same_precision(c.problem, inputs);
  const support::Tolerance tolerance = support::tolerance_of(c.problem, expected, same_precision);
  const support::Comparison o = support::compare_o(c.problem, result.o, expected);
  std::ostringstream wrong;
  if (device().simulated()) wrong << findings(device().gpu().simulator());
  if (!result.damage.empty()) wrong << result.damage << "; ";
  if (tolerance.vacuous) wrong << "the tolerance for O, " << tolerance.o << ", would let zeros pass; ";
  if (!(o.max_error <= tolerance.o))
    wrong << "O: " << support::describe(o) << ", allowed " << tolerance.o << "; ";
  // bf16 keeps 8 bits: at magnitudes above 2 its rounding alone passes 1e-2, and the tolerance above rules.
  if (c.problem.dtype == support::Dtype::fp16 && !o.close_1e2)
    wrong << "O is not within rtol = atol = 1e-2; ";
  if (c.options.lse) {
    const support::Comparison lse = support::compare_lse(c.problem, result.lse, expected);
    if (!(lse.max_error <= tolerance.lse))
      wrong << "LSE: " << support::describe(lse) << ", allowed " << tolerance.lse << "; ";
  }
  if (out) *out = std::move(result);
  return wrong.str().empty() ? "" : complain(wrong.str());
}

int64_t stage_blocks(const support::Problem& p) {
  const int64_t packed = std::gcd(p.ratio(), int64_t(128));
  int64_t pairs = 0;
  for (int64_t b = 0; b < p.batch; ++b)
    pairs += (p.length_q(b) * packed + 255) / 256 * 2 * ((p.length_kv(b) + 127) / 128);
  return p.q_heads / packed * pairs;
}

namespace {

support::Lengths lengths_of(Ragged kind, const std::vector<int64_t>& rows) {
  support::Lengths lengths;
  if (kind == Ragged::used || kind == Ragged::both) lengths.used = rows;
  if (kind == Ragged::packed || kind == Ragged::both) lengths.packed = rows;
  if (kind == Ragged::both)
    for (size_t i = 0; i < rows.size(); ++i) lengths.packed[i] += int64_t(i * 7 + 3) % 20;
  return lengths;
}

}  // namespace

void set_q_rows(support::Problem& p, Ragged kind, const std::vector<int64_t>& rows) {
  p.seq_q = *std::max_element(rows.begin(), rows.end());
  p.q_lengths = lengths_of(kind, rows);
}
void set_kv_rows(support::Problem& p, Ragged kind, const std::vector<int64_t>& rows) {
  p.seq_kv = *std::max_element(rows.begin(), rows.end());
  p.kv_lengths = lengths_of(kind, rows);
}

}  // namespace fa4::test

int main(int argc, char** argv) {
  using fa4::support::Gpu;
  const char* kind = std::getenv("FA4_TEST_DEVICE");
  const std::string name = kind ? kind : "sim";
  try {
    if (name == "gpu") {
      const std::string library = "libcuda.so.1";
      std::vector<Gpu::Properties> devices;
      try {
        int version = 0;
        devices = Gpu::list(library, &version);
      } catch (const std::runtime_error& error) {
        std::printf("no GPU: %s\n", error.what());
        return 77;
      }
      for (size_t i = 0; i < devices.size(); ++i)
        if (fa4::kernels_for(uint32_t(10 * devices[i].major + devices[i].minor)) && !fa4::test::the_device)
          fa4::test::the_device = std::make_unique<fa4::support::AttentionDevice>(library, int(i));
      if (!fa4::test::the_device) {
        std::printf("no GPU that there are kernels for among the %zu that %s offers", devices.size(),
                    library.c_str());
        for (const auto& device : devices)
          std::printf("; %s is %d.%d", device.name.c_str(), device.major, device.minor);
        std::printf("\n");
        return 77;
      }
    } else if (name == "sim") {
      const char* library = std::getenv("FA4SIM_LIBRARY");
      fa4::test::the_device =
          std::make_unique<fa4::support::AttentionDevice>(library ? library : FA4SIM_LIBRARY_DEFAULT, 0);
      const fa4::support::SimulatorApi& simulator = fa4::test::the_device->gpu().simulator();
      if (std::getenv("FA4_TEST_CHECK") && simulator.check(1) != 0) throw std::runtime_error(simulator.last_error());
    } else {
      std::fprintf(stderr, "FA4_TEST_DEVICE is '%s'; 'sim' and 'gpu' are accepted\n", name.c_str());
      return 1;
    }
    const int failed = Catch::Session().run(argc, argv);
    fa4::test::the_device.reset();
    return failed;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cannot open the device '%s': %s\n", name.c_str(), error.what());
    return 1;
  }
}
