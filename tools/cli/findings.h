// SPDX-License-Identifier: Apache-2.0
// What the happens-before checker found, for a person and for a machine; shared by `fa4 check` and `fa4 run
// --hazards`. docs/check.md describes the JSON.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "support/gpu.h"

namespace fa4::cli {

// PTX (with a NUL behind it) or a fatbinary from a file, for AttentionDevice::set_image. Throws Refusal.
std::vector<char> read_image(const std::string& path);

std::vector<fa4sim_finding> take_findings(const support::SimulatorApi& simulator);
void print_findings(const std::vector<fa4sim_finding>& findings);
uint64_t count_warnings(const std::vector<fa4sim_finding>& findings);
nlohmann::json findings_json(const std::vector<fa4sim_finding>& findings);

// The axioms, beyond the PTX ISA, that a verdict on what the simulator has watched rests on.
std::vector<std::string> axioms_used(const support::SimulatorApi& simulator);
// Of this process so far.
double peak_mebibytes();
// "errors and warnings", and what the verdict rests on.
void print_verdict(uint64_t errors, uint64_t warnings, double seconds, const std::string& model,
                   const std::vector<std::string>& axioms);

}  // namespace fa4::cli
