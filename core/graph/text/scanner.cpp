// SPDX-License-Identifier: BSD-3-Clause
#include "graph/text/scanner.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <rehearse/graph/errors.h>

namespace rehearse::graph {

void Scanner::fail(const std::string& message) const {
  const std::string_view before = text_.substr(0, last_);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? last_ + 1 : last_ - newline;
  throw GraphError("", "line " + std::to_string(line) + ", column " + std::to_string(column), message);
}

void Scanner::skip_spaces() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
}

bool Scanner::at_end() {
  skip_spaces();
  last_ = at_;
  return at_ == text_.size();
}

bool Scanner::next_is(std::string_view word) {
  skip_spaces();
  return text_.substr(at_).starts_with(word);
}

bool Scanner::take(std::string_view word) {
  if (!next_is(word)) return false;
  last_ = at_;
  at_ += word.size();
  return true;
}

void Scanner::expect(std::string_view word) {
  if (take(word)) return;
  last_ = at_;
  fail("there must be '" + std::string(word) + "' here");
}

std::string Scanner::word() {
  skip_spaces();
  last_ = at_;
  const std::size_t start = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '+' && c != '-' && c != '.') break;
    ++at_;
  }
  if (at_ == start) fail("there must be a name or a value here");
  return std::string(text_.substr(start, at_ - start));
}

std::string Scanner::quoted() {
  expect("\"");
  std::string out;
  while (true) {
    if (at_ == text_.size()) fail("the string has no end");
    const char c = text_[at_++];
    if (c == '"') return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    const char code = at_ < text_.size() ? text_[at_++] : '\0';
    if (code == '"' || code == '\\') {
      out += code;
    } else if (code == 'n') {
      out += '\n';
    } else if (code == 'u' && at_ + 4 <= text_.size()) {
      unsigned value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, value, 16);
      if (error != std::errc() || end != text_.data() + at_ + 4 || value > 0x7f)
        fail("the string has an unknown escape");
      out += static_cast<char>(value);
      at_ += 4;
    } else {
      fail("the string has an unknown escape");
    }
  }
}

}  // namespace rehearse::graph
