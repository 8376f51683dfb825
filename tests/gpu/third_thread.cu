// SPDX-License-Identifier: Apache-2.0
// A word that warp 0 reads and warp 2 overwrites afterwards, ordered by mbarriers: directly, or by way of warp 1, as PTX ISA 8.9
// (causality order) lets happens-before go through a third thread. Both are right; compute-sanitizer's racecheck reports the second
// one as a race, and the same of a task record of the kernel for Hopper, which consumers read, store waits for, and query writes.
//
//     nvcc -arch=sm_90 -o third_thread third_thread.cu && compute-sanitizer --tool racecheck ./third_thread [direct|third]
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
__device__ void init(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
}
__device__ void arrive(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ void wait(uint64_t* barrier) {
  asm volatile(
      "{\n.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(
          shared_address(barrier))
      : "memory");
}

__global__ void run(bool by_third_thread, uint32_t* out) {
  __shared__ uint64_t read, passed_on;
  __shared__ uint32_t word;
  if (threadIdx.x == 0) init(&read), init(&passed_on), word = 7;
  __syncthreads();
  if (threadIdx.x == 0) {
    *out = *const_cast<volatile uint32_t*>(&word);
    arrive(&read);
  } else if (threadIdx.x == 32 && by_third_thread) {
    wait(&read);
    arrive(&passed_on);
  } else if (threadIdx.x == 64) {
    wait(by_third_thread ? &passed_on : &read);
    *const_cast<volatile uint32_t*>(&word) = 8;
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint32_t *out, value = 0;
  cudaMalloc(&out, sizeof value);
  run<<<1, 96>>>(argc > 1 && std::strcmp(argv[1], "third") == 0, out);
  cudaMemcpy(&value, out, sizeof value, cudaMemcpyDeviceToHost);
  std::printf("%u, %s\n", value, cudaGetErrorString(cudaGetLastError()));
  return value == 7 ? 0 : 1;
}
