// SPDX-License-Identifier: Apache-2.0
// .npy files: what NumPy writes is read, what is written reads back, and every malformed file is refused with
// a sentence.
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "support/catch.h"
#include "tools/cli/npy.h"

namespace {

using namespace fa4::cli;

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() / ("fa4-npy-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  size_t entries() const {
    return size_t(
        std::distance(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator()));
  }

 private:
  std::filesystem::path path_;
};

std::string npy(const std::string& header, const std::string& data, int major = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += char(major);
  bytes += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) bytes += char(header.size() >> (8 * i) & 0xFF);
  bytes += header;
  bytes += data;
  return bytes;
}

std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.npy");
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    read_npy(path);
  } catch (const NpyError& error) {
    CHECK(std::string(error.what()).find(path) == 0);  // each sentence names the file
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != std::string::npos);
  return text.find(part) != std::string::npos;
}

const std::string kGood = "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }\n";

}  // namespace

TEST_CASE("what NumPy writes is read") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npy");
  for (const int version : {1, 2, 3}) {
    std::ofstream(path, std::ios::binary) << npy(kGood, "abcdefghijkl", version);
    const NpyArray array = read_npy(path);
    CHECK(array.type == NpyType::float16);
    CHECK(array.shape == std::vector<int64_t>{2, 3});
    CHECK(std::memcmp(array.data.data(), "abcdefghijkl", 12) == 0);
  }
  std::ofstream(path, std::ios::binary)
      << npy("{\"shape\": (), 'fortran_order': False, 'descr': '<f4'}", "abcd");
  CHECK(read_npy(path).shape.empty());
  CHECK(read_npy(path).elements() == 1);
  std::ofstream(path, std::ios::binary)
      << npy("{'descr': '<u2', 'fortran_order': False, 'shape': (0, 4,)}", "");
  CHECK(read_npy(path).elements() == 0);
  CHECK(read_npy(path).type == NpyType::uint16);
  std::ofstream(path, std::ios::binary)
      << npy("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", "abcdefghijkl");
  CHECK(read_npy(path).type == NpyType::int32);
  CHECK(read_npy(path).shape == std::vector<int64_t>{3});
  // Under Python 2, and bfloat16 of ml_dtypes.
  for (const char* descr : {"<V2", "|V2"}) {
    std::ofstream(path, std::ios::binary)
        << npy(std::string("{'descr': '") + descr + "', 'fortran_order': False, 'shape': (2L, 3L), }",
               "abcdefghijkl");
    CHECK(read_npy(path).shape == std::vector<int64_t>{2, 3});
    CHECK(read_npy(path).type == NpyType::void16);
  }
}

TEST_CASE("what is written reads back, aligned as NumPy aligns it") {
  const TemporaryFolder folder;
  const std::string path = folder.file("out.npy");
  const float values[6] = {1, 2, 3, 4, 5, 6};
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{6}, {2, 3}, {1, 2, 3, 1}}) {
    write_npy(path, NpyType::float32, shape, std::as_bytes(std::span(values)));
    const NpyArray array = read_npy(path);
    CHECK(array.type == NpyType::float32);
    CHECK(array.shape == shape);
    CHECK(std::memcmp(array.data.data(), values, sizeof values) == 0);
    CHECK((std::filesystem::file_size(path) - sizeof values) % 64 == 0);
    CHECK(folder.entries() == 1);  // no temporary file is left
  }
}

TEST_CASE("malformed files are refused with a sentence") {
  const std::string good = npy(kGood, "abcdefghijkl");
  CHECK(refusal(good) == "accepted");
  for (size_t length = 0; length < good.size(); ++length)
    contains(refusal(good.substr(0, length)), "truncated");
  contains(refusal(good + "z"), "1 bytes follow the data");
  contains(refusal("something else"), "not an .npy file");
  contains(refusal("PK\3\4 something else"), "numpy.load('x.npz')['q']");
  contains(refusal("\x80\4 something else"), "pickle");
  contains(refusal(npy(kGood, "abcdefghijkl", 4)), "format 4.0 is not supported");
  const auto with = [](const std::string& header) { return refusal(npy(header, "abcdefghijkl")); };
  for (const auto& [descr, remedy] : {std::pair("'>f2'", "array.astype('<f2')"),
                                      {"'>f4'", "array.astype('<f4')"},
                                      {"'>u2'", "array.astype('<u2')"},
                                      {"'<f8'", "array.astype(numpy.float32)"},
                                      {"'>f8'", "array.astype('<f4')"},
                                      {"'<i2'", "array.view(numpy.uint16)"},
                                      {"'<i8'", "array.astype(numpy.int32)"},
                                      {"'>i4'", "array.astype('<i4')"},
                                      {"'<c8'", "array.real"},
                                      {"'|O'", "Python objects"},
                                      {"'<V1'", "before saving"},
                                      {"'|b1'", "bfloat16 as uint16"}}) {
    const std::string sentence =
        with(std::string("{'descr': ") + descr + ", 'fortran_order': False, 'shape': (2, 3)}");
    contains(sentence, descr);
    contains(sentence, remedy);
    contains(sentence, "float16 ('<f2')");
    contains(sentence, "int32 ('<i4')");
  }
  contains(with("{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3)}"), "numpy.ascontiguousarray");
  contains(with("{'descr': [('a', '<f2', (2,)), ('b', '<f4')], 'fortran_order': False, 'shape': (6,), }"),
           "structured type, [('a', '<f2', (2,)), ('b', '<f4')]; save one of its fields: array['name']");
  contains(with("{'descr': [('a', '<f2'"), "structured type");
  contains(with("{'descr': '<f2', 'fortran_order': False, 'shape': (2l, 3)}"), "')' expected");
  contains(with("{'descr': '<f2', 'fortran_order': False, 'shape': (L, 3)}"), "an extent expected");
  contains(with("{'descr': '<f2', 'fortran_order': Maybe, 'shape': (2, 3)}"), "True or False");
  contains(with("{'descr': '<f2', 'fortran_order': False, 'shape': (2, -3)}"), "an extent expected");
  contains(with("{'descr': '<f2', 'fortran_order': False, 'shape': 6}"), "'(' expected");
  contains(with("{'descr': '<f2', 'fortran_order': False}"), "lacks one of the keys");
  contains(with("{'descr': '<f2', 'descr': '<f2', 'fortran_order': False, 'shape': (6,)}"), "twice");
  contains(with("{'descr': '<f2', 'fortran_order': False, 'shape': (6,), 'extra': '1'}"),
           "unknown key 'extra'");
  contains(with("{'descr': 6, 'fortran_order': False, 'shape': (6,)}"), "a string expected");
  contains(with("{'descr': '<f2', 'fortran_order': False, 'shape': (6,)} x"), "after its dictionary");
  contains(with("{'descr': '<f2', 'fortran_order': False, 'shape': (9223372036854775807, 9)}"), "2^63 bytes");
  contains(with("{'descr': '<f2', 'fortran_order': False, 'shape': (99999999999999999999,)}"), "63 bits");
  contains(with("{'descr': '<f2"), "does not end");
  contains(with(""), "'{' expected");
}

TEST_CASE("paths that cannot be read or written are refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(read_npy(folder.file("absent.npy")), NpyError);
  CHECK_THROWS_AS(read_npy(folder.file("")), NpyError);  // the folder itself
  CHECK_THROWS_AS(require_writable(folder.file("absent/out.npy")), NpyError);
  CHECK_THROWS_AS(require_writable(folder.file("")), NpyError);
  CHECK_THROWS_AS(write_npy(folder.file("absent/out.npy"), NpyType::float16, {0}, {}), NpyError);
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/null")}) {  // an output would replace them
    const std::string kind = path == pipe ? "is a pipe" : "is a device";
    const auto sentence = [&](auto call) {
      try {
        call();
      } catch (const NpyError& error) {
        return std::string(error.what());
      }
      return std::string("accepted");
    };
    contains(sentence([&] { read_npy(path); }), kind);
    contains(sentence([&] { require_writable(path); }), kind);
  }
  std::filesystem::remove(pipe);
  require_writable(folder.file("out.npy"));
  CHECK(folder.entries() == 0);
}
