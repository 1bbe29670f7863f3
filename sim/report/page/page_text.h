// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/writers/json.h"

namespace rehearse::sim {

// A text for the place of an element's content or of a quoted attribute. Control characters, which HTML does not
// allow, become U+FFFD; so do bytes that are not UTF-8.
std::string html_text(std::string_view text);

// JSON for the content of a script element: nothing in it can end that element or begin a comment.
std::string script_json(Json json);

using Fills = std::vector<std::pair<std::string_view, std::string>>;

// `text` with each {{name}} replaced. Replacements are not searched. A name that is not in `fills` is a bug here.
std::string filled(std::string_view text, const Fills& fills);

}  // namespace rehearse::sim
