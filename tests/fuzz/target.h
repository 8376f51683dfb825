// SPDX-License-Identifier: Apache-2.0
// What the fuzzer and the replay of its corpus do with an input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace fa4::sim::test {

// Parses `bytes` as PTX, builds a program of it and runs each entry with one warp and a small budget. Returns
// how far it came: "refused: ..." (the parser's or the builder's sentence), "fault: ..." or "ran". Anything
// but an orderly refusal or fault leaves as another exception, or worse.
std::string digest(const uint8_t* bytes, size_t size);

}  // namespace fa4::sim::test
