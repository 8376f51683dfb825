// SPDX-License-Identifier: Apache-2.0
#include "target.h"

namespace fa4::sim::ptx {

// By its oldest member: 10.0 and 10.3 are of one family, 10.1 is of none.
static uint32_t family(uint32_t number) { return number == 103 ? 100 : number; }

std::optional<Target> read_target(std::string_view text) {
  if (!text.starts_with("sm_")) return std::nullopt;
  text.remove_prefix(3);
  Target target;
  if (text.ends_with('a') || text.ends_with('f')) {
    target.letter = text.back();
    text.remove_suffix(1);
  }
  if (text.size() < 2 || text.size() > 3) return std::nullopt;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    target.number = 10 * target.number + uint32_t(c - '0');
  }
  return target;
}

bool runs(uint32_t number, Target target) {
  if (target.letter == 'a') return number == target.number;
  if (target.letter == 'f') return target.number >= 100 && family(number) == family(target.number) && number >= target.number;
  return number >= target.number;
}

}  // namespace fa4::sim::ptx
