// SPDX-License-Identifier: Apache-2.0
// Reading images. The layout of a fatbinary is what fatbinary of CUDA 13 writes.
#include "image.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../ptx/target.h"
#include "state.h"

namespace fa4::sim::driver {

namespace {

constexpr uint32_t fatbinary_magic = 0xba55'ed50;
constexpr uint32_t wrapper_magic = 0x4662'43b1;     // what a compiled-in fatbinary is reached through
constexpr uint64_t largest_fatbinary = 2ull << 30;  // bytes: a larger size is a damaged header
constexpr int newest_ptx = 90;                      // PTX ISA 9.0, as CUDA 13.0

// Little-endian fields at fixed offsets.
template <typename T>
T field(const unsigned char* bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

struct FatbinaryHeader {
  static constexpr size_t bytes = 16;
  uint16_t version, header_bytes;
  uint64_t size;  // of what follows the header
  explicit FatbinaryHeader(const unsigned char* at)
      : version(field<uint16_t>(at, 4)), header_bytes(field<uint16_t>(at, 6)), size(field<uint64_t>(at, 8)) {}
};

struct EntryHeader {
  static constexpr size_t least_bytes = 64;
  static constexpr uint16_t ptx = 1, elf = 2;
  static constexpr uint64_t lz4 = 0x2000, zstd = 0x8000;
  uint16_t kind;
  uint32_t header_bytes;
  uint64_t payload_bytes;  // with padding
  uint32_t compressed_bytes;
  uint32_t architecture;
  uint64_t flags;
  explicit EntryHeader(const unsigned char* at)
      : kind(field<uint16_t>(at, 0)),
        header_bytes(field<uint32_t>(at, 4)),
        payload_bytes(field<uint64_t>(at, 8)),
        compressed_bytes(field<uint32_t>(at, 16)),
        architecture(field<uint32_t>(at, 28)),
        flags(field<uint64_t>(at, 40)) {}
  bool compressed() const { return compressed_bytes != 0 || (flags & (lz4 | zstd)) != 0; }
};

CUresult damaged(const std::string& what) {
  return fail(CUDA_ERROR_INVALID_IMAGE, "damaged fatbinary: " + what);
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  // The next word after white space and comments: a run of letters, digits, '_' and '.', or one other
  // character.
  std::string_view word() {
    skip();
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.'))
      ++at_;
    if (at_ == begin && at_ < text_.size()) ++at_;
    return text_.substr(begin, at_ - begin);
  }

 private:
  void skip() {
    for (;;) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//"))
        at_ += std::min(rest.find('\n'), rest.size());
      else if (rest.starts_with("/*"))
        at_ += std::min(rest.find("*/", 2), rest.size() - 2) + 2;
      else
        return;
    }
  }
  std::string_view text_;
  size_t at_ = 0;
};

CUresult take_text(std::string_view text, Image* image) {
  PtxHeader header;
  if (!read_ptx_header(text, &header))
    return fail(
        Scanner(text).word() == ".version" ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE,
        "the image is not PTX (which begins with .version and .target), nor a fatbinary, nor a cubin");
  if (header.version > newest_ptx)
    return fail(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "PTX version " + std::to_string(header.version / 10) +
                                                        "." + std::to_string(header.version % 10) +
                                                        " is newer than 9.0");
  int rank;
  if (!runs_target(header.target, &rank))
    return fail(CUDA_ERROR_INVALID_PTX, "the PTX is for target " + header.target + ": " + state().gpu->accepts());
  image->ptx = text;
  image->header = header;
  return CUDA_SUCCESS;
}

// The text of a PTX entry: up to the first NUL, after which only padding may come, to a multiple of 8 bytes.
CUresult text_of_entry(const unsigned char* payload, uint64_t bytes, std::string_view* text) {
  std::string_view all(reinterpret_cast<const char*>(payload), bytes);
  const size_t end = std::min(all.find('\0'), all.size());
  if (all.find_first_not_of('\0', end) != std::string_view::npos)
    return damaged("its PTX holds a zero byte at offset " + std::to_string(end));
  if (bytes - end > 8)
    return damaged("its PTX of " + std::to_string(bytes) + " bytes ends after " + std::to_string(end));
  *text = all.substr(0, end);
  return CUDA_SUCCESS;
}

CUresult read_fatbinary(const unsigned char* bytes, size_t size, Image* image) {
  if (size < FatbinaryHeader::bytes) return damaged("it ends within its header");
  const FatbinaryHeader header(bytes);
  if (header.version != 1) return damaged(text("its version is not 1 but ", header.version));
  if (header.header_bytes < FatbinaryHeader::bytes)
    return damaged(text("its header's size is given as ", header.header_bytes));
  if (header.size > largest_fatbinary) return damaged(text("its size is given as ", header.size));
  const uint64_t end = header.header_bytes + header.size;
  if (end > size)
    return damaged("its header says " + std::to_string(end) + " bytes, but there are " +
                   std::to_string(size));

  std::vector<std::string> held;  // what is in it, for the refusal
  bool compressed_ptx = false;
  std::string_view best;
  PtxHeader best_header;
  int best_rank = -1;
  uint64_t at = header.header_bytes;
  while (at < end) {
    if (end - at < EntryHeader::least_bytes)
      return damaged(text("an entry header is cut off at offset ", at));
    const EntryHeader entry(bytes + at);
    const uint64_t room = end - at;
    if (entry.header_bytes < EntryHeader::least_bytes || entry.header_bytes > room ||
        entry.payload_bytes > room - entry.header_bytes)
      return damaged(text("an entry does not fit, at offset ", at));
    const unsigned char* payload = bytes + at + entry.header_bytes;
    const std::string name = "sm_" + std::to_string(entry.architecture);
    if (entry.kind == EntryHeader::ptx && entry.compressed()) {
      compressed_ptx = true;
      held.push_back("compressed PTX for " + name);
    } else if (entry.kind == EntryHeader::ptx) {
      std::string_view ptx;
      if (CUresult r = text_of_entry(payload, entry.payload_bytes, &ptx)) return r;
      PtxHeader found;
      if (!read_ptx_header(ptx, &found)) return damaged(text("no PTX in the PTX entry at offset ", at));
      held.push_back("PTX for " + found.target);
      int rank;
      if (runs_target(found.target, &rank) && rank > best_rank)
        best = ptx, best_header = found, best_rank = rank;
    } else {
      held.push_back((entry.kind == EntryHeader::elf ? "a cubin for " : text("kind ", entry.kind) + " for ") +
                     name);
    }
    at += entry.header_bytes + entry.payload_bytes;
  }
  if (best_rank >= 0) return take_text(best, image);

  std::string list;
  for (const std::string& item : held) list += (list.empty() ? "" : ", ") + item;
  if (list.empty()) list = "nothing";
  if (compressed_ptx)
    return fail(CUDA_ERROR_NOT_SUPPORTED,
                "the fatbinary holds " + list +
                    ": compressed code is not read, make it with fatbinary --compress=false "
                    "(nvcc -Xfatbin -compress=false)");
  return fail(CUDA_ERROR_NO_BINARY_FOR_GPU, "the fatbinary holds " + list + ": " + state().gpu->accepts());
}

}  // namespace

bool read_ptx_header(std::string_view text, PtxHeader* header) {
  Scanner scanner(text);
  if (scanner.word() != ".version") return false;
  const std::string_view version = scanner.word();
  const size_t point = version.find('.');
  if (point == std::string_view::npos || point == 0 || point > 2 || version.size() != point + 2) return false;
  int value = 0;
  for (char c : version) {
    if (c == '.') continue;
    if (!std::isdigit(static_cast<unsigned char>(c))) return false;
    value = 10 * value + (c - '0');
  }
  if (scanner.word() != ".target") return false;
  const std::string_view target = scanner.word();
  if (!target.starts_with("sm_")) return false;
  header->version = value;
  header->target = target;
  return true;
}

bool runs_target(std::string_view text, int* rank) {
  const auto target = ptx::read_target(text);
  if (!target || !ptx::runs(state().gpu->number, *target)) return false;
  *rank = 10 * static_cast<int>(target->number) + (target->letter == 'a' ? 2 : target->letter == 'f' ? 1 : 0);
  return true;
}

CUresult read_image(const void* image_bytes, size_t size, Image* image) {
  if (image_bytes == nullptr) return fail(CUDA_ERROR_INVALID_VALUE, "the image pointer is null");
  const auto* bytes = static_cast<const unsigned char*>(image_bytes);
  // Of unknown size, an image is at least a string: bytes are looked at one after the other up to the first
  // mismatch.
  auto begins_with = [&](uint32_t magic) {
    for (size_t i = 0; i < 4; ++i)
      if (i >= size || bytes[i] != (magic >> (8 * i) & 0xff)) return false;
    return true;
  };
  if (begins_with(0x464c'457f))
    return fail(
        CUDA_ERROR_NO_BINARY_FOR_GPU,
        std::string("the image is a cubin, machine code that is not simulated: ") + state().gpu->accepts());
  if (begins_with(fatbinary_magic)) return read_fatbinary(bytes, size, image);
  if (size == unknown_size && begins_with(wrapper_magic)) {
    const auto* inner = field<const unsigned char*>(bytes, 8);
    if (inner == nullptr || field<uint32_t>(inner, 0) != fatbinary_magic)
      return damaged("its wrapper does not point to one");
    return read_fatbinary(inner, unknown_size, image);
  }
  std::string_view text;
  if (size == unknown_size) {
    text = reinterpret_cast<const char*>(bytes);
  } else {
    text = std::string_view(reinterpret_cast<const char*>(bytes), size);
    const size_t end = std::min(text.find('\0'), text.size());
    if (text.find_first_not_of('\0', end) != std::string_view::npos)
      return fail(CUDA_ERROR_INVALID_IMAGE,
                  "the image is text with a zero byte at offset " + std::to_string(end));
    text = text.substr(0, end);
  }
  if (text.empty()) return fail(CUDA_ERROR_INVALID_IMAGE, "the image is empty");
  return take_text(text, image);
}

}  // namespace fa4::sim::driver
