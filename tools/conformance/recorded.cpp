// SPDX-License-Identifier: Apache-2.0
#include "recorded.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <stdexcept>
#include <vector>

namespace fa4 {
extern const void* conformance_h200();  // generated: the text, zero-terminated
}

namespace fa4::conformance {
namespace {

constexpr size_t kSampleBytes = 16, kParts = 32;

uint64_t hash_of(const std::byte* at, size_t bytes) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ uint64_t(at[i])) * 0x100000001B3ull;
  return hash;
}

std::vector<std::string_view> split(std::string_view line, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = line.find(separator, begin);
    parts.push_back(line.substr(begin, end == std::string_view::npos ? end : end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

template <class T>
T number(std::string_view text, int base, size_t line) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error("recorded answers, line " + std::to_string(line) + ": '" + std::string(text) +
                             "' is no number");
  }
  return value;
}

std::string hexadecimal(uint64_t value, int digits) {
  char text[24];
  std::snprintf(text, sizeof text, "%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

Record record_of(const Answer& answer) {
  Record r;
  r.status = answer.status;
  const std::vector<std::byte>& o = answer.output;
  r.hash = hash_of(o.data(), o.size());
  for (size_t p = 0; p < kParts; ++p) {
    const size_t begin = o.size() * p / kParts, end = o.size() * (p + 1) / kParts;
    const uint64_t h = hash_of(o.data() + begin, end - begin);
    r.parts[p] = uint16_t(h ^ h >> 16 ^ h >> 32 ^ h >> 48);
  }
  for (size_t i = 0; i < std::min(kSampleBytes, o.size()); ++i) r.sample += hexadecimal(uint64_t(o[i]), 2);
  return r;
}

std::string text_of(const std::string& name, const Record& r) {
  if (r.status != 0) return name + "\t" + std::to_string(r.status);
  std::string text = name + "\t0\t" + hexadecimal(r.hash, 16) + "\t";
  for (uint16_t p : r.parts) text += hexadecimal(p, 4);
  return text + "\t" + r.sample;
}

std::string text_of(const Recording& recording) {
  std::vector<std::string> lines, calls;
  for (const auto& [name, record] : recording.rows) lines.push_back(text_of(name, record));
  for (const auto& [name, result] : recording.calls)
    calls.push_back("call\t" + name + "\t" + std::to_string(result));
  std::sort(lines.begin(), lines.end());
  std::sort(calls.begin(), calls.end());
  std::string text =
      "# What a real GPU answers to the conformance rows: name, status, hash, hashes of 32 parts, first "
      "bytes.\n";
  text += "device\t" + recording.device + "\ndriver\t" + recording.driver + "\ntoolkit\t" +
          recording.toolkit + "\ncommand\t" + recording.command + "\n";
  for (const std::string& line : calls) text += line + "\n";
  for (const std::string& line : lines) text += "row\t" + line + "\n";
  return text;
}

Recording parse_recording(std::string_view text) {
  Recording recording;
  size_t line_number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++line_number;
    if (line.empty() || line[0] == '#') continue;
    const auto part = split(line, '\t');
    const auto wrong = [&] {
      return std::runtime_error("recorded answers, line " + std::to_string(line_number) + ": '" +
                                std::string(line.substr(0, 60)) + "' is no answer");
    };
    if (part.size() < 2) throw wrong();
    if (part[0] == "device")
      recording.device = part[1];
    else if (part[0] == "driver")
      recording.driver = part[1];
    else if (part[0] == "toolkit")
      recording.toolkit = part[1];
    else if (part[0] == "command")
      recording.command = part[1];
    else if (part[0] == "call" && part.size() == 3)
      recording.calls.emplace(part[1], number<int>(part[2], 10, line_number));
    else if (part[0] == "row" && part.size() >= 3) {
      Record r;
      r.status = number<int>(part[2], 10, line_number);
      if (r.status == 0) {
        if (part.size() != 6 || part[4].size() != 4 * kParts) throw wrong();
        r.hash = number<uint64_t>(part[3], 16, line_number);
        for (size_t p = 0; p < kParts; ++p)
          r.parts[p] = number<uint16_t>(part[4].substr(4 * p, 4), 16, line_number);
        r.sample = part[5];
      }
      recording.rows.emplace(part[1], r);
    } else {
      throw wrong();
    }
  }
  return recording;
}

const Recording& recorded_h200() {
  static const Recording recording = parse_recording(static_cast<const char*>(conformance_h200()));
  return recording;
}

std::string difference(const Row& row, const Record& expected, const Answer& got,
                       std::string_view expected_name, std::string_view got_name) {
  const std::string left(expected_name), right(got_name);
  if (expected.status != got.status) {
    return left + " ended with " + std::to_string(expected.status) + ", " + right + " with " +
           std::to_string(got.status) + (got.failure.empty() ? "" : " (" + got.failure + ")");
  }
  if (got.status != 0) return {};
  const Record mine = record_of(got);
  if (mine.hash == expected.hash) return {};
  std::string parts;
  size_t count = 0;
  for (size_t p = 0; p < kParts; ++p) {
    if (mine.parts[p] == expected.parts[p]) continue;
    if (count++ < 4) {
      parts += (count > 1 ? ", " : "") + std::to_string(uint64_t(row.output_elements) * p / kParts) + "-" +
               std::to_string(uint64_t(row.output_elements) * (p + 1) / kParts - 1);
    }
  }
  const std::string samples =
      mine.sample == expected.sample
          ? ""
          : "; first bytes " + left + " " + expected.sample + ", " + right + " " + mine.sample;
  return "outputs differ in " + std::to_string(count) + " of 32 parts, among them elements " + parts +
         samples;
}

}  // namespace fa4::conformance
