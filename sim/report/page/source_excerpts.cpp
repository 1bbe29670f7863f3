// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/source_excerpts.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

namespace rehearse::sim {
namespace {

constexpr std::size_t kPlacesMost = 80;
constexpr int kLinesAround = 5;
constexpr int kLineNumberMost = 1'000'000;
constexpr std::size_t kBytesOfLineMost = 400;

using Places = std::map<std::string, std::set<int>>;  // by file name

bool is_of_name(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("._+-").find(c) != std::string_view::npos;
}

// Calls `found(name, line)` for each "name:line" in the text.
template <class Found>
void find_places(std::string_view text, const Found& found) {
  for (auto colon = text.find(':'); colon != std::string_view::npos; colon = text.find(':', colon + 1)) {
    std::size_t begin = colon;
    while (begin > 0 && is_of_name(text[begin - 1])) --begin;
    int line = 0;
    const auto* const digits = text.data() + colon + 1;
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), line);
    if (begin == colon || error != std::errc() || line < 1 || line > kLineNumberMost) continue;
    found(std::string(text.substr(begin, colon - begin)), line);
  }
}

Places places_in(const std::vector<std::string>& texts, const std::map<std::string, std::string>& files) {
  Places places;
  std::size_t count = 0;
  for (const auto& text : texts) {
    find_places(text, [&](const std::string& name, int line) {
      if (count < kPlacesMost && files.contains(name) && places[name].insert(line).second) ++count;
    });
  }
  return places;
}

// Removes the carriage return that a file from another system has at its line ends, and cuts long lines.
std::string shown_line(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  if (line.size() > kBytesOfLineMost) line = line.substr(0, kBytesOfLineMost) + " ...";
  return line;
}

// Ranges of lines around the named lines. Ranges that touch are merged.
std::vector<SourceExcerpt> wanted(const std::string& name, const std::string& path, const std::set<int>& lines) {
  std::vector<SourceExcerpt> excerpts;
  int last = -1;
  for (const int line : lines) {
    const int first = std::max(1, line - kLinesAround);
    if (excerpts.empty() || first > last + 1) excerpts.push_back({name, path, first, {}, {}});
    excerpts.back().named.push_back(line);
    last = line + kLinesAround;
  }
  return excerpts;
}

// False if the file is too short for the named lines: then it is not the file from which the program was built.
bool read_lines(std::istream& in, int& next, SourceExcerpt& excerpt) {
  std::string line;
  const int last = excerpt.named.back() + kLinesAround;
  for (; next <= last && std::getline(in, line); ++next) {
    if (next >= excerpt.first) excerpt.lines.push_back(shown_line(std::move(line)));
  }
  return next > excerpt.named.back();
}

}  // namespace

std::vector<SourceExcerpt> source_excerpts(const std::vector<std::string>& texts,
                                           const std::map<std::string, std::string>& files) {
  std::vector<SourceExcerpt> excerpts;
  for (const auto& [name, lines] : places_in(texts, files)) {
    std::ifstream in(files.at(name));
    int next = 1;
    for (auto& excerpt : wanted(name, files.at(name), lines)) {
      if (!read_lines(in, next, excerpt)) break;
      excerpts.push_back(std::move(excerpt));
    }
  }
  return excerpts;
}

}  // namespace rehearse::sim
