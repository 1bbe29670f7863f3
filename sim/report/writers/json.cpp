// SPDX-License-Identifier: BSD-3-Clause
#include "report/writers/json.h"

#include <algorithm>
#include <unordered_map>

#include <nlohmann/json.hpp>

namespace rehearse::sim {
namespace {

using Library = nlohmann::ordered_json;

constexpr std::size_t kNestingMost = 500;  // copying and printing a value recurse once for each level
constexpr std::size_t kFewKeys = 64;

}  // namespace

class JsonBuilder final : public nlohmann::json_sax<Library> {
 public:
  Json take() { return std::move(root_); }

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    throw JsonSyntaxError(position);
  }

 private:
  struct Open {
    Json* value;
    std::unordered_map<std::string, std::size_t> index_of;  // an index of the keys, if the object has many
  };

  Json& put(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    auto& [parent, index_of] = open_.back();
    if (parent->is_object()) return member(*parent, index_of) = std::move(value);
    parent->push_back(std::move(value));
    return parent->items().back();
  }

  // Json compares a key with all others of its object, which takes hours for a file of a million keys. So large objects
  // get an index of their keys.
  Json& member(Json& object, std::unordered_map<std::string, std::size_t>& index_of) {
    auto& entries = std::get<Json::Object>(object.value_);
    if (entries.size() < kFewKeys) return object[key_];
    for (std::size_t i = index_of.size(); i < entries.size(); ++i) index_of.emplace(entries[i].key, i);
    const auto [known, is_new] = index_of.try_emplace(key_, entries.size());
    if (is_new) entries.push_back({key_, Json()});
    return entries[known->second].value;
  }

  bool add(Json value) {
    put(std::move(value));
    return true;
  }

  bool open(Json value) {
    Json& added = put(std::move(value));
    open_.push_back({&added, {}});
    return open_.size() <= kNestingMost;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  Json root_;
  // The open containers, from the root inwards. A container grows only after all containers in it were closed, so these
  // pointers stay valid.
  std::vector<Open> open_;
  std::string key_;
};

namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

}  // namespace

struct JsonPrinter {
  static Library converted(Json json) {
    return std::visit(Overloaded{[](std::monostate) { return Library(nullptr); },
                                 [](Json::Array&& items) { return array_of(std::move(items)); },
                                 [](Json::Object&& entries) { return object_of(std::move(entries)); },
                                 [](auto&& value) { return Library(std::forward<decltype(value)>(value)); }},
                      std::move(json.value_));
  }

 private:
  static Library array_of(Json::Array items) {
    Library::array_t array;
    array.reserve(items.size());
    for (auto& item : items) array.push_back(converted(std::move(item)));
    return array;
  }

  static Library object_of(Json::Object entries) {
    Library::object_t object;
    object.reserve(entries.size());
    // Keys are already distinct. The library's own insertion would compare each key with all others.
    for (auto& [key, value] : entries) object.emplace_back(std::move(key), converted(std::move(value)));
    return object;
  }
};

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json::Json(std::initializer_list<Pair> pairs) {
  auto& object = value_.emplace<Object>();
  object.reserve(pairs.size());
  for (const auto& [key, value] : pairs) object.push_back({std::string(key), std::move(value)});
}

Json Json::array(std::initializer_list<Json> items) {
  Json json;
  json.value_ = Array(items);
  return json;
}

Json Json::object() {
  Json json;
  json.value_ = Object();
  return json;
}

const Json* Json::find(std::string_view key) const noexcept {
  const auto* const object = std::get_if<Object>(&value_);
  if (object == nullptr) return nullptr;
  const auto found = std::find_if(object->begin(), object->end(), [&](const Entry& entry) { return entry.key == key; });
  return found == object->end() ? nullptr : &found->value;
}

const Json& Json::at(std::string_view key) const {
  if (const auto* const found = find(key)) return *found;
  throw JsonError("has no " + std::string(key));
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object();
  if (const auto* const found = find(key)) return const_cast<Json&>(*found);
  auto* const object = std::get_if<Object>(&value_);
  if (object == nullptr) throw JsonError("is not an object");
  return object->emplace_back(Entry{std::string(key), Json()}).value;
}

const Json::Array& Json::items() const { return as<Array>(); }

Json::Array& Json::items() { return const_cast<Array&>(as<Array>()); }

const Json::Object& Json::entries() const { return as<Object>(); }

std::int64_t Json::signed_integer() const {
  const auto* const value = std::get_if<std::uint64_t>(&value_);
  if (value == nullptr) return as<std::int64_t>();
  if (!std::in_range<std::int64_t>(*value)) throw JsonError("is out of range");
  return static_cast<std::int64_t>(*value);
}

std::uint64_t Json::unsigned_integer() const {
  const auto* const value = std::get_if<std::int64_t>(&value_);
  if (value == nullptr) return as<std::uint64_t>();
  if (*value < 0) throw JsonError("is out of range");
  return static_cast<std::uint64_t>(*value);
}

double Json::number() const {
  if (const auto* const value = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*value);
  if (const auto* const value = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*value);
  return as<double>();
}

std::string json_text(Json json, int indentation) {
  return JsonPrinter::converted(std::move(json)).dump(indentation, ' ', false, Library::error_handler_t::replace);
}

Json parse_json(std::string_view text) {
  JsonBuilder builder;
  if (!Library::sax_parse(text, &builder)) throw JsonSyntaxError(text.size());
  return builder.take();
}

}  // namespace rehearse::sim
