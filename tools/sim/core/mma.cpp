// SPDX-License-Identifier: Apache-2.0
// Chooses the kernels of a tensor-core step.
#include "mma.h"

#include <stdexcept>
#include <string>

#include "mma_dispatch.h"

namespace fa4::sim {
namespace {

using Kernel = void (*)(const MmaStep&);

Kernel kernel_for(Isa isa) {
#ifdef FA4_SIM_X86_KERNELS
  if (isa == Isa::avx512) return mma_step_avx512;
  if (isa == Isa::avx2) return mma_step_avx2;
#endif
  static_cast<void>(isa);
  return mma_step_portable;
}

void check(const MmaStep& step) {
  if ((step.a_type == MmaInput::tf32) != (step.b_type == MmaInput::tf32)) {
    throw std::invalid_argument("mma_step: tf32 goes with tf32");
  }
  if ((step.m == 64 || step.m == 128) && step.n >= 8 && step.n <= 256 && step.n % 8 == 0 &&
      step.d_pitch >= step.m) {
    return;
  }
  throw std::invalid_argument("mma_step: m = " + std::to_string(step.m) + ", n = " + std::to_string(step.n) +
                              ", d_pitch = " + std::to_string(step.d_pitch) +
                              "; m is 64 or 128, n a multiple of 8 from 8 to 256, d_pitch at least m");
}

}  // namespace

void mma_step(const MmaStep& step) {
  check(step);
  if (step.accumulator == MmaAccumulator::f16) return mma_step_reference(step);
  static const Kernel kernel = kernel_for(widest_isa());
  kernel(step);
}

void mma_step(Isa isa, const MmaStep& step) {
  if (!isa_supported(isa)) {
    throw std::invalid_argument(std::string("mma_step: this CPU or build has no ") + isa_name(isa) +
                                " kernels; isa_supported() tells which it has");
  }
  check(step);
  if (step.accumulator == MmaAccumulator::f16) return mma_step_reference(step);
  kernel_for(isa)(step);
}

}  // namespace fa4::sim
