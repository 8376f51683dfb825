// SPDX-License-Identifier: Apache-2.0
// What reports call the parts of the machine and the causes of waiting.
#include "machine.h"

namespace fa4::time {

const char* name_of(Unit unit) {
  switch (unit) {
    case Unit::control:
      return "control";
    case Unit::ffma:
      return "FMA";
    case Unit::ffma_pair:
      return "FMA, pairs";
    case Unit::imad:
      return "IMAD";
    case Unit::alu:
      return "ALU";
    case Unit::mufu:
      return "MUFU";
    case Unit::uniform:
      return "uniform";
    case Unit::memory:
      return "memory";
    case Unit::tmem:
      return "tensor memory";
    case Unit::mma:
      return "MMA issue";
    case Unit::tma:
      return "TMA issue";
    case Unit::count:
      break;
  }
  return "";
}

const char* name_of(Cause cause) {
  switch (cause) {
    case Cause::issue:
      return "issue";
    case Cause::dependency:
      return "fixed latency";
    case Cause::branch:
      return "branch";
    case Cause::mufu_result:
      return "MUFU result";
    case Cause::tmem_result:
      return "tensor-memory access";
    case Cause::shared_result:
      return "shared-memory access";
    case Cause::memory_result:
      return "other memory";
    case Cause::tensor_sources:
      return "MMA or TMA operands";
    case Cause::other_result:
      return "other result";
    case Cause::barrier:
      return "mbarrier";
    case Cause::cta_barrier:
      return "bar.sync";
    case Cause::mma_group:
      return "MMAs of its warpgroup";
    case Cause::group:
      return "bulk stores";
    case Cause::ffma_busy:
      return "FMA pipe";
    case Cause::imad_busy:
      return "IMAD pipe";
    case Cause::alu_busy:
      return "ALU pipe";
    case Cause::mufu_busy:
      return "MUFU pipe";
    case Cause::uniform_busy:
      return "uniform pipe";
    case Cause::memory_busy:
      return "memory pipe";
    case Cause::tmem_busy:
      return "tensor-memory port";
    case Cause::mma_busy:
      return "MMA issue";
    case Cause::tma_busy:
      return "TMA issue";
    case Cause::registers_busy:
      return "register file taken by MMAs";
    case Cause::other_warp:
      return "another warp issued";
    case Cause::over:
      return "after its end";
    case Cause::count:
      break;
  }
  return "";
}

}  // namespace fa4::time
