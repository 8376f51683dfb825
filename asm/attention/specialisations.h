// SPDX-License-Identifier: Apache-2.0
// The one list of what is in the image: from it come the entries of the kernels, the choice of the plan, what `fa4 info`
// shows and what the tests go through. A specialisation exists where it measures a gain; everything else is a run-time
// value of AttentionParams. Plain C++.
#pragma once

#include "config.h"

// On every architecture; on Blackwell each a second time, `entry`_polynomial, with a share of the exponentials by polynomial, for
// GPUs whose MUFU binds. ROW(entry, element type, mask, head dimension of Q and K, of V and O)
// clang-format off
#define FA4_SPECIALISATIONS(ROW)                                 \
  ROW(fa4_forward_f16_d64_full,          f16,  full,    64,  64) \
  ROW(fa4_forward_f16_d64_causal,        f16,  causal,  64,  64) \
  ROW(fa4_forward_f16_d64_general,       f16,  band,    64,  64) \
  ROW(fa4_forward_bf16_d64_full,         bf16, full,    64,  64) \
  ROW(fa4_forward_bf16_d64_causal,       bf16, causal,  64,  64) \
  ROW(fa4_forward_bf16_d64_general,      bf16, band,    64,  64) \
  ROW(fa4_forward_f16_d96_full,          f16,  full,    96,  96) \
  ROW(fa4_forward_f16_d96_causal,        f16,  causal,  96,  96) \
  ROW(fa4_forward_f16_d96_general,       f16,  band,    96,  96) \
  ROW(fa4_forward_bf16_d96_full,         bf16, full,    96,  96) \
  ROW(fa4_forward_bf16_d96_causal,       bf16, causal,  96,  96) \
  ROW(fa4_forward_bf16_d96_general,      bf16, band,    96,  96) \
  ROW(fa4_forward_f16_d128_full,         f16,  full,   128, 128) \
  ROW(fa4_forward_f16_d128_causal,       f16,  causal, 128, 128) \
  ROW(fa4_forward_f16_d128_general,      f16,  band,   128, 128) \
  ROW(fa4_forward_bf16_d128_full,        bf16, full,   128, 128) \
  ROW(fa4_forward_bf16_d128_causal,      bf16, causal, 128, 128) \
  ROW(fa4_forward_bf16_d128_general,     bf16, band,   128, 128) \
  ROW(fa4_forward_f16_d192_128_full,     f16,  full,   192, 128) \
  ROW(fa4_forward_f16_d192_128_causal,   f16,  causal, 192, 128) \
  ROW(fa4_forward_f16_d192_128_general,  f16,  band,   192, 128) \
  ROW(fa4_forward_bf16_d192_128_full,    bf16, full,   192, 128) \
  ROW(fa4_forward_bf16_d192_128_causal,  bf16, causal, 192, 128) \
  ROW(fa4_forward_bf16_d192_128_general, bf16, band,   192, 128) \
  ROW(fa4_forward_f16_d256_full,         f16,  full,   256, 256) \
  ROW(fa4_forward_f16_d256_causal,       f16,  causal, 256, 256) \
  ROW(fa4_forward_f16_d256_general,      f16,  band,   256, 256) \
  ROW(fa4_forward_bf16_d256_full,        bf16, full,   256, 256) \
  ROW(fa4_forward_bf16_d256_causal,      bf16, causal, 256, 256) \
  ROW(fa4_forward_bf16_d256_general,     bf16, band,   256, 256)

// Hopper alone: other tiles for head groups of few rows. ROW(as above, consumers, most rows of a head group)
#define FA4_HOPPER_SHORT_SPECIALISATIONS(ROW)                                 \
  ROW(fa4_forward_f16_d64_causal_short,  f16,  causal, 64, 64, 2, 1024)       \
  ROW(fa4_forward_bf16_d64_causal_short, bf16, causal, 64, 64, 2, 1024)
// clang-format on
