// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse::sim {

// The text with escapes for control characters, characters that reverse text, and bytes that are not UTF-8:
// "\\x1b[31m", "\\n", "\\xff".
std::string visible(std::string_view text);

// True if the text begins with a character that reverses the text after it: U+202A to U+202E, U+2066 to U+2069.
bool turns_text(std::string_view text);

// `prefix` and `text` (made visible), broken into lines of at most `width` bytes. Lines after the first are indented.
// Breaks come at double spaces (between parts). They come between words only in a part that is longer than a line, and
// in the first part if it does not fit behind `prefix`. A word that is longer than a line stays whole. No line end at
// the end.
std::string wrapped(std::string_view prefix, std::string_view text, std::size_t width, std::size_t indent);

// The same for parts that one space separates.
std::string wrapped(std::string_view prefix, const std::vector<std::string>& parts, std::size_t width,
                    std::size_t indent);

std::size_t count_lines(std::string_view text);  // counts line ends

std::string_view first_line(std::string_view text);

}  // namespace rehearse::sim
