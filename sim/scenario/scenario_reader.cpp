// SPDX-License-Identifier: BSD-3-Clause
#include "scenario_reader.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/job/spelling.h>

namespace rehearse::sim {

namespace {

// The value as Value::set() takes it. Nothing for a value of another kind.
std::optional<std::string> text_of(const toml::node& node, Form form) {
  const bool is_integer = form == Form::integer || form == Form::integer_or_text;
  if (form == Form::flag && node.is_boolean()) return *node.value_exact<bool>() ? "true" : "false";
  if ((is_integer || form == Form::number) && node.is_integer())
    return fmt::format("{}", *node.value_exact<std::int64_t>());
  if (form == Form::number && node.is_floating_point()) return fmt::format("{}", *node.value_exact<double>());
  if (form == Form::text || form == Form::texts || form == Form::integer_or_text)
    return node.value_exact<std::string>();
  return std::nullopt;
}

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
  std::ranges::stable_sort(found, [](const auto& a, const auto& b) { return a.first < b.first; });
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
  if (std::ranges::find(known_, key) == known_.end()) known_.emplace_back(key);
  problems_.note_home(key, name_);
  return table_ == nullptr ? nullptr : table_->get(key);
}

void Section::refuse(std::string_view key, const toml::node& node, std::string_view wrong) {
  const std::string place = name_.empty() ? "" : fmt::format("[{}] ", name_);
  problems_.add(line_of(node), fmt::format("{}{} is {}{}", place, key, shown(node), wrong));
}

void Section::read(const ScenarioOption& row, Scenario& scenario) {
  const auto* const node = find(row.key);
  if (node == nullptr) return;
  const auto wrong_kind = fmt::format("; it takes {}", row.value.takes);
  const auto take = [&](const toml::node& value) {
    const auto text = text_of(value, row.value.form);
    const auto wrong = text ? row.value.set(scenario, *text, Spelling::file) : wrong_kind;
    if (!wrong.empty()) refuse(row.key, text ? value : *node, wrong);
    return text.has_value();
  };
  if (row.value.form != Form::texts) {
    take(*node);
  } else if (const auto* const values = node->as_array()) {
    static_cast<void>(std::all_of(values->begin(), values->end(), take));
  } else {
    refuse(row.key, *node, wrong_kind);
  }
}

void Section::finish() {
  if (table_ == nullptr) return;
  for (const auto& [key, node] : *table_) {
    const std::string name(key.str());
    if (std::ranges::find(known_, name) != known_.end()) continue;
    const std::string place = name_.empty() ? "at the top level" : fmt::format("in [{}]", name_);
    auto hint = problems_.home_hint(name);
    if (hint.empty()) hint = did_you_mean(name, known_);
    problems_.add(key.source().begin.line, fmt::format("there is no key {} {}{}; it has {}", in_quotes(name), place,
                                                       hint, fmt::join(known_, ", ")));
  }
}

}  // namespace rehearse::sim
