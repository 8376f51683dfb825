// SPDX-License-Identifier: Apache-2.0
// Speed of tensor-core arithmetic and of the approximate functions on each instruction set of this machine:
// time per multiply-add and per warp of 32 lanes, on operands as attention has them, and on operands that
// leave the vector kernels' range.
#include <benchmark/benchmark.h>

#include <bit>
#include <string>
#include <vector>

#include "mma_cases.h"
#include "tools/sim/core/approx_dispatch.h"
#include "tools/sim/core/ex2_dispatch.h"
#include "tools/sim/core/mma_dispatch.h"

using namespace fa4::sim;
using cases::Kind;

namespace {

void mma(benchmark::State& state, Isa isa, MmaInput type, Kind kind, uint32_t m, uint32_t n) {
  cases::Random random(1);
  std::vector<uint16_t> a(16 * 128), b(n * 16);
  std::vector<float> d(n * m);
  for (uint16_t& x : a) x = cases::input_of(kind, type, random);
  for (uint16_t& x : b) x = cases::input_of(kind, type, random);
  for (float& x : d) x = std::bit_cast<float>(cases::c_of(kind, type, random));
  const std::vector<float> start = d;
  const MmaStep step{type, type, false, false, true, m, n, a.data(), b.data(), d.data(), m};
  int steps = 0;
  for (auto _ : state) {
    if (++steps % 8 == 0) d = start;  // eight steps make one tile of 128 along K
    mma_step(isa, step);
    benchmark::DoNotOptimize(d.data());
    benchmark::ClobberMemory();
  }
  const double multiply_adds = static_cast<double>(state.iterations()) * m * n * 16;
  state.counters["per MAC"] =
      benchmark::Counter(multiply_adds, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Scores of a softmax: 0 to -24, other values each time so that the table is not served from the nearest
// cache alone.
void ex2(benchmark::State& state, Isa isa, bool ftz) {
  cases::Random random(2);
  constexpr size_t warps = 1024;
  std::vector<float> x(warps * 32), y(warps * 32);
  for (float& value : x) value = -static_cast<float>(random.bits()) * 24 / 4294967296.0f;
  for (auto _ : state) {
    for (size_t w = 0; w < warps; ++w) {
      ftz ? ex2_approx_ftz(isa, &x[w * 32], &y[w * 32]) : ex2_approx(isa, &x[w * 32], &y[w * 32]);
    }
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.counters["per warp"] = benchmark::Counter(static_cast<double>(state.iterations()) * warps,
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// Arguments of every size in [0, 128).
void approx_function(benchmark::State& state, Isa isa, ApproxFunction function) {
  cases::Random random(3);
  constexpr size_t warps = 1024;
  std::vector<float> x(warps * 32), y(warps * 32);
  for (float& value : x) value = static_cast<float>(random.bits() >> random.range(0, 31)) * 0x1p-25f;
  for (auto _ : state) {
    for (size_t w = 0; w < warps; ++w) approx(isa, function, &x[w * 32], &y[w * 32]);
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  state.counters["per warp"] = benchmark::Counter(static_cast<double>(state.iterations()) * warps,
                                                  benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

}  // namespace

int main(int argc, char** argv) {
  for (Isa isa : all_isas) {
    if (!isa_supported(isa)) continue;
    const std::string name = std::string("mma/") + isa_name(isa);
    auto add = [&](const char* what, MmaInput type, Kind kind, uint32_t m, uint32_t n) {
      benchmark::RegisterBenchmark((name + what).c_str(), mma, isa, type, kind, m, n);
    };
    add("/f16 128x128", MmaInput::f16, Kind::wide, 128, 128);
    add("/bf16 128x128", MmaInput::bf16, Kind::wide, 128, 128);
    add("/f16 64x64", MmaInput::f16, Kind::wide, 64, 64);
    add("/bf16 128x128 out of range", MmaInput::bf16, Kind::overflow, 128, 128);
    const std::string ex2_name = std::string("ex2/") + isa_name(isa);
    benchmark::RegisterBenchmark((ex2_name + "/ftz").c_str(), ex2, isa, true);
    benchmark::RegisterBenchmark((ex2_name + "/without ftz").c_str(), ex2, isa, false);
    static constexpr const char* approx_names[approx_count] = {
        "rcp/ftz", "rcp", "rsqrt/ftz", "rsqrt", "sqrt/ftz", "sqrt", "lg2/ftz", "lg2", "sin", "cos", "tanh"};
    for (int f = 0; f < approx_count; ++f) {
      benchmark::RegisterBenchmark((std::string(approx_names[f]) + "/" + isa_name(isa)).c_str(),
                                   approx_function, isa, static_cast<ApproxFunction>(f));
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
