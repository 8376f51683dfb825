// SPDX-License-Identifier: Apache-2.0
// Runs NVIDIA's disassembler.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace fa4::time {

// The path of an nvdisasm: $FA4_NVDISASM, one of `places`, or on PATH; else "".
std::string find_nvdisasm(const std::vector<std::string>& places);
// How to get one: a sentence.
const char* how_to_get_nvdisasm();

// The text of `nvdisasm -c -hex` for a cubin. Throws Error.
std::string disassemble(const std::string& nvdisasm, std::span<const char> cubin);

}  // namespace fa4::time
