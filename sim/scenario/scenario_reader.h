// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rehearse/job/parameters.h>
#include <toml++/toml.h>

namespace rehearse::sim {

// Everything wrong with one scenario file.
class Problems {
 public:
  explicit Problems(std::string origin) : origin_(std::move(origin)) {}

  // Line 0: the problem has no line of its own.
  void add(std::uint32_t line, std::string text);
  // A finished text that already says where it stands.
  void add_located(std::uint32_t line, std::string text);

  // Each key is noted with its section when it is read, so that one in the wrong section can be told where it
  // belongs: " (ranks goes into [world])", or nothing.
  void note_home(std::string_view key, const std::string& section);
  std::string home_hint(const std::string& key) const;

  const std::string& origin() const noexcept { return origin_; }
  bool empty() const noexcept { return found_.empty(); }

  // In order of lines; what has no line comes first.
  std::vector<std::string> sorted() const;

 private:
  std::string origin_;
  std::vector<std::pair<std::uint32_t, std::string>> found_;
  std::map<std::string, std::string> homes_;
};

std::uint32_t line_of(const toml::node& node);

// A value as an error shows it: `"eight"`, `3`, `an array`.
std::string shown(const toml::node& node);

// Nothing for tables, arrays, dates and times.
std::optional<ParameterValue> value_of(const toml::node& node);

// Reads the keys of one table; each read leaves its output alone when the key is missing or wrong, and notes
// what is wrong. finish(), after the keys of all sections were read, notes those that nobody asked for.
class Section {
 public:
  // `table` null: the file does not have it. Borrows both.
  Section(Problems& problems, std::string name, const toml::table* table)
      : problems_(problems), name_(std::move(name)), table_(table) {}

  // The value, or null; from then on the key is a known one.
  const toml::node* find(std::string_view key);

  void flag(std::string_view key, bool& out);
  void flag(std::string_view key, std::optional<bool>& out);
  void text(std::string_view key, std::string& out);
  // Both bounds inclusive.
  std::int64_t integer(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most);
  double number(std::string_view key, double otherwise, double least, double most);
  // The index of the text in `choices`.
  std::size_t choice(std::string_view key, const std::vector<std::string>& choices, std::size_t otherwise);
  // A text that `parse` takes: it returns whether it did. `takes` completes "it takes ...".
  void quantity(std::string_view key, std::string_view takes, const std::function<bool(std::string_view)>& parse);

  // "[world] ranks is "eight"; it takes <takes>"
  void refuse(std::string_view key, const toml::node& node, std::string_view takes);
  void finish();

 private:
  Problems& problems_;
  std::string name_;  // empty: the file's top level
  const toml::table* table_;
  std::vector<std::string> known_;
};

}  // namespace rehearse::sim
