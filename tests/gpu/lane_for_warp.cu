// SPDX-License-Identifier: Apache-2.0
// What compute-sanitizer's racecheck reports wrongly of the kernel for Hopper, on its own: all lanes of warp 0 read a word,
// and an mbarrier tells a lane of another warp that it may be overwritten. Either every lane arrives itself ("own"), or
// lane 0 does for all of them behind bar.warp.sync ("lane0"), which orders the accesses of the lanes (PTX ISA 9.7.13.2).
// Both are right. For a warp that is known to be converged ptxas makes a NOP of bar.warp.sync, and racecheck, which reads
// the machine code, misses the order.
//
//     nvcc -arch=sm_90 -o lane_for_warp lane_for_warp.cu && compute-sanitizer --tool racecheck ./lane_for_warp own|lane0
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace {

__device__ uint32_t shared_address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__global__ void run(bool lane0_arrives, uint32_t* out) {
  __shared__ uint64_t read;
  __shared__ uint32_t word;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&read)), "r"(lane0_arrives ? 1 : 32)
                 : "memory");
    word = 7;
  }
  __syncthreads();
  const uint32_t warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0);  // the same in all lanes, and ptxas knows
  if (warp == 0) {
    uint32_t value;
    asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(value) : "r"(shared_address(&word)) : "memory");
    out[threadIdx.x] = value;
    asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
    if (!lane0_arrives || threadIdx.x == 0)
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&read)) : "memory");
  } else if (threadIdx.x == 32) {
    asm volatile(
        "{\n.reg .pred p;\nagain: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(
            shared_address(&read))
        : "memory");
    asm volatile("st.shared::cta.u32 [%0], %1;" ::"r"(shared_address(&word)), "r"(8) : "memory");
  }
}

}  // namespace

int main(int argc, char** argv) {
  uint32_t *out, values[32] = {};
  if (const cudaError_t error = cudaMalloc(&out, sizeof values); error != cudaSuccess) {
    std::printf("%s\n", cudaGetErrorString(error));
    return 2;
  }
  run<<<1, 64>>>(argc > 1 && std::strcmp(argv[1], "lane0") == 0, out);
  cudaMemcpy(values, out, sizeof values, cudaMemcpyDeviceToHost);
  bool right = true;
  for (uint32_t value : values) right = right && value == 7;
  std::printf("%s, %s\n", right ? "right" : "wrong", cudaGetErrorString(cudaGetLastError()));
  return right ? 0 : 1;
}
