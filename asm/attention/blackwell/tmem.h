// SPDX-License-Identifier: Apache-2.0
// How the columns of tensor memory are shared out: an O for each Q stage, and S in the rest. Plain C++.
#pragma once

#include "../config.h"

namespace fa4::blackwell {

inline constexpr int kTmemColumns = 512;  // all of them, of 32 bits

// As many S as fit beside O, up to three: one for each Q stage; and one that the score MMA of a block to come fills while each stage
// still has its own.
FA4_HOST_DEVICE constexpr int s_buffers(const Config& config) {
  const int fitting = (kTmemColumns - config.q_stages * config.v_dim) / config.block_keys;
  return fitting < 3 ? fitting : 3;
}

}  // namespace fa4::blackwell
