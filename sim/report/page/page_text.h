// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/writers/json.h"

namespace rehearse::sim {

// A text as the content of an element or of a quoted attribute. Puts U+FFFD in place of each control character except
// tab and line end, of each character that reverses the text after it, and of bytes that are not UTF-8.
std::string html_text(std::string_view text);

// JSON as the content of a script element: nothing in it can end that element or begin a comment.
std::string script_json(Json json);

using Fills = std::vector<std::pair<std::string_view, std::string>>;

// `text` with each {{name}} replaced. Names in replacements are not replaced. `fills` must contain every name.
std::string filled(std::string_view text, const Fills& fills);

}  // namespace rehearse::sim
