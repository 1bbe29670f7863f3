// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rehearse/job/parameters.h>
#include <toml++/toml.h>

#include "scenario_keys.h"

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

// Reads the keys of one table. Call finish() after all sections were read: it adds a problem for each key of the table
// that nobody asked for.
class Section {
 public:
  // `table`: null if the file does not have it. `problems` and the table must outlive this object.
  Section(Problems& problems, std::string name, const toml::table* table)
      : problems_(problems), name_(std::move(name)), table_(table) {}

  // Returns the value, or null. From then on the key counts as known.
  const toml::node* find(std::string_view key);

  // Sets what the key of the row says. A missing key changes nothing; a wrong value is a problem.
  void read(const ScenarioOption& row, Scenario& scenario);

  // Adds the problem "[world] ranks is "eight"; it takes an integer", in which `wrong` is the text after the value.
  void refuse(std::string_view key, const toml::node& node, std::string_view wrong);
  void finish();

 private:
  Problems& problems_;
  std::string name_;  // empty: the file's top level
  const toml::table* table_;
  std::vector<std::string> known_;
};

}  // namespace rehearse::sim
