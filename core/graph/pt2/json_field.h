// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>  // json.hpp costs five seconds of compile time; field.cpp alone includes it

#include <rehearse/graph/exported_program.h>

namespace rehearse::graph {

// A value in a JSON document that knows where it stands. Reading something else than what is there throws ImportError
// with the path, the node, what was found and what would be right. The document must outlive it.
class Field {
 public:
  Field(const nlohmann::json& value, std::string path, std::string node = "")
      : value_(&value), path_(std::move(path)), node_(std::move(node)) {}

  Field operator[](const char* key) const;                  // must be there
  std::optional<Field> find(const std::string& key) const;  // none when absent or null
  bool is_null() const;

  std::vector<Field> items() const;                            // of an array
  std::vector<std::pair<std::string, Field>> entries() const;  // of an object, sorted by key
  std::pair<std::string, Field> variant() const;               // an object with one key: the kind and its value
  std::string text() const;
  std::int64_t integer() const;
  double number() const;  // "Infinity", "-Infinity" and "NaN" too
  bool boolean() const;

  Field in_node(const std::string& node) const { return Field(*value_, path_, node); }
  [[noreturn]] void fail(const std::string& message) const { throw ImportError(node_, path_, message); }

 private:
  std::string found() const;

  const nlohmann::json* value_;
  std::string path_;
  std::string node_;
};

// Parses JSON. Throws ImportError, with `field` as its field, for what is no JSON and for what is nested so deep that
// reading it could use up the stack (a body in a body takes 13 levels of the 2,000); and with its path from `field` on
// for a key that an object has twice. Never null. Cost: linear.
std::shared_ptr<const nlohmann::json> parse_json(std::string_view text, const std::string& field);

}  // namespace rehearse::graph
