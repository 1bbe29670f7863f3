// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>  // json.hpp takes five seconds to compile; json_field.cpp alone includes it

#include <rehearse/graph/exported_program.h>

namespace rehearse::graph {

// A value in a JSON document, with its path. Reading another type than the value has throws ImportError with the path,
// the node, what was found and what is right. The document must outlive the Field.
class Field {
 public:
  Field(const nlohmann::json& value, std::string path, std::string node = "")
      : value_(&value), path_(std::move(path)), node_(std::move(node)) {}

  Field operator[](const char* key) const;                  // throws if it is missing
  std::optional<Field> find(const std::string& key) const;  // nothing if it is missing or null
  bool is_null() const;

  std::vector<Field> items() const;                            // reads an array
  std::vector<std::pair<std::string, Field>> entries() const;  // reads an object; sorted by key
  std::pair<std::string, Field> variant() const;               // an object with one key: the kind and its value
  std::string text() const;
  std::int64_t integer() const;
  double number() const;  // also reads "Infinity", "-Infinity" and "NaN"
  bool boolean() const;

  Field in_node(const std::string& node) const { return Field(*value_, path_, node); }
  [[noreturn]] void fail(const std::string& message) const { throw ImportError(node_, path_, message); }

 private:
  std::string found() const;

  const nlohmann::json* value_;
  std::string path_;
  std::string node_;
};

// Parses JSON and never returns null. Throws ImportError with `field` as its field if the text is no JSON, or is nested
// more than 2,000 levels deep, because reading it could exhaust the stack. Each body within another body takes 7
// levels. If an object repeats a key, throws ImportError with the key's path below `field`. Cost: linear.
std::shared_ptr<const nlohmann::json> parse_json(std::string_view text, const std::string& field);

}  // namespace rehearse::graph
