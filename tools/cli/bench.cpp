// SPDX-License-Identifier: Apache-2.0
// `fa4 bench`: calls captured in a CUDA graph, on buffers that rotate, and replayed.
#include "bench.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench_data.h"
#include "findings.h"
#include "guarded.h"
#include "nvml.h"
#include "support/graph.h"
#include "table.h"
#include "tensors.h"

namespace fa4::cli {
namespace {

using nlohmann::json;
using support::Problem;

constexpr const char* kWhatMeansSomething =
    "times on the simulated GPU are those of this CPU and mean nothing for a GPU; `fa4 time` predicts a "
    "launch's cycles "
    "from the machine code";
constexpr double kReplaySeconds = 5e-3, kWarmUpSeconds = 0.3;
constexpr int kMostCalls = 1024, kFewestReplays = 20, kMostReplays = 5000, kCheckedRows = 32;

// Dense fp16 and bf16 with fp32 accumulation: FLOP a clock and SM. 0: not known.
double peak_flop_per_clock(const support::Gpu::Properties& gpu) {
  return gpu.major == 9 ? 4096 : gpu.major == 10 ? 8192 : 0;
}

// --- which problems

BenchProblem bench_problem(const RunRequest& r) {
  BenchProblem result{problem_of(r), {}};
  if (const std::string why = why_unsupported(result.problem, r); !why.empty())
    throw Refusal(fmt::format("{}: {}", support::describe(result.problem), why));
  load_score_arrays(r, result.problem, result.arrays);
  return result;
}

// 32,768 tokens a point.
std::vector<BenchProblem> built_in_table(RunRequest r) {
  std::vector<BenchProblem> all;
  r.seq_kv_given = false;
  for (const int64_t dim : {128, 64})
    for (const auto& [heads, kv_heads] : {std::pair(16, 16), {32, 8}})
      for (const int64_t seq : {1024, 4096, 16384})
        for (const bool causal : {false, true}) {
          r.causal = causal;
          r.batch = 32768 / seq;
          r.seq_q = seq;
          r.q_heads = heads;
          r.kv_heads = kv_heads;
          r.head_dim = dim;
          all.push_back(bench_problem(r));
        }
  return all;
}

// A list of lengths as the options take it: "[1,2]" without its brackets, or the name of a file.
bool read_lengths_key(const json& value, std::string& lengths) {
  const auto is_length = [](const json& length) { return length.is_number_integer(); };
  if (value.is_array() && !value.empty() && std::ranges::all_of(value, is_length)) {
    const std::string text = value.dump();
    lengths = text.substr(1, text.size() - 2);
    return true;
  }
  return false;
}

// A JSON array of objects; a key that is missing is as the options say, seq_kv as seq_q.
std::vector<BenchProblem> read_list(const std::string& path, const RunRequest& given) {
  const auto refuse = [&](const std::string& what) {
    return Refusal(fmt::format(
        "--list {}: {}; an array of objects with the keys batch, seq_q, seq_kv, heads, kv_heads, head_dim, "
        "head_dim_v, softcap (numbers), causal, top_left, sinks, alibi (true or false), dtype (\"fp16\" or "
        "\"bf16\"), "
        "window ([left, right], -1 for no bound), lengths_q, lengths_k, seqused_q and seqused_k (arrays of "
        "numbers) "
        "is accepted",
        path, what));
  };
  std::ifstream file(path);
  if (!file) throw refuse("the file cannot be read");
  const json list = json::parse(file, nullptr, false);
  if (!list.is_array() || list.empty())
    throw refuse(list.is_discarded() ? "this is no JSON" : "this is no array of shapes");
  std::vector<BenchProblem> all;
  for (const json& entry : list) {
    if (!entry.is_object()) throw refuse(fmt::format("entry {} is {}", all.size(), entry.dump()));
    RunRequest r = given;
    const std::pair<const char*, int64_t*> numbers[] = {
        {"batch", &r.batch},          {"seq_q", &r.seq_q},       {"seq_kv", &r.seq_kv},
        {"heads", &r.q_heads},        {"kv_heads", &r.kv_heads}, {"head_dim", &r.head_dim},
        {"head_dim_v", &r.head_dim_v}};
    const std::pair<const char*, bool*> switches[] = {{"causal", &r.causal}, {"top_left", &r.top_left}};
    const std::pair<const char*, std::string*> arrays[] = {{"sinks", &r.sinks}, {"alibi", &r.alibi}};
    const std::pair<const char*, std::string*> lengths[] = {{"lengths_q", &r.q_lengths.lengths},
                                                            {"lengths_k", &r.kv_lengths.lengths},
                                                            {"seqused_q", &r.q_lengths.seqused},
                                                            {"seqused_k", &r.kv_lengths.seqused}};
    const auto find = [](const auto& table, const std::string& key) {
      const auto row = std::ranges::find_if(table, [&](const auto& r) { return key == r.first; });
      return row == std::end(table) ? nullptr : row->second;
    };
    for (const auto& item : entry.items()) {
      const std::string& key = item.key();
      const json& value = item.value();
      int64_t* const number = find(numbers, key);
      bool* const choice = find(switches, key);
      std::string* const array = find(arrays, key);
      std::string* const rows = find(lengths, key);
      if (number != nullptr && value.is_number_integer())
        *number = value.get<int64_t>();
      else if (choice != nullptr && value.is_boolean())
        *choice = value.get<bool>();
      else if (array != nullptr && value.is_boolean())
        *array = value.get<bool>() ? kSeeded : "";
      else if (key == "softcap" && value.is_number())
        r.softcap = value.get<double>();
      else if (key == "dtype" && (value == "fp16" || value == "bf16"))
        r.dtype = value;
      else if (key == "window" && value.is_array() && value.size() == 2 && value[0].is_number_integer() &&
               value[1].is_number_integer()) {
        r.window = true;
        r.window_left = value[0].get<int64_t>();
        r.window_right = value[1].get<int64_t>();
      } else if (rows == nullptr || !read_lengths_key(value, *rows))
        throw refuse(fmt::format("entry {} has \"{}\": {}", all.size(), key, value.dump()));
    }
    r.batch_given |= entry.contains("batch");
    r.seq_q_given |= entry.contains("seq_q");
    r.seq_kv_given = entry.contains("seq_kv") || (given.seq_kv_given && !entry.contains("seq_q"));
    all.push_back(bench_problem(r));
  }
  return all;
}

// --- on which device

DeviceChoice choose_real_device(const RunRequest& r) {
  if (r.device == DeviceKind::sim) throw Refusal(fmt::format("--device sim: {}", kWhatMeansSomething));
  if (r.device == DeviceKind::gpu || !r.driver.empty()) return choose_device(r.device, r.driver);
  try {
    return choose_device(DeviceKind::gpu, "");
  } catch (const DeviceError& none) {
    throw Refusal(fmt::format("there is no GPU to measure: {}. {}{}", none.what(),
                              char(std::toupper(*kWhatMeansSomething)), kWhatMeansSomething + 1));
  }
}

int attribute(const support::Gpu& gpu, CUdevice_attribute which) {
  CUdevice device = 0;
  int value = 0;
  gpu.check(gpu.driver().cuCtxGetDevice(&device), "cuCtxGetDevice");
  gpu.check(gpu.driver().cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

std::string pci_bus_id(const support::Gpu& gpu) {
  fa4::Message message;
  const auto get =
      reinterpret_cast<decltype(&cuDeviceGetPCIBusId)>(gpu.driver().resolve("cuDeviceGetPCIBusId", message));
  CUdevice device = 0;
  char text[32] = {};
  if (get == nullptr) throw DeviceError(message.text());
  gpu.check(gpu.driver().cuCtxGetDevice(&device), "cuCtxGetDevice");
  gpu.check(get(text, int(sizeof text), device), "cuDeviceGetPCIBusId");
  return text;
}

// --- one measurement

class Events {
 public:
  Events(const support::Gpu& gpu, size_t count) : gpu_(gpu), events_(count) {
    for (CUevent& event : events_)
      gpu_.check(gpu_.driver().cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  }
  ~Events() {
    for (CUevent event : events_)
      if (event) gpu_.driver().cuEventDestroy(event);
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  void record(size_t i, const support::Stream& stream) {
    gpu_.check(gpu_.driver().cuEventRecord(events_[i], stream.get()), "cuEventRecord");
  }
  // From event i to the next. Both must have passed.
  double seconds(size_t i) const {
    float milliseconds = 0;
    gpu_.check(gpu_.driver().cuEventElapsedTime(&milliseconds, events_[i], events_[i + 1]),
               "cuEventElapsedTime");
    return double(milliseconds) * 1e-3;
  }

 private:
  const support::Gpu& gpu_;
  std::vector<CUevent> events_;
};

struct Measurement {
  Problem problem;
  int copies = 0, copies_wanted = 0, calls = 0;
  uint64_t bytes = 0;
  std::vector<double> seconds;  // of a call, sorted: each replay's time divided by its calls
  Seen seen;
  BenchData::RowCheck check;
};

Measurement measure(const BenchDevice& bench, const BenchProblem& given, const support::GraphApi& api,
                    Nvml& nvml) {
  support::Gpu& gpu = bench.gpu;
  const Problem& problem = given.problem;
  fa4_forward_params params = bench.params(problem);
  Measurement result;
  result.problem = problem;
  BenchData data(bench, given, params, uint64_t(attribute(gpu, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)));
  result.copies = data.copies();
  result.copies_wanted = data.copies_wanted();
  result.bytes = data.bytes();

  const support::Stream stream(gpu);
  params.stream = stream.get();
  const auto enqueue = [&](int calls) {
    for (int call = 0; call < calls; ++call) {
      data.point(params, call % data.copies());
      if (!bench.request.lse) params.lse = 0;
      bench.forward(params);
    }
  };
  enqueue(data.copies());
  stream.synchronize();

  double once = 0;  // seconds of a call, roughly
  {
    const support::Graph graph(gpu, api, stream, [&] { enqueue(data.copies()); });
    Events events(gpu, 2);
    graph.launch(stream);
    events.record(0, stream);
    graph.launch(stream);
    events.record(1, stream);
    stream.synchronize();
    once = std::max(events.seconds(0) / data.copies(), 1e-7);
  }
  const int rounds =
      int(std::clamp(kReplaySeconds / (once * data.copies()), 1.0, double(kMostCalls / data.copies())));
  result.calls = rounds * data.copies();
  const double replay = once * result.calls;
  const int replays =
      int(std::clamp(bench.request.seconds / replay, double(kFewestReplays), double(kMostReplays)));

  const support::Graph graph(gpu, api, stream, [&] { enqueue(result.calls); });
  Events events(gpu, size_t(replays) + 1);
  for (int i = 0; i <= int(kWarmUpSeconds / replay); ++i) graph.launch(stream);
  stream.synchronize();
  nvml.start();
  events.record(0, stream);
  for (int i = 0; i < replays; ++i) {
    graph.launch(stream);
    events.record(size_t(i) + 1, stream);
  }
  stream.synchronize();
  result.seen = nvml.stop();
  for (int i = 0; i < replays; ++i) result.seconds.push_back(events.seconds(size_t(i)) / result.calls);
  std::ranges::sort(result.seconds);
  result.check = data.check_rows(std::max(2, kCheckedRows / data.copies()));
  return result;
}

// --- what is told of it

double tflops(const Measurement& m) {
  return mma_flop(m.problem) / percentile(m.seconds, 0.5) * 1e-12;
}

// Of what the tensor cores of all SMs could do at the clock that was seen. 0: not known.
double share_of_peak(const Measurement& m, const support::Gpu::Properties& gpu) {
  const double peak = peak_flop_per_clock(gpu) * gpu.sm_count * m.seen.clock_mhz * 1e6;
  return peak > 0 ? tflops(m) * 1e12 / peak : 0;
}

std::string known(double value) {
  return value > 0 ? fmt::format("{:.1f}", value) : "unknown";
}

// Columns that are as wide as a number gets, so that a row can be shown when it is measured.
constexpr int kWidths[] = {9, 9, 19, 7, 7, 7, 7};

void print_cells(std::string problem, size_t width, const std::array<std::string, std::size(kWidths)>& cells,
                 const std::string& last) {
  problem.resize(width, ' ');
  std::string text = "  " + problem;
  for (size_t i = 0; i < cells.size(); ++i)
    text += "  " + std::string(size_t(std::max(0, kWidths[i] - int(cells[i].size()))), ' ') + cells[i];
  fmt::print("{}  {}\n", text, last);
}

void print_row(const Measurement& m, size_t width, const support::Gpu::Properties& gpu) {
  const auto us = [&](double p) { return fmt::format("{:.2f}", percentile(m.seconds, p) * 1e6); };
  print_cells(
      support::describe(m.problem), width,
      {us(0.5), us(0), us(0.1) + " to " + us(0.9), fmt::format("{:.1f}", tflops(m)),
       known(100 * share_of_peak(m, gpu)), known(m.seen.clock_mhz), known(m.seen.power_w)},
      fmt::format("{:.2g} ({:.2g}){}", m.check.max_error, m.check.allowed, m.check.right() ? "" : "  WRONG"));
  if (m.copies < m.copies_wanted)
    fmt::print(
        "    {} of {} copies of the tensors fit in memory: some of a call's data may lie in the L2 cache\n",
        m.copies, m.copies_wanted);
  std::string limits;
  for (const std::string& limit : m.seen.limited_by) limits += (limits.empty() ? "" : ", ") + limit;
  if (!limits.empty()) fmt::print("    the clock was held down by: {}\n", limits);
  std::fflush(stdout);
}

json number_or_null(double value) {
  return value > 0 ? json(value) : json();
}

// The keys of a list; what a problem has not is left out.
json problem_json(const Problem& p) {
  json problem = {{"batch", p.batch},       {"seq_q", p.seq_q},
                  {"seq_kv", p.seq_kv},     {"heads", p.q_heads},
                  {"kv_heads", p.kv_heads}, {"head_dim", p.head_dim},
                  {"causal", p.causal},     {"dtype", support::name_of(p.dtype)}};
  if (p.v_dim() != p.head_dim) problem["head_dim_v"] = p.head_dim_v;
  if (p.window) problem["window"] = {p.window_left, p.window_right};
  if (p.top_left) problem["top_left"] = true;
  if (p.softcap != 0) problem["softcap"] = p.softcap;
  if (p.sinks) problem["sinks"] = true;
  if (p.alibi) problem["alibi"] = true;
  const std::pair<const char*, const std::vector<int64_t>*> lists[] = {{"lengths_q", &p.q_lengths.packed},
                                                                       {"lengths_k", &p.kv_lengths.packed},
                                                                       {"seqused_q", &p.q_lengths.used},
                                                                       {"seqused_k", &p.kv_lengths.used}};
  for (const auto& [key, lengths] : lists)
    if (!lengths->empty()) problem[key] = *lengths;
  return problem;
}

json row_json(const Measurement& m, const support::Gpu::Properties& gpu) {
  const Problem& p = m.problem;
  return {{"problem", problem_json(p)},
          {"seconds",
           {{"median", percentile(m.seconds, 0.5)},
            {"min", m.seconds.front()},
            {"p10", percentile(m.seconds, 0.1)},
            {"p90", percentile(m.seconds, 0.9)}}},
          {"flop", mma_flop(p)},
          {"tflops", tflops(m)},
          {"share_of_peak", number_or_null(share_of_peak(m, gpu))},
          {"sm_clock_mhz", number_or_null(m.seen.clock_mhz)},
          {"power_w", number_or_null(m.seen.power_w)},
          {"clock_limited_by", m.seen.limited_by},
          {"nvml_samples", m.seen.samples},
          {"copies", m.copies},
          {"copies_wanted", m.copies_wanted},
          {"bytes", m.bytes},
          {"calls_per_replay", m.calls},
          {"replays", m.seconds.size()},
          {"rows_checked", m.check.rows},
          {"max_error",
           std::isfinite(m.check.max_error) ? json(m.check.max_error) : json("not finite, or never written")},
          {"allowed_error", m.check.allowed}};
}

void write_json(const std::string& path, const json& report) {
  if (path.empty()) return;
  std::ofstream file(path);
  file << report.dump(2) << '\n';
  if (!file.flush()) throw Refusal(fmt::format("--json {}: the file cannot be written", path));
}

int bench_gpu(const BenchDevice& bench, const std::vector<BenchProblem>& problems, json report) {
  support::Gpu& gpu = bench.gpu;
  const support::GraphApi api(gpu);
  if (!api.missing().empty()) throw DeviceError(api.missing());
  Nvml nvml(pci_bus_id(gpu));
  if (!nvml.missing().empty()) fmt::print("  clock and power are unknown: {}\n", nvml.missing());
  size_t width = 0;
  for (const BenchProblem& given : problems) {
    bench.params(given.problem);  // all are refused before any is measured
    width = std::max(width, support::describe(given.problem).size());
  }
  print_cells("problem", width,
              {"median us", "min us", "10 % to 90 % us", "TFLOP/s", "% peak", "SM MHz", "W"},
              "O off by (allowed)");
  std::fflush(stdout);
  report["measured"] = json::array();
  bool right = true;
  for (size_t i = 0; i < problems.size(); ++i) {
    const bool progress = isatty(STDERR_FILENO) != 0;
    if (progress) {
      fmt::print(stderr, "\r\033[K  {} of {}: {}", i + 1, problems.size(),
                 support::describe(problems[i].problem));
      std::fflush(stderr);
    }
    const Measurement m = measure(bench, problems[i], api, nvml);
    if (progress) std::fputs("\r\033[K", stderr);
    print_row(m, width, gpu.properties());
    right &= m.check.right();
    report["measured"].push_back(row_json(m, gpu.properties()));
    write_json(bench.request.json_path, report);
  }
  fmt::print(
      "  Measured on this GPU: each replay of a graph of calls, divided by its calls; rows of every copy of "
      "O compared "
      "with double precision.\n");
  return right ? kSuccess : kCheckFailed;
}

int bench_checked(const BenchRequest& request) {
  const std::vector<BenchProblem> problems = request.table ? built_in_table(request.problem)
                                             : request.list_path.empty()
                                                 ? std::vector{bench_problem(request.problem)}
                                                 : read_list(request.list_path, request.problem);
  const DeviceChoice choice = choose_real_device(request.problem);
  support::AttentionDevice device(choice.library, choice.ordinal);
  if (device.simulated())
    throw Refusal(fmt::format("{} is a simulated GPU: {}", choice.library, kWhatMeansSomething));
  if (!request.problem.image_path.empty()) device.set_image(read_image(request.problem.image_path));
  const support::Gpu::Properties& gpu = device.gpu().properties();
  fmt::print("  {}, {} SMs, {} of L2; {}\n", gpu.name, gpu.sm_count,
             bytes_text(uint64_t(attribute(device.gpu(), CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE))), choice.reason);
  std::fflush(stdout);
  int driver_version = 0;
  device.gpu().check(device.gpu().driver().cuDriverGetVersion(&driver_version), "cuDriverGetVersion");
  json report = {{"gpu", gpu.name},
                 {"sms", gpu.sm_count},
                 {"driver_cuda", driver_version},
                 {"seed", request.problem.seed},
                 {"lse", request.lse},
                 {"max_ctas", request.max_ctas},
                 {"scheduler", request.problem.scheduler},
                 {"exp2", request.problem.exp2}};
  const BenchDevice bench{device.gpu(), device.context(0), request};
  int code = kSuccess;
  if (request.host) {
    report["host"] = json::parse(bench_host(bench, problems.front()));
    write_json(request.json_path, report);
  } else {
    code = bench_gpu(bench, problems, std::move(report));
  }
  if (!request.json_path.empty()) fmt::print("  wrote {}\n", request.json_path);
  return code;
}

}  // namespace

double percentile(const std::vector<double>& sorted, double p) {
  return sorted[size_t(std::lround(p * double(sorted.size() - 1)))];
}

fa4_forward_params BenchDevice::params(const Problem& problem) const {
  fa4_forward_params params = dry_params(problem, request.problem);
  params.max_ctas = request.max_ctas;
  const fa4_status status = fa4_supported(context, &params);
  if (status != FA4_OK)
    throw Refusal(
        fmt::format("{}: {}: {}", support::describe(problem), fa4_status_name(status), fa4_last_error()));
  int64_t queries = 0;
  for (int64_t b = 0; b < problem.batch; ++b) queries += problem.length_q(b);
  if (queries == 0) throw Refusal(fmt::format("{}: there is nothing to compute", support::describe(problem)));
  return params;
}

uint64_t BenchDevice::workspace_bytes(const fa4_forward_params& params) const {
  uint64_t bytes = 0;
  if (const fa4_status status = fa4_workspace_size(context, &params, &bytes); status != FA4_OK)
    throw support::AttentionError(status, fa4_last_error());
  return bytes;
}

void BenchDevice::forward(const fa4_forward_params& params) const {
  const fa4_status status = fa4_forward(context, &params);
  if (status != FA4_OK) throw support::AttentionError(status, fa4_last_error());
}

int bench(const BenchRequest& request) {
  return guarded("bench", [&] { return bench_checked(request); });
}

}  // namespace fa4::cli
