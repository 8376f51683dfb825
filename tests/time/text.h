// SPDX-License-Identifier: Apache-2.0
// Writes machine code the way nvdisasm prints it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "support/catch.h"

namespace fa4::time::test {

// Catch2 v2 and v3 name it differently.
inline auto contains(const std::string& text) {
#ifdef FA4_CATCH2_V3
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Matchers::Contains(text);
#endif
}

// One instruction with its control word. Stall in cycles; keep: the yield bit as stored; scoreboards: 7 is
// none; waits: a mask.
struct Control {
  uint32_t stall = 1;
  bool keep = true;
  uint32_t writes = 7, reads = 7, waits = 0;
};

class Disassembly {
 public:
  explicit Disassembly(const std::string& name)
      : text_("\t.section\t.text." + name + ",\"ax\",@progbits\n.text." + name + ":\n") {}
  Disassembly& label(const std::string& name) {
    text_ += name + ":\n";
    return *this;
  }
  Disassembly& add(const std::string& code, const Control& c = {}) {
    char line[256];
    std::snprintf(line, sizeof line, "        /*%04x*/                   %s ;      /* 0x%016llx */\n",
                  address_, code.c_str(), 0ull);
    text_ += line;
    const uint64_t control = uint64_t(c.stall) | uint64_t(c.keep) << 4 | uint64_t(c.writes) << 5 |
                             uint64_t(c.reads) << 8 | uint64_t(c.waits) << 11;
    std::snprintf(line, sizeof line, "                                                     /* 0x%016llx */\n",
                  static_cast<unsigned long long>(control << 41));
    text_ += line;
    address_ += 16;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  uint32_t address_ = 0;
};

}  // namespace fa4::time::test
