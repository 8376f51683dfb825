// SPDX-License-Identifier: Apache-2.0
// Fatbinaries, for the tools: what lies in one and where, and its code as it was before it was compressed. No
// size and no offset in one is believed. Functions return "" or a sentence without a full stop about what is
// wrong; no state, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fa4::image {

constexpr uint32_t fatbinary_magic = 0xba55'ed50;
constexpr size_t unknown_size = SIZE_MAX;
constexpr uint64_t largest_code = 256ull << 20;  // bytes of an entry when unpacked; more is taken for damage

// What fatbinary of CUDA 13 makes: zstd for --compress-mode default, balance and size; LZ4, which toolkits
// before it make unasked, for speed.
enum class Compression { none, lz4, zstd, unknown };

struct Entry {
  static constexpr uint16_t ptx = 1, cubin = 2;
  uint16_t kind = 0;          // ptx, cubin, or one of those that nothing here reads
  uint32_t architecture = 0;  // 10 * major + minor
  char letter = '\0';         // 'a', 'f' or none
  uint64_t flags = 0;
  Compression compression = Compression::none;
  const unsigned char* code = nullptr;  // within the fatbinary
  uint64_t stored_bytes = 0;    // of the code there; not compressed: with its padding, to a multiple of 8
  uint64_t unpacked_bytes = 0;  // of compressed code, as the entry says
  uint64_t offset = 0;          // of the entry within the fatbinary

  std::string target() const;  // "sm_100f"
};

// Entries of the fatbinary at `bytes`. Of unknown size, it is as long as its header says (then a file cut
// short must be followed by readable memory).
std::string read_fatbinary(const unsigned char* bytes, size_t size, std::vector<Entry>* entries);

// The code of an entry: its bytes, decompressed if they are compressed. Takes no more memory than
// largest_code, and no more than the compressed bytes could hold.
std::string unpack(const Entry& entry, std::string* code);

}  // namespace fa4::image
