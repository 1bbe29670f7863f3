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

// Collects everything that is wrong with one scenario file.
class Problems {
 public:
  explicit Problems(std::string origin) : origin_(std::move(origin)) {}

  // Line 0: the problem belongs to no line.
  void add(std::uint32_t line, std::string text);
  // Adds a finished text that already contains its place.
  void add_located(std::uint32_t line, std::string text);

  // Reading a key notes its section. If a key stands in the wrong section, home_hint() tells where it belongs: " (ranks
  // goes into [world])"; otherwise it returns an empty text.
  void note_home(std::string_view key, const std::string& section);
  std::string home_hint(const std::string& key) const;

  const std::string& origin() const noexcept { return origin_; }
  bool empty() const noexcept { return found_.empty(); }

  // In order of lines. Problems without a line come first.
  std::vector<std::string> sorted() const;

 private:
  std::string origin_;
  std::vector<std::pair<std::uint32_t, std::string>> found_;
  std::map<std::string, std::string> homes_;
};

std::uint32_t line_of(const toml::node& node);

// A value as errors show it: `"eight"`, `3`, `an array`.
std::string shown(const toml::node& node);

// Nothing for tables, arrays, dates and times.
std::optional<ParameterValue> value_of(const toml::node& node);

// Reads the keys of one table. If a key is missing, its reader leaves `out` unchanged, or returns `otherwise`. If the
// value is wrong, the reader also adds a problem. Call finish() after all sections were read: it adds a problem for
// each key of the table that no reader asked for.
class Section {
 public:
  // `table`: null if the file does not have it. `problems` and the table must outlive this object.
  Section(Problems& problems, std::string name, const toml::table* table)
      : problems_(problems), name_(std::move(name)), table_(table) {}

  // Returns the value, or null. From then on the key counts as known.
  const toml::node* find(std::string_view key);

  void flag(std::string_view key, bool& out);
  void flag(std::string_view key, std::optional<bool>& out);
  void text(std::string_view key, std::string& out);
  // The bounds are inclusive.
  std::int64_t integer(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most);
  double number(std::string_view key, double otherwise, double least, double most);
  // Returns the index of the text in `choices`.
  std::size_t choice(std::string_view key, const std::vector<std::string>& choices, std::size_t otherwise);
  // Reads a text; `parse` returns true if it accepts the text. `takes` completes "it takes ...".
  void quantity(std::string_view key, std::string_view takes, const std::function<bool(std::string_view)>& parse);

  // Adds the problem "[world] ranks is "eight"; it takes <takes>".
  void refuse(std::string_view key, const toml::node& node, std::string_view takes);
  void finish();

 private:
  Problems& problems_;
  std::string name_;  // empty: the file's top level
  const toml::table* table_;
  std::vector<std::string> known_;
};

}  // namespace rehearse::sim
