// SPDX-License-Identifier: Apache-2.0
// `fa4 bench --host`: fa4_forward against a bare cuLaunchKernel with a parameter of the same size.
#include <algorithm>
#include <chrono>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "asm/attention/params.h"
#include "bench.h"
#include "bench_data.h"
#include "support/graph.h"

namespace fa4 {
extern const void* empty_image();  // generated from empty.cu
}

namespace fa4::cli {
namespace {

constexpr int kWarmUpCalls = 200;

class EmptyKernel {
 public:
  explicit EmptyKernel(const support::Gpu& gpu) : gpu_(gpu) {
    gpu_.check(gpu_.driver().cuModuleLoadData(&module_, empty_image()), "cuModuleLoadData");
    gpu_.check(gpu_.driver().cuModuleGetFunction(&function_, module_, "fa4_empty"), "cuModuleGetFunction");
  }
  ~EmptyKernel() { gpu_.driver().cuModuleUnload(module_); }
  EmptyKernel(const EmptyKernel&) = delete;
  EmptyKernel& operator=(const EmptyKernel&) = delete;
  void launch(CUstream stream) {
    void* arguments[] = {&params_};
    gpu_.check(gpu_.driver().cuLaunchKernel(function_, unsigned(gpu_.properties().sm_count), 1, 1, 128, 1, 1,
                                            0, stream, arguments, nullptr),
               "cuLaunchKernel");
  }

 private:
  const support::Gpu& gpu_;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
  AttentionParams params_{};
};

double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::string bench_host(const BenchDevice& bench, const BenchProblem& given) {
  support::Gpu& gpu = bench.gpu;
  const support::Problem& problem = given.problem;
  fa4_forward_params params = bench.params(problem);
  BenchData data(bench, given, params, 0);
  const support::Stream stream(gpu);
  data.point(params, 0);
  if (!bench.request.lse) params.lse = 0;
  params.stream = stream.get();
  EmptyKernel empty(gpu);

  // In turn, and the GPU idle before each: the stream's queue is never what a call waits for.
  const std::function<void()> calls[] = {[&] { bench.forward(params); }, [&] { empty.launch(stream.get()); }};
  std::vector<double> seconds[2];
  for (int i = -kWarmUpCalls; i < bench.request.calls; ++i)
    for (const int which : {i & 1, ~i & 1}) {
      const double time = seconds_of(calls[which]);
      stream.synchronize();
      if (i >= 0) seconds[which].push_back(time);
    }

  nlohmann::json report = {{"problem", support::describe(problem)}, {"calls", bench.request.calls}};
  fmt::print("  What a call costs the host, {} calls of each in turn, the GPU idle before each; {}\n",
             bench.request.calls, support::describe(problem));
  const char* names[] = {"fa4_forward", "cuLaunchKernel"};
  for (int which = 0; which < 2; ++which) {
    std::vector<double>& all = seconds[which];
    std::ranges::sort(all);
    fmt::print("  {:<15} median {:.3f} us, 10 % to 90 % {:.3f} to {:.3f} us{}\n", names[which],
               percentile(all, 0.5) * 1e6, percentile(all, 0.1) * 1e6, percentile(all, 0.9) * 1e6,
               which == 0
                   ? ""
                   : fmt::format("; an empty kernel with a parameter of {} bytes", sizeof(AttentionParams)));
    report[names[which]] = {{"median_us", percentile(all, 0.5) * 1e6},
                            {"p10_us", percentile(all, 0.1) * 1e6},
                            {"p90_us", percentile(all, 0.9) * 1e6}};
  }
  const double difference = (percentile(seconds[0], 0.5) - percentile(seconds[1], 0.5)) * 1e6;
  fmt::print("  {:<15} {:.3f} us between the medians\n", "difference", difference);
  report["difference_us"] = difference;
  return report.dump();
}

}  // namespace fa4::cli
