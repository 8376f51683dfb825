// SPDX-License-Identifier: Apache-2.0
// Aligned text tables: what does not fit is never cut, columns are as wide as their widest cell.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fa4::cli {

class Table {
 public:
  // A column whose title starts with '>' is aligned to the right.
  explicit Table(std::vector<std::string> titles);
  void add(std::vector<std::string> cells);
  // Each line indented by two spaces, a rule under the titles.
  std::string text() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // the first is the titles
};

std::string grouped(uint64_t value);     // 1 234 567; zero as "-"
std::string bytes_text(uint64_t bytes);  // "32.0 KiB"; zero as "-"
std::string heading(const std::string& title);

}  // namespace fa4::cli
