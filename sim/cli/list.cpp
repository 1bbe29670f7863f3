// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rehearse/job/program.h>
#include <rehearse_internal/job/parameter_text.h>
#include <rehearse_internal/job/spelling.h>

#include "cli/commands.h"
#include "cli/grammar/usage_error.h"
#include "report/writers/json.h"

namespace rehearse::cli {
namespace {

using sim::Json;

std::string bounds(const ParameterSpec& spec) {
  if (spec.least == spec.most) return "";
  if (std::isinf(spec.most)) return fmt::format("; {} or more", spec.least);
  if (std::isinf(spec.least)) return fmt::format("; {} or less", spec.most);
  return fmt::format("; {} to {}", spec.least, spec.most);
}

// The parameters as a scenario would set them, with their defaults.
std::string described(const Program& program) {
  std::size_t width = 0;
  for (const auto& spec : program.spec.parameters) {
    width = std::max(width, spec.name.size() + 3 + shown(spec.fallback).size());
  }
  std::string text = fmt::format("{}: {}\n", program.name, program.spec.summary);
  for (const auto& spec : program.spec.parameters) {
    const auto setting = fmt::format("{} = {}", spec.name, shown(spec.fallback));
    text += fmt::format("  {:<{}}  # {}{}\n", setting, width, spec.summary, bounds(spec));
  }
  return text;
}

Json as_json(const Program& program) {
  auto parameters = Json::array();
  for (const auto& spec : program.spec.parameters) {
    Json parameter = {{"name", spec.name}, {"summary", spec.summary}};
    std::visit([&](const auto& value) { parameter["default"] = value; }, spec.fallback);
    if (spec.least != spec.most) {
      if (std::isfinite(spec.least)) parameter["least"] = spec.least;
      if (std::isfinite(spec.most)) parameter["most"] = spec.most;
    }
    parameters.push_back(std::move(parameter));
  }
  return {{"name", program.name}, {"summary", program.spec.summary}, {"parameters", std::move(parameters)}};
}

std::vector<const Program*> asked_for(const Arguments& arguments) {
  if (arguments.operand.empty()) return programs();
  if (const auto* program = find_program(arguments.operand)) return {program};
  const auto names = program_names();
  throw UsageError(fmt::format("{} list: there is no program \"{}\" in this executable{}; it has {}",
                               name_of(arguments.self), arguments.operand, did_you_mean(arguments.operand, names),
                               names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

}  // namespace

int list(const Arguments& arguments, Console& console) {
  const auto shown_ones = asked_for(arguments);
  if (arguments.json) {
    auto json = Json::array();
    for (const auto* program : shown_ones) json.push_back(as_json(*program));
    console.result(sim::json_text(std::move(json), 2) + "\n");
    return 0;
  }
  if (shown_ones.empty()) console.result("no programs: link object files that say REHEARSE_PROGRAM(name)\n");
  for (const auto* program : shown_ones) console.result(described(*program));
  return 0;
}

}  // namespace rehearse::cli
