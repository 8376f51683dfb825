// SPDX-License-Identifier: Apache-2.0
// Reading images.
#include "image.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../../image/fatbinary.h"
#include "../ptx/target.h"
#include "state.h"

namespace fa4::sim::driver {

namespace {

using fa4::image::fatbinary_magic;
constexpr uint32_t wrapper_magic = 0x4662'43b1;  // what a compiled-in fatbinary is reached through
constexpr int newest_ptx = 90;                   // PTX ISA 9.0, as CUDA 13.0

// Little-endian fields at fixed offsets.
template <typename T>
T field(const unsigned char* bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

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

CUresult take_text(std::string text, Image* image) {
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
  image->ptx = std::move(text);
  image->header = header;
  return CUDA_SUCCESS;
}

// The PTX of an entry, unpacked: its text ends at the first NUL, after which only padding may come, to a
// multiple of 8 bytes.
CUresult text_of_entry(const fa4::image::Entry& entry, std::string* text) {
  const std::string wrong = unpack(entry, text);
  if (!wrong.empty()) return damaged(wrong);
  const size_t bytes = text->size(), end = std::min(text->find('\0'), bytes);
  if (text->find_first_not_of('\0', end) != std::string::npos)
    return damaged("its PTX holds a zero byte at offset " + std::to_string(end));
  if (bytes - end > 8)
    return damaged("its PTX of " + std::to_string(bytes) + " bytes ends after " + std::to_string(end));
  text->resize(end);
  return CUDA_SUCCESS;
}

// PTX that by its entry is for another GPU is not unpacked.
CUresult read_fatbinary(const unsigned char* bytes, size_t size, Image* image) {
  std::vector<fa4::image::Entry> entries;
  if (const std::string wrong = fa4::image::read_fatbinary(bytes, size, &entries); !wrong.empty())
    return damaged(wrong);
  std::string held, unknown;  // what is in it, and why it cannot be read, for the refusal
  std::string best;
  int best_rank = -1;
  for (const fa4::image::Entry& entry : entries) {
    std::string target = entry.target();
    int rank;
    if (entry.kind == entry.ptx && runs_target(target, &rank)) {
      std::string ptx;
      if (entry.compression == fa4::image::Compression::unknown) {
        unknown = unpack(entry, &ptx);
        continue;
      }
      if (CUresult r = text_of_entry(entry, &ptx)) return r;
      PtxHeader found;
      if (!read_ptx_header(ptx, &found))
        return damaged(text("no PTX in the PTX entry at offset ", entry.offset));
      if (runs_target(found.target, &rank) && rank > best_rank) best = std::move(ptx), best_rank = rank;
      target = found.target;
    }
    held += held.empty() ? "" : ", ";
    held += (entry.kind == entry.ptx     ? "PTX"
             : entry.kind == entry.cubin ? "a cubin"
                                         : text("kind ", entry.kind)) +
            " for " + target;
  }
  if (best_rank >= 0) return take_text(std::move(best), image);
  if (!unknown.empty()) return fail(CUDA_ERROR_NOT_SUPPORTED, unknown);
  return fail(CUDA_ERROR_NO_BINARY_FOR_GPU,
              "the fatbinary holds " + (held.empty() ? "nothing" : held) + ": " + state().gpu->accepts());
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
  return take_text(std::string(text), image);
}

}  // namespace fa4::sim::driver
