// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// Checks a value against a JSON Schema, as far as the schemas under docs/ use that language: $ref into $defs, const,
// enum, type, pattern, minimum, items, properties, required and additionalProperties.
namespace rehearse::test {

class JsonSchema {
 public:
  using Json = nlohmann::json;

  explicit JsonSchema(Json schema) : whole_(std::move(schema)) {}

  // One line for each part of the value that is against the schema: "/rank_lines/2/state: no value of enum".
  std::vector<std::string> errors_in(const Json& value) const {
    std::vector<std::string> errors;
    check(whole_, value, "", errors);
    return errors;
  }

 private:
  using Errors = std::vector<std::string>;

  static bool has_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "integer") return value.is_number_integer();
    return false;
  }

  void check(const Json& rule, const Json& value, const std::string& path, Errors& errors) const {
    const auto fail = [&](const std::string& why) { errors.push_back(path + ": " + why); };
    if (rule.contains("$ref")) {
      const auto name = rule.at("$ref").get<std::string>();
      check(whole_.at(Json::json_pointer(name.substr(1))), value, path, errors);
    }
    if (rule.contains("const") && rule.at("const") != value) fail("is not " + rule.at("const").dump());
    if (rule.contains("type") && !has_type(value, rule.at("type"))) return fail("no " + rule.at("type").dump());
    if (rule.contains("minimum") && value < rule.at("minimum")) fail("below " + rule.at("minimum").dump());
    if (rule.contains("enum")) {
      const auto& all = rule.at("enum");
      if (std::find(all.begin(), all.end(), value) == all.end()) fail("no value of enum: " + value.dump());
    }
    if (rule.contains("pattern")) {
      const std::regex pattern(rule.at("pattern").get<std::string>());
      if (!std::regex_search(value.get<std::string>(), pattern)) fail("does not match: " + value.dump());
    }
    if (rule.contains("items")) {
      for (std::size_t i = 0; i < value.size(); ++i)
        check(rule.at("items"), value.at(i), path + "/" + std::to_string(i), errors);
    }
    if (value.is_object()) check_members(rule, value, path, errors);
  }

  void check_members(const Json& rule, const Json& value, const std::string& path, Errors& errors) const {
    for (const auto& key : rule.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>())) errors.push_back(path + ": lacks " + key.dump());
    }
    const auto known = rule.value("properties", Json::object());
    for (const auto& [key, member] : value.items()) {
      const auto own = path + "/" + key;
      if (known.contains(key)) {
        check(known.at(key), member, own, errors);
      } else if (rule.contains("additionalProperties")) {
        const auto& others = rule.at("additionalProperties");
        if (others.is_object()) {
          check(others, member, own, errors);
        } else {
          errors.push_back(own + ": unknown key");
        }
      }
    }
  }

  const Json whole_;
};

}  // namespace rehearse::test
