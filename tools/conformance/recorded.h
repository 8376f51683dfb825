// SPDX-License-Identifier: Apache-2.0
// Answers of a real GPU, small enough to travel with the source: for each row the driver's status, a hash of
// the whole output, hashes of its 32 parts (where does it differ?) and its first bytes.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "harness.h"

namespace fa4::conformance {

struct Record {
  int status = 0;
  uint64_t hash = 0;
  uint16_t parts[32] = {};
  std::string sample;  // hexadecimal
};

struct Recording {
  std::string device, driver, toolkit, command;
  std::unordered_map<std::string, Record> rows;
  // Answers of the driver to calls with bad arguments, by the call's name (driver_rows.h).
  std::unordered_map<std::string, int> calls;
};

Record record_of(const Answer& answer);
std::string text_of(const std::string& name, const Record& record);

// Throws std::runtime_error with the line for a text that is no recording.
Recording parse_recording(std::string_view text);
std::string text_of(const Recording& recording);  // rows sorted by name

// The recordings that come with this build, and whether any of them has the row.
const Recording& recorded_h200();

// "" when the answer is the recorded one, else what differs and where.
std::string difference(const Row& row, const Record& expected, const Answer& got,
                       std::string_view expected_name, std::string_view got_name);

}  // namespace fa4::conformance
