// SPDX-License-Identifier: Apache-2.0
// The sentence that goes with a status. It lives in a fixed buffer, so that refusing a call allocates
// nothing.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>

#include "fa4/fa4.h"

namespace fa4 {

class Message {
 public:
  static constexpr std::size_t kBytes = 1024;  // a longer sentence is cut

  const char* text() const { return text_; }

  // Sets the sentence and returns `status`, so that a failure is one expression: return message.fail(status,
  // "...").
  [[gnu::format(printf, 3, 4)]] fa4_status fail(fa4_status status, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text_, kBytes, format, arguments);
    va_end(arguments);
    return status;
  }

 private:
  char text_[kBytes] = "";
};

}  // namespace fa4
