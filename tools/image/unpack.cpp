// SPDX-License-Identifier: Apache-2.0
#include "unpack.h"

#include <zstd.h>

#include <cstring>

namespace fa4::image {
namespace {

std::string sizes(uint64_t made, uint64_t said) {
  return "it makes " + std::to_string(made) + " bytes of code, not " + std::to_string(said);
}

}  // namespace

std::string unpack_zstd(std::span<const unsigned char> data, std::span<char> code) {
  const size_t made = ZSTD_decompress(code.data(), code.size(), data.data(), data.size());
  if (ZSTD_isError(made)) return ZSTD_getErrorName(made);
  return made == code.size() ? "" : sizes(made, code.size());
}

// A block is sequences of a token (4 bits each: number of literals, length of the match less 4; 15: more
// bytes follow), the literals, and the match: how far behind (2 bytes), its length. The last sequence ends
// after its literals.
std::string unpack_lz4(std::span<const unsigned char> data, std::span<char> code) {
  size_t at = 0, made = 0;
  bool cut = false;
  const auto next = [&]() -> size_t {
    if (at < data.size()) return data[at++];
    cut = true;
    return 0;
  };
  const auto length = [&](size_t nibble) {
    size_t sum = nibble;
    if (nibble == 15) {
      size_t more;
      do sum += more = next();
      while (more == 255);
    }
    return sum;
  };
  for (;;) {
    const size_t token = next();
    const size_t literals = length(token >> 4);
    if (cut || literals > data.size() - at) return "it ends within a sequence";
    if (literals > code.size() - made)
      return "it makes more than " + std::to_string(code.size()) + " bytes of code";
    if (literals != 0) std::memcpy(code.data() + made, data.data() + at, literals);
    at += literals, made += literals;
    if (at == data.size()) break;
    const size_t low = next();
    const size_t behind = low | next() << 8;
    const size_t match = length(token & 15) + 4;
    if (cut) return "it ends within a sequence";
    if (behind == 0 || behind > made) return "a match lies before the beginning";
    if (match > code.size() - made)
      return "it makes more than " + std::to_string(code.size()) + " bytes of code";
    // Byte by byte: a match may reach into what it makes.
    for (size_t i = 0; i < match; ++i) code[made + i] = code[made + i - behind];
    made += match;
  }
  return made == code.size() ? "" : sizes(made, code.size());
}

}  // namespace fa4::image
