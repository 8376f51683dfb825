// SPDX-License-Identifier: Apache-2.0
// Litmus programs: one ordering rule each, with and without the instruction that the rule asks for, and what
// watching the program must give. docs/ordering.md cites them by name.
#pragma once

#include <string>
#include <vector>

#include "sim/engine/async.h"

namespace fa4::sim::test {

struct Litmus {
  std::string name;  // "rule: variant"
  std::string body;  // PTX after prologue(); see below
  std::string
      verdict;  // "clean", the finding kinds and the fault of a run with nominal timing, joined by " + "
  uint32_t ctas = 1;
  uint32_t threads = 128;
  std::string target = "sm_100a";
  uint32_t cluster = 0;  // CTAs; 0: launched without clusters
};

// What a body finds: async.h's prologue; %out and %d1 addresses of 64 KiB of device memory of its own, zero;
// %d2 the tensor map over %out, 64 columns of 16 bits and boxes of 8 rows (1 KiB); 64 KiB of shared memory.
std::vector<Litmus> thread_litmus();    // shared and global memory, threads only
std::vector<Litmus> proxy_litmus();     // threads, MMAs and bulk copies on one memory
std::vector<Litmus> mbarrier_litmus();  // life and phases of mbarriers
std::vector<Litmus> tcgen05_litmus();   // tensor memory
std::vector<Litmus> wgmma_litmus();
std::vector<Litmus> cluster_litmus();  // CTAs of a cluster
std::vector<Litmus> thread_copy_litmus();  // cp.async

// ---- pieces of bodies
// ----------------------------------------------------------------------------------------------------

// Text that only some threads execute; the others go on behind it.
inline std::string only(const std::string& condition, const std::string& text) {
  static int label = 0;
  const std::string skip = "SKIP" + std::to_string(label++);
  return "  setp.ne.u32 %p14, " + condition + ";\n  @%p14 bra " + skip + ";\n" + text + skip + ":\n";
}
inline std::string by_thread(uint32_t thread, const std::string& text) {
  return only("%tid32, " + std::to_string(thread), text);
}
inline std::string by_warp(uint32_t warp, const std::string& text) {
  return only("%warp, " + std::to_string(warp), text);
}

inline std::string line(const std::string& instruction) {
  return "  " + instruction + ";\n";
}
inline std::string arrive(uint32_t barrier, const std::string& semantics = "") {
  return line("mbarrier.arrive" + semantics + ".shared::cta.b64 _, " + at(barrier));
}
// A wait with other semantics than the default acquire.
inline std::string wait_as(const std::string& semantics, uint32_t barrier, uint32_t parity) {
  static int label = 0;
  const std::string again = "AGAIN" + std::to_string(label++);
  return again + ":\n" +
         line("mbarrier.try_wait.parity" + semantics + ".shared::cta.b64 %p13, " + at(barrier) + ", " +
              std::to_string(parity)) +
         "  @!%p13 bra " + again + ";\n";
}
// Repeats a load of %r9 until it is 1.
inline std::string spin(const std::string& load) {
  static int label = 0;
  const std::string again = "SPIN" + std::to_string(label++);
  return again + ":\n" + line(load) + line("setp.ne.u32 %p12, %r9, 1") + "  @%p12 bra " + again + ";\n";
}
inline std::string keep(const std::string& reg) {
  return line("st.global.u32 [%out+32768], " + reg);
}  // a use of it

}  // namespace fa4::sim::test
