// SPDX-License-Identifier: Apache-2.0
// Machine code as nvdisasm writes it (`nvdisasm -c -hex`): instructions with their control words, by
// function.
//
// The upper 23 bits of an instruction's 128 say how it issues. NVIDIA does not document them; docs/sass.md
// and the tests hold this reading to what ptxas does: stall (bits 105-108): cycles until the warp may issue
// again; yield (109): as stored, 0 gives the slot away; a scoreboard that is occupied until the result is
// written (110-112, 7: none); one that is occupied until the sources are read (113-115, 7: none); a mask of
// scoreboards that are waited for before issue (116-121); operands that stay in the reuse cache (122-125).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fa4::time {

// What cannot be read, found or matched. what() is a sentence, or several lines.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Instruction {
  uint32_t address = 0;  // in the function, bytes
  std::string guard;     // "@!P0", "" for none
  std::string opcode;    // "SYNCS.ARRIVE.TRANS64.A1T0"
  std::string operands;  // "RZ, [UR13+0x38860], RZ"
  uint8_t stall = 0;     // cycles
  bool keep = true;      // the yield bit as stored
  uint8_t writes = 7;    // scoreboard of the result
  uint8_t reads = 7;     // scoreboard of the sources
  uint8_t waits = 0;     // mask of scoreboards
  std::vector<uint32_t>
      targets;  // of a branch or BSSY: indices into the function's code; none where they are in another one

  std::string_view base() const { return std::string_view(opcode).substr(0, opcode.find('.')); }
  bool is(std::string_view modifier) const;  // the opcode has it, after a dot
  std::string text() const;
};

struct Function {
  std::string name;
  std::vector<Instruction> code;
};

// Throws Error for text that is not such a disassembly.
std::vector<Function> parse_disassembly(std::string_view text);

// The code behind each instruction, by index. A BSYNC goes on behind itself, where every BSSY points; a call
// returns; a loop over the lanes that ask for a uniform instruction runs once. Throws Error for a jump whose
// target is not in the code.
std::vector<std::vector<uint32_t>> successors(const Function& function);

}  // namespace fa4::time
