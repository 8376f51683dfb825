// SPDX-License-Identifier: Apache-2.0
// The name table that travels inside the PTX: the simulated GPU reads the symbol `<entry>_names` of a module and
// uses it to say "p_o_rescale[1]" where it would otherwise say "mbarrier at shared offset 0x38410".
#pragma once

#include <stdint.h>

namespace fa4 {

enum class NameKind : uint32_t {
  end = 0,      // closes the table
  role = 1,     // begin..end: warp indices in the CTA
  barrier = 2,  // begin..end: bytes from the start of dynamic shared memory
  shared = 3,   // begin..end: bytes from the start of dynamic shared memory
  tmem = 4,     // begin..end: TMEM columns
};

struct NameRecord {
  NameKind kind;
  uint32_t begin, end;  // half open
  char name[36];        // NUL-terminated
};
static_assert(sizeof(NameRecord) == 48);

}  // namespace fa4
