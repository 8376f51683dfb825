// SPDX-License-Identifier: Apache-2.0
#include "targets.h"

#include <algorithm>

namespace fa4::sim {

namespace {

struct Requirement {
  std::string_view opcode;                // "": any
  std::string_view modifiers[2] = {};     // that are all there
  size_t operands = 0;                    // as many; 0: any number
  bool (*has)(ptx::Target) = nullptr;
  std::string_view targets;
};

template <uint32_t number>
bool since(ptx::Target t) {
  return t.number >= number;
}
bool hopper(ptx::Target t) { return t == ptx::Target{90, 'a'}; }
bool blackwell(ptx::Target t) { return t.number / 10 == 10 && t.letter; }
bool lettered(ptx::Target t) { return t.number >= 90 && t.letter; }

constexpr std::string_view kSm80 = "sm_80 or newer", kSm90 = "sm_90 or newer", kSm100 = "sm_100 or newer",
                           kBlackwell = "sm_100a, sm_100f, sm_103a or sm_103f";
constexpr Requirement kRequirements[] = {
    {"wgmma", {}, 0, hopper, "sm_90a"},
    {"tcgen05", {}, 0, blackwell, kBlackwell},
    {"setmaxnreg", {}, 0, lettered, "sm_90a, or sm_100 or newer with an a or f"},
    {"", {"f32x2"}, 0, since<100>, kSm100},
    {"max", {"f32"}, 4, since<100>, kSm100},
    {"min", {"f32"}, 4, since<100>, kSm100},
    {"ld", {"v8"}, 0, since<100>, kSm100},
    {"st", {"v8"}, 0, since<100>, kSm100},
    {"ld", {"v4", "b64"}, 0, since<100>, kSm100},
    {"ld", {"v4", "u64"}, 0, since<100>, kSm100},
    {"ld", {"v4", "s64"}, 0, since<100>, kSm100},
    {"ld", {"v4", "f64"}, 0, since<100>, kSm100},
    {"st", {"v4", "b64"}, 0, since<100>, kSm100},
    {"st", {"v4", "u64"}, 0, since<100>, kSm100},
    {"st", {"v4", "s64"}, 0, since<100>, kSm100},
    {"st", {"v4", "f64"}, 0, since<100>, kSm100},
    {"clusterlaunchcontrol", {}, 0, since<100>, kSm100},
    {"cp", {"bulk"}, 0, since<90>, kSm90},
    {"cp", {"cta_group::1"}, 0, blackwell, kBlackwell},
    {"cp", {"async"}, 0, since<80>, kSm80},
    {"mbarrier", {"try_wait"}, 0, since<90>, kSm90},
    {"mbarrier", {}, 0, since<80>, kSm80},
    {"fence", {"proxy"}, 0, since<90>, kSm90},
    {"fence", {"mbarrier_init"}, 0, since<90>, kSm90},
    {"barrier", {"cluster"}, 0, since<90>, kSm90},
    {"st", {"async"}, 0, since<90>, kSm90},
    {"red", {"async"}, 0, since<90>, kSm90},
    {"elect", {}, 0, since<90>, kSm90},
    {"mapa", {}, 0, since<90>, kSm90},
    {"getctarank", {}, 0, since<90>, kSm90},
    {"griddepcontrol", {}, 0, since<90>, kSm90},
    {"stmatrix", {}, 0, since<90>, kSm90},
    {"redux", {}, 0, since<80>, kSm80},
};

}  // namespace

std::string missing_in_target(const ptx::Instruction& i, const ptx::Module& module) {
  const ptx::Target target = ptx::read_target(module.target).value_or(ptx::Target{});
  for (const Requirement& r : kRequirements) {
    if (!r.opcode.empty() && r.opcode != i.parts[0]) continue;
    if (r.operands && r.operands != i.operands.size()) continue;
    const auto is_there = [&](std::string_view m) { return m.empty() || std::ranges::find(i.parts, m) != i.parts.end(); };
    if (!is_there(r.modifiers[0]) || !is_there(r.modifiers[1]) || r.has(target)) continue;
    return "'" + std::string(i.opcode) + "' needs the target " + std::string(r.targets) + "; this module's is " + module.target;
  }
  return {};
}

}  // namespace fa4::sim
