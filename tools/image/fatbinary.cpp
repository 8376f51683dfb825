// SPDX-License-Identifier: Apache-2.0
// The layout is what fatbinary of CUDA 13.0 writes: a header of 16 bytes, then entries of a header of at
// least 64 bytes and code each, all little-endian.
#include "fatbinary.h"

#include <cstdio>
#include <cstring>

#include "unpack.h"

namespace fa4::image {
namespace {

constexpr uint64_t largest_fatbinary = 2ull << 30;  // bytes: a larger size is a damaged header
constexpr size_t header_bytes = 16, entry_bytes = 64;
constexpr uint64_t flag_lz4 = 0x2000, flag_zstd = 0x8000, flag_architecture = 1 << 20, flag_family = 1 << 21;

template <typename T>
T field(const unsigned char* bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

std::string with(const char* text, uint64_t number) {
  return text + std::to_string(number);
}

// An entry's header says how its code is compressed twice: by a flag, and by the size of what is stored.
Compression compression_of(uint64_t flags, uint32_t compressed_bytes) {
  const uint64_t kind = flags & (flag_lz4 | flag_zstd);
  if (kind == 0 && compressed_bytes == 0) return Compression::none;
  if (kind == flag_lz4) return Compression::lz4;
  if (kind == flag_zstd) return Compression::zstd;
  return Compression::unknown;
}

}  // namespace

std::string Entry::target() const {
  std::string text = with("sm_", architecture);
  if (letter != '\0') text += letter;
  return text;
}

std::string read_fatbinary(const unsigned char* bytes, size_t size, std::vector<Entry>* entries) {
  entries->clear();
  if (size < header_bytes) return "it ends within its header";
  const auto version = field<uint16_t>(bytes, 4), head = field<uint16_t>(bytes, 6);
  const auto rest = field<uint64_t>(bytes, 8);
  if (version != 1) return with("its version is not 1 but ", version);
  if (head < header_bytes) return with("its header's size is given as ", head);
  if (rest > largest_fatbinary) return with("its size is given as ", rest);
  const uint64_t end = head + rest;
  if (end > size) return with("its header says ", end) + with(" bytes, but there are ", size);

  for (uint64_t at = head; at < end;) {
    if (end - at < entry_bytes) return with("an entry header is cut off at offset ", at);
    const unsigned char* const from = bytes + at;
    const auto own_bytes = field<uint32_t>(from, 4);
    const auto code_bytes = field<uint64_t>(from, 8);
    if (own_bytes < entry_bytes || own_bytes > end - at || code_bytes > end - at - own_bytes)
      return with("an entry does not fit, at offset ", at);
    Entry entry;
    entry.kind = field<uint16_t>(from, 0);
    entry.architecture = field<uint32_t>(from, 28);
    entry.flags = field<uint64_t>(from, 40);
    entry.letter = entry.flags & flag_architecture ? 'a' : entry.flags & flag_family ? 'f' : '\0';
    entry.code = from + own_bytes;
    entry.offset = at;
    const auto compressed_bytes = field<uint32_t>(from, 16);
    entry.compression = compression_of(entry.flags, compressed_bytes);
    entry.stored_bytes = code_bytes;
    if (entry.compression != Compression::none) {
      if (compressed_bytes > code_bytes)
        return with("compressed code of ", compressed_bytes) +
               with(" bytes does not fit into its entry, at offset ", at);
      entry.stored_bytes = compressed_bytes;
      entry.unpacked_bytes = field<uint64_t>(from, 56);
    }
    entries->push_back(entry);
    at += own_bytes + code_bytes;
  }
  return "";
}

std::string unpack(const Entry& entry, std::string* code) {
  if (entry.compression == Compression::none) {
    code->assign(reinterpret_cast<const char*>(entry.code), entry.stored_bytes);
    return "";
  }
  code->clear();
  const std::string place = with(" at offset ", entry.offset);
  if (entry.compression == Compression::unknown) {
    char flags[32];
    std::snprintf(flags, sizeof flags, "0x%llx", static_cast<unsigned long long>(entry.flags));
    return "the compression of the entry" + place + " is not known: its flags are " + flags +
           "; zstd (0x8000) and LZ4 (0x2000) are read";
  }
  const bool zstd = entry.compression == Compression::zstd;
  const std::string what = std::string(zstd ? "the zstd data" : "the LZ4 data") + " of the entry" + place;
  // Sizes that cannot be are refused before there is memory for them.
  if (entry.unpacked_bytes > largest_code)
    return what + with(" is said to be code of ", entry.unpacked_bytes) +
           with(" bytes; up to ", largest_code) + " are read";
  if (entry.unpacked_bytes / (zstd ? most_from_zstd : most_from_lz4) > entry.stored_bytes)
    return what + with(" of ", entry.stored_bytes) +
           with(" bytes is said to be code of ", entry.unpacked_bytes);
  code->resize(entry.unpacked_bytes);
  const std::string wrong = (zstd ? unpack_zstd : unpack_lz4)({entry.code, entry.stored_bytes}, *code);
  if (wrong.empty()) return "";
  code->clear();
  return what + " is damaged: " + wrong;
}

}  // namespace fa4::image
