// SPDX-License-Identifier: Apache-2.0
// What a timing says: per role where its cycles go, the chain of events that decides the end, and what each
// part of the SM would allow at best.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "machine.h"
#include "way.h"

namespace fa4::time {

// Names of warps and mbarriers.
class Names {
 public:
  // From the module's variable `<kernel>_names`, if it has one. Otherwise warps with the same sequence of
  // synchronising instructions make a role: "warps 0-3".
  Names(const sim::ptx::Module& module, const std::string& kernel, const Replay& replay);

  struct Role {
    std::string name;
    uint32_t begin, end;  // warps
  };
  const std::vector<Role>& roles() const { return roles_; }
  const std::string& role_of(uint32_t warp) const { return roles_[role_index_[warp]].name; }
  size_t role_index(uint32_t warp) const { return role_index_[warp]; }
  // "p_o_rescale[1]", or "mbarrier 0x38c68"; "bar.sync 0".
  std::string barrier(uint32_t address) const;
  // "S1" of a column of tensor memory, or "column 128".
  std::string column(uint32_t column) const;

 private:
  std::vector<Role> roles_;
  std::vector<size_t> role_index_;                          // [warp]
  std::vector<std::pair<uint32_t, std::string>> barriers_;  // shared address
  std::vector<std::pair<uint32_t, std::string>> columns_;   // of tensor memory
};

// Cycles of a role, the mean of its warps.
struct RoleReport {
  std::string name;
  uint32_t begin, end;  // warps
  double issued;        // instructions
  std::array<double, size_t(Cause::count)> cycles;
  std::vector<std::pair<std::string, double>> barriers;  // by name, longest first
};

// What happened in one stretch of the chain that decides when the launch ends, told backwards in time by
// run().
struct Link {
  enum class Kind : uint8_t { work, hand_over, tensor, copy, start } kind;
  std::string what;     // "softmax 0: s_ready[0] -> p_tail[0]"
  uint32_t warp;        // that works, is woken, or issued
  uint64_t begin, end;  // cycles
};
struct ChainPart {
  std::string what;
  Link::Kind kind;
  uint64_t count, cycles;
};

// If nothing but this part took time: cycles.
struct Bound {
  std::string part;
  double cycles;
};

struct Report {
  uint64_t cycles;
  double tensor_share;  // of the tensor core's peak
  double tiles;  // of 128 x 128 x 128, both products: 1024 cycles of a Blackwell's tensor core, 2048 of a
                 // Hopper's
  std::vector<RoleReport> roles;
  std::vector<Link> chain;       // in order of time
  std::vector<ChainPart> parts;  // of the chain's middle half: alike stretches together, longest first
  std::vector<ChainPart> loop;   // what repeats in it, in order; empty when nothing does
  std::vector<Bound> bounds;     // longest first
};
Report report(const Program& program, const Timing& timing, const Gpu& gpu, const Names& names);

}  // namespace fa4::time
