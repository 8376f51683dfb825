// SPDX-License-Identifier: Apache-2.0
// Which targets have an instruction (the target notes of PTX ISA 9.0, 9.7).
#pragma once

#include <string>

#include "../ptx/module.h"
#include "../ptx/target.h"

namespace fa4::sim {

// "" or what is wrong with the instruction in a module for the target: "tcgen05 needs ...; the module is for sm_90a".
std::string missing_in_target(const ptx::Instruction& instruction, const ptx::Module& module);

}  // namespace fa4::sim
