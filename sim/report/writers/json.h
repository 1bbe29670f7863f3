// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

// JSON as data. In sim, only json.cpp includes the library that reads and prints it, because the library's header adds
// five seconds of compile time to each unit.
namespace rehearse::sim {

// A value is missing, or has another type than the requested one.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A text is not JSON, or is nested more than 500 levels deep (then `byte` is its length).
class JsonSyntaxError : public JsonError {
 public:
  explicit JsonSyntaxError(std::size_t where) : JsonError("not JSON"), byte(where) {}

  std::size_t byte;  // how much of the text was read
};

// A JSON value. Objects keep the order in which keys were added; looking up a key takes linear time.
class Json {
 public:
  struct Pair;  // a key and its value, in the braces that make an object
  template <class Value>
  struct EntryOf {
    std::string key;
    Value value;
  };
  using Entry = EntryOf<Json>;  // an entry of an object, complete as soon as Json is
  using Array = std::vector<Json>;
  using Object = std::vector<Entry>;

  Json() = default;  // null
  // Defined in json.cpp, because otherwise each unit that uses values would compile them again.
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();
  template <std::same_as<bool> T>
  Json(T value) : value_(value) {}
  template <std::signed_integral T>
  Json(T value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::unsigned_integral T>
    requires(!std::same_as<T, bool>)
  Json(T value) : value_(static_cast<std::uint64_t>(value)) {}
  Json(double value) : value_(value) {}  // prints as null if it is not finite
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  template <class T>
  Json(const std::vector<T>& items) : value_(Array(items.begin(), items.end())) {}
  template <class T>
  Json(const std::map<std::string, T>& entries);
  Json(std::initializer_list<Pair> pairs);  // for example {{"rank", 1}, {"name", "x"}}

  static Json array(std::initializer_list<Json> items = {});
  static Json object();

  bool is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  bool is_object() const noexcept { return std::holds_alternative<Object>(value_); }
  bool is_array() const noexcept { return std::holds_alternative<Array>(value_); }
  bool is_text() const noexcept { return std::holds_alternative<std::string>(value_); }

  // Null if the key is missing, or if this is no object.
  const Json* find(std::string_view key) const noexcept;
  bool contains(std::string_view key) const noexcept { return find(key) != nullptr; }
  // Throws JsonError if the key is missing.
  const Json& at(std::string_view key) const;
  // Adds null for a missing key. A null value becomes an object. Throws JsonError if this is neither null nor an
  // object.
  Json& operator[](std::string_view key);

  // Throw JsonError if this is no array.
  const Array& items() const;
  Array& items();
  void push_back(Json item) { items().push_back(std::move(item)); }

  // Throws JsonError if this is no object.
  const Object& entries() const;

  // T is bool, an integer, double, std::string, or a std::vector or std::map of these. Throws JsonError for a value of
  // another type and for a number that does not fit. Integers also count as double.
  template <class T>
  T get() const;

 private:
  friend struct JsonPrinter;
  friend class JsonBuilder;

  template <class T>
  const T& as() const {
    if (const auto* value = std::get_if<T>(&value_)) return *value;
    throw JsonError("is of the wrong type");
  }
  std::int64_t signed_integer() const;
  std::uint64_t unsigned_integer() const;
  double number() const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

struct Json::Pair {
  std::string_view key;
  mutable Json value;  // mutable, to be moved into the object: the elements of a braced list are const
};

// A negative indentation puts everything on one line. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(Json json, int indentation = -1);

// Throws JsonSyntaxError.
Json parse_json(std::string_view text);

template <class T>
Json::Json(const std::map<std::string, T>& entries) {
  auto& object = value_.emplace<Object>();
  object.reserve(entries.size());
  for (const auto& [key, value] : entries) object.push_back({key, value});
}

template <class T>
T Json::get() const {
  if constexpr (std::is_same_v<T, bool>) {
    return as<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    using Widest = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    Widest value = 0;
    if constexpr (std::is_signed_v<T>) {
      value = signed_integer();
    } else {
      value = unsigned_integer();
    }
    if (!std::in_range<T>(value)) throw JsonError("is out of range");
    return static_cast<T>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return number();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return as<std::string>();
  } else if constexpr (requires { typename T::mapped_type; }) {
    T result;
    for (const auto& [key, value] : as<Object>()) result.emplace(key, value.template get<typename T::mapped_type>());
    return result;
  } else {
    T result;
    for (const auto& item : items()) result.push_back(item.get<typename T::value_type>());
    return result;
  }
}

}  // namespace rehearse::sim
