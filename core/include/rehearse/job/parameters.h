// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rehearse {

using ParameterValue = std::variant<bool, std::int64_t, double, std::string>;

// One parameter of a program, which a scenario may set.
struct ParameterSpec {
  std::string name;
  ParameterValue fallback;  // the default; its type is the parameter's type
  std::string summary;
  // Inclusive bounds, for numbers only. If both are equal, the parameter has no bounds. One of them may be infinite.
  double least = 0;
  double most = 0;
};

// The user gave a wrong value. The text says where the value was given, what it is, and what is allowed.
class ParameterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A program's parameters, each with a value. A value type; reading does not block.
class Parameters {
 public:
  Parameters() = default;

  // The defaults of `specs`, overridden by `given`. `origin` says where the user gave a value ("lm.toml:7"), for
  // errors. Throws ParameterError for an unknown name, a wrong type (but an integer is valid for a double) or a value
  // out of bounds; the error lists all problems, one per line, ordered by name. Throws std::logic_error if two specs
  // have the same name.
  struct Given {
    ParameterValue value;
    std::string origin;
  };
  Parameters(const std::vector<ParameterSpec>& specs, const std::map<std::string, Given>& given);

  // flag(), integer(), number() and text() throw std::logic_error if the program did not declare `name`, or declared it
  // with another type.
  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  // Replaces "{scratch}" in texts by `folder()`, as in "{scratch}/model.pt". Calls `folder` only if a text needs it.
  Parameters in_scratch(const std::function<std::string()>& folder) const;

  const std::map<std::string, ParameterValue, std::less<>>& all() const noexcept { return values_; }

  // For a program that takes arguments of its own: the words, in their order.
  const std::vector<std::string>& arguments() const noexcept { return arguments_; }
  void set_arguments(std::vector<std::string> arguments) { arguments_ = std::move(arguments); }

 private:
  template <class T>
  const T& get(std::string_view name, const char* type) const;

  std::map<std::string, ParameterValue, std::less<>> values_;
  std::vector<std::string> arguments_;
};

}  // namespace rehearse
