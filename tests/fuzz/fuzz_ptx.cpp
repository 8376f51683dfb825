// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry point.
#include "target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  fa4::sim::test::digest(bytes, size);
  return 0;
}
