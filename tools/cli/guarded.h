// SPDX-License-Identifier: Apache-2.0
// What the commands that take a problem make of an exception: a sentence on standard error and an exit code.
#pragma once

#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

#include "npy.h"
#include "run.h"
#include "support/attention_device.h"
#include "tensors.h"

namespace fa4::cli {

// The body's exit code, or what its exception says, as "fa4 COMMAND: ...": kRefused for what the caller can mend,
// kDeviceFailed for the rest.
template <typename Body>
int guarded(const char* command, const Body& body) {
  const auto refuse = [&](int code, const std::string& sentence) {
    std::fflush(stdout);
    fmt::print(stderr, "fa4 {}: {}\n", command, sentence);
    return code;
  };
  try {
    return body();
  } catch (const Refusal& error) {
    return refuse(kRefused, error.what());
  } catch (const NpyError& error) {
    return refuse(kRefused, error.what());
  } catch (const support::AttentionError& error) {
    return refuse(kDeviceFailed, fmt::format("{}: {}", fa4_status_name(error.status), error.what()));
  } catch (const std::bad_alloc&) {
    return refuse(kRefused,
                  "this machine's memory does not hold the problem's tensors; a smaller one is accepted");
  } catch (const std::runtime_error& error) {
    return refuse(kDeviceFailed, error.what());
  }
}

}  // namespace fa4::cli
