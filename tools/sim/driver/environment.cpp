// SPDX-License-Identifier: Apache-2.0
#include "environment.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string_view>

#include "../engine/program.h"

namespace fa4::sim::driver {

namespace {

// Who sets it reads stderr; the program knows nothing of it.
CUresult refuse_variable(const char* name, const char* given, const std::string& expected) {
  const std::string sentence =
      std::string("environment variable ") + name + " is '" + given + "': " + expected + " is expected";
  return fail_aloud(CUDA_ERROR_INVALID_VALUE, sentence);
}

// Reads a decimal environment variable into *value; absent or empty leaves it.
CUresult read_environment(const char* name, uint64_t most, uint64_t* value) {
  const char* given = std::getenv(name);
  if (given == nullptr || *given == '\0') return CUDA_SUCCESS;
  char* end;
  errno = 0;
  const unsigned long long number = std::strtoull(given, &end, 10);
  if (*given < '0' || *given > '9' || *end != '\0' || errno != 0 || number > most)
    return refuse_variable(name, given, "a decimal number from 0 to " + std::to_string(most));
  *value = number;
  return CUDA_SUCCESS;
}

// What FA4SIM_CHECK counts, for the last line. Read by an exit handler, when no launch can run any more.
struct Watch {
  std::atomic<bool> on{false};
  uint64_t launches = 0, faults = 0, errors = 0, warnings = 0;
  std::set<std::string> told;  // kinds and places
};
Watch& watch() {
  static Watch* const instance = new Watch;
  return *instance;
}

void tell_sum() {
  const Watch& w = watch();
  if (!w.on) return;
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  std::fprintf(stderr, "fa4sim: %llu launches checked: %llu errors, %llu warnings, %llu faults\n",
               number(w.launches), number(w.errors), number(w.warnings), number(w.faults));
}

// Where the access of a finding stands in the source: all unrolled copies of it, and what warps did it, are
// one.
std::string source_of(const std::string& access) {
  const size_t begin = std::min(access.find(" at "), access.size());
  return access.substr(begin, access.find(", PTX line", begin) - begin);
}

// Kernels of template libraries have names of kilobytes.
std::string shortened(const std::string& name) {
  return name.size() <= 64 ? name : name.substr(0, 61) + "...";
}

void tell(const Finding& finding) {
  Watch& w = watch();
  const std::string key =
      kind_name(finding.kind) + finding.kernel + source_of(finding.first) + source_of(finding.second);
  if (!w.told.insert(key).second) return;
  ++(finding.warning ? w.warnings : w.errors);
  std::fprintf(stderr, "fa4sim: kernel %s: %s", shortened(finding.kernel).c_str(), describe(finding).c_str());
}

CUresult record_from_environment(State& s, bool checks) {
  if (CUresult r = read_environment("FA4SIM_RECORD_CTA", UINT64_MAX, &s.recorded_cta)) return r;
  const char* path = std::getenv("FA4SIM_RECORD");
  if (path == nullptr || *path == '\0') return CUDA_SUCCESS;
  if (checks) return refuse_variable("FA4SIM_RECORD", path, "none beside FA4SIM_CHECK, or no FA4SIM_CHECK");
  if (!std::ofstream(path, std::ios::trunc)) return refuse_variable("FA4SIM_RECORD", path, "a file that can be written");
  s.record_path = path;
  s.recorder = std::make_unique<Recorder>(s.recorded_cta);
  Recorder* const recorder = s.recorder.get();
  s.device->set_observers([=](uint32_t slot) { return recorder->observer(slot); });
  return CUDA_SUCCESS;
}

}  // namespace

CUresult configure_from_environment(DeviceConfig* config, const GpuKind** gpu) {
  if (const char* name = std::getenv("FA4SIM_GPU"); name != nullptr && *name != '\0') {
    const GpuKind* const found = find_gpu(std::string_view(name));
    if (found == nullptr) return refuse_variable("FA4SIM_GPU", name, kGpuNames);
    *gpu = found;
  }
  uint64_t sms = 0, threads = 0, budget = 0;
  if (CUresult r = read_environment("FA4SIM_SMS", 65535, &sms)) return r;
  if (CUresult r = read_environment("FA4SIM_HOST_THREADS", 1024, &threads)) return r;
  if (CUresult r = read_environment("FA4SIM_BUDGET", UINT64_MAX, &budget)) return r;
  config->sm_count = sms == 0 ? (*gpu)->sm_count : static_cast<uint32_t>(sms);
  config->host_threads = static_cast<uint32_t>(threads);
  config->instruction_budget = budget;
  return CUDA_SUCCESS;
}

CUresult watch_from_environment(State& s) {
  uint64_t check = 0, seed = 0, log = 0;
  if (CUresult r = read_environment("FA4SIM_CHECK", 1, &check)) return r;
  if (CUresult r = read_environment("FA4SIM_SEED", UINT64_MAX, &seed)) return r;
  if (CUresult r = read_environment("FA4SIM_LOG", 1, &log)) return r;
  log_failures(log != 0);
  s.device->set_adversarial(seed);
  if (const char* model = std::getenv("FA4SIM_MODEL"); model != nullptr && *model != '\0') {
    const std::string_view name = model;
    if (name != "isa" && name != "silicon") return refuse_variable("FA4SIM_MODEL", model, "isa or silicon");
    s.device->set_model(name == "isa" ? Model::isa : Model::silicon);
  }
  if (CUresult r = record_from_environment(s, check != 0)) return r;
  if (check == 0) return CUDA_SUCCESS;
  set_checking(s, true);
  if (!watch().on.exchange(true)) std::atexit(tell_sum);
  return CUDA_SUCCESS;
}

void set_checking(State& s, bool on) {
  s.recorder = nullptr;
  s.device->select_ctas({});
  s.collector = on ? std::make_unique<Collector>() : nullptr;
  Collector* collector = s.collector.get();
  if (collector)
    s.device->set_observers([=](uint32_t slot) { return collector->observer(slot); });
  else
    s.device->set_observers(nullptr);
}

void write_record(State& s, const Launch& launch) {
  if (s.record_path.empty() || !s.recorder) return;
  const std::vector<fa4sim_sync> records = s.recorder->take(s.recorded_cta);
  const std::string& ptx = static_cast<const LoadedProgram&>(*launch.program).module().text;
  std::ofstream file(s.record_path, std::ios::binary | std::ios::app);
  file << "fa4sim-record 2 " << s.recorded_cta << ' ' << launch.grid[0] << ' ' << launch.grid[1] << ' ' << launch.grid[2] << ' '
       << uint64_t(launch.block[0]) * launch.block[1] * launch.block[2] << ' ' << records.size() << ' ' << ptx.size() << ' ' << launch.entry << '\n'
       << ptx;
  file.write(reinterpret_cast<const char*>(records.data()), std::streamsize(records.size() * sizeof records[0]));
  if (!file.flush()) std::fprintf(stderr, "fa4sim: the record of a launch cannot be written to %s\n", s.record_path.c_str());
}

void gather_findings(State& s) {
  if (!s.collector) return;
  const std::vector<Finding> fresh = s.collector->take();
  s.axioms |= s.collector->axioms();
  if (watch().on)
    for (const Finding& finding : fresh) tell(finding);
  merge(s.findings, fresh);
}

void tell_launch(State& s, const std::string& fault) {
  Watch& w = watch();
  if (!w.on) return;
  ++w.launches;
  gather_findings(s);
  if (fault.empty()) return;
  ++w.faults;
  std::fprintf(stderr, "fa4sim: %s\n", fault.c_str());
}

}  // namespace fa4::sim::driver
