// SPDX-License-Identifier: Apache-2.0
// From process start to the first result: first_result_fa4 creates an fa4_context and launches attention;
// first_result_bare, the same without the library, launches an empty kernel. Both copy the same tensors there
// and O back. first_result.py runs them in turn.
//
//     first_result_... [DRIVER_LIBRARY [DEVICE]]
//
// Prints milliseconds of its steps. Ends with 1 and a sentence if anything failed.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/driver.h"

#ifdef FA4_FIRST_RESULT_BARE
#include "asm/attention/params.h"
namespace fa4 {
extern const void* empty_image();  // generated from empty.cu
}
#else
#include <fa4/fa4.hpp>
#endif

namespace {

fa4::HostDriver driver;

void check(CUresult result, const char* function) {
  fa4::Message message;
  if (driver.check(result, function, message) == FA4_OK) return;
  std::fprintf(stderr, "%s\n", message.text());
  std::exit(1);
}
#define CHECK(call) check(driver.call, #call)

// Milliseconds since the step before, under a name.
void step(const char* name) {
  static auto before = std::chrono::steady_clock::now();
  const auto now = std::chrono::steady_clock::now();
  if (*name != '\0')
    std::printf("%s %.3f\n", name, std::chrono::duration<double, std::milli>(now - before).count());
  before = now;
}

constexpr int64_t kSeq = 1024, kHeads = 32, kKvHeads = 8, kDim = 128;
constexpr uint16_t kOne = 0x3C00;  // fp16

}  // namespace

int main(int argc, char** argv) {
  step("");
  const char* library = argc > 1 ? argv[1] : nullptr;
  fa4::Message message;
  if (driver.open(library, message) != FA4_OK) {
    std::fprintf(stderr, "%s\n", message.text());
    return 1;
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, argc > 2 ? std::atoi(argv[2]) : 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  step("context");

  // V is 1 everywhere, and so is O, whatever Q and K are.
  std::vector<uint16_t> q(size_t(kSeq * kHeads * kDim)), kv(size_t(kSeq * kKvHeads * kDim), kOne),
      o(q.size(), 0xFFFF);
  for (size_t i = 0; i < q.size(); ++i) q[i] = uint16_t(0x3800 + i % 1024);
  CUdeviceptr q_device, k_device, v_device, o_device;
  const auto copied = [&](CUdeviceptr& address, const std::vector<uint16_t>& values) {
    CHECK(cuMemAlloc(&address, values.size() * sizeof values[0]));
    CHECK(cuMemcpyHtoD(address, values.data(), values.size() * sizeof values[0]));
  };
  copied(q_device, q);
  copied(k_device, kv);
  copied(v_device, kv);
  copied(o_device, o);
  step("copies");

#ifdef FA4_FIRST_RESULT_BARE
  CUmodule module = nullptr;
  CUfunction empty = nullptr;
  CHECK(cuModuleLoadData(&module, fa4::empty_image()));
  CHECK(cuModuleGetFunction(&empty, module, "fa4_empty"));
  step("load");
  fa4::AttentionParams params{};
  void* arguments[] = {&params};
  CHECK(cuLaunchKernel(empty, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
#else
  try {
    static fa4::Context fa4_context(library);
    step("load");
    fa4::Problem problem(
        FA4_FP16, {.batch = 1, .seq_q = kSeq, .seq_kv = kSeq, .q_heads = kHeads, .kv_heads = kKvHeads});
    problem.set_q(q_device).set_k(k_device).set_v(v_device).set_o(o_device);
    fa4_context.forward(problem);
  } catch (const fa4::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
#endif
  CHECK(cuCtxSynchronize());
  CHECK(cuMemcpyDtoH(o.data(), o_device, o.size() * sizeof o[0]));
  step("result");
#ifndef FA4_FIRST_RESULT_BARE
  for (size_t i = 0; i < o.size(); i += 65521)
    if (std::abs(int(o[i]) - int(kOne)) > 1) {
      std::fprintf(stderr, "element %zu of O is 0x%04x where 0x%04x, 1 in fp16, is expected\n", i, o[i],
                   kOne);
      return 1;
    }
#endif
  std::fflush(stdout);
  std::_Exit(0);  // both alike: the process gives everything back
}
