// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include <fmt/format.h>
#include <rehearse/job/program.h>

#include "commands.h"

namespace rehearse::cli {
namespace {

std::string shown(const ParameterValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return fmt::format("\"{}\"", *text);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  const auto text = fmt::format("{}", std::get<double>(value));
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

std::string bounds(const ParameterSpec& spec) {
  if (spec.least == spec.most) return "";
  if (std::isinf(spec.most)) return fmt::format("; {} or more", spec.least);
  if (std::isinf(spec.least)) return fmt::format("; {} or less", spec.most);
  return fmt::format("; {} to {}", spec.least, spec.most);
}

// The parameters as a scenario would set them, with their fallbacks.
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

}  // namespace

int list(Console& console) {
  const auto all = programs();
  if (all.empty()) {
    console.result("no programs: link object files that say REHEARSE_PROGRAM(name)\n");
    return 0;
  }
  for (const auto* program : all) console.result(described(*program));
  return 0;
}

}  // namespace rehearse::cli
