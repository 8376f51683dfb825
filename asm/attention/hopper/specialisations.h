// SPDX-License-Identifier: Apache-2.0
// The specialisations of the Hopper kernel. Sizes measured on an H200; others lost (blocks of 96, 160 and 176
// keys, clusters of 2 with multicast, two warpgroups at head dimension 64 but for short causal problems).
#pragma once

#include "config.h"

namespace fa4::hopper {

inline constexpr Config kD128Full{128, false, 2, 128, 5};
inline constexpr Config kD128Causal{128, true, 2, 128, 5};
inline constexpr Config kD64Full{64, false, 3, 128, 8};
inline constexpr Config kD64Causal{64, true, 3, 128, 8};
// 128 rows a tile waste less where the 192 of the other overshoot a short Q and its diagonal.
inline constexpr Config kD64CausalShort{64, true, 2, 128, 8};

}  // namespace fa4::hopper
