// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/seeds/seed_run.h"

#include <algorithm>
#include <locale>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace rehearse::compiler {
namespace {

constexpr std::string_view kForm =
    "ranks or 'fake' / cap ('25 MB') or '-' / pieces / compiles ('1, 0' or '1, 0; 1, 1')";

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
    if (end == std::string::npos) return parts;
    begin = end + separator.size();
  }
}

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

// The names between backticks.
std::vector<std::string> quoted(const std::string& cell) {
  const auto parts = split(cell, "`");
  std::vector<std::string> names;
  for (std::size_t i = 1; i < parts.size(); i += 2) names.push_back(parts[i]);
  return names;
}

int number(const std::string& text) {
  const std::string digits = trimmed(text);
  if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string::npos) {
    throw std::runtime_error(fmt::format("'{}' is not a number", digits));
  }
  return std::stoi(digits);
}

std::vector<int> numbers(const std::string& text, const std::string& separator) {
  std::vector<int> found;
  for (const std::string& part : split(text, separator)) found.push_back(number(part));
  return found;
}

double megabytes(const std::string& text) {
  std::istringstream stream(text);
  stream.imbue(std::locale::classic());
  double cap = 0;
  std::string unit;
  if (!(stream >> cap >> unit) || unit != "MB" || cap <= 0) {
    throw std::runtime_error(fmt::format("'{}' is not a size of buckets", text));
  }
  return cap;
}

SeedRun parsed(const std::string& text) {
  const auto fields = split(text, "/");
  if (fields.size() != 4) throw std::runtime_error(fmt::format("it has {} fields", fields.size()));
  SeedRun run;
  if (trimmed(fields[0]) != "fake") run.ranks = numbers(trimmed(fields[0]), " ");
  if (const auto cap = trimmed(fields[1]); cap != "-") run.cap_mb = megabytes(cap);
  run.pieces = number(fields[2]);
  const auto sides = split(fields[3], ";");
  if (sides.size() > 2) throw std::runtime_error(fmt::format("it has compiles of {} kinds of ranks", sides.size()));
  run.compiles = numbers(sides.front(), ",");
  run.compiles_elsewhere = numbers(sides.back(), ",");
  return run;
}

}  // namespace

SeedRun seed_run_of(const std::string& page, const std::string& test) {
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const auto cells = split(line, "|");
    if (cells.size() < 5 || !line.starts_with("| `test_")) continue;
    const auto tests = quoted(cells[2]);
    const auto place = std::find(tests.begin(), tests.end(), test);
    if (place == tests.end()) continue;
    const auto runs = split(cells[3], "<br>");
    if (runs.size() != tests.size()) {
      throw std::runtime_error(fmt::format("SEEDS.md lists {} runs in the row of {}, and {} tests: each test needs one",
                                           runs.size(), test, tests.size()));
    }
    const std::string run = trimmed(runs[static_cast<std::size_t>(place - tests.begin())]);
    try {
      return parsed(run);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(
          fmt::format("SEEDS.md has the run '{}' for {}: {}. A run is: {}", run, test, error.what(), kForm));
    }
  }
  throw std::runtime_error(fmt::format("no row of SEEDS.md names {}: name it, and what it runs with", test));
}

}  // namespace rehearse::compiler
