// SPDX-License-Identifier: Apache-2.0
#include "judge.h"

#include <cuda.h>

#include <algorithm>
#include <bit>

#include "runtime/plan.h"
#include "runtime/problem.h"
#include "support/record.h"
#include "tools/sim/check/collector.h"
#include "tools/sim/core/tensor_map.h"
#include "tools/sim/ptx/module.h"

namespace fa4::mutation {

using support::Dtype;
using support::Problem;

namespace {

// More than the kernel needs in the longest of the configurations; a mutant that never ends is stopped soon.
constexpr uint64_t kBudget = 600'000;

std::string first_lines(const std::string& report, int count) {
  std::string text;
  for (size_t at = 0; at < report.size() && count-- > 0;) {
    const size_t end = std::min(report.find('\n', at), report.size());
    const size_t begin = std::min(report.find_first_not_of(' ', at), end);
    text += (text.empty() ? "" : "; ") + report.substr(begin, end - begin);
    at = end + 1;
  }
  return text;
}

CUtensorMap encode(const TensorMapDescription& d) {
  CUtensorMap map;
  const cuuint32_t ones[5] = {1, 1, 1, 1, 1};
  cuuint64_t extents[5], strides[4];
  std::copy_n(d.extents, 5, extents);
  std::copy_n(d.strides, 4, strides);
  if (sim::encode_tiled(&map, d.type, 5, reinterpret_cast<void*>(d.address), extents, strides, d.box, ones,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                        CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS) {
    throw std::runtime_error("a tensor map was refused");
  }
  return map;
}

}  // namespace

std::vector<const Kernel*> Subject::kernels() const {
  std::vector<const Kernel*> all;
  for (const MaskKind mask : general ? std::vector{MaskKind::band} : std::vector{MaskKind::full, MaskKind::causal})
    all.push_back(list.find(ElementType::f16, mask, head_dim, head_dim, kMaxSequence));
  return all;
}

const char* name_of(Verdict::By by) {
  switch (by) {
    case Verdict::By::nobody:
      return "nobody";
    case Verdict::By::load:
      return "loader";
    case Verdict::By::fault:
      return "fault";
    case Verdict::By::error:
      return "checker";
    case Verdict::By::warning:
      return "warning";
    case Verdict::By::numbers:
      return "numbers";
    case Verdict::By::timing:
      return "timing";
  }
  return "";
}

void Judge::add(const Problem& problem, uint32_t ctas, bool lpt, support::Inputs inputs) {
  Config c{problem, ctas, lpt, std::move(inputs), {}, {}};
  c.expected = support::reference_double(problem, c.inputs);
  c.tolerance = support::tolerance_of(problem, c.expected, support::reference_same_precision(problem, c.inputs));
  configs_.push_back(std::move(c));
}

Judge::Judge(const Subject& subject, uint32_t seeds) : subject_(subject), seeds_(seeds) {
  if (subject.general) add_general();
  else add_plain();
}

void Judge::add_plain() {
  const int head_dim = subject_.head_dim;
  // One CTA: eight tasks, the first three without a visible key, then tails at the diagonal and up to three
  // blocks; the scale makes maxima move by more than 8 in log2 again and again. The rows of some warps see all keys of their
  // last block, but for the last key in the first rows.
  const Problem mixed{Dtype::fp16, true, 1, 460, 258, 4, 1, 0.5, head_dim};
  add(mixed, 1, false, support::make_inputs(mixed, 11));
  // Two CTAs, longest tasks first, several batches, tiles of stage 1 that straddle two blocks; the default
  // scale: maxima that move by less are kept. A head dimension whose pieces are copies of their own.
  const bool any_length = subject_.list.find(ElementType::f16, MaskKind::causal, head_dim, head_dim, 600) == subject_.kernels()[1];
  const Problem lpt{Dtype::fp16, true, 2, any_length ? 300 : 520, 448, 2, 1, 0, head_dim - 8};
  add(lpt, 2, true, support::make_inputs(lpt, 12));
  // Three CTAs with two tasks each, no mask but for the tail, five blocks: every ring goes round.
  const Problem full{Dtype::fp16, false, 3, 257, 577, 1, 1, 0.3, head_dim};
  add(full, 3, false, support::make_inputs(full, 13));
  // One task of so many blocks that a barrier which counts one arrival less has lost a whole warp before the end.
  const Problem many{Dtype::fp16, false, 1, 3, 4500, 1, 1, 0.3, head_dim};
  add(many, 1, false, support::make_inputs(many, 16));
  if (&subject_.list == &hopper::kKernels) {
    // The kernel negates Q where it lies, for each task that its CTA takes.
    const Problem negative{Dtype::fp16, true, 1, 300, 200, 4, 1, -0.3, head_dim};
    add(negative, 2, false, support::make_inputs(negative, 15));
  }
  // One row in five has scores so large that its maximum is subtracted before they are scaled, in every block. A scale with
  // which its rounding would leave the range of P, and one with which many probabilities of a row are above 0.
  for (const double scale : {100.0, 0.25}) {
    const Problem large{Dtype::fp16, false, 1, 140, 300, 1, 1, scale, head_dim};
    add(large, 1, false,
        support::make_exact_inputs(
            large, 14, [](int64_t i) { return i % 5 ? 0.0f : 16384.0f; }, [](int64_t) { return 256.0f; }));
  }
}

// Lengths that the device alone knows, or values of the launch that a general kernel is for. What is wrong with its ring of tasks
// shows where a CTA has more of them than the ring has slots, and again as many.
void Judge::add_general() {
  const int head_dim = subject_.head_dim;
  // Three CTAs take tasks as they become free: of some entries none, of others with one block and with three, some without a key.
  Problem packed{Dtype::fp16, true, 12, 300, 390, 1, 1, 0.5, head_dim};
  packed.q_lengths.packed = {40, 0, 300, 7, 290, 129, 0, 31, 260, 5, 1, 64};
  packed.kv_lengths.packed = {129, 70, 390, 0, 20, 257, 0, 130, 33, 140, 1, 128};
  add(packed, 3, false, support::make_inputs(packed, 31));
  // More entries than a warp has lanes, most of them empty: two CTAs with some twelve tasks of a block each.
  Problem many{Dtype::fp16, false, 70, 3, 40, 2, 1, 0.4, head_dim};
  for (int64_t b = 0; b < many.batch; ++b) {
    many.q_lengths.used.push_back(b % 3 == 2 ? 1 + b % 2 : 0);
    many.kv_lengths.used.push_back(b % 4 * 13);
  }
  many.sinks = true;
  add(many, 2, false, support::make_inputs(many, 32));
  // Fewer tasks than CTAs, which nobody knows before the launch, and one CTA more than run at a time.
  Problem few{Dtype::fp16, false, 8, 200, 150, 1, 1, 0.4, head_dim};
  few.q_lengths.used = {0, 190, 0, 0, 0, 3, 0, 0};
  few.alibi = true;
  add(few, 5, false, support::make_inputs(few, 33));
  // Two CTAs with two tasks of a block each.
  Problem two{Dtype::fp16, false, 4, 20, 60, 1, 1, 0.4, head_dim};
  two.softcap = 2;
  add(two, 2, false, support::make_inputs(two, 35));
  // Two CTAs in the static order, five tasks each; a window in which the blocks of a task begin behind the first.
  Problem window{Dtype::fp16, false, 2, 600, 500, 2, 2, 0.3, head_dim};
  window.window = true, window.window_left = 100, window.window_right = 20;
  window.softcap = 2;
  add(window, 2, true, support::make_inputs(window, 34));
}

support::Output Judge::run(sim::test::Kernel& kernel, const Config& config) const {
  std::vector<uint64_t> addresses;
  const support::DeviceMemory memory{
      .put =
          [&](const void* from, uint64_t bytes) {
            const auto* first = static_cast<const std::byte*>(from);
            return addresses.emplace_back(kernel.upload(std::vector<std::byte>(first, first + bytes)));
          },
      .get =
          [&](void* to, uint64_t from, uint64_t bytes) {
            const std::vector<std::byte> values = kernel.read<std::byte>(from, size_t(bytes));
            std::copy(values.begin(), values.end(), static_cast<std::byte*>(to));
          }};
  support::StagedProblem staged(config.problem, config.inputs, support::Layout::bshd, true, support::kPoison16, memory);
  fa4_forward_params& problem = staged.params;
  problem.scheduler = config.lpt ? FA4_SCHEDULER_LPT : FA4_SCHEDULER_LINEAR;
  problem.max_ctas = int32_t(config.ctas);
  staged.add_workspace(workspace_bytes(problem));
  Plan plan;
  Message message;
  if (plan_forward(problem, {&subject_.list, 148}, plan, message) != FA4_OK) throw std::runtime_error(message.text());
  plan.params.q = encode(plan.q);
  plan.params.k = encode(plan.k);
  plan.params.v = encode(plan.v);
  plan.params.o = encode(plan.o);
  kernel.run(plan.kernel->entry, {{plan.grid, 1, 1}, {plan.kernel->threads, 1, 1}, plan.kernel->shared_bytes},
             plan.params);
  support::Output output = staged.read();
  for (const uint64_t address : addresses) kernel.device().memory().release(address);
  return output;
}

std::string Judge::wrong_numbers(const Config& c, const support::Output& output) {
  if (!output.damage.empty()) return output.damage;
  const support::Comparison o = support::compare_o(c.problem, output.o, c.expected),
                            lse = support::compare_lse(c.problem, output.lse, c.expected);
  if (!(o.max_error <= c.tolerance.o)) return "O: " + support::describe(o);
  if (!(lse.max_error <= c.tolerance.lse)) return "LSE: " + support::describe(lse);
  return {};
}

std::vector<Judge::Explained> Judge::explain(const std::string& ptx,
                                             const std::set<std::pair<uint32_t, uint32_t>>& pairs) const {
  sim::test::Kernel kernel(ptx, 1, 4, kBudget);
  sim::Collector collector;
  collector.explain(pairs);
  kernel.device().set_observers([&](uint32_t thread) { return collector.observer(thread); });
  std::vector<Explained> all;
  for (const Config& c : configs_) {
    run(kernel, c);
    collector.take();
    all.push_back({support::describe(c.problem), collector.take_orderings()});
  }
  return all;
}

Verdict Judge::judge(const std::string& ptx) const {
  using By = Verdict::By;
  std::unique_ptr<sim::test::Kernel> kernel;
  try {
    kernel = std::make_unique<sim::test::Kernel>(ptx, 1, 4, kBudget);
  } catch (const sim::ptx::Error& error) {
    return {By::load, first_lines(error.what(), 1), "at load"};
  }
  sim::Collector collector;
  kernel->device().set_observers([&](uint32_t thread) { return collector.observer(thread); });
  std::vector<support::Output> nominal(configs_.size());
  for (uint32_t seed = 0; seed <= seeds_; ++seed) {
    kernel->device().set_adversarial(seed, true);  // the kernel joins its warps itself
    for (size_t i = 0; i < configs_.size(); ++i) {
      const Config& c = configs_[i];
      const std::string where =
          support::describe(c.problem) + (seed ? ", seed " + std::to_string(seed) : ", nominal");
      support::Output output;
      std::string fault;
      try {
        output = run(*kernel, c);
      } catch (const sim::Fault& f) {
        fault = first_lines(f.what(), 3);
      }
      const std::vector<sim::Finding> findings = collector.take();
      if (!findings.empty()) {
        const sim::Finding& f = findings.front();
        std::string actors = support::actor(f.first) + "; " + support::actor(f.second);
        return {f.warning ? By::warning : By::error,
                sim::kind_name(f.kind) + " on " + f.memory + "; then " + f.second, where, std::move(actors)};
      }
      if (!fault.empty()) return {By::fault, fault, where};
      if (const std::string wrong = wrong_numbers(c, output); !wrong.empty())
        return {By::numbers, wrong, where};
      if (seed == 0) {
        nominal[i] = std::move(output);
      } else if (output.o != nominal[i].o || std::memcmp(output.lse.data(), nominal[i].lse.data(),
                                                         output.lse.size() * sizeof(float)) != 0) {
        return {By::timing, "other bits than with nominal timing", where};
      }
    }
  }
  return {};
}

}  // namespace fa4::mutation
