// SPDX-License-Identifier: Apache-2.0
// A driver for the tests of `fa4 bench`: the simulated GPU, but without the functions by which one knows it,
// and with stream capture: launches are kept while a stream captures, and made when their graph is launched.
// Its L2 cache is small, so that buffers rotate soon. Times are the CPU's. With FA4_TEST_LOSE_LAUNCHES set it
// launches nothing.
#include "runtime/driver.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "asm/attention/params.h"
#include "tests/support/graph.h"

namespace {

struct Launch {
  CUfunction function;
  std::array<unsigned, 7> sizes;  // grid, block, dynamic shared memory
  std::array<char, sizeof(fa4::AttentionParams)> params;
};
using Launches = std::vector<Launch>;

constexpr int kL2Bytes = 100000;

decltype(&::cuDeviceGetAttribute) simulated_attribute;
decltype(&::cuLaunchKernel) simulated_launch;
std::unique_ptr<Launches> capture;  // of the one stream that captures at a time

CUresult launch(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                unsigned bz, unsigned shared, CUstream stream, void** arguments, void** extra) {
  if (std::getenv("FA4_TEST_LOSE_LAUNCHES")) return CUDA_SUCCESS;
  if (!capture) return simulated_launch(function, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra);
  Launch kept{function, {gx, gy, gz, bx, by, bz, shared}, {}};
  std::memcpy(kept.params.data(), arguments[0], kept.params.size());
  capture->push_back(kept);
  return CUDA_SUCCESS;
}

CUresult attribute(int* value, CUdevice_attribute which, CUdevice device) {
  if (which != CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE) return simulated_attribute(value, which, device);
  *value = kL2Bytes;
  return CUDA_SUCCESS;
}

}  // namespace

// Every function is handed on by a jump, which keeps whatever arguments there are.
#define TEXT_OF(symbol) #symbol
#define TEXT(name) TEXT_OF(name)
#define TARGET(name) __attribute__((visibility("hidden"))) void* target_##name;
#define JUMP(name)                                                                \
  __asm__(".text\n.globl " TEXT(name) "\n.type " TEXT(name) ", @function\n" TEXT( \
      name) ":\n  jmp *target_" #name "(%rip)\n");
extern "C" {
FA4_DRIVER_FUNCTIONS(TARGET)
FA4_HOST_DRIVER_FUNCTIONS(TARGET)
}
FA4_DRIVER_FUNCTIONS(JUMP)
FA4_HOST_DRIVER_FUNCTIONS(JUMP)

__attribute__((constructor)) static void open_simulator() {
  void* simulator = dlopen(FA4SIM_LIBRARY_DEFAULT, RTLD_NOW | RTLD_LOCAL);
  if (simulator == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::abort();
  }
#define FIND(name) target_##name = dlsym(simulator, TEXT(name));
  FA4_DRIVER_FUNCTIONS(FIND)
  FA4_HOST_DRIVER_FUNCTIONS(FIND)
  simulated_launch = reinterpret_cast<decltype(simulated_launch)>(target_cuLaunchKernel);
  simulated_attribute = reinterpret_cast<decltype(simulated_attribute)>(target_cuDeviceGetAttribute);
  target_cuDeviceGetAttribute = reinterpret_cast<void*>(&attribute);
  target_cuLaunchKernel = reinterpret_cast<void*>(&launch);
}

#define SHOWN extern "C" __attribute__((visibility("default")))

SHOWN CUresult cuStreamBeginCapture(CUstream, CUstreamCaptureMode) {
  capture = std::make_unique<Launches>();
  return CUDA_SUCCESS;
}
SHOWN CUresult cuStreamEndCapture(CUstream, CUgraph* graph) {
  *graph = reinterpret_cast<CUgraph>(capture.release());
  return CUDA_SUCCESS;
}
SHOWN CUresult cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, unsigned long long) {
  *executable = reinterpret_cast<CUgraphExec>(new Launches(*reinterpret_cast<Launches*>(graph)));
  return CUDA_SUCCESS;
}
SHOWN CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  for (Launch& kept : *reinterpret_cast<Launches*>(executable)) {
    void* arguments[] = {kept.params.data()};
    const auto& s = kept.sizes;
    if (CUresult result = simulated_launch(kept.function, s[0], s[1], s[2], s[3], s[4], s[5], s[6], stream,
                                           arguments, nullptr);
        result != CUDA_SUCCESS)
      return result;
  }
  return CUDA_SUCCESS;
}
SHOWN CUresult cuGraphExecDestroy(CUgraphExec executable) {
  delete reinterpret_cast<Launches*>(executable);
  return CUDA_SUCCESS;
}
SHOWN CUresult cuGraphDestroy(CUgraph graph) {
  delete reinterpret_cast<Launches*>(graph);
  return CUDA_SUCCESS;
}
SHOWN CUresult cuDeviceGetPCIBusId(char* text, int size, CUdevice) {
  std::snprintf(text, size_t(size), "0000:00:00.0");
  return CUDA_SUCCESS;
}
