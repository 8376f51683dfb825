// SPDX-License-Identifier: Apache-2.0
// The sentence that goes with a status. It lives in a fixed buffer, so that refusing a call allocates
// nothing.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "fa4/fa4.h"

namespace fa4 {

class Message {
 public:
  Message() { text_[0] = '\0'; }  // and no byte more: every call has one

  static constexpr std::size_t kBytes = 1024;  // a longer sentence is cut, and then ends in "..."

  const char* text() const { return text_; }

  // Sets the sentence and returns `status`, so that a failure is one expression: return message.fail(status,
  // "...").
  [[gnu::format(printf, 3, 4)]] fa4_status fail(fa4_status status, const char* format, ...) {
    text_[0] = '\0';
    va_list arguments;
    va_start(arguments, format);
    append_list(format, arguments);
    va_end(arguments);
    return status;
  }

  // Puts more behind the sentence.
  [[gnu::format(printf, 2, 3)]] void append(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    append_list(format, arguments);
    va_end(arguments);
  }

 private:
  void append_list(const char* format, va_list arguments) {
    const std::size_t used = std::strlen(text_), room = kBytes - used;
    const int wanted = std::vsnprintf(text_ + used, room, format, arguments);
    if (wanted >= 0 && static_cast<std::size_t>(wanted) >= room) std::memcpy(text_ + kBytes - 4, "...", 4);
  }

  char text_[kBytes];
};

}  // namespace fa4
