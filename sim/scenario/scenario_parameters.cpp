// SPDX-License-Identifier: BSD-3-Clause
#include "scenario_parameters.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <rehearse_internal/job/parameter_text.h>

namespace rehearse::sim {
namespace {

ParameterValue resolved(ParameterValue value, const std::filesystem::path& base) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return value;
  const bool path = *text == "." || *text == ".." || text->starts_with("./") || text->starts_with("../");
  return path ? (base / *text).lexically_normal().string() : *text;
}

// The value of one parameter. If it does not fit, adds a problem and returns nothing.
std::optional<Parameters::Given> read_parameter(Problems& problems, const toml::key& key, const toml::node& node,
                                                const std::filesystem::path& base,
                                                const std::vector<ParameterSpec>& specs) {
  const auto line = key.source().begin.line;
  const std::string name(key.str());
  const auto spec = std::find_if(specs.begin(), specs.end(), [&](const auto& each) { return each.name == name; });
  const auto value = value_of(node);
  if (spec != specs.end() && !value) {
    problems.add(line,
                 fmt::format("parameter {} is {}; it takes {}", in_quotes(name), shown(node), what_it_takes(*spec)));
    return std::nullopt;
  }
  Parameters::Given given{value ? resolved(*value, base) : ParameterValue(),
                          fmt::format("{}:{}", problems.origin(), line)};
  try {
    Parameters(specs, {{name, given}});  // checks this value alone, for an error with its line
    return given;
  } catch (const ParameterError& error) {
    problems.add_located(line, error.what() + problems.home_hint(name));
    return std::nullopt;
  }
}

}  // namespace

Parameters read_parameters(Problems& problems, const toml::table* table, const std::filesystem::path& base,
                           const std::vector<ParameterSpec>& specs) {
  std::map<std::string, Parameters::Given> good;
  if (table == nullptr) return Parameters(specs, good);
  for (const auto& [key, node] : *table) {
    if (const auto given = read_parameter(problems, key, node, base, specs)) {
      good.emplace(std::string(key.str()), *given);
    }
  }
  return Parameters(specs, good);
}

}  // namespace rehearse::sim
