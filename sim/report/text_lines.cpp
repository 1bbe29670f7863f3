// SPDX-License-Identifier: BSD-3-Clause
#include "text_lines.h"

#include <algorithm>
#include <utility>

namespace rehearse::sim {

namespace {

// Puts pieces on lines; knows where the line being written ends.
class LineFiller {
 public:
  LineFiller(std::string_view prefix, std::size_t width, std::size_t indent)
      : text_(prefix), column_(prefix.size()), width_(width), indent_(indent) {}

  bool has_room_for(std::size_t bytes) const { return column_ + bytes <= width_; }
  bool fits_on_a_line(std::size_t bytes) const { return indent_ + bytes <= width_; }
  bool line_is_fresh() const { return fresh_; }

  void add(std::string_view piece) {
    text_ += piece;
    column_ += piece.size();
    fresh_ = false;
  }

  void next_line() {
    text_ += '\n';
    text_.append(indent_, ' ');
    column_ = indent_;
    fresh_ = true;
  }

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::size_t column_, width_, indent_;
  bool fresh_ = true;
};

void add_words(LineFiller& lines, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' ', 1), text.size());  // a space in front belongs to the word
    std::string_view word = text.substr(0, end);
    text.remove_prefix(end);
    if (!lines.line_is_fresh() && !lines.has_room_for(word.size())) {
      lines.next_line();
      if (word.front() == ' ') word.remove_prefix(1);
    }
    lines.add(word);
  }
}

}  // namespace

std::string wrapped(std::string_view prefix, std::string_view text, std::size_t width, std::size_t indent) {
  constexpr std::string_view kBetween = "  ";
  LineFiller lines(prefix, width, indent);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kBetween), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + kBetween.size(), text.size()));
    const std::size_t gap = lines.line_is_fresh() ? 0 : kBetween.size();
    // What is longer than a line begins where there is room for its first word.
    const std::size_t unbroken =
        lines.fits_on_a_line(part.size()) ? part.size() : std::min(part.find(' ', 1), part.size());
    if (gap != 0 && !lines.has_room_for(gap + unbroken)) {
      lines.next_line();
    } else if (gap != 0) {
      lines.add(kBetween);
    }
    add_words(lines, part);
  }
  return lines.take();
}

std::size_t count_lines(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace rehearse::sim
