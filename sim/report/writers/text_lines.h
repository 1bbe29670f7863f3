// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rehearse::sim {

// The text with what a terminal would obey, and what is no UTF-8, as escapes: "\\x1b[31m", "\\n", "\\xff".
std::string visible(std::string_view text);

// Does the text begin with a character that turns round what stands behind it: U+202A to U+202E, U+2066 to U+2069?
bool turns_text(std::string_view text);

// `prefix` and `text` (made visible), broken into lines of at most `width` bytes; lines after the first are indented.
// Breaks are put where two spaces stand (between parts), and between words only in a part that is longer than a line. A
// longer word is left whole. No line end at the end.
std::string wrapped(std::string_view prefix, std::string_view text, std::size_t width, std::size_t indent);

std::size_t count_lines(std::string_view text);  // line ends

std::string_view first_line(std::string_view text);

}  // namespace rehearse::sim
