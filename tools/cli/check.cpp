// SPDX-License-Identifier: Apache-2.0
// `fa4 check`.
#include "check.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <new>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/attention_device.h"
#include "table.h"
#include "tensors.h"

namespace fa4::cli {
namespace {

constexpr int kClean = 0, kFindings = 1, kCouldNotRun = 2;

void line(const char* label, const std::string& text) {
  fmt::print("  {:<9} {}\n", label, text);
}

std::vector<char> read_image(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Refusal(fmt::format("--image {}: the file cannot be opened", path));
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (bytes.empty())
    throw Refusal(fmt::format("--image {}: the file is empty; PTX or a fatbinary is needed", path));
  bytes.push_back(0);
  return bytes;
}

std::vector<fa4sim_finding> take_all(const support::SimulatorApi& simulator) {
  std::vector<fa4sim_finding> findings(simulator.count_findings());
  findings.resize(simulator.take_findings(findings.data(), findings.size()));
  return findings;
}

void print_finding(const fa4sim_finding& f) {
  fmt::print("\n  {}: {}{}\n", f.warning ? "warning" : "error", f.kind,
             *f.memory ? fmt::format(" on {}", f.memory) : "");
  const auto part = [](const char* label, const char* text) {
    if (*text) fmt::print("    {:<8} {}\n", label, text);
  };
  part("first", f.first);
  part("then", f.second);
  part("known", f.last_sync);
  part("needed", f.chain);
  fmt::print("    {:<8} {} {}, first in CTA {} at cycle {}\n", "seen", f.count,
             f.count == 1 ? "time" : "times", f.cta, f.cycle);
}

nlohmann::json to_json(const fa4sim_finding& f) {
  return {{"severity", f.warning ? "warning" : "error"},
          {"kind", f.kind},
          {"memory", f.memory},
          {"first", f.first},
          {"second", f.second},
          {"last_sync", f.last_sync},
          {"chain", f.chain},
          {"count", f.count},
          {"cta", f.cta},
          {"cycle", f.cycle}};
}

const char* const kAxiom = "the MMAs of one CTA execute in the order of their issue";

int check_checked(const CheckRequest& request) {
  RunRequest run = request.problem;
  const Loaded loaded = load(run);
  const DeviceChoice choice = choose_device(DeviceKind::sim, run.driver);
  support::AttentionDevice device(choice.library, choice.ordinal);
  if (!device.simulated()) throw DeviceError(fmt::format("{} is no simulated GPU", choice.library));
  device.set_host_threads(run.threads);
  if (!request.image_path.empty()) device.set_image(read_image(request.image_path));
  const support::SimulatorApi& simulator = device.gpu().simulator();
  if (simulator.check(1) != 0) throw DeviceError(simulator.last_error());

  support::RunOptions options;
  options.scheduler = run.scheduler == "lpt"      ? FA4_SCHEDULER_LPT
                      : run.scheduler == "linear" ? FA4_SCHEDULER_LINEAR
                                                  : FA4_SCHEDULER_AUTO;
  options.sm_count = run.sms;
  line("problem", fmt::format("{}, {}", support::describe(loaded.problem), loaded.source));
  line("image", request.image_path.empty() ? "built in" : request.image_path);
  line("runs", fmt::format("nominal timing, then {} adversarial seeds", request.seeds));
  std::fflush(stdout);

  const auto start = std::chrono::steady_clock::now();
  support::RunResult nominal;
  std::string fault, different;
  uint64_t seed = 0;
  try {
    for (; seed <= request.seeds; ++seed) {
      simulator.set_adversarial(seed);
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
    if (error.status != FA4_ERROR_DRIVER) throw;
    fault = error.what();
  }
  const std::vector<fa4sim_finding> findings = take_all(simulator);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto warnings = uint64_t(std::count_if(findings.begin(), findings.end(),
                                               [](const fa4sim_finding& f) { return f.warning != 0; }));
  const uint64_t errors = findings.size() - warnings + !fault.empty() + !different.empty();
  const std::string timing = seed == 0 ? "nominal timing" : fmt::format("adversarial seed {}", seed);

  if (!findings.empty() || errors) fmt::print("{}", heading("Findings"));
  for (const fa4sim_finding& f : findings) print_finding(f);
  if (!fault.empty()) fmt::print("\n  error: the run ended in a fault, {}\n{}\n", timing, fault);
  if (!different.empty()) fmt::print("\n  error: {}\n", different);
  fmt::print("{}", heading("Verdict"));
  line("", fmt::format("{}, {} errors and {} warnings in {:.2f} s",
                       errors || warnings ? "NOT CLEAN" : "CLEAN", errors, warnings, seconds));
  line("",
       "Exact for the executions that were watched. It rests on the PTX ISA and on one axiom that it does "
       "not state:");
  line("", fmt::format("{}.", kAxiom));

  if (!request.json_path.empty()) {
    nlohmann::json report = {{"problem", support::describe(loaded.problem)},
                             {"seeds", request.seeds},
                             {"errors", errors},
                             {"warnings", warnings},
                             {"fault", fault},
                             {"difference", different},
                             {"axioms", {kAxiom}},
                             {"seconds", seconds},
                             {"findings", nlohmann::json::array()}};
    for (const fa4sim_finding& f : findings) report["findings"].push_back(to_json(f));
    std::ofstream file(request.json_path);
    file << report.dump(2) << '\n';
    if (!file.flush()) throw Refusal(fmt::format("--json {}: the file cannot be written", request.json_path));
    line("wrote", request.json_path);
  }
  return errors || warnings ? kFindings : kClean;
}

}  // namespace

int check(const CheckRequest& request) {
  const auto refuse = [](const std::string& sentence) {
    std::fflush(stdout);
    fmt::print(stderr, "fa4 check: {}\n", sentence);
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
