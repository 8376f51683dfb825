// SPDX-License-Identifier: Apache-2.0
// Text tables.
#include "table.h"

#include <algorithm>

#include <fmt/format.h>

namespace fa4::cli {

Table::Table(std::vector<std::string> titles) {
  for (std::string& title : titles) {
    right_.push_back(title.starts_with('>'));
    if (right_.back()) title.erase(0, 1);
  }
  rows_.push_back(std::move(titles));
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(right_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths(right_.size(), 0);
  for (const auto& row : rows_)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  std::string result;
  const auto line = [&](const auto& cell_of) {
    std::string text = " ";
    for (size_t c = 0; c < widths.size(); ++c) {
      const std::string cell = cell_of(c);
      const std::string padding(widths[c] - cell.size(), ' ');
      text += ' ';
      text += right_[c] ? padding : cell;
      text += right_[c] ? cell : padding;
      text += ' ';
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
    result += text;
  };
  for (size_t r = 0; r < rows_.size(); ++r) {
    line([&](size_t c) { return rows_[r][c]; });
    if (r == 0) line([&](size_t c) { return std::string(widths[c], '-'); });
  }
  return result;
}

std::string grouped(uint64_t value) {
  if (value == 0) return "-";
  const std::string digits = std::to_string(value);
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) result += ' ';
    result += digits[i];
  }
  return result;
}

std::string bytes_text(uint64_t bytes) {
  if (bytes == 0) return "-";
  if (bytes < 10240) return fmt::format("{} B", bytes);
  if (bytes < (1ull << 20)) return fmt::format("{:.1f} KiB", double(bytes) / 1024);
  if (bytes < (1ull << 30)) return fmt::format("{:.1f} MiB", double(bytes) / (1 << 20));
  return fmt::format("{:.2f} GiB", double(bytes) / (1 << 30));
}

std::string heading(const std::string& title) {
  return fmt::format("\n{}\n", title);
}

}  // namespace fa4::cli
