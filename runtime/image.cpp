// SPDX-License-Identifier: Apache-2.0
// Headers of fatbinaries, cubins and PTX texts. The fatbinary layout is as fatbinary 13.0 writes it: a
// 16-byte header (magic, version, header bytes, payload bytes), then entries of a header and a payload each.
#include "image.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

namespace fa4 {
namespace {

constexpr uint32_t kFatbinaryMagic = 0xba55ed50;
constexpr uint32_t kElfMagic = 0x464c457f;                         // 0x7f 'E' 'L' 'F'
constexpr uint64_t kFlagArchitectureSpecific = uint64_t{1} << 20;  // the 'a' of sm_100a
constexpr uint64_t kFlagFamilySpecific = uint64_t{1} << 21;        // the 'f' of sm_100f

struct FatbinaryHeader {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t payload_bytes;
};

struct FatbinaryEntry {
  uint16_t kind;  // 1: PTX, 2: cubin
  uint16_t version;
  uint32_t header_bytes;
  uint64_t payload_bytes;
  uint32_t stored_bytes;  // of a compressed payload
  uint32_t unused0;
  uint32_t toolkit;
  uint32_t arch;
  uint64_t unused1;
  uint64_t flags;
};
static_assert(sizeof(FatbinaryEntry) == 48);

// The compute capabilities there are, for sentences.
constexpr uint32_t kDeviceArchs[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

fa4_status read_fatbinary(const std::byte* image, std::vector<ImageEntry>& entries, Message& message) {
  FatbinaryHeader header;
  std::memcpy(&header, image, sizeof header);
  if (header.version != 1 || header.header_bytes < sizeof header) {
    return message.fail(
        FA4_ERROR_INVALID_ARGUMENT,
        "image is a fatbinary of version %u with a header of %u bytes; version 1 with at least %zu bytes "
        "can be read",
        header.version, header.header_bytes, sizeof header);
  }
  const std::byte* at = image + header.header_bytes;
  for (uint64_t left = header.payload_bytes; left != 0;) {
    FatbinaryEntry entry{};
    if (left >= sizeof entry) std::memcpy(&entry, at, sizeof entry);
    if (entry.header_bytes < sizeof entry || entry.header_bytes > left ||
        entry.payload_bytes > left - entry.header_bytes) {
      return message.fail(
          FA4_ERROR_INVALID_ARGUMENT,
          "image is a damaged fatbinary: entry %zu does not fit into the %llu bytes that are left",
          entries.size(), static_cast<unsigned long long>(left));
    }
    if (entry.kind != 1 && entry.kind != 2) {
      return message.fail(
          FA4_ERROR_INVALID_ARGUMENT,
          "image is a fatbinary whose entry %zu is of kind %u; PTX (1) and cubins (2) can be read",
          entries.size(), entry.kind);
    }
    const char suffix = entry.flags & kFlagArchitectureSpecific ? 'a'
                        : entry.flags & kFlagFamilySpecific     ? 'f'
                                                                : '\0';
    entries.push_back(
        {entry.kind == 1 ? ImageEntry::Kind::ptx : ImageEntry::Kind::cubin, entry.arch, suffix,
         static_cast<uint64_t>(at - image) + entry.header_bytes, entry.payload_bytes, entry.stored_bytes != 0});
    at += entry.header_bytes + entry.payload_bytes;
    left -= entry.header_bytes + entry.payload_bytes;
  }
  return FA4_OK;
}

// A cubin's header has the architecture but not the suffix; code of sm_100a that meets a 10.3 device is then
// refused by the driver.
fa4_status read_cubin(const std::byte* image, std::vector<ImageEntry>& entries, Message& message) {
  const auto elf_class = static_cast<unsigned>(image[4]);
  const auto abi_version = static_cast<unsigned>(image[8]);
  uint16_t machine;
  uint32_t flags;
  std::memcpy(&machine, image + 18, sizeof machine);
  if (elf_class != 2 || machine != 190) {
    return message.fail(
        FA4_ERROR_INVALID_ARGUMENT,
        "image is an ELF file of class %u for machine %u; a cubin has class 2 and machine 190", elf_class,
        machine);
  }
  std::memcpy(&flags, image + 48, sizeof flags);
  if (abi_version != 7 && abi_version != 8) {
    return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                        "image is a cubin of ABI version %u; versions 7 and 8 can be read", abi_version);
  }
  entries.push_back({ImageEntry::Kind::cubin, abi_version == 7 ? flags & 0xff : (flags >> 8) & 0xff, '\0'});
  return FA4_OK;
}

fa4_status read_ptx(std::string_view text, std::vector<ImageEntry>& entries, Message& message) {
  constexpr std::string_view directive = ".target";
  constexpr std::string_view prefix = "sm_";
  // The directive opens a line; the same word in a comment does not.
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    std::string_view rest = text.substr(line, end - line);
    line = end + 1;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (!rest.starts_with(directive)) continue;
    rest.remove_prefix(directive.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (!rest.starts_with(prefix)) break;
    rest.remove_prefix(prefix.size());
    uint32_t arch = 0;
    const auto [after, error] = std::from_chars(rest.data(), rest.data() + rest.size(), arch);
    if (error != std::errc()) break;
    const char next = after != rest.data() + rest.size() ? *after : '\0';
    entries.push_back({ImageEntry::Kind::ptx, arch, next == 'a' || next == 'f' ? next : '\0'});
    return FA4_OK;
  }
  return message.fail(FA4_ERROR_INVALID_ARGUMENT,
                      "image is a text without a line \".target sm_NNN\"; PTX has one");
}

// Whether it may be PTX: text starts with a comment, blank space or a directive.
bool may_be_text(char first) {
  return first == '/' || first == '.' || first == ' ' || first == '\n' || first == '\r' || first == '\t';
}

}  // namespace

bool ImageEntry::runs_on(uint32_t device_arch) const {
  if (suffix == 'a') return device_arch == arch;
  const bool same_major = device_arch / 10 == arch / 10;
  if (suffix == 'f' || kind == Kind::cubin) return same_major && device_arch >= arch;
  return device_arch >= arch;  // PTX is compiled for any newer device
}

std::string ImageEntry::target() const {
  std::string text = "sm_" + std::to_string(arch);
  if (suffix != '\0') text += suffix;
  return text;
}

fa4_status read_image(const void* image, std::vector<ImageEntry>& entries, Message& message) {
  entries.clear();
  const auto* bytes = static_cast<const std::byte*>(image);
  const char first = *static_cast<const char*>(image);
  if (may_be_text(first)) return read_ptx(static_cast<const char*>(image), entries, message);
  uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  if (magic == kFatbinaryMagic) return read_fatbinary(bytes, entries, message);
  if (magic == kElfMagic) return read_cubin(bytes, entries, message);
  return message.fail(
      FA4_ERROR_INVALID_ARGUMENT,
      "image starts with 0x%08x; a fatbinary (0x%08x), a cubin (0x%08x) or PTX text is accepted", magic,
      kFatbinaryMagic, kElfMagic);
}

std::string describe_image(const std::vector<ImageEntry>& entries) {
  if (entries.empty()) return "no code";
  std::string text;
  std::vector<uint32_t> archs;
  for (const ImageEntry& entry : entries) {
    if (!text.empty()) text += &entry == &entries.back() ? " and " : ", ";
    text += entry.target() + (entry.kind == ImageEntry::Kind::ptx ? " PTX" : " cubin");
  }
  for (uint32_t arch : kDeviceArchs) {
    for (const ImageEntry& entry : entries) {
      if (!entry.runs_on(arch)) continue;
      archs.push_back(arch);
      break;
    }
  }
  if (archs.empty()) return text + ", for no known compute capability";
  text += ", for compute capability ";
  for (std::size_t i = 0; i < archs.size(); ++i) {
    if (i != 0) text += i + 1 == archs.size() ? " and " : ", ";
    text += std::to_string(archs[i] / 10) + "." + std::to_string(archs[i] % 10);
  }
  return text;
}

}  // namespace fa4
