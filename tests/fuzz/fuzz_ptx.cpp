// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry points. Beside its own mutations of bytes, lines are moved, repeated and left out and
// numbers changed: that keeps most inputs loadable, so that the engine and the checker see hostile programs
// too.
#include <algorithm>
#include <cctype>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size);

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  return lines;
}

// Another value for one number of the line.
void change_number(std::string& line, std::minstd_rand& random) {
  static const char* const values[] = {"0",
                                       "1",
                                       "2",
                                       "7",
                                       "8",
                                       "16",
                                       "31",
                                       "32",
                                       "64",
                                       "128",
                                       "511",
                                       "512",
                                       "1024",
                                       "65535",
                                       "65536",
                                       "1048576",
                                       "4294967295",
                                       "-1",
                                       "9223372036854775807"};
  std::vector<std::pair<size_t, size_t>> numbers;
  for (size_t i = 0; i < line.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(line[i])) ||
        (i && std::isalnum(static_cast<unsigned char>(line[i - 1]))))
      continue;
    size_t end = i;
    while (end < line.size() && std::isdigit(static_cast<unsigned char>(line[end]))) ++end;
    numbers.push_back({i, end - i});
    i = end;
  }
  if (numbers.empty()) return;
  const auto [at, length] = numbers[random() % numbers.size()];
  line.replace(at, length, values[random() % std::size(values)]);
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t max_size, unsigned seed) {
  std::minstd_rand random(seed);
  if (size == 0 || random() % 3 == 0) return LLVMFuzzerMutate(bytes, size, max_size);
  std::vector<std::string> lines = lines_of(std::string(reinterpret_cast<char*>(bytes), size));
  for (uint32_t n = 1 + random() % 3; n > 0 && !lines.empty(); --n) {
    const size_t a = random() % lines.size(), b = random() % lines.size();
    switch (random() % 5) {
      case 0:
        std::swap(lines[a], lines[b]);
        break;
      case 1:
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(b), lines[a]);
        break;
      case 2:
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(a));
        break;
      default:
        change_number(lines[a], random);
        break;
    }
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  text.resize(std::min(text.size(), max_size));
  std::memcpy(bytes, text.data(), text.size());
  return text.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  fa4::sim::test::digest(bytes, size);
  return 0;
}
