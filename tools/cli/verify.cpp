// SPDX-License-Identifier: Apache-2.0
// The report holds nothing about the machine but GPU, driver and toolkit. Everything that opens a GPU does so
// in a child process.
#include "verify.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "run.h"
#include "table.h"
#include "tensors.h"
#include "tests/support/attention_device.h"
#include "tests/support/compare.h"
#include "tests/support/inputs.h"
#include "tools/conformance/driver_rows.h"
#include "tools/conformance/isolated.h"
#include "tools/conformance/support_table.h"
#include "tools/probe/probe.h"
#include "tools/time/parameters.h"

namespace fa4::cli {
namespace {

using namespace conformance;
using nlohmann::json;

struct Finding {
  std::string name, family, section, belief, difference, expected_reason;
};

struct Report {
  json document;
  size_t compared = 0, equal = 0, listed = 0, unanswered = 0;
  std::vector<Finding> wrong;
};

// The devices that are held against each other. Without a real one: the recorded answers of a Hopper. An empty `sim_gpu`: each
// row runs on the simulated GPU that has it.
struct Devices {
  std::optional<Source> real;
  DeviceText device;  // the real one's
  std::string sim, sim_gpu;
};

// What the GPUs have.
std::vector<const Row*> chosen_rows(const VerifyRequest& request, const Devices& devices) {
  std::vector<const Row*> rows;
  const int simulated = devices.sim_gpu.empty() ? 0 : std::stoi(devices.sim_gpu.substr(3)) / 10;
  for (const Row& row : all_rows()) {
    const bool runs = (!devices.real || runs_on(row, devices.device.major)) && (!simulated || runs_on(row, simulated));
    if (runs && row.name.find(request.rows) != std::string::npos) rows.push_back(&row);
  }
  return rows;
}

// Rows by family: how many were compared, how many are equal.
struct Tally {
  size_t rows = 0, equal = 0;
};

void judge(Report& report, const Row& row, const std::string& difference, json& entry) {
  ++report.compared;
  const std::string_view reason = known_difference(row);
  entry["equal"] = difference.empty();
  if (difference.empty()) {
    ++report.equal;
    return;
  }
  entry["difference"] = difference;
  entry["belief"] = row.belief;
  entry["ptx_isa"] = row.section;
  if (!reason.empty()) {
    entry["listed"] = reason;
    ++report.listed;
    return;
  }
  report.wrong.push_back(
      {row.name, std::string(row.family), std::string(row.section), row.belief, difference, ""});
}

void compare_rows(const VerifyRequest& request, const Devices& devices, Report& report) {
  const std::vector<const Row*> rows = chosen_rows(request, devices);
  const std::optional<Source>& gpu = devices.real;
  std::vector<Answer> real;
  if (gpu) {
    fmt::print("{} rows on the GPU\n", rows.size());
    run_rows(*gpu, rows, [&](const Row&, const Answer& answer) { real.push_back(answer); });
  }
  fmt::print("{} rows on the simulated GPU\n", rows.size());
  std::map<std::string, Tally> families;
  json list = json::array();
  size_t index = 0;
  const auto compare = [&](const Row& row, const Answer& simulated) {
    const size_t i = index++;
    json entry{{"name", row.name}, {"family", row.family}};
    const Record mine = record_of(simulated);
    entry["simulated"] = simulated.status == 0 ? fmt::format("{:016x}", mine.hash)
                                               : fmt::format("status {}", simulated.status);
    const auto recorded = recorded_h200().rows.find(row.name);
    if (gpu) {
      const Record theirs = record_of(real[i]);
      entry["gpu"] = real[i].status == 0 ? fmt::format("{:016x}", theirs.hash)
                                         : fmt::format("status {}", real[i].status);
      if (recorded != recorded_h200().rows.end())
        entry["as_recorded"] =
            theirs.hash == recorded->second.hash && theirs.status == recorded->second.status;
      judge(report, row, difference(row, real[i], simulated, "the GPU", "the simulated GPU"), entry);
    } else if (recorded != recorded_h200().rows.end()) {
      judge(report, row, difference(row, recorded->second, simulated, "recorded", "simulated"), entry);
    } else {
      entry["equal"] = nullptr;  // nothing to compare with
      ++report.unanswered;
    }
    if (!entry["equal"].is_null()) {
      Tally& t = families[std::string(row.family)];
      ++t.rows;
      t.equal += entry["equal"] == true;
    }
    list.push_back(std::move(entry));
  };
  if (devices.sim_gpu.empty())
    run_rows_simulated(devices.sim, rows, compare);
  else
    run_rows({devices.sim, 0, devices.sim_gpu}, rows, compare);
  report.document["rows"] = std::move(list);
  Table table({"family", ">rows", ">equal"});
  for (const auto& [name, tally] : families)
    table.add({name, std::to_string(tally.rows), std::to_string(tally.equal)});
  fmt::print("\n{}{}", heading("Instructions"), table.text());
}

void compare_calls(const Devices& devices, Report& report) {
  const std::optional<Source>& gpu = devices.real;
  std::map<std::string, int> expected;
  if (gpu)
    run_driver_rows(*gpu, [&](const DriverRow& row, int result) { expected[row.name] = result; });
  else
    expected.insert(recorded_h200().calls.begin(), recorded_h200().calls.end());
  size_t equal = 0, stricter = 0, total = 0;
  json list = json::array();
  const std::string simulated = devices.sim_gpu.empty() ? "sm_90" : devices.sim_gpu;  // as the recorded one
  run_driver_rows({devices.sim, 0, simulated}, [&](const DriverRow& row, int result) {
    ++total;
    const auto other = expected.find(row.name);
    const int theirs = other == expected.end() ? 0 : other->second;
    json entry{{"name", row.name}, {"simulated", result}, {gpu ? "gpu" : "recorded", theirs}};
    if (result == theirs) {
      ++equal;
    } else if (!row.stricter.empty()) {
      ++stricter;
      entry["listed"] = row.stricter;
    } else {
      report.wrong.push_back(
          {row.name, "driver calls", "driver API", "both drivers answer alike",
           fmt::format("{} {}, simulated {}", gpu ? "the driver" : "recorded", theirs, result), ""});
    }
    list.push_back(std::move(entry));
  });
  report.document["calls"] = std::move(list);
  fmt::print(
      "\n{}  {} of {} calls with bad arguments answered alike, {} refused on purpose where a driver does "
      "not\n",
      heading("Driver"), equal, total, stricter);
}

// ---- attention
// ---------------------------------------------------------------------------------------------------------

struct AttentionCase {
  const char* name;
  support::Problem problem;
  bool timed;
};

std::vector<AttentionCase> attention_cases(bool real) {
  using support::Dtype;
  const auto problem = [](Dtype dtype, bool causal, int64_t batch, int64_t seq_q, int64_t seq_kv,
                          int64_t heads, int64_t kv_heads) {
    support::Problem p;
    p.dtype = dtype, p.causal = causal, p.batch = batch, p.seq_q = seq_q, p.seq_kv = seq_kv,
    p.q_heads = heads, p.kv_heads = kv_heads;
    return p;
  };
  std::vector<AttentionCase> cases = {
      {"one tile", problem(Dtype::fp16, false, 1, 128, 128, 1, 1), false},
      {"tails, causal, bf16", problem(Dtype::bf16, true, 1, 200, 333, 4, 2), false},
      {"grouped heads", problem(Dtype::fp16, true, 2, 130, 300, 12, 4), false}};
  if (real) {
    cases.push_back({"main job, full", problem(Dtype::fp16, false, 1, 1024, 1024, 32, 8), true});
    cases.push_back({"main job, causal", problem(Dtype::fp16, true, 1, 1024, 1024, 32, 8), true});
  }
  return cases;
}

// Returns JSON text: what was wrong with the case, and the best time of several runs.
class AttentionWorker : public Worker {
 public:
  AttentionWorker(const Source& source, bool real)
      : device_(source.library, source.ordinal), cases_(attention_cases(real)) {}
  std::string work(size_t job, bool* broken) override {
    const AttentionCase& c = cases_[job];
    const support::Inputs inputs = support::make_inputs(c.problem, 1);
    json result{{"name", c.name}, {"problem", support::describe(c.problem)}};
    try {
      support::RunResult run = device_.run(c.problem, inputs, {});
      const support::Reference expected = support::reference_double(c.problem, inputs);
      const support::Tolerance tolerance =
          support::tolerance_of(c.problem, expected, support::reference_same_precision(c.problem, inputs));
      const support::Comparison o = support::compare_o(c.problem, run.o, expected),
                                lse = support::compare_lse(c.problem, run.lse, expected);
      std::string wrong = run.damage;
      if (!(o.max_error <= tolerance.o))
        wrong += fmt::format(" O: {}, allowed {:.2g}.", support::describe(o), tolerance.o);
      if (!(lse.max_error <= tolerance.lse))
        wrong += fmt::format(" LSE: {}, allowed {:.2g}.", support::describe(lse), tolerance.lse);
      result["wrong"] = wrong;
      result["max_error"] = o.max_error;
      if (c.timed) {
        double best = run.seconds;
        for (int i = 0; i < 10; ++i) best = std::min(best, device_.run(c.problem, inputs, {}).seconds);
        result["seconds"] = best;
        result["tflops"] = mma_flop(c.problem) / best * 1e-12;
      }
    } catch (const support::AttentionError& error) {
      result["wrong"] = error.what();
      *broken = true;
    }
    return result.dump();
  }

 private:
  support::AttentionDevice device_;
  std::vector<AttentionCase> cases_;
};

void check_attention(const Source& source, bool real, Report& report) {
  json list = json::array();
  Table table({"case", "problem", "result", ">time", ">TFLOP/s"});
  run_isolated(
      attention_cases(real).size(), 300,
      [&] {
        choose_gpu(source);
        return std::make_unique<AttentionWorker>(source, real);
      },
      [&](size_t job, const JobEnd& end) {
        json result =
            end.ended_process
                ? json{{"name", attention_cases(real)[job].name}, {"problem", ""}, {"wrong", end.result}}
                : json::parse(end.result);
        const std::string wrong = result["wrong"];
        const bool timed = result.contains("seconds");
        table.add({result["name"], result["problem"], wrong.empty() ? "right" : "wrong",
                   timed ? fmt::format("{:.1f} us", 1e6 * double(result["seconds"])) : "",
                   timed ? fmt::format("{:.1f}", double(result["tflops"])) : ""});
        if (!wrong.empty())
          report.wrong.push_back({"attention, " + std::string(result["name"]), "attention", "",
                                  "the kernel computes attention", wrong, ""});
        list.push_back(std::move(result));
      });
  report.document["attention"] = std::move(list);
  fmt::print("\n{}{}", heading("Attention"), table.text());
}

// ---- times

// Returns JSON text: the numbers that were measured, by name.
class ProbeWorker : public Worker {
 public:
  explicit ProbeWorker(const Source& source) : gpu_(source.library, source.ordinal) {}
  std::string work(size_t, bool*) override {
    json measured = json::object();
    if (gpu_.simulated()) return measured.dump();  // its cycles mean nothing
    for (const probe::Measured& m : probe::measure(gpu_)) measured[std::string(m.name)] = m.value;
    return measured.dump();
  }

 private:
  support::Gpu gpu_;
};

// What the model of time rests on, beside what it has for such a GPU. Another figure is no finding: it is what `fa4 time
// --parameters` is for. Nor is it one that they could not be measured.
void measure_times(const Source& source, const DeviceText& device, Report& report) {
  const auto chip = std::ranges::find(fa4::time::kChips, uint32_t(10 * device.major + device.minor), &fa4::time::Chip::arch);
  if (chip == std::end(fa4::time::kChips)) {
    fmt::print("\nThe model of time has no numbers for this GPU, and none are measured.\n");
    return;
  }
  const fa4::time::Gpu model = fa4::time::gpu_of(chip->name);
  json measured;
  std::string failure;
  try {
    run_isolated(
        1, 60, [&] { return std::make_unique<ProbeWorker>(source); },
        [&](size_t, const JobEnd& end) {
          if (end.ended_process)
            failure = end.result;
          else
            measured = json::parse(end.result);
        });
  } catch (const std::runtime_error& error) {
    failure = error.what();
  }
  fmt::print("\n{}", heading("Numbers of the model of time (fa4 time --parameters takes them from the JSON report)"));
  if (!failure.empty()) {
    fmt::print("  not measured: {}\n", failure);
    report.document["times"] = {{"error", failure}};
    return;
  }
  if (measured.empty()) return;
  Table table({"number", ">measured", fmt::format(">model of {}", model.name), "unit"});
  for (const fa4::time::Parameter& p : fa4::time::parameters())
    if (measured.contains(p.name))
      table.add({p.name, fmt::format("{:.2f}", double(measured[p.name])), std::to_string(model.*p.member), p.unit});
  fmt::print("{}", table.text());
  report.document["times"] = {{"chip", chip->name}, {"measured", std::move(measured)}};
}

}  // namespace

int verify(const VerifyRequest& request) {
  Report report;
  try {
    Devices devices;
    devices.sim = request.sim_driver.empty() ? find_simulator() : request.sim_driver;
    devices.sim_gpu = request.gpu;
    DeviceText& device = devices.device;
    if (request.device != DeviceKind::sim) {
      const std::string library = request.gpu_driver.empty() ? "libcuda.so.1" : request.gpu_driver;
      try {
        device = ask_device({library});
        devices.real = Source{library};
        const std::string same = fmt::format("sm_{}", 10 * device.major + device.minor);
        if (request.gpu.empty() && (same == "sm_90" || same == "sm_103")) devices.sim_gpu = same;
        if (request.gpu.empty() && device.major == 10 && device.minor != 3) devices.sim_gpu = "sm_100";
      } catch (const std::runtime_error& error) {
        if (request.device == DeviceKind::gpu) throw DeviceError(error.what());
        fmt::print("No GPU: {}\nThe rows run on the simulated GPU against answers recorded from {}.\n\n",
                   error.what(), recorded_h200().device);
        report.document["no_gpu"] = error.what();
      }
    }
    report.document["fa4"] = FA4_VERSION_TEXT;
    report.document["toolkit"] = fmt::format("CUDA {}.{}", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
    if (devices.real) {
      report.document["gpu"] = {{"name", device.name},
                                {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
                                {"driver", device.driver}};
      fmt::print("{} (compute capability {}.{}), driver for {}\n\n", device.name, device.major, device.minor,
                 device.driver);
    } else {
      report.document["recorded"] = {{"device", recorded_h200().device},
                                     {"driver", recorded_h200().driver},
                                     {"toolkit", recorded_h200().toolkit}};
    }
    if (chosen_rows(request, devices).empty()) {
      fmt::print(stderr, "fa4 verify: no row{} has a name that contains '{}'\n", request.gpu.empty() ? "" : " of " + request.gpu, request.rows);
      return kRefused;
    }
    compare_rows(request, devices, report);
    if (request.rows.empty()) {
      compare_calls(devices, report);
      const auto image_runs = [](int number) { return image_runs_on(builtin_entries(), uint32_t(number)); };
      if (devices.real && image_runs(10 * device.major + device.minor)) {
        check_attention(*devices.real, true, report);
        measure_times(*devices.real, device, report);
      } else {
        if (devices.real)
          fmt::print("\nThe image has no code for this GPU ({}): attention runs on the simulated GPU.\n",
                     describe_image(builtin_entries()));
        const std::string simulated = !request.gpu.empty() ? request.gpu : "sm_100";
        if (image_runs(std::stoi(simulated.substr(3))))
          check_attention({devices.sim, 0, simulated}, false, report);
        else
          fmt::print("\nThe image has no code for {} ({}): no attention.\n", simulated, describe_image(builtin_entries()));
      }
    }
  } catch (const std::runtime_error& error) {
    fmt::print(stderr, "fa4 verify: {}\n", error.what());
    return kDeviceFailed;
  }
  json wrong = json::array();
  for (const Finding& f : report.wrong) {
    fmt::print("\nWRONG: {} ({}, PTX ISA {})\n  believed: {}\n  {}\n", f.name, f.family, f.section, f.belief,
               f.difference);
    wrong.push_back({{"name", f.name},
                     {"family", f.family},
                     {"ptx_isa", f.section},
                     {"belief", f.belief},
                     {"difference", f.difference}});
  }
  report.document["wrong"] = std::move(wrong);
  report.document["summary"] = {
      {"compared", report.compared}, {"equal", report.equal}, {"listed", report.listed}, {"unanswered", report.unanswered}};
  fmt::print("\n{} rows compared: {} equal, {} differ for a listed reason; {} findings.\n", report.compared,
             report.equal, report.listed, report.wrong.size());
  if (report.unanswered) fmt::print("{} more have no answer of a GPU yet: a Blackwell's is very welcome.\n", report.unanswered);
  if (!request.json_path.empty()) {
    std::ofstream file(request.json_path);
    file << report.document.dump(1) << '\n';
    if (!file) {
      fmt::print(stderr, "fa4 verify: cannot write {}\n", request.json_path);
      return kRefused;
    }
    fmt::print("The report is in {}.\n", request.json_path);
  }
  return report.wrong.empty() ? kSuccess : kCheckFailed;
}

}  // namespace fa4::cli
