// SPDX-License-Identifier: Apache-2.0
// A program as others write them: the CUDA runtime, <<<>>>, and no word of a simulated GPU. Its argument says
// what it does; it ends with 0 if all went as it should.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

__constant__ float scale[2];
__device__ int counter = 40;

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = scale[0] * a[i] + scale[1] * b[i];
}

template <int kWays>
__global__ void reversed(int* data) {
  extern __shared__ int tile[];
  for (int i = 0; i < kWays; ++i) tile[i * blockDim.x + threadIdx.x] = data[i * blockDim.x + threadIdx.x];
  __syncthreads();
  const int n = kWays * blockDim.x;
  for (int i = 0; i < kWays; ++i)
    data[i * blockDim.x + threadIdx.x] = tile[n - 1 - (i * blockDim.x + threadIdx.x)];
  if (threadIdx.x == 0) atomicAdd(&counter, 1);
}

__global__ void racing(int* data) {
  __shared__ int word;
  if (threadIdx.x == 0) word = 1;
  __syncthreads();
  if (threadIdx.x == 32) word = 2;
  if (threadIdx.x == 0) data[0] = word;  // a __syncthreads() is missing before
}

__global__ void telling() {
  if (threadIdx.x == 33)
    printf("%s: %d of %u, %5.2f%%, %lld, %c, %x, %-4d|\n", "thread", int(threadIdx.x), blockDim.x, 1.5f,
           1ll << 40, 'q', 255, 7);
}

__global__ void insisting(int n) {
  assert(n == 1);
}

__global__ void stray(int* data) {
  data[1 << 20] = 1;
}

// What is not simulated.
__global__ void measured(int* data) {
  asm volatile("pmevent 3;");
  asm("vadd.s32.s32.s32 %0, %0, 1;" : "+r"(data[0]));
}

namespace {

int mistakes = 0;

void is(bool right, const char* what, int line) {
  if (right) return;
  std::printf("line %d: %s\n", line, what);
  ++mistakes;
}
#define IS(condition) is(condition, #condition, __LINE__)
#define OK(call) IS((call) == cudaSuccess)

void arithmetic() {
  constexpr int n = 1000;
  std::vector<float> a(n), b(n), c(n);
  for (int i = 0; i < n; ++i) a[i] = float(i), b[i] = float(n - i);
  float *da, *db, *dc;
  OK(cudaMalloc(&da, n * sizeof(float)));
  OK(cudaMalloc(&db, n * sizeof(float)));
  OK(cudaMalloc(&dc, n * sizeof(float)));
  OK(cudaMemcpy(da, a.data(), n * sizeof(float), cudaMemcpyHostToDevice));
  OK(cudaMemcpy(db, b.data(), n * sizeof(float), cudaMemcpyDefault));
  const float scales[2] = {2, 3};
  OK(cudaMemcpyToSymbol(scale, scales, sizeof scales));
  cudaStream_t stream;
  cudaEvent_t before, after;
  OK(cudaStreamCreate(&stream));
  OK(cudaEventCreate(&before));
  OK(cudaEventCreate(&after));
  OK(cudaEventRecord(before, stream));
  add<<<4, 256, 0, stream>>>(da, db, dc, n);
  OK(cudaGetLastError());
  OK(cudaEventRecord(after, stream));
  OK(cudaMemcpyAsync(c.data(), dc, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
  OK(cudaStreamSynchronize(stream));
  float milliseconds = -1;
  OK(cudaEventElapsedTime(&milliseconds, before, after));
  IS(milliseconds >= 0);
  for (int i = 0; i < n; ++i) IS(c[i] == 2 * a[i] + 3 * b[i]);
  OK(cudaFree(dc));
}

void shared_memory() {
  constexpr int ways = 64, threads = 256,
                n = ways * threads;  // 64 KiB, more than a kernel has without asking
  std::vector<int> data(n);
  for (int i = 0; i < n; ++i) data[i] = i;
  int* d;
  OK(cudaMalloc(&d, n * sizeof(int)));
  OK(cudaMemcpy(d, data.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  reversed<ways><<<1, threads, n * sizeof(int)>>>(d);
  IS(cudaGetLastError() == cudaErrorInvalidValue);
  OK(cudaFuncSetAttribute(reversed<ways>, cudaFuncAttributeMaxDynamicSharedMemorySize, n * sizeof(int)));
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = threads;
  config.dynamicSmemBytes = n * sizeof(int);
  OK(cudaLaunchKernelEx(&config, reversed<ways>, d));
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(data.data(), d, n * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) IS(data[i] == n - 1 - i);
  int count = 0;
  OK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  IS(count == 41);
  int blocks = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reversed<ways>, threads, n * sizeof(int)));
  IS(blocks == 3);
  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, reversed<ways>));
  IS(attributes.maxDynamicSharedSizeBytes == n * int(sizeof(int)));
}

void rows() {
  constexpr size_t width = 100, height = 3;
  char from[height][128], to[height][width];
  for (size_t r = 0; r < height; ++r)
    for (size_t i = 0; i < 128; ++i) from[r][i] = char(r + i);
  void* d;
  size_t pitch;
  OK(cudaMallocPitch(&d, &pitch, width, height));
  IS(pitch >= width && pitch % 512 == 0);
  OK(cudaMemcpy2D(d, pitch, from, 128, width, height, cudaMemcpyHostToDevice));
  OK(cudaMemcpy2D(to, width, d, pitch, width, height, cudaMemcpyDeviceToHost));
  for (size_t r = 0; r < height; ++r) IS(std::memcmp(from[r], to[r], width) == 0);
  IS(cudaMemcpy2D(d, pitch, from, 99, width, height, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
}

void device_and_errors() {
  int count = 0, value = 0;
  OK(cudaGetDeviceCount(&count));
  IS(count == 1);
  cudaDeviceProp properties;
  OK(cudaGetDeviceProperties(&properties, 0));
  IS(properties.major == 10 && properties.minor == 0 && properties.warpSize == 32);
  IS(properties.sharedMemPerBlockOptin == 232448);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  IS(value == properties.multiProcessorCount);
  void* encode = nullptr;
  cudaDriverEntryPointQueryResult found;
  OK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
  IS(encode != nullptr && found == cudaDriverEntryPointSuccess);

  cudaGetLastError();
  IS(cudaSetDevice(1) == cudaErrorInvalidDevice);
  IS(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  IS(cudaGetLastError() == cudaErrorInvalidDevice);
  OK(cudaGetLastError());
  add<<<1, 2048>>>(nullptr, nullptr, nullptr, 0);
  IS(cudaGetLastError() == cudaErrorInvalidConfiguration);
  IS(std::strcmp(cudaGetErrorName(cudaErrorInvalidConfiguration), "cudaErrorInvalidConfiguration") == 0);
  int host_only = 0;
  IS(cudaMemcpyToSymbol(reinterpret_cast<void*>(&host_only), &count, 4) == cudaErrorInvalidSymbol);
}

// The other kernels of the module run all the same.
void refused() {
  measured<<<1, 1>>>(nullptr);
  IS(cudaGetLastError() == cudaErrorInvalidPtx);
  cudaFuncAttributes attributes;
  IS(cudaFuncGetAttributes(&attributes, measured) == cudaErrorInvalidPtx);
  OK(cudaDeviceSynchronize());
  cudaGetLastError();
}

void faults() {
  int* d;
  OK(cudaMalloc(&d, 4));
  stray<<<1, 1>>>(d);
  IS(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  IS(cudaMalloc(&d, 4) == cudaErrorIllegalAddress);  // for good
  OK(cudaDeviceReset());
  OK(cudaMalloc(&d, 4));
}

// What programs do when they leave: their static and thread-local destructors free memory, load modules, launch kernels.
constexpr char module_text[] =
    ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry late(.param .u64 p)\n{\n.reg .b64 %a;\n.reg .b32 %r;\n"
    "ld.param.u64 %a, [p];\nmov.u32 %r, %tid.x;\nst.global.u32 [%a], %r;\nret;\n}\n";
template <typename Function>
Function driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  OK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
  return reinterpret_cast<Function>(function);
}
struct Leaving {
  int* memory[4] = {};
  cudaError_t expected = cudaSuccess;
  ~Leaving() {
    if (memory[0] == nullptr) return;
    if (expected == cudaSuccess) {
      CUmodule module;
      CUfunction late;
      IS(driver<CUresult (*)(CUmodule*, const void*)>("cuModuleLoadData")(&module, module_text) == CUDA_SUCCESS);
      IS(driver<CUresult (*)(CUfunction*, CUmodule, const char*)>("cuModuleGetFunction")(&late, module, "late") == CUDA_SUCCESS);
      void* parameters[] = {&memory[0]};
      int word = -1;
      OK(cudaLaunchKernel(reinterpret_cast<const void*>(late), dim3(1), dim3(1), parameters, 0, nullptr));
      OK(cudaMemcpy(&word, memory[0], 4, cudaMemcpyDeviceToHost));
      IS(word == 0);
      add<<<1, 1>>>(nullptr, nullptr, nullptr, 0);
      OK(cudaDeviceSynchronize());
    }
    for (int* p : memory) IS(cudaFree(p) == expected);
    if (mistakes) std::_Exit(mistakes);
  }
  void allocate() {
    for (int*& p : memory) OK(cudaMalloc(&p, 1024));
  }
};
Leaving leaving;
thread_local Leaving thread_leaving;

}  // namespace

int main(int, char** arguments) {
  const char* what = arguments[1];
  if (std::strcmp(what, "all") == 0) {
    arithmetic();
    shared_memory();
    rows();
    device_and_errors();
    refused();
    faults();
    arithmetic();
  } else if (std::strcmp(what, "race") == 0) {
    int* d;
    OK(cudaMalloc(&d, 64 * sizeof(int)));
    for (int i = 0; i < 2; ++i) racing<<<1, 64>>>(d);
    OK(cudaDeviceSynchronize());
  } else if (std::strcmp(what, "print") == 0) {
    telling<<<1, 64>>>();
    OK(cudaDeviceSynchronize());
  } else if (std::strcmp(what, "assert") == 0) {
    insisting<<<1, 1>>>(1);
    OK(cudaDeviceSynchronize());
    insisting<<<1, 1>>>(2);
    IS(cudaDeviceSynchronize() == cudaErrorAssert);
  } else if (std::strcmp(what, "leave") == 0) {
    arithmetic();
    leaving.allocate();
    std::thread([] { thread_leaving.allocate(); }).join();
  } else if (std::strcmp(what, "leave after a fault") == 0) {
    leaving.allocate();
    leaving.expected = cudaErrorIllegalAddress;
    stray<<<1, 1>>>(leaving.memory[0]);
    IS(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  } else {
    mistakes = 100;
  }
  return mistakes;
}
