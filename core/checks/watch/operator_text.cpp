// SPDX-License-Identifier: BSD-3-Clause
#include "checks/watch/operator_text.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::checks {
namespace {

bool is_number(const c10::IValue& value) { return value.isBool() || value.isInt() || value.isDouble(); }

std::string number_text(const c10::IValue& value) {
  if (value.isBool()) return value.toBool() ? "true" : "false";
  return value.isInt() ? fmt::format("{}", value.toInt()) : fmt::format("{:.6g}", value.toDouble());
}

// Options for a new tensor; the schema passes their enumerators as numbers.
bool is_tensor_option(const std::string& name) {
  constexpr std::string_view kNames[] = {"dtype", "layout", "pin_memory", "memory_format"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::string numbers_of(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (is_number(arguments[i]))
      shown.push_back(fmt::format("{}={}", schema.arguments()[i].name(), number_text(arguments[i])));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string call_text(const c10::FunctionSchema& schema, c10::ArrayRef<c10::IValue> arguments) {
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& value = arguments[i];
    const auto& name = schema.arguments()[i].name();
    if (is_tensor_option(name)) continue;
    if (is_number(value)) {
      shown.push_back(fmt::format("{}={}", name, number_text(value)));
    } else if (value.isIntList()) {
      shown.push_back(fmt::format("{}=[{}]", name, fmt::join(value.toIntVector(), ", ")));
    } else if (value.isTensor() && value.toTensor().defined()) {
      shown.push_back(fmt::format("{} of [{}]", name, fmt::join(value.toTensor().sizes(), ", ")));
    }
  }
  return fmt::format("{}({})", schema.name(), fmt::join(shown, ", "));
}

}  // namespace rehearse::checks
