// SPDX-License-Identifier: Apache-2.0
// The table of support: families of instructions against what is known of them, from the rows, the recorded
// answers and the simulator itself. docs/support.md is this text.
#pragma once

#include <string>
#include <vector>

#include "recorded.h"

namespace fa4::conformance {

// A form that the simulated GPU refuses at load, on purpose.
struct Refusal {
  std::string_view form;    // what is refused
  std::string_view ptx;     // a statement of it
  std::string_view reason;  // why, or what stands in the way
  bool blackwell = false;   // needs a Blackwell target
};
const std::vector<Refusal>& refusals();

// Why a row's answer is not the recorded one, "" for all others.
std::string_view known_difference(const Row& row);

// What the simulated GPU does with a row.
enum class Standing { equal, different, refused, documents_only };

// `standings` in the order of all_rows(); `opcodes`: what the simulator knows.
std::string support_table(const Recording& recording, const std::vector<Standing>& standings,
                          const std::vector<std::string_view>& opcodes);

}  // namespace fa4::conformance
