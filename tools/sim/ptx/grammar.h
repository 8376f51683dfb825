// SPDX-License-Identifier: Apache-2.0
// What is an instruction of PTX at all, whether or not anybody here knows what it means.
#pragma once

#include "module.h"

namespace fa4::sim::ptx {

// Throws Error for the first instruction of the module whose opcode is none of PTX ISA 9.0, or that has fewer
// operands than any form of its opcode.
void check_instructions(const Module& module);

}  // namespace fa4::sim::ptx
