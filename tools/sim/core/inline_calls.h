// SPDX-License-Identifier: Apache-2.0
// Calls of device functions, by putting the body in the place of the call: a warp's lanes then part and meet
// in a call as they do anywhere else. What remains is a function without calls of its module.
#pragma once

#include <string>

#include "../ptx/module.h"

namespace fa4::sim {

bool has_calls(const ptx::Function& function);

// vprintf and __assertfail, which no module defines: their calls stay as they are. See system_calls.cpp.
bool is_system_call(const std::string& name, size_t returns, size_t params);

// Throws ptx::Error at the first call in the module of a function that has no body there, as a linker would.
void check_callees(const ptx::Module& module);

// Parameters and results of calls become local variables. Throws ptx::Error at the call for a function
// without a body, for one that calls itself, and where the bodies together have more than a million
// instructions.
ptx::Function inline_calls(const ptx::Module& module, const ptx::Function& function);

}  // namespace fa4::sim
