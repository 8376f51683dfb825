// SPDX-License-Identifier: Apache-2.0
// One output element of a tensor-core step by the definition, in integer arithmetic. The vector kernels call
// it for the elements whose exponents leave the range in which fp32 registers hold every product.
#pragma once

#include <cstdint>

#include "mma.h"

namespace fa4::sim {

// Bits of the result for row m, column n. Does not write D; reads D[m][n] only when accumulate is set.
//
// Terms: the products and, when accumulating, D. A term that is zero takes no part. Otherwise
//   any NaN, 0 * Inf, or infinities of both signs: 0x7FFFFFFF (f16: 0x7FFF);   else any infinity: that
//   infinity;
//   E = largest exponent among the terms, that of a product being the sum of its factors' exponents (not
//   normalised; subnormals count with the exponent of the smallest normal number), and at least -133; each
//   term is cut toward zero to a multiple of 2^(E - 25), the cut terms are added exactly, and the sum is
//   rounded toward zero to f32 or to nearest even to f16 (subnormal results are kept; what is too large is
//   infinity). A result of zero is +0.
uint32_t mma_element_reference(const MmaStep& step, uint32_t m, uint32_t n);

}  // namespace fa4::sim
