// SPDX-License-Identifier: Apache-2.0
// Replays the fuzzer's corpus: every input must end in a sentence, and soon; and so must every beginning of a
// real one.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "support/catch.h"
#include "target.h"

using fa4::sim::test::digest;

namespace {

std::vector<std::filesystem::path> corpus() {
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(FUZZ_CORPUS)) files.insert(entry.path());
  return {files.begin(), files.end()};
}

std::vector<uint8_t> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

double seconds(const std::vector<uint8_t>& input, size_t size, std::string* end) {
  const auto start = std::chrono::steady_clock::now();
  *end = digest(input.data(), size);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("every input of the corpus ends in a sentence") {
  const auto files = corpus();
  CHECK(files.size() >= 20);
  for (const auto& path : files) {
    INFO(path.filename().string());
    const std::vector<uint8_t> input = bytes_of(path);
    std::string end;
    CHECK(seconds(input, input.size(), &end) < 5);
    INFO(end);
    CHECK((end == "ran" || end.starts_with("fault: ") || end.find("line ") != std::string::npos));
  }
}

TEST_CASE("truncated input ends in a sentence") {
  for (const auto& path : corpus()) {
    const std::vector<uint8_t> input = bytes_of(path);
    const size_t step = std::max<size_t>(1, input.size() / 64);
    for (size_t size = 0; size < input.size(); size += step) {
      INFO(path.filename().string() << ", the first " << size << " bytes");
      std::string end;
      CHECK(seconds(input, size, &end) < 5);
    }
  }
}
