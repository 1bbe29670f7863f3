// SPDX-License-Identifier: BSD-3-Clause
#include "scenario_reader.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/job/spelling.h>

namespace rehearse::sim {

namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

void Problems::note_home(std::string_view key, const std::string& section) {
  if (!section.empty()) homes_.try_emplace(std::string(key), section);
}

std::string Problems::home_hint(const std::string& key) const {
  const auto home = homes_.find(key);
  return home == homes_.end() ? "" : fmt::format(" ({} goes into [{}])", key, home->second);
}

void Problems::add(std::uint32_t line, std::string text) {
  add_located(line, line == 0 ? fmt::format("{}: {}", origin_, text) : fmt::format("{}:{}: {}", origin_, line, text));
}

void Problems::add_located(std::uint32_t line, std::string text) { found_.emplace_back(line, std::move(text)); }

std::vector<std::string> Problems::sorted() const {
  auto found = found_;
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> texts;
  for (auto& [line, text] : found) texts.push_back(std::move(text));
  return texts;
}

std::uint32_t line_of(const toml::node& node) { return node.source().begin.line; }

std::string shown(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  const auto value = value_of(node);
  return value ? rehearse::shown(*value) : "a date or time";
}

std::optional<ParameterValue> value_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return *flag;
  if (const auto integer = node.value_exact<std::int64_t>()) return *integer;
  if (const auto number = node.value_exact<double>()) return *number;
  return std::nullopt;
}

const toml::node* Section::find(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  problems_.note_home(key, name_);
  return table_ == nullptr ? nullptr : table_->get(key);
}

void Section::refuse(std::string_view key, const toml::node& node, std::string_view takes) {
  const std::string place = name_.empty() ? "" : fmt::format("[{}] ", name_);
  problems_.add(line_of(node), fmt::format("{}{} is {}; it takes {}", place, key, shown(node), takes));
}

void Section::flag(std::string_view key, bool& out) {
  std::optional<bool> given;
  flag(key, given);
  if (given) out = *given;
}

void Section::flag(std::string_view key, std::optional<bool>& out) {
  const auto* node = find(key);
  if (node == nullptr) return;
  if (const auto value = node->value_exact<bool>()) {
    out = value;
  } else {
    refuse(key, *node, "true or false");
  }
}

void Section::text(std::string_view key, std::string& out) {
  const auto* node = find(key);
  if (node == nullptr) return;
  const auto value = node->value_exact<std::string>();
  if (!value || value->empty()) {
    refuse(key, *node, "a text that is not empty");
  } else if (std::any_of(value->begin(), value->end(), is_control)) {
    refuse(key, *node, "a text without line ends and other control characters");
  } else {
    out = *value;
  }
}

std::int64_t Section::integer(std::string_view key, std::int64_t otherwise, std::int64_t least, std::int64_t most) {
  const auto* node = find(key);
  if (node == nullptr) return otherwise;
  const auto value = node->value_exact<std::int64_t>();
  if (value && *value >= least && *value <= most) return *value;
  refuse(key, *node, fmt::format("an integer from {} to {}", least, most));
  return otherwise;
}

double Section::number(std::string_view key, double otherwise, double least, double most) {
  const auto* node = find(key);
  if (node == nullptr) return otherwise;
  const auto value = node->is_number() ? node->value<double>() : std::nullopt;
  if (value && *value >= least && *value <= most) return *value;
  refuse(key, *node, fmt::format("a number from {} to {}", least, most));
  return otherwise;
}

std::size_t Section::choice(std::string_view key, const std::vector<std::string>& choices, std::size_t otherwise) {
  const auto* node = find(key);
  if (node == nullptr) return otherwise;
  const auto value = node->value_exact<std::string>();
  const auto found = value ? std::find(choices.begin(), choices.end(), *value) : choices.end();
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  refuse(key, *node, fmt::format("\"{}\"", fmt::join(choices, "\" or \"")));
  return otherwise;
}

void Section::quantity(std::string_view key, std::string_view takes,
                       const std::function<bool(std::string_view)>& parse) {
  const auto* node = find(key);
  if (node == nullptr) return;
  const auto value = node->value_exact<std::string>();
  if (!value || !parse(*value)) refuse(key, *node, takes);
}

void Section::finish() {
  if (table_ == nullptr) return;
  for (const auto& [key, node] : *table_) {
    const std::string name(key.str());
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string place = name_.empty() ? "at the top level" : fmt::format("in [{}]", name_);
    auto hint = problems_.home_hint(name);
    if (hint.empty()) hint = did_you_mean(name, known_);
    problems_.add(key.source().begin.line, fmt::format("there is no key {} {}{}; it has {}", in_quotes(name), place,
                                                       hint, fmt::join(known_, ", ")));
  }
}

}  // namespace rehearse::sim
