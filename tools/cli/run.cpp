// SPDX-License-Identifier: Apache-2.0
// `fa4 run`.
#include "run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "asm/attention/kernels.h"
#include "findings.h"
#include "guarded.h"
#include "runtime/plan.h"
#include "runtime/problem.h"
#include "support/attention_device.h"
#include "table.h"
#include "tensors.h"

namespace fa4::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void line(const char* label, const std::string& text) {
  fmt::print("  {:<9} {}\n", label, text);
}

// A line on stderr that is rewritten while a simulation runs, and gone when it ends.
class Progress {
 public:
  explicit Progress(const support::SimulatorApi& simulator) : simulator_(simulator) {
    if (simulator_.set_progress && isatty(STDERR_FILENO)) simulator_.set_progress(&Progress::report, this);
  }
  ~Progress() {
    if (simulator_.set_progress) simulator_.set_progress(nullptr, nullptr);
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  static void report(void* user, uint64_t done, uint64_t total) {
    Progress& self = *static_cast<Progress*>(user);
    const double elapsed = seconds_since(self.start_);
    if (done == 0 || elapsed < 0.3 || seconds_since(self.last_) < 0.1) return;
    self.last_ = Clock::now();
    self.shown_ = true;
    fmt::print(stderr, "\r\033[K  simulating {:3.0f} %  {} of {} CTAs  about {:.1f} s left",
               100.0 * double(done) / double(total), done, total,
               elapsed * double(total - done) / double(done));
    std::fflush(stderr);
  }

  const support::SimulatorApi& simulator_;
  Clock::time_point start_ = Clock::now(), last_ = start_;
  bool shown_ = false;
};

void print_plan(const Loaded& loaded, const RunRequest& request, support::AttentionDevice& device,
                uint32_t sms) {
  const fa4_forward_params params = dry_params(loaded.problem, request);
  Plan plan{};
  Message message;
  if (plan_forward(params, {&kernels_of(device.gpu().properties()), sms}, plan, message) != FA4_OK)
    throw Refusal(message.text());
  if (plan.grid == 0) {
    line("kernel", "none: there is nothing to compute");
    return;
  }
  const std::string tasks = has_own_lengths(params)
                                ? std::string("tasks counted out as the lengths say")
                                : fmt::format("{} scheduler, {} tasks",
                                              plan.params.order.kind == SchedulerKind::lpt ? "LPT" : "linear",
                                              plan.params.order.task_count);
  line("kernel", fmt::format("{}, {} on {} CTAs of {} threads{}", plan.kernel->entry, tasks, plan.grid,
                             plan.kernel->threads, device.simulated() ? ", from PTX" : ""));
}

void print_role_table(const Kernel& kernel, const fa4sim_counters& counters) {
  Table table({"role", "warps", ">warp instr.", ">MMAs", ">TMA loads", ">bytes", ">TMA stores", ">bytes",
               ">TMEM loads", ">bytes", ">TMEM stores", ">bytes", ">arrivals", ">waits", ">parked"});
  const auto add = [&](const std::string& role, uint32_t begin, uint32_t end) {
    fa4sim_warp_counters sum{};
    for (uint32_t w = begin; w < std::min(end, counters.warps); ++w) {
      const fa4sim_warp_counters& c = counters.warp[w];
      sum.warp_instructions += c.warp_instructions;
      sum.mma += c.mma;
      sum.box_loads += c.box_loads;
      sum.box_load_bytes += c.box_load_bytes;
      sum.box_stores += c.box_stores;
      sum.box_store_bytes += c.box_store_bytes;
      sum.tmem_loads += c.tmem_loads;
      sum.tmem_load_bytes += c.tmem_load_bytes;
      sum.tmem_stores += c.tmem_stores;
      sum.tmem_store_bytes += c.tmem_store_bytes;
      sum.barrier_arrivals += c.barrier_arrivals;
      sum.barrier_waits += c.barrier_waits;
      sum.parked += c.parked;
    }
    table.add({role, begin + 1 == end ? std::to_string(begin) : fmt::format("{}-{}", begin, end - 1),
               grouped(sum.warp_instructions), grouped(sum.mma), grouped(sum.box_loads),
               bytes_text(sum.box_load_bytes), grouped(sum.box_stores), bytes_text(sum.box_store_bytes),
               grouped(sum.tmem_loads), bytes_text(sum.tmem_load_bytes), grouped(sum.tmem_stores),
               bytes_text(sum.tmem_store_bytes), grouped(sum.barrier_arrivals), grouped(sum.barrier_waits),
               grouped(sum.parked)});
  };
  for (const NameRecord* r = kernel.names; r->kind != NameKind::end; ++r)
    if (r->kind == NameKind::role) add(r->name, r->begin, r->end);
  fmt::print("{}{}", heading("What each role did"), table.text());
}

void print_times(const support::Problem& problem, const support::RunResult& result, const support::Gpu& gpu) {
  if (!gpu.simulated()) {
    line("time", fmt::format("{:.1f} us on the GPU's clock, first launch: {:.1f} TFLOP/s",
                             result.seconds * 1e6, mma_flop(problem) / result.seconds * 1e-12));
    return;
  }
  fa4sim_counters c{};
  if (gpu.simulator().get_counters(&c) != 0) throw DeviceError(gpu.simulator().last_error());
  if (c.ctas == 0) return;
  line("time", fmt::format("{:.3f} s, simulated on {} host threads (a property of this CPU, not of a GPU)",
                           c.wall_seconds, c.host_threads));
  const double core_seconds = c.wall_seconds * c.host_threads;
  line("", fmt::format("{:.2f} G thread instructions/s a core, {:.1f} GFLOP/s of MMA",
                       double(c.thread_instructions) / core_seconds * 1e-9,
                       double(c.mma_flop) / c.wall_seconds * 1e-9));
  print_role_table(*kernel_for(dry_params(problem, {}), kernels_of(gpu.properties())), c);
}

void print_comparison(const char* what, const support::Comparison& c, double tolerance, double atol) {
  line(what, fmt::format("max error {:.3g} (allowed {:.3g}), rms error {:.3g}", c.max_error, tolerance,
                         c.rms_error));
  line("",
       fmt::format("worst at batch {}, head {}, position {}{}: {:.6g} where {:.6g} is expected", c.worst[0],
                   c.worst[1], c.worst[2], atol > 0 ? fmt::format(", column {}", c.worst[3]) : "",
                   c.worst_value, c.worst_expected));
  if (c.not_finite)
    line("", fmt::format("{} elements are NaN or infinite where the reference is not, or the other way round",
                         c.not_finite));
  if (c.nan_as_expected) line("", fmt::format("{} elements are NaN, as the reference is", c.nan_as_expected));
}

// What the checker found in a run, and the fault in which it ended, if any. True: clean.
bool print_hazards(const support::SimulatorApi& simulator, const std::string& fault, double seconds) {
  const std::vector<fa4sim_finding> findings = take_findings(simulator);
  const uint64_t warnings = count_warnings(findings), errors = findings.size() - warnings + !fault.empty();
  if (errors || warnings) fmt::print("{}", heading("Findings"));
  print_findings(findings);
  if (!fault.empty()) fmt::print("\n  error: the run ended in a fault\n{}\n", fault);
  print_verdict(errors, warnings, seconds, "isa", axioms_used(simulator));
  return errors + warnings == 0;
}

bool check(const support::Problem& problem, const support::Inputs& inputs, const support::RunResult& result) {
  const Clock::time_point start = Clock::now();
  const support::Reference expected = support::reference_double(problem, inputs);
  const support::Tolerance tolerance =
      support::tolerance_of(problem, expected, support::reference_same_precision(problem, inputs));
  const support::Comparison o = support::compare_o(problem, result.o, expected);
  const support::Comparison lse = support::compare_lse(problem, result.lse, expected);
  fmt::print("{}", heading(fmt::format("Check against double precision, {:.1f} s on the CPU",
                                       seconds_since(start))));
  if (o.empty) line("O", "no element to check");
  if (!o.empty) print_comparison("O", o, tolerance.o, 1);
  if (o.unspecified_rows)
    line("", fmt::format(
                 "{} of {} rows of O are unspecified and not compared: V is not finite at every key of their "
                 "batch entry and KV head",
                 o.unspecified_rows, problem.lse_elements()));
  if (!lse.empty) {
    print_comparison("LSE", lse, tolerance.lse, 0);
    line("", "allowed: twice the max error of a same-precision reference, plus half a rounding step");
  }
  if (tolerance.vacuous)
    line("", "inconclusive: the same-precision reference is so far off that O = 0 would be allowed, too");
  if (!result.damage.empty()) line("", result.damage);
  const bool pass = o.max_error <= tolerance.o && lse.max_error <= tolerance.lse && !tolerance.vacuous &&
                    result.damage.empty();
  fmt::print("\n  {}\n", !pass ? "FAIL" : o.unspecified_rows ? "PASS, as far as O is specified" : "PASS");
  return pass;
}

int run_checked(const RunRequest& request) {
  const Loaded loaded = load(request);
  const support::Problem& problem = loaded.problem;
  if (!request.gpu.empty() && request.device == DeviceKind::gpu)
    throw Refusal("--gpu names a GPU to simulate, --device gpu asks for a real one: leave one of them out");
  simulate(request.gpu);
  const DeviceKind kind = request.gpu.empty() ? request.device : DeviceKind::sim;
  const DeviceChoice choice = choose_device(kind, request.driver);
  support::AttentionDevice device(choice.library, choice.ordinal);
  if (request.device == DeviceKind::gpu && device.simulated())
    throw DeviceError(fmt::format("--device gpu: {} is a simulated GPU", choice.library));
  if (kind == DeviceKind::sim && !device.simulated())
    throw DeviceError(fmt::format("{}: {} is no simulated GPU",
                                  request.gpu.empty() ? "--device sim" : "--gpu", choice.library));
  device.set_host_threads(request.threads);
  if (request.hazards && !device.simulated())
    throw Refusal(fmt::format(
        "--hazards: {} is a real GPU, which cannot be watched; --device sim is accepted", choice.library));
  if (!request.image_path.empty()) device.set_image(read_image(request.image_path));
  if (request.hazards && device.gpu().simulator().check(1) != 0)
    throw DeviceError(device.gpu().simulator().last_error());

  const support::Gpu::Properties& properties = device.gpu().properties();
  const uint32_t sms = request.sms ? request.sms : uint32_t(properties.sm_count);
  line("problem", fmt::format("{}, scale {:.7g}, {}", support::describe(problem), problem.effective_scale(),
                              loaded.source));
  line("work",
       fmt::format("{:.5g} GFLOP, of pairs of a query and a key that it sees", mma_flop(problem) * 1e-9));
  std::string limit;
  if (!device.simulated() && request.sms) limit = fmt::format(", at most {} CTAs", request.sms);
  line("device", fmt::format("{}, {} SMs{}", properties.name,
                             device.simulated() ? sms : uint32_t(properties.sm_count), limit));
  line("", choice.reason);
  print_plan(loaded, request, device, sms);
  std::fflush(stdout);

  support::RunOptions options;
  options.layout = request.bhsd ? support::Layout::bhsd : support::Layout::bshd;
  options.scheduler = scheduler_of(request);
  options.exp2 = exp2_of(request);
  options.lse = request.check || !request.lse_path.empty();
  options.sm_count = device.simulated() ? sms : request.sms;
  support::RunResult result;
  const Clock::time_point start = Clock::now();
  {
    const Progress progress(device.gpu().simulator());
    try {
      result = device.run(problem, loaded.inputs, options);
    } catch (const support::AttentionError& error) {
      if (!request.hazards || !error.fault) throw;
      print_hazards(device.gpu().simulator(), error.what(), seconds_since(start));
      return kCheckFailed;
    }
  }
  print_times(problem, result, device.gpu());
  if (request.check && !check(problem, loaded.inputs, result)) {
    if (!request.out_path.empty() || !request.lse_path.empty()) fmt::print("  No file was written.\n");
    return kCheckFailed;
  }
  if (request.hazards && !print_hazards(device.gpu().simulator(), "", seconds_since(start))) {
    if (!request.out_path.empty() || !request.lse_path.empty()) fmt::print("  No file was written.\n");
    return kCheckFailed;
  }
  save(request, problem, result.o, result.lse);
  for (const std::string& path : {request.out_path, request.lse_path})
    if (!path.empty()) line("wrote", path);
  return kSuccess;
}

}  // namespace

int run(const RunRequest& request) {
  return guarded("run", [&] {
    try {
      return run_checked(request);
    } catch (const support::AttentionError& error) {
      const bool refused =
          error.status == FA4_ERROR_INVALID_ARGUMENT || error.status == FA4_ERROR_UNSUPPORTED;
      if (!refused) throw;
      throw Refusal(fmt::format("{}: {}", fa4_status_name(error.status), error.what()));
    }
  });
}

}  // namespace fa4::cli
