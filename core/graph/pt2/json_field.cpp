// SPDX-License-Identifier: BSD-3-Clause
#include "graph/pt2/json_field.h"

#include <limits>
#include <unordered_set>

#include <nlohmann/json.hpp>

namespace rehearse::graph {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxJsonNesting = 2000;

// Checks what the JSON reader tolerates: deep nesting, and repeated keys in an object (a json object would keep only
// one of them). This needs its own pass, because building a json with a callback takes quadratic time.
class DocumentCheck : public nlohmann::json_sax<json> {
 public:
  explicit DocumentCheck(const std::string& root) : root_(root) {}

  bool null() override { return count_item(); }
  bool boolean(bool) override { return count_item(); }
  bool number_integer(number_integer_t) override { return count_item(); }
  bool number_unsigned(number_unsigned_t) override { return count_item(); }
  bool number_float(number_float_t, const string_t&) override { return count_item(); }
  bool string(string_t&) override { return count_item(); }
  bool binary(binary_t&) override { return count_item(); }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    levels_.back().key = name;
    if (!levels_.back().keys.insert(name).second) throw ImportError("", path(), "the key is given twice");
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override { return false; }

 private:
  struct Level {
    bool is_array = false;
    std::size_t items = 0;
    std::string key;  // the last key that was read
    std::unordered_set<std::string> keys;
  };

  bool count_item() {
    if (!levels_.empty()) ++levels_.back().items;
    return true;
  }

  bool open(bool is_array) {
    count_item();
    levels_.emplace_back().is_array = is_array;
    if (levels_.size() > kMaxJsonNesting) {
      throw ImportError("", root_, "is nested deeper than " + std::to_string(kMaxJsonNesting));
    }
    return true;
  }

  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string path() const {
    std::string path = root_;
    for (const Level& level : levels_)
      path += level.is_array ? "[" + std::to_string(level.items - 1) + "]" : "." + level.key;
    return path;
  }

  const std::string& root_;
  std::vector<Level> levels_;  // the objects and arrays that are still open
};

}  // namespace

std::shared_ptr<const json> parse_json(std::string_view text, const std::string& field) {
  DocumentCheck check(field);
  try {
    json::sax_parse(text, &check);
    return std::make_shared<const json>(json::parse(text));
  } catch (const json::exception& error) {
    throw ImportError("", field, std::string("is no JSON: ") + error.what());
  }
}

bool Field::is_null() const { return value_->is_null(); }

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
  if (!value_->is_object() || value_->size() != 1)
    fail("must be an object with one key, which says what it is" + found());
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
