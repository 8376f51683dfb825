// SPDX-License-Identifier: Apache-2.0
// .npy files: float16, float32, bfloat16 as uint16 or as the 2-byte void type that ml_dtypes and JAX save,
// and int32; little-endian, C order. Whatever else a file may be is refused with a sentence that names the
// file, what it holds and what to do about it.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace fa4::cli {

enum class NpyType { float16, float32, uint16, void16, int32 };
const char* name_of(NpyType type);
size_t bytes_of(NpyType type);

struct NpyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct NpyArray {
  NpyType type = NpyType::float16;
  std::vector<int64_t> shape;
  std::vector<std::byte> data;  // elements in C order

  int64_t elements() const;
};
std::string shape_text(const std::vector<int64_t>& shape);  // "(1, 1024, 32, 128)"

// Reads format versions 1.0, 2.0 and 3.0, headers written under Python 2 included. Throws NpyError.
NpyArray read_npy(const std::string& path);

// Writes format version 1.0 to a temporary file beside `path` and renames it, so that `path` is either whole
// or as it was. Throws NpyError.
void write_npy(const std::string& path, NpyType type, const std::vector<int64_t>& shape,
               std::span<const std::byte> data);

// Throws NpyError unless a file can be created in the folder of `path`, or replaced.
void require_writable(const std::string& path);

}  // namespace fa4::cli
