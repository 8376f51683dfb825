// SPDX-License-Identifier: Apache-2.0
// Forms that need a Blackwell GPU.
#include "row.h"

namespace fa4::conformance {

void add_blackwell_rows(Table& t) {
  t.needs(Needs::blackwell);
  t.family({"f32x2 arithmetic", "9.7.3", "two f32 operations on the words of a pair"});
  for (const char* op : {"add", "sub", "mul"}) {
    for (const char* round : {"", ".rn", ".rz", ".rm", ".rp"}) {
      for (const char* ftz : {"", ".ftz"}) t.add(std::string(op) + round + ftz + ".f32x2", "F=FF");
    }
  }
  for (const char* round : {".rn", ".rz", ".rm", ".rp"}) {
    for (const char* ftz : {"", ".ftz"}) t.add(std::string("fma") + round + ftz + ".f32x2", "F=FFF");
  }
  t.family({"minimum and maximum of three", "9.7.3", "as two of two: a NaN loses, or wins with .NaN; -0 is below +0"});
  for (const char* op : {"min", "max"}) {
    for (const char* mode : {"", ".ftz", ".NaN", ".ftz.NaN", ".abs", ".NaN.abs"}) t.add(std::string(op) + mode + ".f32 %d, %a, %b, %c;", "f=fff", std::string(op) + mode + ".f32 of three");
  }
}

}  // namespace fa4::conformance
