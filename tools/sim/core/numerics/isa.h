// SPDX-License-Identifier: Apache-2.0
// Instruction sets of the host for which the numeric kernels are built, one source each, chosen at run time.
#pragma once

#include <array>
#include <cstdint>

namespace fa4::sim {

enum class Isa : uint8_t { portable, avx2, avx512 };

inline constexpr std::array<Isa, 3> all_isas{Isa::portable, Isa::avx2, Isa::avx512};

const char* isa_name(Isa isa);
// True when kernels for it are part of this build and this CPU runs them. The portable ones always are.
bool isa_supported(Isa isa);
// The widest that is supported; asked of the CPU once.
Isa widest_isa();

}  // namespace fa4::sim
