// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <utility>

namespace rehearse {

// A line of source, in whatever language. `file`, `line` and `function` are for tools that open it.
struct Place {
  Place() = default;
  // Only the text is known.
  Place(std::string shown) : text(std::move(shown)) {}
  Place(const char* shown) : text(shown) {}

  std::string text;  // as reports show it: "train.cpp:41 in step", perhaps with outer lines; empty: nothing is known
  std::string file;  // the path as compiled, or as the interpreter names it; empty: unknown
  int line = 0;
  std::string function;

  bool empty() const noexcept { return text.empty(); }

  // " at train.cpp:41 in step"; empty if nothing is known.
  std::string at() const { return empty() ? "" : " at " + text; }

  // Instances of a template are one place, although `function` differs.
  friend bool operator==(const Place& a, const Place& b) {
    return a.text == b.text && a.file == b.file && a.line == b.line;
  }
};

}  // namespace rehearse
