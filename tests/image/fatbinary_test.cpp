// SPDX-License-Identifier: Apache-2.0
// Code unpacked from fatbinaries is compared with the files that fatbinary was given; damaged fatbinaries are
// refused or, where nothing gives the damage away, give as many bytes as was said.
#include "tools/image/fatbinary.h"

#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>

#include "support/catch.h"
#include "tools/image/unpack.h"

using fa4::image::Compression;
using fa4::image::Entry;

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

const unsigned char* bytes_of(const std::string& text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string read(const std::string& fatbinary, std::vector<Entry>* entries) {
  return fa4::image::read_fatbinary(bytes_of(fatbinary), fatbinary.size(), entries);
}

// Lines of PTX without comments and spacing, which fatbinary does not keep.
std::vector<std::string> statements(const std::string& ptx) {
  std::vector<std::string> result;
  std::istringstream lines(ptx.substr(0, ptx.find('\0')));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find("//")));
    std::string all;
    for (std::string word; words >> word;) all += word + " ";
    if (!all.empty()) result.push_back(all);
  }
  return result;
}

template <typename T>
void put(std::string* bytes, size_t at, T value) {
  std::memcpy(bytes->data() + at, &value, sizeof value);
}

// A fatbinary of one entry, from the layout alone. Sizes as they should be, unless they are named.
struct Made {
  uint64_t flags = 0;
  std::string code;
  uint64_t unpacked = 0;
  int64_t compressed = -1;

  std::string bytes() const {
    std::string all(16 + 64, '\0');
    put(&all, 0, uint32_t{0xba55ed50});
    put(&all, 4, uint16_t{1});
    put(&all, 6, uint16_t{16});
    put(&all, 16, uint16_t{1});
    put(&all, 16 + 4, uint32_t{64});
    put(&all, 16 + 28, uint32_t{100});
    put(&all, 16 + 40, flags);
    put(&all, 16 + 56, unpacked);
    put(&all, 16 + 16, uint32_t(compressed >= 0 ? compressed : flags & 0xa000 ? int64_t(code.size()) : 0));
    all += code;
    all.resize((all.size() + 7) / 8 * 8, '\0');
    put(&all, 16 + 8, uint64_t{all.size() - 16 - 64});
    put(&all, 8, uint64_t{all.size() - 16});
    return all;
  }
};

// "" and the code, or what is wrong.
std::string unpack_first(const std::string& fatbinary, std::string* code) {
  std::vector<Entry> entries;
  if (std::string wrong = read(fatbinary, &entries); !wrong.empty()) return wrong;
  REQUIRE(entries.size() == 1);
  const std::string wrong = fa4::image::unpack(entries[0], code);
  CHECK((wrong.empty() || code->empty()));
  return wrong;
}

std::string zstd(const std::string& text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

constexpr uint64_t kLz4 = 0x2000, kZstd = 0x8000;

}  // namespace

TEST_CASE("each compression of the toolkit gives back what went in") {
  const std::string cubin = read_file(ASM_FOLDER "/fa4_hopper.cubin"),
                    ptx = read_file(ASM_FOLDER "/fa4_hopper.ptx");
  const std::vector<std::string> wanted = statements(ptx);
  REQUIRE(wanted.size() > 10000);
  for (const auto& [mode, compression] :
       {std::pair("none", Compression::none), std::pair("default", Compression::zstd),
        std::pair("speed", Compression::lz4), std::pair("balance", Compression::zstd),
        std::pair("size", Compression::zstd)}) {
    INFO(mode);
    const std::string fatbinary = read_file(std::string(FATBINARIES "/") + mode + ".fatbin");
    std::vector<Entry> entries;
    REQUIRE(read(fatbinary, &entries) == "");
    REQUIRE(entries.size() == 2);
    std::string code;
    for (const Entry& entry : entries) {
      CHECK(entry.target() == "sm_90a");
      CHECK(entry.compression == compression);
      REQUIRE(fa4::image::unpack(entry, &code) == "");
      if (entry.kind == Entry::cubin)
        CHECK(code == cubin);
      else
        CHECK(statements(code) == wanted);
    }
  }
}

TEST_CASE("the image is the cubins and the PTX of both architectures") {
  const std::string image = read_file(FA4_IMAGE);
  std::vector<Entry> entries;
  REQUIRE(read(image, &entries) == "");
  REQUIRE(entries.size() == 4);
  const char* const names[] = {"hopper", "hopper", "blackwell", "blackwell"};
  for (size_t i = 0; i < 4; ++i) {
    const bool ptx = entries[i].kind == Entry::ptx;
    INFO(names[i] << (ptx ? " PTX" : " cubin"));
    CHECK(ptx == (i % 2 == 1));
    CHECK(entries[i].target() == (i < 2 ? "sm_90a" : "sm_100f"));
    std::string code;
    REQUIRE(fa4::image::unpack(entries[i], &code) == "");
    const std::string file =
        read_file(std::string(ASM_FOLDER "/fa4_") + names[i] + (ptx ? ".ptx" : ".cubin"));
    CHECK((ptx ? statements(code) == statements(file) : code == file));
  }
}

TEST_CASE("sizes that lie are refused before there is memory for them") {
  const std::string text(100000, 'x');
  std::string code;
  for (uint64_t flags : {kZstd, kLz4}) {
    const std::string name = flags == kZstd ? "zstd" : "LZ4";
    std::string packed = zstd(text);
    if (flags == kLz4) {
      // One literal, then a match of 99,994 bytes one behind, then five literals.
      packed = std::string("\x1fx\x01\0", 4);
      size_t left = 99994 - 4 - 15;
      for (; left >= 255; left -= 255) packed += '\xff';
      packed += char(left);
      packed += "\x50xxxxx";
    }
    REQUIRE(unpack_first(Made{flags, packed, text.size()}.bytes(), &code) == "");
    CHECK(code == text);
    for (uint64_t said :
         {uint64_t{0}, uint64_t{1}, text.size() - 1, text.size() + 1, uint64_t{packed.size()}}) {
      INFO(name << " " << said);
      CHECK(unpack_first(Made{flags, packed, said}.bytes(), &code)
                .find("the " + name + " data of the entry at offset 16 is damaged") == 0);
    }
    for (uint64_t said : {fa4::image::largest_code + 1, uint64_t{1} << 40, ~uint64_t{0}}) {
      CHECK(unpack_first(Made{flags, packed, said}.bytes(), &code).find("up to 268435456 are read") !=
            std::string::npos);
      CHECK(code.capacity() < 1 << 20);
    }
    CHECK(unpack_first(Made{flags, packed.substr(0, 20), 20 * 32768 + 32768}.bytes(), &code) ==
          "the " + name + " data of the entry at offset 16 of 20 bytes is said to be code of 688128");
    CHECK(code.capacity() < 1 << 20);
    CHECK(unpack_first(Made{flags, packed, text.size(), int64_t(packed.size() + 8)}.bytes(), &code) ==
          "compressed code of " + std::to_string(packed.size() + 8) +
              " bytes does not fit into its entry, at offset 16");
    CHECK(unpack_first(Made{flags, "", 0, 0}.bytes(), &code).empty() ==
          (flags == kZstd));  // no frame is nothing
    CHECK(!unpack_first(Made{flags, "", 8, 0}.bytes(), &code).empty());
  }
  // The most that a byte makes, of which these bounds are.
  const std::string zeros(64 << 20, '\0');
  CHECK(zeros.size() / zstd(zeros).size() < fa4::image::most_from_zstd);
}

TEST_CASE("a compression that is not known is named") {
  std::string code;
  for (uint64_t flags : {uint64_t{0x1000}, uint64_t{0x4000}, kZstd | kLz4}) {
    Made made{flags, "01234567", 8, 8};
    CHECK(unpack_first(made.bytes(), &code)
              .find("the compression of the entry at offset 16 is not known: its flags are 0x") == 0);
  }
  CHECK(unpack_first(Made{0x11, "01234567", 0}.bytes(), &code) == "");
  CHECK(code == "01234567");
}

TEST_CASE("LZ4 blocks that are none") {
  const auto made = [](const std::string& data, size_t bytes) {
    std::string code(bytes, '?');
    const std::string wrong = fa4::image::unpack_lz4({bytes_of(data), data.size()}, code);
    return wrong.empty() ? code : wrong;
  };
  using namespace std::string_literals;
  CHECK(made("\x50hello"s, 5) == "hello");
  CHECK(made("\x2f"s
             "ab\x02\0\x01\x10!"s,
             23) == "ababababababababababab!");  // a match over what it makes, of 4 + 15 + 1
  CHECK(made("\0"s, 0) == "");
  for (const std::string& cut : {""s, "\x50hell"s, "\xf0"s, "\xf0\xff\xff"s, "\x1fx\x01"s, "\x1fx\x01\0"s,
                                 "\x1fx\x01\0\xff"s, "\x10x\x01\0"s})
    CHECK(made(cut, 64) == "it ends within a sequence");
  CHECK(made("\x10x\0\0\x10y"s, 6) == "a match lies before the beginning");
  CHECK(made("\x10x\x02\0\x10y"s, 6) == "a match lies before the beginning");
  CHECK(made("\0\x01\0\0"s, 6) == "a match lies before the beginning");
  CHECK(made("\x50hello"s, 4) == "it makes more than 4 bytes of code");
  CHECK(made("\x10x\x01\0\x10y"s, 4) == "it makes more than 4 bytes of code");
  CHECK(made("\x50hello"s, 6) == "it makes 5 bytes of code, not 6");
}

TEST_CASE("a compressed fatbinary cut short or damaged is refused, or is of the size that it says") {
  // Smaller than the image: the PTX of a few lines.
  std::string text;
  for (int i = 0; i < 400; ++i) text += "  add.u32 %r" + std::to_string(i * 37 % 101) + ", %r1, %r2;\n";
  const std::string lz4 = read_file(FATBINARIES "/speed.fatbin"), image = read_file(FA4_IMAGE);
  std::mt19937 rng(11);
  size_t refused = 0, tried = 0;
  const auto attempt = [&](const std::string& bytes) {
    std::vector<Entry> entries;
    ++tried;
    bool wrong = !read(bytes, &entries).empty();
    for (const Entry& entry : entries) {
      std::string code;
      const bool bad = !fa4::image::unpack(entry, &code).empty();
      if (!bad && entry.compression != Compression::none && code.size() != entry.unpacked_bytes) FAIL("size");
      wrong |= bad;
    }
    refused += wrong;
  };
  const std::string small = Made{kZstd, zstd(text), text.size()}.bytes();
  for (size_t length = 0; length < small.size(); ++length) attempt(small.substr(0, length));
  CHECK(refused == tried);
  // With headers that fit what is left, the data itself is cut.
  const std::string packed = zstd(text);
  for (size_t length = 0; length < packed.size(); ++length)
    attempt(Made{kZstd, packed.substr(0, length), text.size()}.bytes());
  CHECK(refused == tried);
  for (int n = 0; n < 20000; ++n) {
    std::string damaged = small;
    for (unsigned flips = 1 + rng() % 3; flips != 0; --flips)
      damaged[rng() % damaged.size()] ^= char(1 << rng() % 8);
    attempt(damaged);
  }
  for (const std::string* whole : {&lz4, &image}) {
    for (int n = 0; n < 60; ++n) {
      std::string damaged = *whole;
      damaged[16 + rng() % (n % 2 ? 120 : damaged.size() - 16)] ^= char(1 << rng() % 8);
      attempt(damaged);
      attempt(whole->substr(0, rng() % whole->size()));
    }
  }
  CHECK(refused > tried / 4);
  CHECK(refused < tried);
}
