// SPDX-License-Identifier: Apache-2.0
// Tokens of PTX. A hand-written scanner: the text comes from strangers, so every step moves forward and none
// recurses.
#include "lexer.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace fa4::sim::ptx {
namespace {

constexpr size_t kMaximumText = size_t{256} << 20;  // bytes

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '_' || c == '$';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v' || c == '\n';
}

std::string character_name(char c) {
  const auto code = static_cast<unsigned char>(c);
  if (code >= 0x20 && code < 0x7F) return std::string("'") + c + "'";
  constexpr char digits[] = "0123456789abcdef";
  return std::string("with code 0x") + digits[code >> 4] + digits[code & 15];
}

}  // namespace

std::string quoted(const Token& token) {
  if (token.kind == Token::Kind::end) return "the end of the text";
  if (token.kind == Token::Kind::string) return "a string";
  constexpr size_t longest = 80;
  std::string result = "'";
  result += token.text.substr(0, longest);
  result += token.text.size() > longest ? "...'" : "'";
  return result;
}

Lexer::Lexer(std::string_view text) : text_(text) {
  if (text.size() > kMaximumText)
    throw Error(1, 1,
                "the text has " + std::to_string(text.size()) + " bytes; at most 268435456 are accepted", "");
  scan();
}

Token Lexer::next() {
  Token taken = current;
  previous_end_ = end_;
  scan();
  return taken;
}

void Lexer::fail_at(Place at, const std::string& message) const {
  size_t begin = 0;
  for (uint32_t i = 1; i < at.line; ++i) begin = text_.find('\n', begin) + 1;
  throw Error(at.line, at.column, message, text_.substr(begin, text_.find('\n', begin) - begin));
}

void Lexer::fail(const Token& at, const std::string& message) const {
  fail_at({at.line, at.column}, message);
}

void Lexer::fail_missing(const std::string& expected) const {
  const bool same_line = current.line == previous_end_.line && current.kind != Token::Kind::end;
  const Place at = same_line ? Place{current.line, current.column} : previous_end_;
  fail_at(at, "expected " + expected + ", found " + quoted(current));
}

std::vector<uint32_t> Lexer::line_starts() const {
  std::vector<uint32_t> starts{0};
  for (size_t at = text_.find('\n'); at != std::string_view::npos; at = text_.find('\n', at + 1))
    starts.push_back(static_cast<uint32_t>(at + 1));
  return starts;
}

void Lexer::new_line() {
  ++line_;
  line_start_ = position_;
}

void Lexer::skip_blanks() {
  while (!at_end()) {
    const char c = text_[position_];
    if (is_blank(c)) {
      ++position_;
      if (c == '\n') new_line();
    } else if (c == '/' && peek(1) == '/') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == '/' && peek(1) == '*') {
      const Place open = here();
      position_ += 2;
      while (!(peek() == '*' && peek(1) == '/')) {
        if (at_end()) fail_at(open, "the comment that starts here has no end; expected '*/'");
        if (text_[position_++] == '\n') new_line();
      }
      position_ += 2;
    } else {
      return;
    }
  }
}

void Lexer::scan() {
  skip_blanks();
  const Place begin = here();
  current.line = begin.line;
  current.column = begin.column;
  scan_token();
  end_ = here();
}

void Lexer::scan_token() {
  if (at_end()) {
    current.kind = Token::Kind::end;
    current.text = {};
    return;
  }
  const char c = text_[position_];
  if (is_word(c) || c == '%') return scan_word();
  if (c == '"') return scan_string();
  const size_t begin = position_;
  if (c == '.') {
    if (!is_letter(peek(1)) && peek(1) != '_') fail(current, "a name must follow '.'");
    ++position_;
    while (is_word(peek())) ++position_;
    current.kind = Token::Kind::directive;
  } else {
    if (std::string_view("{}[]()<>,;:|!@+-=").find(c) == std::string_view::npos)
      fail(current, "unexpected character " + character_name(c));
    ++position_;
    current.kind = Token::Kind::punctuation;
  }
  current.text = text_.substr(begin, position_ - begin);
}

void Lexer::scan_word() {
  const size_t begin = position_;
  const char first = text_[position_++];
  if (is_digit(first)) {
    current.kind = Token::Kind::number;
    const bool is_decimal = first != '0' || !is_letter(peek());
    while (is_word(peek()) || peek() == '.' ||
           (is_decimal && (peek() == '+' || peek() == '-') && (text_[position_ - 1] | 0x20) == 'e'))
      ++position_;
  } else {
    current.kind = Token::Kind::identifier;
    while (is_word(peek())) ++position_;
    if (first == '%' && position_ - begin == 1) fail(current, "a name must follow '%'");
    if (first == '%' && peek() == '.' && is_letter(peek(1))) {
      ++position_;
      while (is_word(peek())) ++position_;
    }
  }
  current.text = text_.substr(begin, position_ - begin);
}

void Lexer::scan_string() {
  const size_t begin = ++position_;
  const size_t end = text_.find_first_of("\"\n", begin);
  if (end == std::string_view::npos || text_[end] == '\n')
    fail(current, "the string that starts here has no end");
  current.kind = Token::Kind::string;
  current.text = text_.substr(begin, end - begin);
  position_ = end + 1;
}

bool Lexer::colon_follows() {
  // The cursor must stay behind the identifier: opcode() goes on from there.
  const size_t position = position_, line_start = line_start_;
  const uint32_t line = line_;
  skip_blanks();
  const bool result = peek() == ':';
  position_ = position;
  line_start_ = line_start;
  line_ = line;
  return result;
}

std::string_view Lexer::opcode() {
  opcode_ = current.text;
  const Token base = current;
  const auto modifier = [](char c) { return is_word(c) || c == ':' || c == '.'; };
  for (;;) {
    const size_t begin = position_;
    while (modifier(peek())) ++position_;
    opcode_.append(text_.substr(begin, position_ - begin));
    previous_end_ = here();
    skip_blanks();
    if (peek() != '.') break;
  }
  if (opcode_.back() == '.' || opcode_.find("..") != std::string::npos)
    fail(base, "the opcode '" + opcode_.substr(0, 80) + "' has an empty part");
  scan();
  return opcode_;
}

void Lexer::skip_block() {
  const Token open = current;
  size_t depth = 1;
  while (depth > 0) {
    skip_blanks();
    if (at_end()) fail(open, "the block that starts here has no end; expected '}'");
    const char c = text_[position_];
    if (c == '"') {
      const Place begin = here();
      current.line = begin.line;
      current.column = begin.column;
      scan_string();
      continue;
    }
    if (c == '{') ++depth;
    if (c == '}') --depth;
    ++position_;
  }
  next();
}

Number Lexer::number(const Token& token) const {
  Number result;
  const std::string_view text = token.text;
  const auto bad = [&](const char* why) { fail(token, "bad number " + quoted(token) + ": " + why); };
  const auto parse_integer = [&](std::string_view digits, int base) {
    const char* end = digits.data() + digits.size();
    const auto [stop, code] = std::from_chars(digits.data(), end, result.bits, base);
    if (code == std::errc::result_out_of_range) bad("it does not fit in 64 bits");
    if (code != std::errc() || stop != end) bad("it has a digit that its base lacks, or none at all");
  };
  const char mark = text.size() > 1 && text[0] == '0' ? static_cast<char>(text[1] | 0x20) : '\0';
  if (mark == 'f' || mark == 'd') {
    result.is_float = true;
    result.is_double = mark == 'd';
    if (text.size() != (mark == 'f' ? 10u : 18u))
      bad(mark == 'f' ? "0f takes 8 hexadecimal digits" : "0d takes 16 hexadecimal digits");
    parse_integer(text.substr(2), 16);
    return result;
  }
  const bool is_hexadecimal = mark == 'x';
  if (!is_hexadecimal && text.find_first_of(".eE") != std::string_view::npos) {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, code] = std::from_chars(text.data(), end, value);
    if (code == std::errc::result_out_of_range) bad("it lies outside the range of a double");
    if (code != std::errc() || stop != end) bad("it is no decimal floating-point constant");
    result.is_float = result.is_double = true;
    result.bits = std::bit_cast<uint64_t>(value);
    return result;
  }
  std::string_view digits = text;
  if (digits.back() == 'U') digits.remove_suffix(1);
  if (is_hexadecimal)
    parse_integer(digits.substr(2), 16);
  else if (mark == 'b')
    parse_integer(digits.substr(2), 2);
  else if (digits.size() > 1 && digits[0] == '0')
    parse_integer(digits, 8);
  else
    parse_integer(digits, 10);
  return result;
}

}  // namespace fa4::sim::ptx
