// SPDX-License-Identifier: Apache-2.0
// 2^x without MUFU: the whole part of x goes to the exponent, and 2^f of the rest, 0 <= f <= 1, is a polynomial. Which
// columns of a block take it, and its numbers. Plain C++.
#pragma once

#include "../host_device.h"

namespace fa4::blackwell {

// Of 128 columns 36, by the column alone, so that the bits of a row do not depend on whether its block is masked: 10 to 12 of each of
// the first three chunks of 32, none of the first 16 columns, which MUFU has before the maximum is known (softmax.cuh), and 2 of the
// last chunk, which the tensor core waits for once more. More would want more registers than there are.
FA4_HOST_DEVICE constexpr bool by_polynomial(int chunk, int column) {
  return chunk == 0 ? column >= 16 && column < 26 : column < (chunk < 3 ? 12 : 2);
}

// Of degree 5: 1 + f (c1 + f (c2 + f (c3 + f (c4 + f c5)))), the best of those that are 1 for 0 and 2 for 1, so that nothing jumps
// at whole numbers. Off by less than MUFU's exponential is. Of degree 4 the best is off by 3.3e-6, relatively, which LSE shows
// where a row sees few keys.
inline constexpr float kExp2C1 = 0.69315358f, kExp2C2 = 0.24014462f, kExp2C3 = 0.05585806f, kExp2C4 = 0.008947755f,
                       kExp2C5 = 0.0018959740f;

// A sum with it, rounded down, is a whole number in its low bits.
inline constexpr float kWholeMagic = 12582912.0f;  // 1.5 * 2^23
// From here down 2^x is 0: its exponent field is.
inline constexpr float kLeastExponent = -127.0f;

}  // namespace fa4::blackwell
