// SPDX-License-Identifier: BSD-3-Clause
#include "graph/pt2/field.h"

#include <limits>
#include <unordered_set>

namespace rehearse::graph {
namespace {

using nlohmann::json;

constexpr int kMaxJsonNesting = 2000;

// Sees a document while it is read: how deep it is, and keys that an object has twice, of which a json keeps one.
class DocumentCheck {
 public:
  explicit DocumentCheck(const std::string& root) : root_(root) {}

  void see(int depth, json::parse_event_t event, const json& parsed) {
    using Event = json::parse_event_t;
    if (depth > kMaxJsonNesting) throw ImportError("", root_, "is nested deeper than " + std::to_string(kMaxJsonNesting));
    switch (event) {
      case Event::object_end:
      case Event::array_end:
        levels_.pop_back();
        break;
      case Event::key:
        levels_.back().key = parsed.get<std::string>();
        if (!levels_.back().keys.insert(levels_.back().key).second) throw ImportError("", path(), "the key is given twice");
        break;
      case Event::object_start:
      case Event::array_start:
        count_item();
        levels_.push_back({event == Event::array_start, 0, "", {}});
        break;
      case Event::value:
        count_item();
    }
  }

 private:
  struct Level {
    bool is_array;
    std::size_t items;
    std::string key;  // the last one
    std::unordered_set<std::string> keys;
  };

  void count_item() {
    if (!levels_.empty()) ++levels_.back().items;
  }

  std::string path() const {
    std::string path = root_;
    for (const Level& level : levels_) path += level.is_array ? "[" + std::to_string(level.items - 1) + "]" : "." + level.key;
    return path;
  }

  const std::string& root_;
  std::vector<Level> levels_;  // those that are open
};

}  // namespace

json parse_json(std::string_view text, const std::string& field) {
  DocumentCheck check(field);
  try {
    return json::parse(text, [&](int depth, json::parse_event_t event, const json& parsed) {
      check.see(depth, event, parsed);
      return true;
    });
  } catch (const json::exception& error) {
    throw ImportError("", field, std::string("is no JSON: ") + error.what());
  }
}

std::string Field::found() const {
  std::string text = value_->dump();
  if (text.size() > 80) text.replace(77, std::string::npos, "...");
  return ", and is " + text;
}

Field Field::operator[](const char* key) const {
  if (!value_->is_object()) fail("must be an object" + found());
  const auto at = value_->find(key);
  if (at == value_->end()) fail(std::string("has no '") + key + "'");
  return Field(*at, path_ + "." + key, node_);
}

std::optional<Field> Field::find(const std::string& key) const {
  if (!value_->is_object()) fail("must be an object" + found());
  const auto at = value_->find(key);
  if (at == value_->end() || at->is_null()) return std::nullopt;
  return Field(*at, path_ + "." + key, node_);
}

std::vector<Field> Field::items() const {
  if (!value_->is_array()) fail("must be a list" + found());
  std::vector<Field> fields;
  fields.reserve(value_->size());
  for (std::size_t i = 0; i < value_->size(); ++i) {
    fields.emplace_back((*value_)[i], path_ + "[" + std::to_string(i) + "]", node_);
  }
  return fields;
}

std::vector<std::pair<std::string, Field>> Field::entries() const {
  if (!value_->is_object()) fail("must be an object" + found());
  std::vector<std::pair<std::string, Field>> fields;
  for (const auto& [key, item] : value_->items()) fields.emplace_back(key, Field(item, path_ + "." + key, node_));
  return fields;
}

std::pair<std::string, Field> Field::variant() const {
  if (!value_->is_object() || value_->size() != 1) fail("must be an object with one key, which says what it is" + found());
  const auto only = value_->begin();
  return {only.key(), Field(*only, path_ + "." + only.key(), node_)};
}

std::string Field::text() const {
  if (!value_->is_string()) fail("must be a string" + found());
  return value_->get<std::string>();
}

std::int64_t Field::integer() const {
  if (!value_->is_number_integer()) fail("must be an integer" + found());
  if (value_->is_number_unsigned() && value_->get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    fail("must fit into 64 bits" + found());
  }
  return value_->get<std::int64_t>();
}

double Field::number() const {
  if (value_->is_number()) return value_->get<double>();
  const std::string name = value_->is_string() ? value_->get<std::string>() : "";
  if (name == "Infinity") return std::numeric_limits<double>::infinity();
  if (name == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (name == "NaN") return std::numeric_limits<double>::quiet_NaN();
  fail("must be a number" + found());
}

bool Field::boolean() const {
  if (!value_->is_boolean()) fail("must be true or false" + found());
  return value_->get<bool>();
}

}  // namespace rehearse::graph
