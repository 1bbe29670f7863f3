// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rehearse {

using ParameterValue = std::variant<bool, std::int64_t, double, std::string>;

// One thing that a scenario may set for a program.
struct ParameterSpec {
  std::string name;
  ParameterValue fallback;  // its type is the parameter's type
  std::string summary;
  // Numbers only; both inclusive. Equal bounds mean: not bounded. One end may be infinite.
  double least = 0;
  double most = 0;
};

// A value that a user wrote is wrong: the text names where it stands, the value, and what would be right.
class ParameterError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A program's parameters with every value filled in. A value type; reading does not block.
class Parameters {
 public:
  Parameters() = default;

  // The fallbacks of `specs`, with `given` put over them. `origin` says where a given value stands
  // ("lm.toml:7"), for errors. Throws ParameterError for an unknown name, a wrong type (integers are taken for
  // doubles) or a value out of bounds: all problems at once, one line for each, by name. Throws std::logic_error
  // when two specs share a name.
  struct Given {
    ParameterValue value;
    std::string origin;
  };
  Parameters(const std::vector<ParameterSpec>& specs, const std::map<std::string, Given>& given);

  // Throws std::logic_error when the program never declared `name`, or with another type.
  bool flag(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  // With `folder()` in place of a text's "{scratch}", as in "{scratch}/model.pt"; it is asked if a text has that.
  Parameters in_scratch(const std::function<std::string()>& folder) const;

  const std::map<std::string, ParameterValue, std::less<>>& all() const noexcept { return values_; }

 private:
  template <class T>
  const T& get(std::string_view name, const char* type) const;

  std::map<std::string, ParameterValue, std::less<>> values_;
};

}  // namespace rehearse
