// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/page_text.h"

#include <algorithm>
#include <cstddef>

#include <rehearse_internal/exec/check.h>

#include "report/writers/text_lines.h"

namespace rehearse::sim {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Replaces bytes that are not UTF-8 by U+FFFD, as json_text() does, but adds no quotes or escapes.
std::string valid_utf8(std::string_view text) { return parse_json(json_text(Json(text))).get<std::string>(); }

bool is_control(char c) { return (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7f'; }

// U+0080 to U+009F, which `valid` UTF-8 writes as two bytes.
bool is_eight_bit_control(std::string_view valid) {
  return valid.size() >= 2 && valid[0] == '\xC2' && static_cast<unsigned char>(valid[1]) < 0xA0;
}

}  // namespace

std::string html_text(std::string_view text) {
  const std::string valid = valid_utf8(text);
  std::string result;
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const auto rest = std::string_view(valid).substr(i);
    if (const auto bytes = turns_text(rest) ? 3u : is_eight_bit_control(rest) ? 2u : 0u; bytes > 0) {
      result += kReplacement;
      i += bytes - 1;
      continue;
    }
    switch (const char c = valid[i]) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += is_control(c) ? std::string(kReplacement) : std::string(1, c);
    }
  }
  return result;
}

std::string script_json(Json json) {
  const std::string text = json_text(std::move(json));
  std::string result;
  result.reserve(text.size() + text.size() / 64);
  // In JSON, "<" occurs only in texts, which may write it as an escape.
  for (const char c : text) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result.push_back(c);
    }
  }
  return result;
}

std::string filled(std::string_view text, const Fills& fills) {
  std::string result;
  for (auto open = text.find("{{"); open != std::string_view::npos; open = text.find("{{")) {
    const auto close = text.find("}}", open);
    REHEARSE_CHECK(close != std::string_view::npos, open);
    const auto name = text.substr(open + 2, close - open - 2);
    const auto fill = std::ranges::find_if(fills, [&](const auto& each) { return each.first == name; });
    REHEARSE_CHECK(fill != fills.end(), name);
    result += text.substr(0, open);
    result += fill->second;
    text.remove_prefix(close + 2);
  }
  return result += text;
}

}  // namespace rehearse::sim
