// SPDX-License-Identifier: Apache-2.0
// The .npy format: "\x93NUMPY", two version bytes, a little-endian header length, a Python dictionary, the
// elements.
#include "npy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace fa4::cli {
namespace {

constexpr const char* kAccepted =
    "float16 ('<f2'), float32 ('<f4') and bfloat16 as uint16 ('<u2') or as ml_dtypes saves it ('<V2'), and "
    "for lengths int32 "
    "('<i4'), are accepted";

struct TypeName {
  std::string_view descr;
  NpyType type;
};
constexpr TypeName kTypes[] = {{"<f2", NpyType::float16}, {"<f4", NpyType::float32},
                               {"<u2", NpyType::uint16},  {"<i4", NpyType::int32},
                               {"<V2", NpyType::void16},  {"|V2", NpyType::void16}};

// What to do about element types that are not accepted, by their beginning; the first row that fits holds.
struct Remedy {
  std::string_view begin;
  const char* meaning;
  const char* remedy;
};
constexpr Remedy kRemedies[] = {
    {">f2", "big-endian float16", "array.astype('<f2') makes it little-endian"},
    {">f4", "big-endian float32", "array.astype('<f4') makes it little-endian"},
    {">u2", "big-endian uint16", "array.astype('<u2') makes it little-endian"},
    {"<f8", "float64", "array.astype(numpy.float32) rounds it"},
    {">f8", "big-endian float64", "array.astype('<f4') rounds it and makes it little-endian"},
    {"<f", "a wide float", "array.astype(numpy.float32) rounds it"},
    {"<i2", "int16",
     "array.view(numpy.uint16) if these are the bits of bfloat16, else array.astype(numpy.float32)"},
    {"<i8", "int64", "array.astype(numpy.int32) if these are lengths, else array.astype(numpy.float32)"},
    {">i4", "big-endian int32", "array.astype('<i4') makes it little-endian"},
    {"|O", "Python objects", "array.astype(numpy.float32) if each is a number"},
    {"<c", "complex numbers", "array.real is a float array"},
    {"|V", "elements without a type, as ml_dtypes saves its formats",
     "array.astype(numpy.float32) before saving"},
    {"<V", "elements without a type, as ml_dtypes saves its formats",
     "array.astype(numpy.float32) before saving"}};

// What a file is that does not start as .npy does.
constexpr Remedy kOtherFiles[] = {{"PK\x03\x04", "a zip archive: .npz of numpy.savez, or .pt of torch.save",
                                   "numpy.save('q.npy', numpy.load('x.npz')['q']) or numpy.save('q.npy', "
                                   "torch.load('x.pt').float().numpy()) makes .npy of one array"},
                                  {"PK\x05\x06", "an empty zip archive", "numpy.save writes one array"},
                                  {"\x80", "a Python pickle", "numpy.save writes .npy"},
                                  {"\x89HDF", "an HDF5 file", "numpy.save writes .npy"},
                                  {"", "no .npy file", "numpy.save writes it"}};

// The dictionary of a header: string keys; values are a string, True or False, or a tuple of integers. NumPy
// under Python 2 wrote integers as 4L. The type may also be a list, of a structured type.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  void parse() {
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        set(descr, type(), key);
      } else if (key == "fortran_order") {
        set(fortran_order, boolean(), key);
      } else if (key == "shape") {
        set(shape, tuple(), key);
      } else {
        fail(fmt::format("has the unknown key '{}'", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) fail("has text after its dictionary");
    if (!descr || !fortran_order || !shape)
      fail("lacks one of the keys 'descr', 'fortran_order' and 'shape'");
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw NpyError(fmt::format("{}: the .npy header {}", path_, what));
  }
  template <typename T>
  void set(std::optional<T>& member, T value, const std::string& key) {
    if (member) fail(fmt::format("has the key '{}' twice", key));
    member = std::move(value);
  }
  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("is malformed: '{}' expected at byte {}", c, at_));
  }
  std::string string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail(fmt::format("is malformed: a string expected at byte {}", at_));
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("is malformed: a string does not end");
    const std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }
  std::string type() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      throw NpyError(fmt::format("{}: holds a structured type, {:.60}; save one of its fields: array['name']",
                                 path_, text_.substr(at_, text_.find("],", at_) - at_ + 1)));
    return string();
  }
  bool boolean() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail(fmt::format("is malformed: True or False expected at byte {}", at_));
  }
  std::vector<int64_t> tuple() {
    std::vector<int64_t> result;
    expect('(');
    while (!accept(')')) {
      skip_space();
      int64_t value = 0;
      const size_t begin = at_;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
        const int64_t digit = text_[at_++] - '0';
        if (value > (std::numeric_limits<int64_t>::max() - digit) / 10)
          fail("has an extent of more than 63 bits");
        value = value * 10 + digit;
      }
      if (at_ == begin) fail(fmt::format("is malformed: an extent expected at byte {}", at_));
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;
      result.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return result;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

NpyType type_of(const std::string& descr, const std::string& path) {
  for (const TypeName& row : kTypes)
    if (descr == row.descr) return row.type;
  for (const Remedy& row : kRemedies)
    if (descr.starts_with(row.begin))
      throw NpyError(fmt::format("{}: element type '{}', {}, is not supported: {}; {}", path, descr,
                                 row.meaning, row.remedy, kAccepted));
  throw NpyError(fmt::format("{}: element type '{}' is not supported; {}", path, descr, kAccepted));
}

// "" for a file or for nothing, else what stands there.
std::string kind_of(const std::string& path) {
  std::error_code error;
  switch (std::filesystem::status(path, error).type()) {
    case std::filesystem::file_type::regular:
    case std::filesystem::file_type::not_found:
    case std::filesystem::file_type::none:
    case std::filesystem::file_type::unknown:
      return "";
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::fifo:
      return "a pipe";
    case std::filesystem::file_type::socket:
      return "a socket";
    default:
      return "a device";
  }
}

}  // namespace

const char* name_of(NpyType type) {
  switch (type) {
    case NpyType::float16:
      return "float16";
    case NpyType::float32:
      return "float32";
    case NpyType::uint16:
      return "uint16";
    case NpyType::int32:
      return "int32";
    case NpyType::void16:
      return "2-byte void";
  }
  return "?";
}
size_t bytes_of(NpyType type) {
  return type == NpyType::float32 || type == NpyType::int32 ? 4 : 2;
}

int64_t NpyArray::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

NpyArray read_npy(const std::string& path) {
  if (const std::string kind = kind_of(path); !kind.empty())
    throw NpyError(fmt::format(
        "{}: is {}; a file is accepted, whose size is held against its header: write it to one first", path,
        kind));
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw NpyError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  const uint64_t file_bytes = uint64_t(file.tellg());
  file.seekg(0);
  const auto read = [&](void* to, uint64_t bytes, const char* what) {
    if (!file.read(static_cast<char*>(to), std::streamsize(bytes)))
      throw NpyError(
          fmt::format("{}: truncated: the file of {} bytes ends inside its {}", path, file_bytes, what));
  };

  unsigned char start[8];
  read(start, sizeof start, ".npy signature");
  const std::string_view beginning(reinterpret_cast<const char*>(start), sizeof start);
  if (!beginning.starts_with("\x93NUMPY"))
    for (const Remedy& row : kOtherFiles)
      if (beginning.starts_with(row.begin))
        throw NpyError(fmt::format("{}: is not an .npy file, which starts with \\x93NUMPY, but {}; {}", path,
                                   row.meaning, row.remedy));
  const int major = start[6], minor = start[7];
  if (major < 1 || major > 3 || minor != 0)
    throw NpyError(fmt::format("{}: .npy format {}.{} is not supported; 1.0, 2.0 and 3.0 are accepted", path,
                               major, minor));
  unsigned char length[4] = {};
  const uint64_t length_bytes = major == 1 ? 2 : 4;
  read(length, length_bytes, ".npy header");
  const uint64_t header_bytes =
      uint64_t(length[0]) | uint64_t(length[1]) << 8 | uint64_t(length[2]) << 16 | uint64_t(length[3]) << 24;
  const uint64_t data_offset = sizeof start + length_bytes + header_bytes;
  if (data_offset > file_bytes)
    throw NpyError(fmt::format("{}: truncated: the .npy header is to end at byte {}, the file has {}", path,
                               data_offset, file_bytes));
  std::string header(header_bytes, '\0');
  read(header.data(), header_bytes, ".npy header");

  HeaderParser parser(header, path);
  parser.parse();
  NpyArray array;
  array.type = type_of(*parser.descr, path);
  array.shape = *parser.shape;
  if (*parser.fortran_order)
    throw NpyError(
        fmt::format("{}: is in Fortran order; C order is accepted: numpy.ascontiguousarray(array)", path));
  uint64_t bytes = bytes_of(array.type);
  for (const int64_t extent : array.shape) {
    if (extent != 0 && bytes > uint64_t(std::numeric_limits<int64_t>::max()) / uint64_t(extent))
      throw NpyError(fmt::format("{}: shape {} has more than 2^63 bytes", path, shape_text(array.shape)));
    bytes *= uint64_t(extent);
  }
  if (file_bytes - data_offset < bytes)
    throw NpyError(fmt::format("{}: truncated: shape {} of {} needs {} bytes of data, the file has {}", path,
                               shape_text(array.shape), name_of(array.type), bytes,
                               file_bytes - data_offset));
  if (file_bytes - data_offset > bytes)
    throw NpyError(
        fmt::format("{}: {} bytes follow the data of shape {} {}; a file with one array is accepted", path,
                    file_bytes - data_offset - bytes, shape_text(array.shape), name_of(array.type)));
  array.data.resize(bytes);
  if (bytes) read(array.data.data(), bytes, "data");
  return array;
}

void write_npy(const std::string& path, NpyType type, const std::vector<int64_t>& shape,
               std::span<const std::byte> data) {
  const TypeName* row = kTypes;
  while (row->type != type) ++row;
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", row->descr, shape_text(shape));
  constexpr size_t kPrefix = 10, kAlign = 64;  // the data starts at a multiple of 64 bytes
  header.resize((kPrefix + header.size() + 1 + kAlign - 1) / kAlign * kAlign - kPrefix - 1, ' ');
  header += '\n';

  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  const auto fail = [&](const char* what) {
    const int code = errno;
    std::remove(temporary.c_str());
    throw NpyError(fmt::format("{}: {}: {}", path, what, std::strerror(code)));
  };
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  if (!file) fail("cannot be created");
  file.write("\x93NUMPY\x01\x00", 8);
  const char length[2] = {char(header.size() & 0xFF), char(header.size() >> 8)};
  file.write(length, 2).write(header.data(), std::streamsize(header.size()));
  file.write(reinterpret_cast<const char*>(data.data()), std::streamsize(data.size()));
  file.close();
  if (!file) fail("cannot be written");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) fail("cannot be replaced");
}

void require_writable(const std::string& path) {
  if (const std::string kind = kind_of(path); !kind.empty())
    throw NpyError(fmt::format("{}: is {}; the name of a file is accepted, which is replaced", path, kind));
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw NpyError(
        fmt::format("{}: no file can be written in the folder '{}': {}", path, folder, std::strerror(errno)));
}

}  // namespace fa4::cli
