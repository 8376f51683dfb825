// SPDX-License-Identifier: Apache-2.0
#include "band.h"

#include <algorithm>
#include <utility>

namespace fa4::time {

Band band(Replay& replay, const Function& sass, const Gpu& gpu, uint64_t nominal) {
  Band result{nominal, nominal, {}};
  const auto decode_for = [&](const Gpu& g) {
    for (size_t i = 0; i < sass.code.size(); ++i) replay.program.code[i] = decode(sass.code[i], g);
  };
  const auto vary = [&](const Gpu& g, Arbitration arbitration, std::string what, std::string source) {
    const uint64_t cycles = run(replay.program, g, arbitration).cycles;
    result.low = std::min(result.low, cycles);
    result.high = std::max(result.high, cycles);
    result.variations.push_back({std::move(what), std::move(source), cycles});
  };
  vary(gpu, Arbitration::round_robin, "arbitration: round robin", "not known among three or four busy warps");
  vary(gpu, Arbitration::oldest, "arbitration: lowest warp first",
       "not known among three or four busy warps");
  for (size_t i = 0; i < parameters().size(); ++i) {
    const Parameter& p = parameters()[i];
    if (gpu.measured || p.high == 0 || (gpu.replaced >> i & 1)) continue;
    for (uint32_t value : {p.low, p.high}) {
      if (value == gpu.*p.member) continue;
      Gpu changed = gpu;
      changed.*p.member = value;
      decode_for(changed);
      vary(changed, kNominalArbitration,
           std::string(p.name) + " " + std::to_string(value) + (*p.unit ? std::string(" ") + p.unit : ""),
           p.source);
    }
  }
  decode_for(gpu);
  return result;
}

}  // namespace fa4::time
