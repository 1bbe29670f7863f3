// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/job/parameters.h>

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/job/spelling.h>

namespace rehearse {
namespace {

bool in_bounds(const ParameterSpec& spec, double number) {
  return spec.least == spec.most || (number >= spec.least && number <= spec.most);
}

// Converts the value to the parameter's type; nullopt if it does not fit.
std::optional<ParameterValue> converted(const ParameterSpec& spec, const ParameterValue& given) {
  if (std::holds_alternative<double>(spec.fallback)) {
    double number = 0;
    if (const auto* integer = std::get_if<std::int64_t>(&given)) {
      number = static_cast<double>(*integer);
    } else if (const auto* real = std::get_if<double>(&given)) {
      number = *real;
    } else {
      return std::nullopt;
    }
    if (!in_bounds(spec, number)) return std::nullopt;
    return number;
  }
  if (given.index() != spec.fallback.index()) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(&given)) {
    if (!in_bounds(spec, static_cast<double>(*integer))) return std::nullopt;
  }
  return given;
}

std::string unknown_name(const std::string& name, const std::vector<ParameterSpec>& specs) {
  if (specs.empty()) return fmt::format("there is no parameter {}; the program takes none", in_quotes(name));
  std::vector<std::string> names;
  for (const ParameterSpec& spec : specs) names.push_back(spec.name);
  std::ranges::sort(names);
  return fmt::format("there is no parameter {}{}; the program takes {}", in_quotes(name), did_you_mean(name, names),
                     fmt::join(names, ", "));
}

const ParameterSpec* find(const std::vector<ParameterSpec>& specs, std::string_view name) {
  const auto found = std::ranges::find_if(specs, [&](const auto& spec) { return spec.name == name; });
  return found == specs.end() ? nullptr : &*found;
}

}  // namespace

Parameters::Parameters(const std::vector<ParameterSpec>& specs, const std::map<std::string, Given>& given) {
  for (const ParameterSpec& spec : specs) {
    if (!values_.emplace(spec.name, spec.fallback).second) {
      throw std::logic_error(fmt::format("parameter \"{}\" is declared twice", spec.name));
    }
  }
  std::vector<std::string> problems;
  for (const auto& [name, from_user] : given) {
    const std::string where = from_user.origin.empty() ? "" : from_user.origin + ": ";
    const ParameterSpec* spec = find(specs, name);
    if (spec == nullptr) {
      problems.push_back(where + unknown_name(name, specs));
    } else if (auto value = converted(*spec, from_user.value)) {
      values_[name] = std::move(*value);
    } else {
      problems.push_back(fmt::format("{}parameter \"{}\" is {}; it takes {}", where, name, shown(from_user.value),
                                     what_it_takes(*spec)));
    }
  }
  if (!problems.empty()) throw ParameterError(fmt::format("{}", fmt::join(problems, "\n")));
}

template <class T>
const T& Parameters::get(std::string_view name, const char* type) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    throw std::logic_error(fmt::format("the program reads parameter \"{}\" but never declared it", name));
  }
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) {
    throw std::logic_error(fmt::format("the program reads parameter \"{}\" as {} but declared it as {}", name, type,
                                       type_name(found->second)));
  }
  return *value;
}

Parameters Parameters::in_scratch(const std::function<std::string()>& folder) const {
  constexpr std::string_view kWord = "{scratch}";
  Parameters parameters = *this;
  for (auto& [name, value] : parameters.values_) {
    auto* const text = std::get_if<std::string>(&value);
    if (text == nullptr) continue;
    for (std::size_t at = text->find(kWord); at != std::string::npos; at = text->find(kWord, at)) {
      const auto path = folder();
      text->replace(at, kWord.size(), path);
      at += path.size();
    }
  }
  return parameters;
}

bool Parameters::flag(std::string_view name) const { return get<bool>(name, "true or false"); }
std::int64_t Parameters::integer(std::string_view name) const { return get<std::int64_t>(name, "an integer"); }
double Parameters::number(std::string_view name) const { return get<double>(name, "a number"); }
const std::string& Parameters::text(std::string_view name) const { return get<std::string>(name, "a text"); }

}  // namespace rehearse
