// SPDX-License-Identifier: Apache-2.0
// PTX texts of the tests: heads, bodies, and marks for where an error must be.
#pragma once

#include <string>

#include "ptx/module.h"

namespace fa4::test {

inline const std::string kHead = ".version 9.0\n.target sm_100a\n.address_size 64\n";

inline sim::ptx::Module parse_module(const std::string& text) {
  return sim::ptx::parse(kHead + text);
}

// The text becomes the body of an entry with registers %r0 to %r9, %rd0 to %rd9, %p0 to %p9 and a parameter
// `arg`.
inline std::string entry(const std::string& body) {
  return kHead +
         ".visible .entry k(.param .u64 arg)\n{\n.reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p<10>;\n" +
         body + "\n}\n";
}

inline sim::ptx::Module parse_body(const std::string& body) {
  return sim::ptx::parse(entry(body));
}

}  // namespace fa4::test
