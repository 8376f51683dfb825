// SPDX-License-Identifier: Apache-2.0
// `fa4 check`.
#include "check.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <new>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "findings.h"
#include "support/attention_device.h"
#include "table.h"
#include "tensors.h"

namespace fa4::cli {
namespace {

constexpr int kClean = 0, kFindings = 1, kCouldNotRun = 2;

void line(const char* label, const std::string& text) {
  fmt::print("  {:<9} {}\n", label, text);
}

const char* image_name(const CheckRequest& request) {
  return request.image_path.empty() ? "built in" : request.image_path.c_str();
}

void write_report(const CheckRequest& request, const nlohmann::json& report) {
  if (request.json_path.empty()) return;
  std::ofstream file(request.json_path);
  // A sentence may quote a byte of the image that is no text.
  file << report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
  if (!file.flush()) throw Refusal(fmt::format("--json {}: the file cannot be written", request.json_path));
  line("wrote", request.json_path);
}

int check_checked(const CheckRequest& request) {
  RunRequest run = request.problem;
  const Loaded loaded = load(run);
  simulate(run.gpu);
  const DeviceChoice choice = choose_device(DeviceKind::sim, run.driver);
  support::AttentionDevice device(choice.library, choice.ordinal);
  if (!device.simulated()) throw DeviceError(fmt::format("{} is no simulated GPU", choice.library));
  device.set_host_threads(run.threads);
  if (!request.image_path.empty()) device.set_image(read_image(request.image_path));
  const support::SimulatorApi& simulator = device.gpu().simulator();
  if (simulator.check(1) != 0) throw DeviceError(simulator.last_error());
  if (simulator.set_model(request.model == "silicon" ? FA4SIM_MODEL_SILICON : FA4SIM_MODEL_ISA) != 0)
    throw DeviceError(simulator.last_error());

  support::RunOptions options;
  options.scheduler = scheduler_of(run);
  options.exp2 = exp2_of(run);
  options.sm_count = run.sms;
  line("problem", fmt::format("{}, {}", support::describe(loaded.problem), loaded.source));
  line("image", image_name(request));
  line("runs", fmt::format("nominal timing, then {} adversarial seeds{}", request.seeds,
                           request.independent_lanes ? ", lanes independent" : ""));
  std::fflush(stdout);

  const auto start = std::chrono::steady_clock::now();
  support::RunResult nominal;
  std::string fault, different;
  uint64_t seed = 0;
  try {
    for (; seed <= request.seeds; ++seed) {
      simulator.set_adversarial(seed, request.independent_lanes ? FA4SIM_INDEPENDENT_LANES : 0);
      support::RunResult result = device.run(loaded.problem, loaded.inputs, options);
      if (seed == 0)
        nominal = std::move(result);
      else if (result.o != nominal.o || result.lse.size() != nominal.lse.size() ||
               !std::equal(result.lse.begin(), result.lse.end(), nominal.lse.begin(),
                           [](float x, float y) { return x == y || (x != x && y != y); })) {
        different = fmt::format("seed {} gives other bits than nominal timing", seed);
        break;
      }
    }
  } catch (const support::AttentionError& error) {
    if (!error.fault) throw;
    fault = error.what();
  }
  const std::vector<fa4sim_finding> findings = take_findings(simulator);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const uint64_t warnings = count_warnings(findings);
  const uint64_t errors = findings.size() - warnings + !fault.empty() + !different.empty();
  const std::string timing = seed == 0 ? "nominal timing" : fmt::format("adversarial seed {}", seed);

  if (!findings.empty() || errors) fmt::print("{}", heading("Findings"));
  print_findings(findings);
  if (!fault.empty()) fmt::print("\n  error: the run ended in a fault, {}\n{}\n", timing, fault);
  if (!different.empty()) fmt::print("\n  error: {}\n", different);
  const std::vector<std::string> axioms = axioms_used(simulator);
  print_verdict(errors, warnings, seconds, request.model, axioms);

  write_report(request, {{"problem", support::describe(loaded.problem)},
                         {"image", image_name(request)},
                         {"model", request.model},
                         {"seeds", request.seeds},
                         {"not_run", ""},
                         {"errors", errors},
                         {"warnings", warnings},
                         {"fault", fault},
                         {"difference", different},
                         {"axioms", axioms},
                         {"seconds", seconds},
                         {"peak_mebibytes", peak_mebibytes()},
                         {"findings", findings_json(findings)}});
  return errors || warnings ? kFindings : kClean;
}

}  // namespace

int check(const CheckRequest& request) {
  // A report of an earlier run must not be taken for one of this.
  const auto refuse = [&](const std::string& sentence) {
    std::fflush(stdout);
    fmt::print(stderr, "fa4 check: {}\n", sentence);
    try {
      write_report(request, {{"image", image_name(request)},
                             {"model", request.model},
                             {"seeds", request.seeds},
                             {"not_run", sentence}});
    } catch (const Refusal& error) {
      if (error.what() != sentence) fmt::print(stderr, "fa4 check: {}\n", error.what());
    }
    return kCouldNotRun;
  };
  try {
    return check_checked(request);
  } catch (const support::AttentionError& error) {
    return refuse(fmt::format("{}: {}", fa4_status_name(error.status), error.what()));
  } catch (const std::bad_alloc&) {
    return refuse("this machine's memory does not hold the problem's tensors; a smaller one is accepted");
  } catch (const std::runtime_error& error) {
    return refuse(error.what());
  }
}

}  // namespace fa4::cli
