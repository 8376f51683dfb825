// SPDX-License-Identifier: Apache-2.0
// The two 16-bit formats of Q, K, V and O on the host: fp16 (IEEE binary16) and bf16, to and from float,
// rounded to nearest even as cvt.rn does.
#pragma once

#include <bit>
#include <cstdint>

namespace fa4::support {

enum class Dtype { fp16, bf16 };

inline const char* name_of(Dtype dtype) {
  return dtype == Dtype::fp16 ? "fp16" : "bf16";
}

inline float fp16_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1Fu;
  const uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact in float
    const float magnitude = float(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

inline uint16_t float_to_fp16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = uint16_t((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return 0x7FFF;                    // the canonical NaN of cvt.rn.f16
  if (magnitude >= 0x477FF000u) return uint16_t(sign | 0x7C00);  // 65520 and above round to infinity
  if (magnitude < 0x38800000u) {                                 // below 2^-14: subnormal or zero
    // Adding 0.5 puts the unit of 2^-24 at the last bit of the float, so the addition rounds to nearest even.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return uint16_t(sign | (std::bit_cast<uint32_t>(rounded) - 0x3F000000u));
  }
  const uint32_t round_up = 0xFFFu + ((magnitude >> 13) & 1u);
  return uint16_t(sign | ((magnitude - 0x38000000u + round_up) >> 13));
}

inline float bf16_to_float(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return 0x7FFF;
  return uint16_t((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline float to_float(Dtype dtype, uint16_t bits) {
  return dtype == Dtype::fp16 ? fp16_to_float(bits) : bf16_to_float(bits);
}
inline uint16_t from_float(Dtype dtype, float value) {
  return dtype == Dtype::fp16 ? float_to_fp16(value) : float_to_bf16(value);
}

}  // namespace fa4::support
