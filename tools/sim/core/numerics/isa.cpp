// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this build and this CPU have.
#include "isa.h"

namespace fa4::sim {

const char* isa_name(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return "portable";
    case Isa::avx2:
      return "AVX2";
    case Isa::avx512:
      return "AVX-512";
  }
  return "unknown";
}

bool isa_supported(Isa isa) {
#ifdef FA4_SIM_X86_KERNELS
  if (isa == Isa::avx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  if (isa == Isa::avx2) return __builtin_cpu_supports("avx2");
#endif
  return isa == Isa::portable;
}

Isa widest_isa() {
  static const Isa widest = isa_supported(Isa::avx512) ? Isa::avx512
                            : isa_supported(Isa::avx2) ? Isa::avx2
                                                       : Isa::portable;
  return widest;
}

}  // namespace fa4::sim
