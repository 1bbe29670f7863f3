// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/text_lines.h"

#include <algorithm>
#include <utility>

namespace rehearse::sim {

namespace {

// Puts text on lines, and knows the column at which the current line ends.
class LineFiller {
 public:
  LineFiller(std::string_view prefix, std::size_t width, std::size_t indent)
      : text_(prefix), column_(prefix.size()), width_(width), indent_(indent) {}

  // Adds the part after `between`, or on the next line if the current line has no room for the part. A part that is
  // longer than a line needs room for its first word only.
  void add_part(std::string_view part, std::string_view between) {
    const std::size_t unbroken = fits_on_a_line(part.size()) ? part.size() : std::min(part.find(' ', 1), part.size());
    if (!fresh_ && !has_room_for(between.size() + unbroken)) {
      next_line();
    } else if (!fresh_) {
      add(between);
    }
    add_words(part);
  }

  std::string take() { return std::move(text_); }

 private:
  bool has_room_for(std::size_t bytes) const { return column_ + bytes <= width_; }
  bool fits_on_a_line(std::size_t bytes) const { return indent_ + bytes <= width_; }

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

  void add_words(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' ', 1), text.size());  // a space in front belongs to the word
      std::string_view word = text.substr(0, end);
      text.remove_prefix(end);
      if (!fresh_ && !has_room_for(word.size())) {
        next_line();
        if (word.front() == ' ') word.remove_prefix(1);
      }
      add(word);
    }
  }

  std::string text_;
  std::size_t column_, width_, indent_;
  bool fresh_ = true;
};

// How many bytes the first character of the text takes; 0: a character that must not reach the reader as it is.
std::size_t length_of_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto first = byte(0);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const auto second = byte(1);
  if (first == 0xc2 && second < 0xa0) return 0;  // eight-bit control characters
  if (turns_text(text)) return 0;
  // Overlong forms, surrogate halves, and code points beyond the last one.
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second >= 0xa0) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second >= 0x90);
  return wrong ? 0 : bytes;
}

std::string escaped(char c) {
  if (c == '\n') return "\\n";
  if (c == '\r') return "\\r";
  if (c == '\t') return "\\t";
  constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

}  // namespace

bool turns_text(std::string_view text) {
  if (text.size() < 3 || text[0] != '\xE2') return false;
  const auto last = static_cast<unsigned char>(text[2]);
  return (text[1] == '\x80' && last >= 0xAA && last <= 0xAE) || (text[1] == '\x81' && last >= 0xA6 && last <= 0xA9);
}

std::string visible(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const auto bytes = length_of_character(text);
    if (bytes == 0) {
      shown += escaped(text.front());
      text.remove_prefix(1);
    } else {
      shown += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
  }
  return shown;
}

std::string wrapped(std::string_view prefix, std::string_view raw, std::size_t width, std::size_t indent) {
  constexpr std::string_view kBetween = "  ";
  const std::string shown = visible(raw);
  std::string_view text = shown;
  LineFiller lines(prefix, width, indent);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kBetween), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + kBetween.size(), text.size()));
    lines.add_part(part, kBetween);
  }
  return lines.take();
}

std::string wrapped(std::string_view prefix, const std::vector<std::string>& parts, std::size_t width,
                    std::size_t indent) {
  LineFiller lines(prefix, width, indent);
  for (const auto& part : parts) lines.add_part(visible(part), " ");
  return lines.take();
}

std::size_t count_lines(std::string_view text) { return static_cast<std::size_t>(std::ranges::count(text, '\n')); }

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace rehearse::sim
