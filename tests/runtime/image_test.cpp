// SPDX-License-Identifier: Apache-2.0
// Reading images: the built-in one, fatbinaries made here byte by byte, PTX texts, and things that are none.
#include "runtime/image.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "runtime/library.h"
#include "support/catch.h"

using fa4::ImageEntry;
using fa4::Message;

namespace {

struct Piece {
  uint16_t kind;
  uint32_t arch;
  uint64_t flags;
  uint32_t version =
      0;  // high and low half: major and minor of the PTX ISA; low half: ABI version of a cubin
};

template <typename T>
void put(std::vector<char>& bytes, size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

std::vector<char> fatbinary(const std::vector<Piece>& pieces) {
  constexpr size_t header = 64, payload = 24;
  std::vector<char> bytes(16 + pieces.size() * (header + payload));
  put<uint32_t>(bytes, 0, 0xba55ed50);
  put<uint16_t>(bytes, 4, 1);
  put<uint16_t>(bytes, 6, 16);
  put<uint64_t>(bytes, 8, bytes.size() - 16);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const size_t at = 16 + i * (header + payload);
    put<uint16_t>(bytes, at, pieces[i].kind);
    put<uint32_t>(bytes, at + 4, header);
    put<uint64_t>(bytes, at + 8, payload);
    put<uint32_t>(bytes, at + 24, pieces[i].version);
    put<uint32_t>(bytes, at + 28, pieces[i].arch);
    put<uint64_t>(bytes, at + 40, pieces[i].flags);
  }
  return bytes;
}

std::string read(const void* image) {
  std::vector<ImageEntry> entries;
  Message message;
  const fa4_status status = fa4::read_image(image, entries, message);
  if (status != FA4_OK) {
    CHECK(status == FA4_ERROR_INVALID_ARGUMENT);
    return message.text();
  }
  return fa4::describe_image(entries);
}

constexpr uint64_t kA = 0x100000, kF = 0x200000;

}  // namespace

TEST_CASE("the built-in image holds a cubin and PTX for 9.0 and for the 10.x family", "[runtime]") {
  CHECK(read(fa4::builtin_image()) ==
        "sm_90a cubin and PTX, sm_100f cubin and PTX, for compute capability 9.0, 10.0 and 10.3");
}

TEST_CASE("fatbinary entries", "[runtime]") {
  CHECK(read(fatbinary({{2, 100, kF}}).data()) == "sm_100f cubin, for compute capability 10.0 and 10.3");
  CHECK(read(fatbinary({{2, 103, kA}, {2, 90, kA}}).data()) ==
        "sm_103a cubin, sm_90a cubin, for compute capability 9.0 and 10.3");
  CHECK(read(fatbinary({{2, 80, 0}}).data()) ==
        "sm_80 cubin, for compute capability 8.0, 8.6, 8.7, 8.8 and 8.9");
  CHECK(read(fatbinary({{1, 110, 0}}).data()) == "sm_110 PTX, for compute capability 11.0, 12.0 and 12.1");
  CHECK(read(fatbinary({{1, 80, 0}, {2, 90, 0}, {1, 90, 0}, {1, 90, kA}}).data()) ==
        "sm_80 PTX, sm_90 cubin and PTX, sm_90a PTX, for compute capability 8.0, 8.6, 8.7, 8.8, 8.9, 9.0, "
        "10.0, 10.3, "
        "11.0, 12.0 and 12.1");
  CHECK(read(fatbinary({}).data()) == "no code");
}

TEST_CASE("what runs where", "[runtime]") {
  const auto cubin = [](uint32_t arch, char suffix) {
    return ImageEntry{ImageEntry::Kind::cubin, arch, suffix};
  };
  const auto ptx = [](uint32_t arch, char suffix) { return ImageEntry{ImageEntry::Kind::ptx, arch, suffix}; };
  CHECK(cubin(100, 'f').runs_on(100));
  CHECK(cubin(100, 'f').runs_on(103));
  CHECK_FALSE(cubin(100, 'f').runs_on(90));
  CHECK_FALSE(cubin(100, 'f').runs_on(110));
  CHECK_FALSE(cubin(100, 'f').runs_on(120));
  CHECK_FALSE(cubin(103, 'f').runs_on(100));
  CHECK(cubin(100, 'a').runs_on(100));
  CHECK_FALSE(cubin(100, 'a').runs_on(103));
  CHECK(cubin(80, '\0').runs_on(86));
  CHECK_FALSE(cubin(86, '\0').runs_on(80));
  CHECK_FALSE(ptx(100, 'f').runs_on(120));
  CHECK_FALSE(ptx(90, 'a').runs_on(100));
  CHECK(ptx(90, '\0').runs_on(120));
}

TEST_CASE("PTX texts", "[runtime]") {
  CHECK(read("// .target sm_50\n.version 9.0\n  .target\tsm_100f, debug\n.address_size 64\n") ==
        "sm_100f PTX, for compute capability 10.0 and 10.3");
  CHECK(read("\n.version 8.0\n.target sm_90a") == "sm_90a PTX, for compute capability 9.0");
  for (const char* text :
       {"// nothing", ".version 9.0\n.target", ".target sm_x\n", "/", ".target compute_90"}) {
    CHECK(read(text) == "image is a text without a line \".target sm_NNN\"; PTX has one");
  }
}

TEST_CASE("cubins", "[runtime]") {
  std::vector<char> elf(64);
  std::memcpy(elf.data(),
              "\x7f"
              "ELF\x02\x01\x01\x41\x08",
              9);
  put<uint16_t>(elf, 18, 190);
  put<uint32_t>(elf, 48, 0x06006402);
  CHECK(read(elf.data()) == "sm_100 cubin, for compute capability 10.0 and 10.3");
  elf[8] = 7;
  put<uint32_t>(elf, 48, 0x005a055a);
  CHECK(read(elf.data()) == "sm_90 cubin, for compute capability 9.0");
  elf[8] = 9;
  CHECK(read(elf.data()) == "image is a cubin of ABI version 9; versions 7 and 8 can be read");
  put<uint16_t>(elf, 18, 62);
  CHECK(read(elf.data()).find("for machine 62; a cubin has class 2 and machine 190") != std::string::npos);
}

TEST_CASE("drivers that are too old for an image", "[runtime]") {
  const auto old = [](const void* image, uint32_t device, int driver) {
    std::vector<ImageEntry> entries;
    Message message;
    REQUIRE(fa4::read_image(image, entries, message) == FA4_OK);
    return fa4::describe_old_driver(entries, device, driver);
  };
  const auto needs = [](const std::string& driver, const std::string& number, const std::string& needed,
                        const char* gpu) {
    return "the driver is of CUDA " + driver + " (cuDriverGetVersion " + number +
           "); this image needs one of CUDA " + needed + " or newer on " + gpu;
  };
  for (uint32_t device : {90u, 100u, 103u}) {
    const std::string gpu = "sm_" + std::to_string(device);
    CHECK(old(fa4::builtin_image(), device, 12040) == needs("12.4", "12040", "13.0", gpu.c_str()));
    CHECK(old(fa4::builtin_image(), device, 12090) == needs("12.9", "12090", "13.0", gpu.c_str()));
    CHECK(old(fa4::builtin_image(), device, 13000).empty());
    CHECK(old(fa4::builtin_image(), device, 13010).empty());
  }
  CHECK(old(fa4::builtin_image(), 120, 12040).empty());  // no entry runs there: its age is not what is wrong

  constexpr uint32_t kPtx82 = 8 << 16 | 2, kPtx88 = 8 << 16 | 8, kPtx9 = 9 << 16, kPtx79 = 7 << 16 | 9,
                     kPtx99 = 99 << 16, kAbi7 = 1 << 16 | 7, kAbi8 = 1 << 16 | 8;
  constexpr uint64_t kZstd = 0x8000, kLz4 = 0x2000;
  struct Row {
    Piece piece;
    int oldest;
  };
  for (const Row& row :
       {Row{{1, 90, kA, kPtx82}, 12020}, Row{{1, 90, kA, kPtx88}, 12090}, Row{{1, 90, kA, kPtx9}, 13000},
        Row{{1, 90, kA, kPtx79}, 0}, Row{{1, 90, kA, kPtx99}, 0}, Row{{2, 90, kA, kAbi7}, 0},
        Row{{2, 90, kA, kAbi8}, 13000}, Row{{1, 90, kA | kZstd, kPtx82}, 12040},
        Row{{1, 90, kA | kLz4, kPtx82}, 12020}, Row{{2, 90, kA | kZstd, kAbi7}, 12040},
        Row{{1, 90, kA | kZstd, kPtx9}, 13000}}) {
    INFO(row.piece.kind << " " << row.piece.version << " " << row.piece.flags);
    const std::vector<char> bytes = fatbinary({row.piece});
    CHECK(old(bytes.data(), 90, row.oldest).empty());
    CHECK(old(bytes.data(), 90, std::max(row.oldest - 1, 0)).empty() == (row.oldest == 0));
  }
  // One entry that the driver can load is enough; what another device needs is not asked.
  CHECK(old(fatbinary({{2, 90, kA, kAbi8}, {1, 90, kA, kPtx82}}).data(), 90, 12020).empty());
  CHECK(old(fatbinary({{2, 90, kA, kAbi7}, {1, 90, kA, kPtx9}}).data(), 90, 12000).empty());
  CHECK(old(fatbinary({{2, 90, kA, kAbi8}, {1, 80, 0, kPtx82}}).data(), 80, 12020).empty());
  CHECK(old("// .version 8.0\n .version\t8.8\n.target sm_90a\n", 90, 12080) ==
        needs("12.8", "12080", "12.9", "sm_90"));
  CHECK(old(".version 8.8\n.target sm_90a\n", 90, 12090).empty());
  for (const char* text : {".target sm_90a\n", ".version\n.target sm_90a\n", ".version 9\n.target sm_90a\n"})
    CHECK(old(text, 90, 1).empty());
}

TEST_CASE("images that are none", "[runtime]") {
  CHECK(read("PK\x03\x04 zip") ==
        "image starts with 0x04034b50; a fatbinary (0xba55ed50), a cubin (0x464c457f) or PTX "
        "text is accepted");
  std::vector<char> bytes = fatbinary({{2, 100, kF}});
  put<uint16_t>(bytes, 4, 2);
  CHECK(read(bytes.data()).find("fatbinary of version 2") != std::string::npos);
  bytes = fatbinary({{2, 100, kF}, {7, 100, kF}});
  CHECK(read(bytes.data()).find("entry 1 is of kind 7") != std::string::npos);
  for (uint64_t payload : {uint64_t{0}, uint64_t{1000}, ~uint64_t{0}, ~uint64_t{0} - 63}) {
    bytes = fatbinary({{2, 100, kF}});
    put<uint64_t>(bytes, 16 + 8, payload);
    if (payload == 0) put<uint32_t>(bytes, 16 + 4, 0);
    CHECK(read(bytes.data()).find("damaged fatbinary: entry 0") != std::string::npos);
  }
}
