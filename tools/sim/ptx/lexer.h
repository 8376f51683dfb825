// SPDX-License-Identifier: Apache-2.0
// PTX text to tokens, one at a time: `current` is the token under the cursor. The lexer owns no text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "module.h"

namespace fa4::sim::ptx {

struct Token {
  enum class Kind : uint8_t {
    end,
    identifier,  // name, $name, _name, %name; a name with '%' includes a component: %tid.x
    directive,   // .name
    number,      // starts with a digit
    string,      // text without the quotes
    punctuation  // one character
  };
  Kind kind = Kind::end;
  std::string_view text;
  uint32_t line = 1, column = 1;

  bool is(char c) const { return kind == Kind::punctuation && text[0] == c; }
  bool is_directive(std::string_view name) const { return kind == Kind::directive && text == name; }
};

// The value of a number token.
struct Number {
  uint64_t bits = 0;  // integers: the magnitude; floats: the bits of an f32 or f64
  bool is_float = false;
  bool is_double = false;  // of the floats, those whose bits are those of a double
};

class Lexer {
 public:
  // `text` must outlive the lexer. Fails for texts beyond 256 MiB.
  explicit Lexer(std::string_view text);

  Token current;

  // Moves to the next token and returns the one that was current.
  Token next();

  // With an identifier current: true when a ':' follows, that is, when it is a label.
  bool colon_follows();

  // With an identifier current: takes in the modifiers that follow it (".sync", ".shared::cta", ".32x32b",
  // blanks between them allowed), returns the whole without blanks and moves on. The view is good until the
  // next call.
  std::string_view opcode();

  // With '{' current: moves behind the matching '}' without looking at what is between, but for strings and
  // comments.
  void skip_block();

  Number number(const Token& token) const;

  std::vector<uint32_t> line_starts() const;

  [[noreturn]] void fail(const Token& at, const std::string& message) const;
  // Something is missing between the previous token and the current one: at the current one when that stands
  // on the same line, else behind the previous one.
  [[noreturn]] void fail_missing(const std::string& expected) const;

 private:
  struct Place {
    uint32_t line = 1, column = 1;
  };
  Place here() const { return {line_, static_cast<uint32_t>(position_ - line_start_ + 1)}; }
  char peek(size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  bool at_end() const { return position_ >= text_.size(); }
  void new_line();
  void skip_blanks();
  void scan();
  void scan_token();
  void scan_word();
  void scan_string();
  [[noreturn]] void fail_at(Place at, const std::string& message) const;

  std::string_view text_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  size_t line_start_ = 0;
  Place end_, previous_end_;  // behind the current and the previous token
  std::string opcode_;
};

// "'mov'", "the end of the text", ...: a token in a message.
std::string quoted(const Token& token);

}  // namespace fa4::sim::ptx
