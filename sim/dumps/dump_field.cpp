// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/dump_field.h"

#include <fmt/format.h>

#include "dumps/dump.h"

namespace rehearse::sim {
namespace {

constexpr std::size_t kValueShown = 60;

}  // namespace

std::string Field::path() const {
  if (parent_ == nullptr) return "";
  const auto before = parent_->path();
  if (key_.empty()) return fmt::format("{}[{}]", before, index_);
  return before.empty() ? std::string(key_) : fmt::format("{}.{}", before, key_);
}

void Field::wrong(std::string_view right) const {
  const auto name = path();
  auto value = json_text(*value_);
  if (value.size() > kValueShown) value = value.substr(0, kValueShown) + "...";
  throw DumpError(fmt::format("{} is {}; right would be {}", name.empty() ? "the whole" : name, value, right));
}

Field Field::at(std::string_view key) const {
  if (!value_->is_object()) wrong(fmt::format("a dict with the key \"{}\"", key));
  const auto* const found = value_->find(key);
  if (found == nullptr) {
    const auto name = path();
    throw DumpError(fmt::format("{}{}{} is missing, which every dump of a flight recorder has", name,
                                name.empty() ? "" : ".", key));
  }
  return Field(*found, *this, key, 0);
}

std::string Field::text() const {
  if (!value_->is_text()) wrong("a text");
  return value_->get<std::string>();
}

bool Field::flag() const {
  try {
    return value_->get<bool>();
  } catch (const JsonError&) {
    wrong("true or false");
  }
}

std::int64_t Field::integer(std::int64_t least, std::int64_t most) const {
  try {
    const auto value = value_->get<std::int64_t>();
    if (value >= least && value <= most) return value;
  } catch (const JsonError&) {  // of another type
  }
  wrong(fmt::format("an integer from {} to {}", least, most));
}

const std::vector<Json>& Field::items() const {
  if (!value_->is_array()) wrong("a list");
  return value_->items();
}

const Json::Object& Field::entries() const {
  if (!value_->is_object()) wrong("a dict");
  return value_->entries();
}

}  // namespace rehearse::sim
