// SPDX-License-Identifier: BSD-3-Clause
#include "dumps/pickle_values.h"

#include <map>
#include <string>

#include <fmt/format.h>

namespace rehearse::sim::pickle {

namespace {

constexpr std::size_t kFewItems = 64;  // keys and values together

}  // namespace

// Builds a small dict without a map: a dump has very many of these, such as frames and entries.
Json Values::few_entries(const std::vector<Id>& items, std::size_t depth, PickleLimits& left) const {
  Json object = Json::object();
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    object[text_of(items[i], left)] = json_of(items[i + 1], depth - 1, left);
  return object;
}

// Builds a large dict. Json's dict compares a new key with every key that it has, so a map collects the entries first.
Json Values::many_entries(const std::vector<Id>& items, std::size_t depth, PickleLimits& left) const {
  std::map<std::string, Json> entries;
  for (std::size_t i = 0; i + 1 < items.size(); i += 2)
    entries[std::string(text_of(items[i], left))] = json_of(items[i + 1], depth - 1, left);
  return entries;
}

std::string_view Values::text_of(Id id, PickleLimits& left) const {
  const auto text = texts_[values_[id].payload];
  if (text.size() > left.texts) throw PickleError("holds longer texts than a dump has");
  left.texts -= text.size();
  return text;
}

Id Values::add(Value value) {
  if (values_.size() >= most_) throw PickleError(fmt::format("holds more than {} values", most_));
  values_.push_back(value);
  return static_cast<Id>(values_.size() - 1);
}

Json Values::json(Id root, PickleLimits limits) const { return json_of(root, limits.depth, limits); }

Json Values::json_of(Id id, std::size_t depth, PickleLimits& left) const {
  if (depth == 0) throw PickleError("is nested too deep for a dump, or holds itself");
  if (left.values-- == 0) throw PickleError("holds more values than a dump has");
  const auto& value = values_[id];
  switch (value.kind) {
    case Kind::none:
      return {};
    case Kind::boolean:
      return value.payload != 0;
    case Kind::integer:
      return static_cast<std::int64_t>(value.payload);
    case Kind::real:
      return std::bit_cast<double>(value.payload);
    case Kind::text:
      return text_of(id, left);
    case Kind::array: {
      Json array = Json::array();
      for (const Id item : items_[value.payload]) array.push_back(json_of(item, depth - 1, left));
      return array;
    }
    case Kind::dict: {
      const auto& items = items_[value.payload];
      for (std::size_t i = 0; i < items.size(); i += 2) {
        if (!is_text(items[i])) throw PickleError("has a dict with a key that is no text");
      }
      return items.size() <= kFewItems ? few_entries(items, depth, left) : many_entries(items, depth, left);
    }
  }
  return {};
}

}  // namespace rehearse::sim::pickle
