// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/compile/guard_failure.h>

#include <fmt/format.h>

namespace rehearse::compiler {

std::string text_of(const GuardFailure& failure) {
  std::string text = fmt::format("{}: expected {}, found {}", failure.source, failure.expected, failure.found);
  if (!failure.line.empty()) text += fmt::format(" ({})", failure.line);
  return text;
}

}  // namespace rehearse::compiler
