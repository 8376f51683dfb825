// SPDX-License-Identifier: Apache-2.0
// Headers of fatbinaries, cubins and PTX texts. The fatbinary layout is as fatbinary 13.0 writes it: a
// 16-byte header (magic, version, header bytes, payload bytes), then entries of a header and a payload each.
#include "image.h"

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstring>
#include <string_view>

namespace fa4 {
namespace {

constexpr uint32_t kFatbinaryMagic = 0xba55ed50;
constexpr uint32_t kElfMagic = 0x464c457f;                         // 0x7f 'E' 'L' 'F'
constexpr uint64_t kFlagArchitectureSpecific = uint64_t{1} << 20;  // the 'a' of sm_100a
constexpr uint64_t kFlagFamilySpecific = uint64_t{1} << 21;        // the 'f' of sm_100f
constexpr uint64_t kFlagZstd = uint64_t{1} << 15;

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
  uint64_t unused0;
  uint16_t version_minor, version_major;  // 0 and 9: PTX ISA 9.0; 8 and 1: a cubin of ABI version 8
  uint32_t arch;
  uint64_t unused1;
  uint64_t flags;
};
static_assert(sizeof(FatbinaryEntry) == 48);

// The compute capabilities there are, for sentences.
constexpr uint32_t kDeviceArchs[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

// The CUDA version of the first driver that takes the code, as cuDriverGetVersion gives it; 0: not known.
// PTX: the release history of the PTX ISA. Cubins: those of ABI version 8 are what the toolkits of CUDA 13
// make, for which drivers of CUDA 13 are promised. No document says that an older one loads none of them:
// these versions explain a load that failed, and refuse none. zstd: driver 550.54.14.
constexpr int kCuda13 = 13000, kZstd = 12040;

int ptx_driver(uint32_t isa_major, uint32_t isa_minor) {
  constexpr struct {
    uint32_t major, minor;
    int driver;
  } kReleases[] = {{8, 0, 12000}, {8, 1, 12010}, {8, 2, 12020}, {8, 3, 12030}, {8, 4, 12040}, {8, 5, 12050},
                   {8, 6, 12070}, {8, 7, 12080}, {8, 8, 12090}, {9, 0, 13000}, {9, 1, 13010}, {9, 2, 13020}};
  for (const auto& release : kReleases)
    if (release.major == isa_major && release.minor == isa_minor) return release.driver;
  return 0;
}

int cubin_driver(uint32_t abi_version) {
  return abi_version == 8 ? kCuda13 : 0;
}

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
    const bool ptx = entry.kind == 1;
    const int driver =
        ptx ? ptx_driver(entry.version_major, entry.version_minor) : cubin_driver(entry.version_minor);
    entries.push_back({ptx ? ImageEntry::Kind::ptx : ImageEntry::Kind::cubin, entry.arch, suffix,
                       std::max(driver, entry.flags & kFlagZstd ? kZstd : 0)});
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
  entries.push_back({ImageEntry::Kind::cubin, abi_version == 7 ? flags & 0xff : (flags >> 8) & 0xff, '\0',
                     cubin_driver(abi_version)});
  return FA4_OK;
}

// What stands behind a word that opens a line, without the blank space between them; null where no line does.
// The same word in a comment does not open one.
std::string_view directive(std::string_view text, std::string_view word) {
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    std::string_view rest = text.substr(line, end - line);
    line = end + 1;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    if (!rest.starts_with(word)) continue;
    rest.remove_prefix(word.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
    return rest;
  }
  return {};
}

// Takes a number from the beginning of the text.
bool take_number(std::string_view& text, uint32_t& number) {
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(after - text.data()));
  return true;
}

fa4_status read_ptx(std::string_view text, std::vector<ImageEntry>& entries, Message& message) {
  constexpr std::string_view prefix = "sm_";
  std::string_view target = directive(text, ".target");
  uint32_t arch = 0;
  if (target.starts_with(prefix)) {
    target.remove_prefix(prefix.size());
    if (take_number(target, arch)) {
      const char next = target.empty() ? '\0' : target.front();
      std::string_view version = directive(text, ".version");
      uint32_t major = 0, minor = 0;
      const bool known = take_number(version, major) && version.starts_with('.') &&
                         (version.remove_prefix(1), take_number(version, minor));
      entries.push_back({ImageEntry::Kind::ptx, arch, next == 'a' || next == 'f' ? next : '\0',
                         known ? ptx_driver(major, minor) : 0});
      return FA4_OK;
    }
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

bool image_runs_on(const std::vector<ImageEntry>& entries, uint32_t device_arch) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const ImageEntry& entry) { return entry.runs_on(device_arch); });
}

std::string describe_image(const std::vector<ImageEntry>& entries) {
  if (entries.empty()) return "no code";
  std::string text;
  for (const ImageEntry& entry : entries) {
    const ImageEntry* const before = &entry == entries.data() ? nullptr : &entry - 1;
    const bool same_target = before != nullptr && before->target() == entry.target();
    text += before == nullptr ? entry.target() : same_target ? " and" : ", " + entry.target();
    text += entry.kind == ImageEntry::Kind::ptx ? " PTX" : " cubin";
  }
  std::vector<uint32_t> archs;
  for (uint32_t arch : kDeviceArchs)
    if (image_runs_on(entries, arch)) archs.push_back(arch);
  if (archs.empty()) return text + ", for no known compute capability";
  text += ", for compute capability ";
  for (std::size_t i = 0; i < archs.size(); ++i) {
    if (i != 0) text += i + 1 == archs.size() ? " and " : ", ";
    text += std::to_string(archs[i] / 10) + "." + std::to_string(archs[i] % 10);
  }
  return text;
}

std::string describe_old_driver(const std::vector<ImageEntry>& entries, uint32_t device_arch,
                                int driver_version) {
  int needed = INT_MAX;  // by the entry that needs least
  for (const ImageEntry& entry : entries)
    if (entry.runs_on(device_arch)) needed = std::min(needed, entry.driver_version);
  if (needed == INT_MAX || driver_version >= needed) return "";
  const auto cuda = [](int version) {
    return "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  };
  return "the driver is of " + cuda(driver_version) + " (cuDriverGetVersion " +
         std::to_string(driver_version) + "); this image needs one of " + cuda(needed) + " or newer on sm_" +
         std::to_string(device_arch);
}

}  // namespace fa4
