// SPDX-License-Identifier: Apache-2.0
// The one list of what is in the image: from it come the entries of the kernels, the choice of the plan, what `fa4 info`
// shows and what the tests go through. A specialisation exists where it measures a gain; everything else is a run-time
// value of AttentionParams. Plain C++.
#pragma once

#include "config.h"

// On every architecture; on Blackwell each a second time, `entry`_polynomial, with a share of the exponentials by polynomial, for
// GPUs whose MUFU binds. ROW(entry, element type, mask, head dimension of Q and K, of V and O)
// clang-format off
#define FA4_SPECIALISATIONS(ROW)                            \
  ROW(fa4_forward_f16_d64_full,     f16,  full,    64,  64) \
  ROW(fa4_forward_f16_d64_causal,   f16,  causal,  64,  64) \
  ROW(fa4_forward_bf16_d64_full,    bf16, full,    64,  64) \
  ROW(fa4_forward_bf16_d64_causal,  bf16, causal,  64,  64) \
  ROW(fa4_forward_f16_d128_full,    f16,  full,   128, 128) \
  ROW(fa4_forward_f16_d128_causal,  f16,  causal, 128, 128) \
  ROW(fa4_forward_bf16_d128_full,   bf16, full,   128, 128) \
  ROW(fa4_forward_bf16_d128_causal, bf16, causal, 128, 128) \
  ROW(fa4_forward_f16_d64_general,   f16,  band,    64,  64) \
  ROW(fa4_forward_bf16_d64_general,  bf16, band,    64,  64) \
  ROW(fa4_forward_f16_d128_general,  f16,  band,   128, 128) \
  ROW(fa4_forward_bf16_d128_general, bf16, band,   128, 128)

// Hopper alone: other tiles for head groups of few rows. ROW(as above, consumers, most rows of a head group)
#define FA4_HOPPER_SHORT_SPECIALISATIONS(ROW)                                 \
  ROW(fa4_forward_f16_d64_causal_short,  f16,  causal, 64, 64, 2, 1024)       \
  ROW(fa4_forward_bf16_d64_causal_short, bf16, causal, 64, 64, 2, 1024)
// clang-format on
