// SPDX-License-Identifier: Apache-2.0
// What fa4_forward costs the host beside the driver: over a driver that does nothing, with a plain problem, and with a general one,
// which takes most checks. `fa4 bench --host` says what a call costs on a GPU.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include "fake_driver.h"
#include "problems.h"

namespace {

struct Call {
  Call() {
    void* library = dlopen(FA4_FAKE_DRIVER, RTLD_NOW | RTLD_LOCAL);
    driver = reinterpret_cast<fa4::test::FakeDriver* (*)()>(dlsym(library, "fake_driver"))();
    reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(library, "cuCtxSetCurrent"))(reinterpret_cast<CUcontext>(0xc0de));
  }
  fa4::test::FakeDriver* driver;
};

void forward_of(const fa4::Problem& problem, benchmark::State& state) {
  const Call call;
  const fa4::Context context(FA4_FAKE_DRIVER);
  for (auto _ : state) {
    call.driver->launch_count = 0;  // the driver writes down so many and no more
    if (fa4_forward(context.get(), &problem) != FA4_OK) state.SkipWithError(fa4_last_error());
  }
}
void forward(benchmark::State& state) {
  forward_of(fa4::test::small_problem().set_causal(), state);
}
BENCHMARK(forward);

void forward_general(benchmark::State& state) {
  uint32_t workspace = 0;
  const uint64_t array = fa4::test::kArrayAddress;
  fa4::Problem problem = fa4::test::small_problem();
  problem.set_packed_q(array, 150).set_packed_k(array, 350).set_seqused_k(array).set_lse(fa4::test::kLseAddress);
  forward_of(problem.set_window(20, 0).set_sinks(array).set_softcap(30).set_workspace(&workspace, 4), state);
}
BENCHMARK(forward_general);

void supported(benchmark::State& state) {
  const Call call;
  const fa4::Context context(FA4_FAKE_DRIVER);
  const fa4::Problem problem = fa4::test::small_problem().set_causal();
  for (auto _ : state)
    if (fa4_supported(context.get(), &problem) != FA4_OK) state.SkipWithError(fa4_last_error());
}
BENCHMARK(supported);

}  // namespace

BENCHMARK_MAIN();
