// SPDX-License-Identifier: Apache-2.0
// Decompression, of data that may be anything. `code` is as large as the result is said to be; anything else
// is damage. Functions return "" or what is wrong.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace fa4::image {

// Bytes that one compressed byte becomes at most. zstd: a block of 3 bytes header and 1 byte to be repeated
// makes 128 KiB. LZ4: a byte lengthens a match by 255.
constexpr uint64_t most_from_zstd = 32768, most_from_lz4 = 255;

// Frames of RFC 8878.
std::string unpack_zstd(std::span<const unsigned char> data, std::span<char> code);
// One block of LZ4's block format, without a frame.
std::string unpack_lz4(std::span<const unsigned char> data, std::span<char> code);

}  // namespace fa4::image
