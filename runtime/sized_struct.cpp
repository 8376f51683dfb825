// SPDX-License-Identifier: Apache-2.0
// One way to read both structs.
#include "sized_struct.h"

#include <algorithm>
#include <cstring>

namespace fa4 {
namespace {

struct Header {
  uint32_t struct_size, version;
};
static_assert(sizeof(Header) == kLeastStructBytes);
static_assert(offsetof(fa4_create_params, struct_size) == offsetof(Header, struct_size));
static_assert(offsetof(fa4_create_params, version) == offsetof(Header, version));
static_assert(offsetof(fa4_forward_params, struct_size) == offsetof(Header, struct_size));
static_assert(offsetof(fa4_forward_params, version) == offsetof(Header, version));

}  // namespace

fa4_status read_struct(const void* given, const char* name, void* own, uint32_t own_bytes, Message& message) {
  Header header;
  std::memcpy(&header, given, sizeof header);
  if (header.version != FA4_VERSION) {
    return message.fail(FA4_ERROR_VERSION, "%s has version %u; this library takes version %u", name, header.version, FA4_VERSION);
  }
  if (header.struct_size < kLeastStructBytes || header.struct_size > kMostStructBytes) {
    return message.fail(FA4_ERROR_VERSION,
                        "%s has struct_size %u; %u to %u are accepted, and the struct of this library has %u bytes", name,
                        header.struct_size, kLeastStructBytes, kMostStructBytes, own_bytes);
  }
  const auto* bytes = static_cast<const unsigned char*>(given);
  const auto* const unknown =
      std::find_if(bytes + std::min(own_bytes, header.struct_size), bytes + header.struct_size, [](unsigned char byte) { return byte != 0; });
  if (unknown != bytes + header.struct_size) {
    return message.fail(FA4_ERROR_VERSION,
                        "%s has struct_size %u, and its byte at offset %u is %u: a field that this library does not have; it knows the "
                        "first %u bytes, and takes more if they are zero",
                        name, header.struct_size, static_cast<unsigned>(unknown - bytes), *unknown, own_bytes);
  }
  const uint32_t known = std::min(own_bytes, header.struct_size);
  std::memcpy(own, given, known);
  std::memset(static_cast<unsigned char*>(own) + known, 0, own_bytes - known);
  return FA4_OK;
}

}  // namespace fa4
